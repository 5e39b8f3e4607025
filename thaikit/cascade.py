"""Attention in two parts, what is shared and what is a row's own, joined by their log-sum-exps: nothing is copied.

Attention layers reach this file through a cache whose `update` returns the new states with a mark on the keys. Grouped
heads are folded into the queries, so keys and values are read where they lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from thaikit.loglikelihood import text_config
from thaikit.tree import Prefix, attention_kinds

Part = tuple[torch.Tensor, torch.Tensor]  # values (batch, heads, queries, size), log-sum-exps (batch, heads, queries)
NAME = "thaikit"  # of `attend` among transformers' attention functions
UNSEEN = -1e30  # finite: a part in which a query sees nothing weighs nothing, and is no NaN
COLUMNS = 64  # a row's buffer begins with room for this many tokens and doubles


def attend(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: Any, **given: Any
) -> tuple[torch.Tensor, None]:
    """An attention layer over a `Shelf`: (1, tokens, heads, size). NotImplementedError for what it does not know."""
    shelf = getattr(key, "shelf", None)
    if shelf is None or given.get("s_aux") is not None or given.get("position_bias") is not None:
        raise NotImplementedError("an attention layer of another kind")
    scale = given.get("scaling") or query.shape[-1] ** -0.5
    out = shelf.look(query[0].transpose(0, 1), module.layer_idx, scale, given.get("softcap"))
    return out[None], None


@contextmanager
def attending(model: Any) -> Iterator[None]:
    """Have the model's layers call `attend`, which must be registered with transformers under NAME."""
    config = text_config(model)
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before


def part(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any, scale: float, cap: float | None) -> Part:
    """Attention of (batch, heads, queries, size) over keys and values of as many heads, with its log-sum-exp (fp32)."""
    if q.device.type == "cpu" and not cap and q.dtype == torch.float32:
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q, k, v, 0.0, False, attn_mask=mask, scale=scale
        )
    scores = (q @ k.transpose(-1, -2)).float() * scale
    if cap:
        scores = cap * torch.tanh(scores / cap)
    if mask is not None:
        scores = scores + mask
    weight = scores.logsumexp(-1)
    return (scores - weight[..., None]).exp().to(v.dtype) @ v, weight


def join(a: Part, b: Part) -> torch.Tensor:
    """One attention from two parts of its keys."""
    share = torch.sigmoid(a[1] - b[1])[..., None].to(a[0].dtype)
    return a[0] * share + b[0] * (1 - share)


def fold(q: torch.Tensor, heads: int) -> torch.Tensor:
    """(tokens, query heads, size) as (1, key heads, group × tokens, size)."""
    tokens, many, size = q.shape
    return q.view(tokens, heads, many // heads, size).permute(1, 2, 0, 3).reshape(1, heads, -1, size)


def unfold(part_: Part, tokens: int) -> Part:
    """A folded part as (tokens, query heads, size) and (tokens, query heads)."""
    out, weight = part_
    _, heads, _, size = out.shape
    out = out.view(heads, -1, tokens, size).permute(2, 0, 1, 3).reshape(tokens, -1, size)
    return out, weight.view(heads, -1, tokens).permute(2, 0, 1).reshape(tokens, -1)


class Shelf:
    """Keys and values of rows under way: the beginning that all share once, each row's own in a buffer of its place.

    Before a forward pass over packed tokens `place` says where each goes (row, column). A row sees the shared beginning
    and its own columns up to the token's; what was written beyond is overwritten and never seen.
    """

    is_compileable = False

    def __init__(self, model: Any, prefix: Prefix) -> None:
        self.shared, self.own = dict(prefix.layers), {}
        self.rows, self.columns = 0, COLUMNS
        self.past = prefix.get_seq_length()
        self.windows = layer_windows(model)
        self.masks: dict[int, tuple[Any, Any]] = {}

    def place(self, row: torch.Tensor, column: torch.Tensor) -> None:
        """Say where the next tokens go; both (tokens,). Tokens of a row stand together, in order."""
        self.low, self.high = int(row.min()), int(row.max()) + 1
        self.row, self.column = row, column
        width = int(column.max()) + 1
        while self.columns < width:
            self.columns *= 2
        self.width, self.masks = width, {}
        first = torch.ones_like(row, dtype=torch.bool)
        first[1:] = row[1:] != row[:-1]
        starts = first.nonzero()[:, 0]
        self.turn = torch.arange(len(row), device=row.device) - starts[first.cumsum(0) - 1]
        self.turns = int(self.turn.max()) + 1

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int, *_: Any, **__: Any) -> Part:
        """Put new states (1, heads, tokens, size) in their places; the keys are marked for `attend`."""
        held = self.own.get(layer_idx)
        if held is None or held[0].shape[2] < self.columns:
            held = tuple(
                self.room(states, old) for states, old in zip((keys, values), held or (None, None), strict=True)
            )
            self.own[layer_idx] = held
        for buffer, states in zip(held, (keys, values), strict=True):
            buffer[self.row, :, self.column] = states[0].transpose(0, 1)
        keys.shelf = self
        return keys, values

    def room(self, states: torch.Tensor, old: torch.Tensor | None) -> torch.Tensor:
        """A buffer (rows, heads, columns, size) that begins with the old one's columns."""
        buffer = states.new_zeros(self.rows, states.shape[1], self.columns, states.shape[3])
        if old is not None:
            buffer[:, :, : old.shape[2]] = old
        return buffer

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Tokens that every row sees."""
        return self.past

    def look(self, q: torch.Tensor, layer: int, scale: float, cap: float | None) -> torch.Tensor:
        """The attention of packed queries (tokens, heads, size)."""
        keys, values = (states[self.low : self.high, :, : self.width] for states in self.own[layer])
        before, inside = self.mask(self.windows[layer], q, q.shape[1] // keys.shape[1])
        own = self.look_own(q, keys, values, inside, scale, cap)
        if not self.past:
            return own[0]
        shared = part(fold(q, keys.shape[1]), *self.shared[layer], before, scale, cap)
        return join(unfold(shared, len(q)), own)

    def look_own(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float, cap: float | None
    ) -> Part:
        """The part of each row's own columns: rows side by side, short ones padded."""
        rows, heads, group = k.shape[0], k.shape[1], q.shape[1] // k.shape[1]
        row = self.row - self.low
        wide = q.new_zeros(rows, self.turns, heads, group, q.shape[2])
        wide[row, self.turn] = q.view(len(q), heads, group, -1)
        out, weight = part(wide.permute(0, 2, 3, 1, 4).reshape(rows, heads, -1, q.shape[2]), k, v, mask, scale, cap)
        out = out.view(rows, heads, group, self.turns, -1)[row, :, :, self.turn]
        weight = weight.view(rows, heads, group, self.turns)[row, :, :, self.turn]
        return out.reshape(len(q), heads * group, -1), weight.reshape(len(q), -1)

    def mask(self, window: int, q: torch.Tensor, group: int) -> tuple[Any, torch.Tensor]:
        """Additive masks of a window (0: none) over the shared part, None where all is seen, and the rows' own."""
        if window not in self.masks:
            at = torch.arange(self.width, device=q.device)
            distance = torch.full((self.high - self.low, self.turns), -1, device=q.device)
            distance[self.row - self.low, self.turn] = self.column
            distance = distance[..., None] - at
            seen = (distance >= 0) & (distance < window) if window else distance >= 0
            inside = hidden(seen, q).repeat(1, group, 1)[:, None]
            before = None
            if window and self.past:
                distance = (self.past + self.column)[:, None] - torch.arange(self.past, device=q.device)
                before = hidden(distance < window, q).repeat(group, 1)[None, None]
            self.masks[window] = before, inside
        return self.masks[window]

    def keep(self, rows: torch.Tensor, *, more: int = 0) -> None:
        """Keep only these rows, which move up, with room for `more` after them."""

        def moved(states: torch.Tensor) -> torch.Tensor:
            return torch.cat([states[rows], states.new_zeros(more, *states.shape[1:])])

        self.own = {layer: tuple(map(moved, pair)) for layer, pair in self.own.items()}
        self.rows = len(rows) + more


def hidden(seen: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """A boolean mask as one that is added to scores."""
    return torch.zeros(seen.shape, dtype=q.dtype, device=q.device).masked_fill_(~seen, UNSEEN)


def layer_windows(model: Any) -> list[int]:
    """The sliding window of each layer (0: it sees everything)."""
    config = text_config(model)
    kinds, window = attention_kinds(model)
    names = getattr(config, "layer_types", None) or []
    if not kinds:
        return [window] * config.num_hidden_layers
    return [window if name == "sliding_attention" else 0 for name in names]
