"""The scoring kernel, plain path: token-id requests → log-probabilities of the continuation's tokens.

One forward pass per distinct input, right padding with mask and position ids, the LM head and an fp32 log-softmax on
the rows that score something only. Members of a group that feed the same ids each take their own last rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from thaikit.trie import feeds

HEAD_ROWS = 512  # rows that go through the LM head at once: with a vocabulary of 262,144, half a gigabyte in fp32


@dataclass(frozen=True, slots=True)
class Scored:
    """Natural-log probabilities of each continuation token (float32), and whether each was the arg-max."""

    logprobs: np.ndarray
    greedy: bool

    @property
    def ll(self) -> float:
        """Their sum, accumulated in float64."""
        return float(self.logprobs.sum(dtype=np.float64))


@dataclass(frozen=True, slots=True)
class Row:
    """One model input and the requests that read it: (request index, its continuation)."""

    feed: tuple[int, ...]
    readers: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def wanted(self) -> int:
        """How many last positions anyone reads."""
        return max(len(target) for _, target in self.readers)


def group(requests: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[Row]:
    """Requests `(context, continuation)` by the ids that they feed, longest first (an early out-of-memory)."""
    ordered = sorted(feeds(requests), key=lambda feed: (-len(feed.ids), feed.ids))
    return [Row(feed.ids, feed.readers) for feed in ordered]


def score_plain(
    model: Any,
    requests: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    batch_size: int = 8,
    on_batch: Callable[[int], None] | None = None,
) -> Iterator[tuple[int, Scored]]:
    """Yield `(request index, Scored)` as batches finish, longest inputs first.

    `model` is a causal language model with a Hugging Face interface. `batch_size` is halved on out-of-memory and the
    batch tried again. `on_batch` hears the number of input tokens of each finished batch.
    """
    waiting = group(requests)
    start, size = 0, max(1, batch_size)
    while start < len(waiting):
        batch = waiting[start : start + size]
        try:
            results = list(run_batch(model, batch))
        except torch.cuda.OutOfMemoryError:
            if size == 1:
                raise
            size = max(1, size // 2)
            torch.cuda.empty_cache()
            continue
        start += len(batch)
        if on_batch:
            on_batch(sum(len(row.feed) for row in batch))
        yield from results


@torch.inference_mode()
def run_batch(model: Any, batch: Sequence[Row]) -> Iterator[tuple[int, Scored]]:
    """One right-padded forward pass; the scores of every reader of every row."""
    device = model.get_input_embeddings().weight.device
    width = max(len(row.feed) for row in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for line, row in enumerate(batch):
        ids[line, : len(row.feed)] = torch.tensor(row.feed)
        mask[line, : len(row.feed)] = 1
    positions = torch.arange(width).expand(len(batch), width)
    hidden = hidden_states(model, ids.to(device), mask.to(device), positions.to(device))
    for line, row in enumerate(batch):
        last = hidden[line, len(row.feed) - row.wanted : len(row.feed)]
        yield from read_row(model, last, row)


def hidden_states(model: Any, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """The decoder's last hidden states (batch, width, size), before the LM head."""
    out = decoder(model)(
        input_ids=ids,
        attention_mask=mask if bool((mask == 0).any()) else None,
        position_ids=positions,
        use_cache=False,
    )
    return out[0]


def decoder(model: Any) -> Any:
    """The stack below the LM head; adapters are looked through."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    found = inner.get_decoder() if hasattr(inner, "get_decoder") else None
    found = inner.base_model if found is None else found
    return getattr(inner, "model", inner) if found is inner else found  # Llama 4 names its stack by another name


def text_config(model: Any) -> Any:
    """The config of the text model: that of a model for pictures too lies inside the whole one's."""
    return model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config


def bend(model: Any) -> int:
    """The length beyond which a model changes the rotary frequencies of all its positions (longrope), 0 for never: rows
    on either side of it can share neither a forward pass nor a beginning."""
    rope = getattr(text_config(model), "rope_parameters", None) or {}
    kinds = [kind for kind in (rope, *rope.values()) if isinstance(kind, dict) and kind.get("rope_type") == "longrope"]
    return min((kind["original_max_position_embeddings"] for kind in kinds), default=0)


def logits(model: Any, hidden: torch.Tensor) -> torch.Tensor:
    """fp32 logits of hidden rows (n, vocabulary), with the model's final soft cap where its config has one."""
    head = model.get_output_embeddings()
    # State-space models keep their hidden states in fp32 and narrow them for the head.
    narrow = head.weight.dtype if head.weight.dtype in (torch.bfloat16, torch.float16) else hidden.dtype
    out = head(hidden.to(head.weight.device, narrow)).float()
    config = text_config(model)
    cap = getattr(config, "final_logit_softcapping", None) or getattr(config, "logits_soft_cap", None)
    out = out * (getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0)
    return torch.tanh(out / cap) * cap if cap else out


@torch.inference_mode()
def check_head(model: Any) -> None:
    """ValueError unless decoder and head, run apart, give the model's own logits (a head may do more than we know)."""
    device = model.get_input_embeddings().weight.device
    ids = torch.arange(1, 9, device=device).unsqueeze(0)
    own = model(input_ids=ids, use_cache=False).logits[0].float()
    ours = logits(model, decoder(model)(input_ids=ids, use_cache=False)[0][0])
    worst = float((own - ours).abs().max() / own.abs().max().clamp(min=1.0))
    # Its own scale and soft cap are rounded to its dtype; ours are in fp32.
    tolerance = 1e-3 if model.get_output_embeddings().weight.dtype == torch.float32 else 1e-2
    if not worst <= tolerance:
        raise ValueError(f"{type(model).__name__}: its LM head differs from a plain one by {worst:.2g}; not supported")


def read_row(model: Any, last: torch.Tensor, row: Row) -> Iterator[tuple[int, Scored]]:
    """Scores of a row's readers from its last hidden states; a reader of m tokens takes the last m rows."""
    longest = row.wanted
    values = {index: np.empty(len(target), dtype=np.float32) for index, target in row.readers}
    greedy = {index: True for index, _ in row.readers}
    for begin in range(0, longest, HEAD_ROWS):
        out = logits(model, last[begin : begin + HEAD_ROWS])
        norm, best = out.logsumexp(-1), out.argmax(-1).tolist()
        for index, target in row.readers:
            skip = longest - len(target)
            low, high = max(begin, skip), min(begin + HEAD_ROWS, longest)
            if low >= high:
                continue
            ids = torch.tensor(target[low - skip : high - skip], device=out.device)
            lines = torch.arange(low - begin, high - begin, device=out.device)
            picked = out[lines, ids] - norm[lines]
            values[index][low - skip : high - skip] = picked.cpu().numpy()
            greedy[index] &= best[low - begin : high - begin] == list(target[low - skip : high - skip])
    for index, _ in row.readers:
        yield index, Scored(values[index], greedy[index])
