"""The tree kernel: every distinct token of the requests runs once.

Prefixes shared by many are run once and their keys and values kept; the rest is packed, many questions to a row, with
position ids = depth in the trie and attention to ancestors only. Rows that score something go through the LM head.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from thaikit.loglikelihood import HEAD_ROWS, Scored, decoder, logits, score_plain, text_config
from thaikit.trie import MIN_PREFIX, Drop, Segment, Want, feeds, plan

WINDOW = 8192  # requests planned at once; a prefix shared by all is run again in each window
SMALLEST_PACK = 64
ATTENTION = {"full_attention", "sliding_attention", "attention"}  # layers that masks and positions decide
# How models fail that the kernels do not fit.
REFUSALS = (TypeError, ValueError, RuntimeError, AttributeError, IndexError, KeyError, NotImplementedError)


class Prefix:
    """Keys and values of the shared prefix, layer by layer, behind the one call that attention layers make.

    A pack sees prefix and itself and leaves nothing behind; a kept segment lengthens the prefix.
    """

    is_compileable = False

    def __init__(self, model: Any) -> None:
        self.layers: dict[int, Any] = {}
        self.keep = False

    @contextmanager
    def over(self, model: Any, segment: Segment) -> Iterator[dict[str, Any]]:
        """What the model's stack is given beside the ids of a segment: its masks."""
        yield {"attention_mask": masks(model, segment, model.get_input_embeddings().weight.device)}

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Prefix and new states, joined (transformers' cache interface)."""
        if layer_idx in self.layers:
            old_keys, old_values = self.layers[layer_idx]
            keys, values = torch.cat([old_keys, keys], dim=2), torch.cat([old_values, values], dim=2)
        if self.keep:
            self.layers[layer_idx] = keys, values
        return keys, values

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Tokens cached."""
        return self.layers[layer_idx][0].shape[2] if layer_idx in self.layers else 0

    def drop(self, past: int) -> None:
        """Forget all but the first `past` tokens."""
        kept = {layer: tuple(states[:, :, :past].clone() for states in pair) for layer, pair in self.layers.items()}
        self.layers = kept if past else {}


class Ledger:
    """Results under way: a request is done when the last of its tokens is read."""

    def __init__(self, requests: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        self.values: dict[int, np.ndarray] = {}
        self.greedy: dict[int, bool] = {}
        self.open = [len(continuation) for _, continuation in requests]
        self.sizes = list(self.open)

    def put(self, want: Want, logprob: float, best: int) -> Iterator[tuple[int, Scored]]:
        """Enter one token's log-probability; yields the request's result if it was the last."""
        request, place, target = want
        values = self.values.setdefault(request, np.empty(self.sizes[request], dtype=np.float32))
        values[place] = logprob
        self.greedy[request] = self.greedy.get(request, True) and best == target
        self.open[request] -= 1
        if not self.open[request]:
            yield request, Scored(self.values.pop(request), self.greedy.pop(request))


def score_tree(
    model: Any,
    requests: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    pack: int = 1024,
    cache: type[Prefix] = Prefix,
    on_batch: Callable[[int], None] | None = None,
) -> Iterator[tuple[int, Scored]]:
    """Yield `(request index, Scored)` as segments finish. `pack` is the most tokens of one forward pass, `cache` how
    attention reaches the prefix.

    Requests are planned `WINDOW` at a time, so memory does not grow with their number. On out-of-memory the pack is
    halved and what is not yet done goes on. `on_batch` hears the number of tokens of each finished segment. Equal to
    the plain path within 1e-4 a token in fp32.
    """
    for begin in range(0, len(requests), WINDOW):
        left = list(range(begin, min(begin + WINDOW, len(requests))))
        while left:
            done: set[int] = set()
            try:
                for place, scored in run_plan(model, [requests[i] for i in left], pack, cache, on_batch):
                    done.add(place)
                    yield left[place], scored
            except torch.cuda.OutOfMemoryError:
                if pack <= SMALLEST_PACK:
                    raise
                pack //= 2
                torch.cuda.empty_cache()
            left = [index for place, index in enumerate(left) if place not in done]


def run_plan(
    model: Any,
    requests: Sequence[tuple[Sequence[int], Sequence[int]]],
    pack: int,
    cache: type[Prefix],
    on_batch: Callable[[int], None] | None,
) -> Iterator[tuple[int, Scored]]:
    """The requests of one window, segment by segment."""
    prefix, ledger = cache(model), Ledger(requests)
    for step in plan(feeds(requests), pack):
        if isinstance(step, Drop):
            prefix.drop(step.past)
            continue
        results = list(run_segment(model, step, prefix, ledger))
        if on_batch:
            on_batch(len(step.ids))
        yield from results


@torch.inference_mode()
def run_segment(model: Any, segment: Segment, prefix: Prefix, ledger: Ledger) -> Iterator[tuple[int, Scored]]:
    """One forward pass over a segment, and what is read of it."""
    device = model.get_input_embeddings().weight.device
    prefix.keep = segment.keep
    stack = decoder(model)
    with prefix.over(model, segment) as given:
        out = stack(
            input_ids=torch.tensor([segment.ids], device=device),
            position_ids=torch.tensor([segment.depth], device=device),
            use_cache=True,
            **given,
            **{cache_argument(stack): prefix},
        )
    nodes = sorted(segment.wants)
    for begin in range(0, len(nodes), HEAD_ROWS):
        chosen = nodes[begin : begin + HEAD_ROWS]
        rows = logits(model, out[0][0, torch.tensor(chosen, device=device)])
        yield from read(rows, [segment.wants[node] for node in chosen], ledger)


def run_chain(model: Any, ids: Sequence[int], prefix: Prefix, *, pack: int = 1024) -> None:
    """Run ids as a shared prefix from its start; nothing is read."""
    for start in range(0, len(ids), pack):
        segment = Segment(start, keep=True)
        for depth in range(start, min(start + pack, len(ids))):
            segment.add(ids[depth], len(segment.ids) - 1, depth)
        list(run_segment(model, segment, prefix, Ledger([])))


def unfit(model: Any, *, cache: type[Prefix] = Prefix) -> str:
    """Why this model cannot be packed, or "" if it can: both paths on a small tree, deeper than a short window.

    Recurrent or hybrid states, positional biases and attention of a model's own show here as an error or a difference.
    """
    config = text_config(model)
    window = getattr(config, "sliding_window", None) or 0
    trunk = MIN_PREFIX + 16 + (window if window <= 1024 else 0)
    draw = np.random.default_rng(0)
    ids = draw.integers(3, min(config.vocab_size, 30_000), size=trunk + 24).tolist()
    stem, a, b, c = ids[:trunk], ids[trunk : trunk + 8], ids[trunk + 8 : trunk + 16], ids[trunk + 16 :]
    requests = [(stem, a + b), ([*stem, *c], b), (stem[:20], c)]
    others = layer_names(config) - ATTENTION
    if others:
        return f"layers of another kind: {', '.join(sorted(others))}"
    try:
        if deaf(model, ids[:64]):
            return "position ids change nothing: it has positions of its own"
        packed = dict(score_tree(model, requests, pack=trunk // 2, cache=cache))
    except REFUSALS as error:
        return refusal(error)
    plain = dict(score_plain(model, requests, batch_size=1))
    worst = max(float(np.abs(packed[i].logprobs - plain[i].logprobs).max()) for i in plain)
    return too_far(model, worst, where="on a small tree")


def layer_names(config: Any) -> set[str]:
    """The kinds of layers that a config names, under any of the keys in use; none where all are alike."""
    # GPT-Neo's local layers (`attention_layers`) count places of the pack, with a window that the probe does not reach.
    keys = ("layer_types", "layers_block_type", "block_types", "attention_layers")
    return {str(name) for key in keys for name in getattr(config, key, None) or ()}


@torch.inference_mode()
def deaf(model: Any, ids: Sequence[int]) -> bool:
    """Whether a model takes no notice of position ids (ALiBi, recurrent states), which a pack lives by. In a narrow
    dtype the probe's own difference may be too small to tell."""
    device = model.get_input_embeddings().weight.device
    rows, places = torch.tensor([list(ids)], device=device), torch.arange(len(ids), device=device)[None]
    mask, stack = torch.ones_like(rows), decoder(model)
    near, far = (
        stack(input_ids=rows, attention_mask=mask, position_ids=step * places, use_cache=False)[0] for step in (1, 2)
    )
    return bool(torch.equal(near, far))


def refusal(error: Exception) -> str:
    """What a probe tells of a model that could not run it."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


def too_far(model: Any, worst: float, *, where: str) -> str:
    """What a probe tells of the largest difference of two paths' log-probabilities, "" where it is only rounding."""
    narrow = next(model.parameters()).dtype != torch.float32
    return "" if worst <= (0.25 if narrow else 1e-3) else f"log-probabilities differ by {worst:.2g} {where}"


def cache_argument(stack: Any) -> str:
    """The forward argument for the cache: `cache` in newer transformers, `past_key_values` before."""
    return "cache" if "cache" in inspect.signature(stack.forward).parameters else "past_key_values"


def read(rows: torch.Tensor, wants: Sequence[Sequence[Want]], ledger: Ledger) -> Iterator[tuple[int, Scored]]:
    """Log-probabilities of the targets that each logits row is read for."""
    flat = [(line, want) for line, asked in enumerate(wants) for want in asked]
    lines = torch.tensor([line for line, _ in flat], device=rows.device)
    targets = torch.tensor([want[2] for _, want in flat], device=rows.device)
    picked = (rows[lines, targets] - rows.logsumexp(-1)[lines]).tolist()
    best = rows.argmax(-1).tolist()
    for (line, want), value in zip(flat, picked, strict=True):
        yield from ledger.put(want, value, best[line])


def masks(model: Any, segment: Segment, device: Any) -> Any:
    """The mask(s) of a segment over prefix and itself: block masks for FlexAttention, else additive ones."""
    ends = torch.tensor(segment.ends(), device=device)
    depth = torch.tensor(segment.depth, device=device)
    keys = torch.cat([torch.arange(segment.past, device=device), depth])
    if uses_flex(model):
        return flex_masks(model, segment.past, ends, depth, keys)
    node = torch.arange(len(ends), device=device)
    inside = (node[None, :] <= node[:, None]) & (node[:, None] < ends[None, :])
    before = torch.ones(len(ends), segment.past, dtype=torch.bool, device=device)
    seen = torch.cat([before, inside], dim=1)
    return layer_masks(model, seen[None], (depth[:, None] - keys[None, :])[None], additive)


def uses_flex(model: Any) -> bool:
    """Whether the model's attention layers run FlexAttention, which takes block masks and skips empty blocks."""
    return model.config._attn_implementation == "flex_attention"


def flex_masks(model: Any, past: int, ends: torch.Tensor, depth: torch.Tensor, keys: torch.Tensor) -> Any:
    """Block mask(s): a query sees the prefix and its ancestors, in sliding layers only those within the window."""
    from torch.nn.attention.flex_attention import create_block_mask

    kinds, window = attention_kinds(model)

    def seen(batch: Any, head: Any, query: Any, key: Any) -> Any:
        node = (key - past).clamp(min=0)
        return (key < past) | ((node <= query) & (query < ends[node]))

    def near(batch: Any, head: Any, query: Any, key: Any) -> Any:
        return seen(batch, head, query, key) & (depth[query] - keys[key] < window)

    def made(rule: Callable[..., Any]) -> Any:
        return create_block_mask(rule, None, None, len(ends), past + len(ends), device=ends.device)

    if "sliding_attention" in kinds:
        return {"full_attention": made(seen), "sliding_attention": made(near)}
    return made(near if window and not kinds else seen)


def attention_kinds(model: Any) -> tuple[set[str], int]:
    """The kinds of attention layers that a config names, and the sliding window (0: none)."""
    config = text_config(model)
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    return set(getattr(config, "layer_types", None) or []), window or 0


def layer_masks(model: Any, seen: torch.Tensor, distance: torch.Tensor, make: Callable[..., Any]) -> Any:
    """One mask, or one for each kind of layer where the model has several (Gemma 3: full and sliding attention).

    `seen` and `distance` (query position - key position) are (rows, queries, keys); a sliding window of w lets a query
    see keys at a distance below w.
    """
    kinds, window = attention_kinds(model)
    dtype = model.get_input_embeddings().weight.dtype
    near = seen & (distance < window) if window else seen
    if "sliding_attention" in kinds:
        return {"full_attention": make(seen, dtype), "sliding_attention": make(near, dtype)}
    return make(near if window and not kinds else seen, dtype)


def additive(seen: torch.Tensor, dtype: Any) -> torch.Tensor:
    """A boolean mask (rows, queries, keys) as one that is added to attention scores, (rows, 1, queries, keys)."""
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, torch.finfo(dtype).min)[:, None]
