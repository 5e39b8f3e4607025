"""Greedy generation with stop strings tracked per row on the decoded text. Finished rows leave the batch at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thaikit.loglikelihood import decoder, logits


@dataclass(frozen=True, slots=True)
class Generated:
    """Raw new text, its ids, and why it ended: `stop` (a stop string), `eos` (an end token) or `length`."""

    text: str
    ids: tuple[int, ...]
    finish: str


@dataclass
class Writing:
    """A row being written."""

    index: int
    ids: list[int]
    finish: str = ""


def generate(
    model: Any,
    prompts: Sequence[Sequence[int]],
    *,
    decode: Callable[[list[int]], str],
    stops: Sequence[str],
    eos_ids: Sequence[int],
    max_new_tokens: int,
    batch_size: int = 8,
    on_batch: Callable[[int], None] | None = None,
) -> Iterator[tuple[int, Generated]]:
    """Yield `(prompt index, Generated)` as rows finish; prompts of like length share a batch.

    Ids are cut at the first end token; text keeps the stop string (the caller cuts it, so that the rule is on record).
    `decode` gives the text of new ids. `on_batch` hears the prompt tokens of each finished batch.
    """
    if isinstance(stops, str):
        raise ValueError(f"stops is the string {stops!r}; it must be a list of strings")
    order = sorted(range(len(prompts)), key=lambda i: (-len(prompts[i]), tuple(prompts[i])))
    start, size = 0, max(1, batch_size)
    while start < len(order):
        chosen = order[start : start + size]
        try:
            done = list(run_batch(model, chosen, prompts, decode, list(stops), set(eos_ids), max_new_tokens))
        except torch.cuda.OutOfMemoryError:
            if size == 1:
                raise
            size = max(1, size // 2)
            torch.cuda.empty_cache()
            continue
        start += len(chosen)
        if on_batch:
            on_batch(sum(len(prompts[i]) for i in chosen))
        yield from done


@torch.inference_mode()
def run_batch(
    model: Any,
    chosen: Sequence[int],
    prompts: Sequence[Sequence[int]],
    decode: Callable[[list[int]], str],
    stops: list[str],
    eos_ids: set[int],
    limit: int,
) -> Iterator[tuple[int, Generated]]:
    """Left-padded prefill, then one token a step for the rows that are still writing."""
    device = model.get_input_embeddings().weight.device
    width = max(len(prompts[i]) for i in chosen)
    ids = torch.zeros(len(chosen), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for line, i in enumerate(chosen):
        ids[line, width - len(prompts[i]) :] = torch.tensor(list(prompts[i]))
        mask[line, width - len(prompts[i]) :] = 1
    ids, mask, cache = ids.to(device), mask.to(device), None
    rows = [Writing(i, []) for i in chosen]
    for _ in range(limit):
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        tokens, cache = step(model, ids, mask, positions, cache)
        for row, token in zip(rows, tokens, strict=True):
            row.finish = advance(row.ids, token, decode, stops, eos_ids)
        yield from (finished(row, decode) for row in rows if row.finish)
        keep = [line for line, row in enumerate(rows) if not row.finish]
        if not keep:
            return
        if len(keep) < len(rows):
            cache.batch_select_indices(torch.tensor(keep, device=device))
            rows, mask, tokens = [rows[k] for k in keep], mask[keep], [tokens[k] for k in keep]
        ids = torch.tensor(tokens, device=device).unsqueeze(1)
        mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
    for row in rows:
        row.finish = "length"
        yield finished(row, decode)


def step(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, cache: Any
) -> tuple[list[int], Any]:
    """The arg-max token of each row's last position, and the grown key/value cache."""
    given = {} if cache is None else {cache_name(model): cache}
    out = decoder(model)(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, **given)
    best = logits(model, out[0][:, -1]).argmax(-1)
    return best.tolist(), out[cache_name(model)]


def cache_name(model: Any) -> str:
    """The forward argument for the cache: `cache` in newer transformers, `past_key_values` before."""
    return "cache" if "cache" in inspect.signature(decoder(model).forward).parameters else "past_key_values"


def advance(ids: list[int], token: int, decode: Callable[[list[int]], str], stops: list[str], eos: set[int]) -> str:
    """Add a token to a row; the reason it is finished, or ""."""
    if token in eos:
        return "eos"
    ids.append(token)
    text = decode(ids) if stops else ""
    return "stop" if any(stop and stop in text for stop in stops) else ""


def finished(row: Writing, decode: Callable[[list[int]], str]) -> tuple[int, Generated]:
    """A row's result."""
    return row.index, Generated(decode(row.ids), tuple(row.ids), row.finish)
