"""Rows written side by side over a shared beginning, several tokens a step where the text repeats itself.

Greedy text of small models, and worked answers of any, repeat what stands in the prompt. The tokens that followed the
last three wherever they stood before are fed along and checked in the same forward pass; those that the model would
have chosen itself are taken, so the text is the one that single steps give.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from thaikit.cascade import Shelf, attending
from thaikit.loglikelihood import decoder, logits
from thaikit.tree import REFUSALS, Prefix, cache_argument, refusal, run_chain, too_far

LOOK = 3  # tokens that must agree before their successors are tried again
REACH = 16  # the most tokens of a row that are tried in one step
BUDGET = 128  # tokens of one decoding step: beyond it a step costs as much as the steps that it saves
Table = dict[tuple[int, ...], int]


def followers(ids: Sequence[int], start: int = LOOK) -> Table:
    """Where each run of LOOK ids that ends at `start` or later was last followed by something."""
    return {tuple(ids[n - LOOK : n]): n for n in range(max(start, LOOK), len(ids))}


@dataclass
class Line:
    """A row under way: all its ids, how many of them are in its buffer, what was seen in it, and its place there."""

    ids: list[int]
    past: int
    table: Table
    slot: int
    held: int = 0
    reach: int = 4
    tried: list[int] = field(default_factory=list)

    @property
    def fresh(self) -> list[int]:
        """Ids that are known and not yet run."""
        return self.ids[self.past + self.held :]

    def guess(self, shared: Table, beginning: Sequence[int], most: int) -> None:
        """Choose the ids to try after the last: what followed its last LOOK ids before, here or in the beginning."""
        key = tuple(self.ids[-LOOK:])
        room = min(self.reach, most)
        found, source = self.table.get(key), self.ids
        if found is None:
            found, source = shared.get(key), beginning
        self.tried = list(source[found : found + room]) if found is not None and room > 0 else []

    def take(self, best: Sequence[int]) -> list[int]:
        """The new ids: those tried as far as the model agrees, then its own. `best` ends in its choices after them."""
        choices = best[len(best) - len(self.tried) - 1 :]
        agreed = 0
        while agreed < len(self.tried) and self.tried[agreed] == choices[agreed]:
            agreed += 1
        if self.tried:
            whole = agreed == len(self.tried)
            self.reach = min(2 * self.reach, REACH) if whole else max(1, self.reach // 2) if not agreed else self.reach
        self.held = len(self.ids) - self.past + agreed
        new = list(choices[: agreed + 1])
        begin = len(self.ids)
        self.ids += new
        self.table |= followers(self.ids, begin)
        return new


class Shelved:
    """Rows under way, packed in one forward pass over a `Shelf`."""

    takes_more = True

    def __init__(self, model: Any, prefix: Prefix, beginning: Sequence[int]) -> None:
        self.model, self.shelf, self.beginning = model, Shelf(model, prefix), list(beginning)
        self.shared = followers(self.beginning)
        self.lines: list[Line] = []

    def admit(self, rests: Sequence[Sequence[int]]) -> None:
        """Take rows in by what follows the shared beginning: it runs with the next step."""
        self.settle(len(rests))
        past, first = len(self.beginning), len(self.lines)
        for place, rest in enumerate(rests):
            ids = [*self.beginning, *rest]
            self.lines.append(Line(ids, past, followers(ids, max(past, LOOK)), first + place))

    def settle(self, more: int = 0) -> None:
        """Move the rows under way up, over the places of those that left, and make room for `more`."""
        device = self.model.get_input_embeddings().weight.device
        self.shelf.keep(torch.tensor([line.slot for line in self.lines], dtype=torch.long, device=device), more=more)
        for slot, line in enumerate(self.lines):
            line.slot = slot

    def step(self, limits: Sequence[int]) -> list[list[int]]:
        """The next ids of each row, at least one and at most its limit, in the order in which rows came."""
        new = [line for line in self.lines if not line.held]
        old = [(line, limit) for line, limit in zip(self.lines, limits, strict=True) if line.held]
        for line, limit in old:
            line.guess(self.shared, self.beginning, min(limit - 1, BUDGET // len(old) - 1))
        found: dict[int, list[int]] = {}
        for group in (new, [line for line, _ in old]):
            found |= self.run(group) if group else {}
        return [found[line.slot] for line in self.lines]

    def run(self, lines: Sequence[Line]) -> dict[int, list[int]]:
        """One forward pass over what these rows feed: their new ids by place."""
        fed = [line.fresh + line.tried for line in lines]
        row = [line.slot for line, ids in zip(lines, fed, strict=True) for _ in ids]
        column = [line.held + n for line, ids in zip(lines, fed, strict=True) for n in range(len(ids))]
        ends = itertools.accumulate(map(len, fed))
        read = [range(end - len(line.tried) - 1, end) for line, end in zip(lines, ends, strict=True)]
        hidden = forward(self.model, self.shelf, [token for ids in fed for token in ids], row, column)
        wanted = torch.tensor([n for places in read for n in places], device=hidden.device)
        best = iter(logits(self.model, hidden[wanted]).argmax(-1).tolist())
        return {line.slot: line.take([next(best) for _ in places]) for line, places in zip(lines, read, strict=True)}

    def go_on(self, tokens: Sequence[int], keep: Sequence[int]) -> None:
        """Let go of rows that are finished; their places are cleared once a quarter is empty."""
        self.lines = [self.lines[line] for line in keep]
        if self.lines and 4 * len(self.lines) < 3 * self.shelf.rows:
            self.settle()


@torch.inference_mode()
def forward(model: Any, shelf: Shelf, ids: Sequence[int], row: Sequence[int], column: Sequence[int]) -> torch.Tensor:
    """Hidden states (tokens, size) of packed ids that go to these rows and columns of the shelf."""
    device = model.get_input_embeddings().weight.device
    columns = torch.tensor(column, device=device)
    shelf.place(torch.tensor(row, device=device), columns)
    stack = decoder(model)
    with attending(model):
        out = stack(
            input_ids=torch.tensor([ids], device=device),
            position_ids=columns[None] + shelf.past,
            use_cache=True,
            **{cache_argument(stack): shelf},
        )
    return out[0][0]


def unfit(model: Any) -> str:
    """Why this model cannot write on a shelf, or "" if it can: two rows over a shared beginning, in two steps, against
    the model's own forward pass."""
    draw = np.random.default_rng(1)
    vocabulary = min(model.get_input_embeddings().weight.shape[0], 30_000)
    stem, a, b = (draw.integers(3, vocabulary, size=size).tolist() for size in (24, 11, 7))
    prefix = Prefix(model)
    try:
        run_chain(model, stem, prefix)
        shelf = Shelf(model, prefix)
        shelf.keep(torch.zeros(0, dtype=torch.long, device=model.get_input_embeddings().weight.device), more=2)
        first = forward(model, shelf, a[:6] + b[:6], [0] * 6 + [1] * 6, [*range(6), *range(6)])
        last = forward(model, shelf, a[6:] + b[6:], [0] * 5 + [1], [*range(6, 11), 6])
    except REFUSALS as error:
        return refusal(error)
    worst = 0.0
    for ids, parts in ((a, (first[:6], last[:5])), (b, (first[6:], last[5:]))):
        with torch.inference_mode():
            whole = decoder(model)(input_ids=torch.tensor([stem + ids], device=first.device), use_cache=False)[0]
            told = logits(model, torch.cat(parts)).log_softmax(-1)
            worst = max(worst, float((told - logits(model, whole[0, len(stem) :]).log_softmax(-1)).abs().max()))
    return too_far(model, worst, where="on two rows")
