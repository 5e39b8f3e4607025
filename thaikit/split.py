"""A pack's attention in two parts: the prefix, which all of it sees, and each subtree by itself.

One attention over both wants a mask of all queries against all keys, and keys and values that are joined, and repeated
for each group of heads, anew in every layer. Here the prefix is read where it lies and without a mask, a sliding layer
reads only what its window reaches, and little is multiplied that does not see each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from thaikit.cascade import Part, attending, fold, hidden, join, layer_windows, part, unfold
from thaikit.tree import Prefix
from thaikit.trie import Segment

BLOCK = 256  # nodes whose attention to their own pack is one multiplication
Masks = dict[tuple[int, int], tuple[Any, list[Any]]]


class Split(Prefix):
    """A prefix whose attention is `cascade.attend`, which must be registered with transformers under its name."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.windows = layer_windows(model)
        self.fresh: dict[int, Part] = {}
        self.blocks: list[tuple[int, int, int]] = []
        self.masks: Masks = {}

    @contextmanager
    def over(self, model: Any, segment: Segment) -> Iterator[dict[str, Any]]:
        """No masks for the model: they are made here, where a layer asks."""
        self.segment, self.blocks, self.masks = segment, blocks(segment), {}
        with attending(model):
            yield {}

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int, *_: Any, **__: Any) -> Part:
        """Hold the pack's states until `look`; the keys are marked for `attend`."""
        self.fresh[layer_idx] = keys, values
        keys.shelf = self
        return keys, values

    def look(self, q: torch.Tensor, layer: int, scale: float, cap: float | None) -> torch.Tensor:
        """The attention of the pack's queries (tokens, heads, size) in a layer."""
        keys, values = self.fresh.pop(layer)
        window, heads = self.windows[layer], keys.shape[1]
        before, inside = self.masks_of(window, q, q.shape[1] // heads)
        parts = [
            unfold(part(fold(q[a:b], heads), keys[:, :, root:b], values[:, :, root:b], mask, scale, cap), b - a)
            for (root, a, b), mask in zip(self.blocks, inside, strict=True)
        ]
        own = torch.cat([out for out, _ in parts]), torch.cat([weight for _, weight in parts])
        shared = self.layers.get(layer)
        if self.keep:
            super().update(keys, values, layer)
        if shared is None:
            return own[0]
        first = max(0, self.segment.past - window + 1) if window else 0
        reach = (states[:, :, first:] for states in shared)
        return join(unfold(part(fold(q, heads), *reach, before, scale, cap), len(q)), own)

    def masks_of(self, window: int, q: torch.Tensor, group: int) -> tuple[Any, list[Any]]:
        """Additive masks of a window (0: none): over what the window reaches of the prefix, None where all is seen,
        and over each block. Rows are repeated for each head of a group, as `fold` lays them."""
        if (window, group) not in self.masks:
            depth = torch.tensor(self.segment.depth, device=q.device)
            ends, node = torch.tensor(self.segment.ends(), device=q.device), torch.arange(len(depth), device=q.device)
            inside = []
            for root, a, b in self.blocks:
                seen = (node[None, root:b] <= node[a:b, None]) & (node[a:b, None] < ends[None, root:b])
                if window:
                    seen &= depth[a:b, None] - depth[None, root:b] < window
                inside.append(hidden(seen, q).repeat(group, 1)[None, None])
            before = None
            if window and self.segment.past:
                reach = torch.arange(max(0, self.segment.past - window + 1), self.segment.past, device=q.device)
                before = hidden(depth[:, None] - reach[None, :] < window, q).repeat(group, 1)[None, None]
            self.masks[window, group] = before, inside
        return self.masks[window, group]


def blocks(segment: Segment) -> list[tuple[int, int, int]]:
    """Ranges [a, b) of a segment's nodes, and before each the root of a's subtree: from there on they see something."""
    roots, root = [], 0
    for node, parent in enumerate(segment.parent):
        root = node if parent < 0 else root
        roots.append(root)
    return [(roots[a], a, min(a + BLOCK, len(roots))) for a in range(0, len(roots), BLOCK)]
