"""What can be read off a loaded model: its window, its end tokens, digests and versions for the record."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from typing import Any

DEFAULT_WINDOW = 2048  # where neither the model nor its tokenizer says; lm-evaluation-harness takes the same
SERVED = "none: it answers over the wire, so its tokenizer is not here"  # instead of what thai_facts counts
WRITTEN = "none: its answers are written down, without a tokenizer"
NO_LIMIT = 10**29  # tokenizers write about 1e30 for "no limit known"
LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "accelerate", "peft", "bitsandbytes")


def window(config: Any, tokenizer: Any, explicit: int = 0) -> int:
    """Longest input in tokens: `explicit` unless 0, else the text config's n_positions, max_position_embeddings or
    n_ctx, else the tokenizer's limit unless it means none, else 2048 (the order of lm-evaluation-harness)."""
    if explicit:
        return explicit
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    for key in ("n_positions", "max_position_embeddings", "n_ctx"):
        if getattr(text, key, None):
            return int(getattr(text, key))
    limit = getattr(tokenizer, "model_max_length", None)
    return int(limit) if limit and limit < NO_LIMIT else DEFAULT_WINDOW


def end_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """Every id that ends a text: chat models often name one in the tokenizer and others in the generation config."""
    named = [tokenizer.eos_token_id, getattr(model.generation_config, "eos_token_id", None)]
    named.append(getattr(model.config.get_text_config(), "eos_token_id", None))
    lists = [ids if isinstance(ids, (list, tuple)) else [ids] for ids in named]
    return frozenset(int(i) for ids in lists for i in ids if i is not None)


def clean_generation(model: Any, eos: frozenset[int], pad: int) -> None:
    """Replaces the shipped generation config: its sampling and penalties must not reach an evaluation unasked."""
    from transformers import GenerationConfig

    model.generation_config = GenerationConfig(do_sample=False, eos_token_id=sorted(eos) or None, pad_token_id=pad)


def logits_dtype(model: Any) -> str:
    """The dtype in which the model's own forward pass returns logits; it differs between classes and releases."""
    import torch

    ids = torch.zeros((1, 1), dtype=torch.long, device=model.get_input_embeddings().weight.device)
    with torch.inference_mode():
        return str(model(input_ids=ids, use_cache=False).logits.dtype).removeprefix("torch.")


def tokenizer_sha256(tokenizer: Any) -> str:
    """Digest of all that decides a text's ids. Padding and truncation, which each call sets anew, are left out."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        described = json.dumps([type(tokenizer).__name__, sorted(tokenizer.get_vocab().items())], ensure_ascii=False)
    else:
        backend.no_padding()
        backend.no_truncation()
        described = backend.to_str()
    return hashlib.sha256(described.encode()).hexdigest()


def versions() -> dict[str, str]:
    """Versions of Python and of each installed library that takes part in a forward pass."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
