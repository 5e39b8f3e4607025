"""How much fits: the pack of the tree kernel and the batch of generation, from free memory and the model's shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from thaikit.loglikelihood import text_config

CPU_PACK = 1024  # beyond it a dense mask costs more attention than larger matrices gain
CPU_ROWS = 32  # a step reads all weights once, however many rows it serves
LARGEST_PACK = 16_384
LARGEST_ROWS = 256
SHARE = 0.6  # of the free memory; the rest is for fragments and the LM head


@dataclass(frozen=True)
class Shape:
    """What decides a model's memory a token: sizes as in its config, and the bytes of one number."""

    layers: int
    hidden: int
    intermediate: int
    kv: int
    width: int

    @property
    def kv_bytes(self) -> int:
        """Bytes of one token's keys and values over all layers."""
        return 2 * self.layers * self.kv * self.width

    @property
    def activation_bytes(self) -> int:
        """Bytes of one token's largest activations: a layer's residual and attention states, and its MLP's three."""
        return self.width * (12 * self.hidden + 4 * self.intermediate)


def shape_of(model: Any) -> Shape:
    """A model's shape, read off its config."""
    config = text_config(model)
    heads = getattr(config, "num_attention_heads", 1) or 1
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    hidden = config.hidden_size
    head = getattr(config, "head_dim", None) or hidden // heads
    width = next(model.parameters()).element_size()
    inner = getattr(config, "intermediate_size", None) or 4 * hidden
    return Shape(config.num_hidden_layers, hidden, inner, kv_heads * head, max(2, width))


def free_bytes(model: Any) -> int:
    """Free memory of the model's device in bytes, what PyTorch holds unused included; 0 on a CPU."""
    device = model.get_input_embeddings().weight.device
    if device.type != "cuda":
        return 0
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def pack_size(shape: Shape, free: int, *, longest: int) -> int:
    """Tokens of a pack: a power of two up to 16,384 whose activations, keys, values and dense masks over a prefix of
    up to `longest` tokens fit into a share of `free` bytes; 1,024 where `free` is 0 (a CPU)."""
    if not free:
        return CPU_PACK
    pack = LARGEST_PACK
    while pack > CPU_PACK:
        masks = 2 * shape.width * pack * (pack + longest)
        prefix = 2 * longest * shape.kv_bytes  # kept, and once more where a layer joins it with the pack
        if pack * (shape.activation_bytes + shape.kv_bytes) + masks + prefix <= SHARE * free:
            break
        pack //= 2
    return pack


def row_count(shape: Shape, free: int, *, longest: int) -> int:
    """Rows of a generation batch whose keys and values, `longest` tokens each, fit twice (a step copies them)."""
    if not free:
        return CPU_ROWS
    return max(1, min(LARGEST_ROWS, int(SHARE * free / max(1, 2 * longest * shape.kv_bytes))))
