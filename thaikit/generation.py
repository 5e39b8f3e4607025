"""Greedy generation with stop strings tracked per row on the decoded text. Finished rows leave the batch at once.

Two ways to run the same loop: `Native` leaves masks and cache to the model (any architecture); `Packed`, for models
that the tree can pack, holds all rows in one: the ids that all prompts begin with are run and kept once, each row sees
them and its own, and new rows come in beside those under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from thaikit.loglikelihood import decoder, logits
from thaikit.tree import Prefix, additive, cache_argument, layer_masks, run_chain
from thaikit.trie import MIN_PREFIX, shared

INTAKE = 4096  # prompt ids that come in with one step


@dataclass(frozen=True, slots=True)
class Generated:
    """Raw new text, its ids, and why it ended: `stop` (a stop string), `eos` (an end token) or `length`."""

    text: str
    ids: tuple[int, ...]
    finish: str


@dataclass(frozen=True)
class Rules:
    """When a row ends, and how ids become text."""

    decode: Callable[[list[int]], str]
    stops: tuple[str, ...]
    eos_ids: frozenset[int]
    max_new_tokens: int


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
    share: bool = False,
    on_batch: Callable[[int], None] | None = None,
) -> Iterator[tuple[int, Generated]]:
    """Yield `(prompt index, Generated)` as rows finish; with `share`, waiting prompts take the places they leave.

    Ids are cut at the first end token; text keeps the stop string (the caller cuts it, so that the rule is on record).
    `share` runs the ids that all prompts begin with once. `batch_size` is halved on out-of-memory and the rows under
    way are written again. `on_batch` hears the prompt tokens of each prefill, those shared once.
    """
    if isinstance(stops, str):
        raise ValueError(f"stops is the string {stops!r}; it must be a list of strings")
    rules = Rules(decode, tuple(stops), frozenset(eos_ids), max_new_tokens)
    order = sorted(range(len(prompts)), key=lambda i: (-len(prompts[i]), tuple(prompts[i])))
    prefix = Prefix()
    past = run_prefix(model, [prompts[i] for i in order], prefix) if share else 0
    if on_batch and past:
        on_batch(past)

    def begin() -> Native | Packed:
        return Packed(model, prefix, past) if share else Native(model)

    desk = Desk(begin, prompts, rules, past, deque(order), max(1, batch_size), begin())
    while desk.waiting or desk.rows:
        try:
            done = desk.turn(on_batch)
        except torch.cuda.OutOfMemoryError:
            if desk.size == 1:
                raise
            desk.retreat()
            continue
        yield from done


@dataclass
class Desk:
    """The rows under way and the prompts that wait for a place among them."""

    begin: Callable[[], Native | Packed]
    prompts: Sequence[Sequence[int]]
    rules: Rules
    past: int
    waiting: deque[int]
    size: int
    state: Native | Packed
    rows: list[Writing] = field(default_factory=list)

    def turn(self, on_batch: Callable[[int], None] | None) -> list[tuple[int, Generated]]:
        """One token for every row, those that come in now included."""
        room = self.size - len(self.rows)
        if self.waiting and room and (not self.rows or self.state.takes_more):
            self.admit(room, on_batch)
        tokens = self.state.step()
        for row, token in zip(self.rows, tokens, strict=True):
            row.finish = advance(row.ids, token, self.rules)
        done = [finished(row, self.rules) for row in self.rows if row.finish]
        keep = [line for line, row in enumerate(self.rows) if not row.finish]
        self.state.go_on([tokens[line] for line in keep], keep)
        self.rows = [self.rows[line] for line in keep]
        return done

    def admit(self, room: int, on_batch: Callable[[int], None] | None) -> None:
        """Let waiting prompts in: as many as there is room for, and no more than INTAKE new ids, but at least one."""
        rests: list[list[int]] = []
        while self.waiting and len(rests) < room:
            rest = list(self.prompts[self.waiting[0]])[self.past :]
            if rests and sum(map(len, rests)) + len(rest) > INTAKE:
                break
            self.rows.append(Writing(self.waiting.popleft(), []))
            rests.append(rest)
        self.state.admit(rests)
        if on_batch:
            on_batch(sum(map(len, rests)))

    def retreat(self) -> None:
        """Out of memory: halve the rows; those under way wait again and are written from their start."""
        self.waiting.extendleft(row.index for row in reversed(self.rows))
        self.rows, self.state, self.size = [], self.begin(), max(1, self.size // 2)
        torch.cuda.empty_cache()


def run_prefix(model: Any, prompts: Sequence[Sequence[int]], prefix: Prefix) -> int:
    """Run the ids that all prompts begin with (all but the last id of the shortest); returns how many there are."""
    first = tuple(prompts[0]) if prompts else ()
    past = min((shared(first, tuple(p)) for p in prompts), default=0)
    past = min([past, *(len(p) - 1 for p in prompts)])
    if past < MIN_PREFIX or len(prompts) < 2:
        return 0
    run_chain(model, first[:past], prefix)
    return past


def advance(ids: list[int], token: int, rules: Rules) -> str:
    """Add a token to a row; the reason it is finished, or ""."""
    if token in rules.eos_ids:
        return "eos"
    ids.append(token)
    text = rules.decode(ids) if rules.stops else ""
    if any(stop and stop in text for stop in rules.stops):
        return "stop"
    return "length" if len(ids) >= rules.max_new_tokens else ""


def finished(row: Writing, rules: Rules) -> tuple[int, Generated]:
    """A row's result."""
    return row.index, Generated(rules.decode(row.ids), tuple(row.ids), row.finish)


def left_pad(rows: Sequence[Sequence[int]], device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask (rows, width), padding on the left."""
    width = max(map(len, rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for line, row in enumerate(rows):
        ids[line, width - len(row) :] = torch.tensor(list(row))
        mask[line, width - len(row) :] = 1
    return ids.to(device), mask.to(device)


class Native:
    """Rows under way with the model's own masks and cache, left-padded; new rows wait until all have left."""

    takes_more = False

    def __init__(self, model: Any) -> None:
        self.model, self.cache = model, None
        self.ids = self.mask = torch.zeros(0, 0, dtype=torch.long)

    def admit(self, rows: Sequence[Sequence[int]]) -> None:
        """Begin with these rows."""
        self.cache = None
        self.ids, self.mask = left_pad(rows, self.model.get_input_embeddings().weight.device)

    @torch.inference_mode()
    def step(self) -> list[int]:
        """The arg-max token of each row."""
        name = cache_argument(decoder(self.model))
        positions = (self.mask.cumsum(-1) - 1).clamp(min=0)[:, -self.ids.shape[1] :]
        given = {} if self.cache is None else {name: self.cache}
        out = decoder(self.model)(
            input_ids=self.ids, attention_mask=self.mask, position_ids=positions, use_cache=True, **given
        )
        self.cache = out[name]
        return logits(self.model, out[0][:, -1]).argmax(-1).tolist()

    def go_on(self, tokens: Sequence[int], keep: Sequence[int]) -> None:
        """Feed the new tokens of the rows that stay."""
        if not keep:
            return
        device = self.ids.device
        if len(keep) < len(self.mask):
            self.cache.batch_select_indices(torch.tensor(keep, device=device))
            self.mask = self.mask[list(keep)]
        self.ids = torch.tensor(list(tokens), device=device).unsqueeze(1)
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(keep), 1)], dim=1)


class Packed:
    """Rows under way in one packed row over a prefix that was run once. Each key knows its position and its owner."""

    takes_more = True

    def __init__(self, model: Any, prefix: Prefix, past: int) -> None:
        self.model, self.cache = model, prefix.copy()
        device = model.get_input_embeddings().weight.device
        self.at = torch.arange(past, device=device)  # positions of all keys, then owners: -1 is seen by every row
        self.owner = torch.full((past,), -1, device=device)
        self.past, self.born = past, 0
        self.lines: list[int] = []  # owner of each row under way
        self.feed: list[tuple[int, list[int], int]] = []  # (owner, ids to run, position of the first)

    def admit(self, rows: Sequence[Sequence[int]]) -> None:
        """Take rows in: their prompts run with the next step."""
        for ids in rows:
            self.lines.append(self.born)
            self.feed.append((self.born, list(ids), self.past))
            self.born += 1

    @torch.inference_mode()
    def step(self) -> list[int]:
        """The arg-max token of each row, in the order in which they came."""
        device = self.at.device
        ids = [token for _, tokens, _ in self.feed for token in tokens]
        at = [start + n for _, tokens, start in self.feed for n in range(len(tokens))]
        owner = [line for line, tokens, _ in self.feed for _ in tokens]
        query_at, query_owner = torch.tensor(at, device=device), torch.tensor(owner, device=device)
        self.at, self.owner = torch.cat([self.at, query_at]), torch.cat([self.owner, query_owner])
        distance = query_at[:, None] - self.at[None, :]
        mine = (self.owner[None, :] == query_owner[:, None]) | (self.owner[None, :] < 0)
        stack = decoder(self.model)
        out = stack(
            input_ids=torch.tensor([ids], device=device),
            position_ids=query_at[None],
            attention_mask=layer_masks(self.model, (mine & (distance >= 0))[None], distance[None], additive),
            use_cache=True,
            **{cache_argument(stack): self.cache},
        )
        lasts, total = [], 0
        for _, tokens, _ in self.feed:
            total += len(tokens)
            lasts.append(total - 1)
        self.feed = [(line, [], start + len(tokens)) for line, tokens, start in self.feed]
        return logits(self.model, out[0][0, torch.tensor(lasts, device=device)]).argmax(-1).tolist()

    def go_on(self, tokens: Sequence[int], keep: Sequence[int]) -> None:
        """Feed the new tokens of the rows that stay; forget keys once half of them belong to rows that have left."""
        self.feed = [(self.feed[n][0], [token], self.feed[n][2]) for n, token in zip(keep, tokens, strict=True)]
        self.lines = [self.lines[n] for n in keep]
        alive = (self.owner < 0) | torch.isin(self.owner, torch.tensor(self.lines, device=self.owner.device))
        if 2 * int(alive.sum()) < len(alive) + self.past:
            self.cache.select(alive.nonzero()[:, 0])
            self.at, self.owner = self.at[alive], self.owner[alive]
