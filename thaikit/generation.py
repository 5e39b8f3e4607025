"""Greedy generation with stop strings tracked per row on the decoded text. Finished rows leave the batch at once.

Two ways to run the same loop: `Native` leaves masks and cache to the model (any architecture); `Shelved`, for models
whose attention layers take `cascade.attend`, runs and keeps the ids that all prompts begin with once, lets new rows in
beside those under way, and checks several likely tokens of a row in one step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from thaikit.loglikelihood import decoder, logits
from thaikit.shelved import Shelved
from thaikit.tree import REFUSALS, Prefix, cache_argument, refusal, run_chain, too_far
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
    cache: type[Prefix] = Prefix,
    whole: bool = False,
    on_batch: Callable[[int], None] | None = None,
) -> Iterator[tuple[int, Generated]]:
    """Yield `(prompt index, Generated)` as rows finish; with `share`, waiting prompts take the places they leave.

    Ids are cut at the first end token; text keeps the stop string (the caller cuts it, so that the rule is on record).
    `share` runs the ids that all prompts begin with once, their attention as `cache` has it. `batch_size` is halved on
    out-of-memory and the rows under way are written again. `whole` keeps nothing and runs all of a row at each step.
    `on_batch` hears the prompt tokens of each prefill, those shared once.
    """
    if isinstance(stops, str):
        raise ValueError(f"stops is the string {stops!r}; it must be a list of strings")
    rules = Rules(decode, tuple(stops), frozenset(eos_ids), max_new_tokens)
    order = sorted(range(len(prompts)), key=lambda i: (-len(prompts[i]), tuple(prompts[i])))
    prefix = cache(model)
    past = run_prefix(model, [prompts[i] for i in order], prefix) if share else 0
    if on_batch and past:
        on_batch(past)

    beginning = list(prompts[order[0]])[:past] if prompts else []

    def begin() -> Native | Shelved:
        return Shelved(model, prefix, beginning) if share else Native(model, whole=whole)

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

    begin: Callable[[], Native | Shelved]
    prompts: Sequence[Sequence[int]]
    rules: Rules
    past: int
    waiting: deque[int]
    size: int
    state: Native | Shelved
    rows: list[Writing] = field(default_factory=list)

    def turn(self, on_batch: Callable[[int], None] | None) -> list[tuple[int, Generated]]:
        """A step of every row, those that come in now included: one token at least."""
        room = self.size - len(self.rows)
        if self.waiting and room and (not self.rows or self.state.takes_more):
            self.admit(room, on_batch)
        limits = [self.rules.max_new_tokens - len(row.ids) for row in self.rows]
        for row, tokens in zip(self.rows, self.state.step(limits), strict=True):
            for token in tokens:
                row.finish = row.finish or advance(row.ids, token, self.rules)
        done = [finished(row, self.rules) for row in self.rows if row.finish]
        keep = [line for line, row in enumerate(self.rows) if not row.finish]
        self.state.go_on([self.rows[line].ids[-1] for line in keep], keep)
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

    def __init__(self, model: Any, *, whole: bool = False) -> None:
        self.model, self.cache, self.whole = model, None, whole
        self.ids = self.mask = torch.zeros(0, 0, dtype=torch.long)

    def admit(self, rows: Sequence[Sequence[int]]) -> None:
        """Begin with these rows."""
        self.cache = None
        self.ids, self.mask = left_pad(rows, self.model.get_input_embeddings().weight.device)

    @torch.inference_mode()
    def look(self) -> torch.Tensor:
        """Logits (rows, vocabulary) of what follows each row."""
        stack = decoder(self.model)
        name = cache_argument(stack)
        positions = (self.mask.cumsum(-1) - 1).clamp(min=0)[:, -self.ids.shape[1] :]
        given = {} if self.cache is None else {name: self.cache}
        # State-space layers multiply their new states by the mask: where nothing is padded there is none.
        mask = self.mask if bool((self.mask == 0).any()) else None
        out = stack(input_ids=self.ids, attention_mask=mask, position_ids=positions, use_cache=True, **given)
        try:
            self.cache = None if self.whole else out[name]
        except KeyError:  # a model without a cache, or with one of another name
            self.cache = None
        return logits(self.model, out[0][:, -1])

    def step(self, limits: Sequence[int]) -> list[list[int]]:
        """The arg-max token of each row."""
        return self.look().argmax(-1)[:, None].tolist()

    def go_on(self, tokens: Sequence[int], keep: Sequence[int]) -> None:
        """Feed the new tokens of the rows that stay; with no cache all that stood before them too."""
        if not keep:
            return
        new = torch.tensor(list(tokens), device=self.ids.device).unsqueeze(1)
        self.ids = new if self.cache is not None else torch.cat([self.ids[list(keep)], new], dim=1)
        if len(keep) < len(self.mask):
            if self.cache is not None:
                self.cache.batch_select_indices(torch.tensor(keep, device=new.device))
            self.mask = self.mask[list(keep)]
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(keep), 1)], dim=1)


def unpadded(model: Any) -> str:
    """Why rows of different lengths cannot be written side by side (padding runs through recurrent states), or ""."""
    rows = [list(range(3, 22)), list(range(5, 16))]

    def told(rows: Sequence[Sequence[int]]) -> torch.Tensor:
        state = Native(model)
        state.admit(rows)
        seen = [state.look()[-1]]
        for token in (4, 7):
            state.go_on([token] * len(rows), range(len(rows)))
            seen.append(state.look()[-1])
        return torch.stack(seen).log_softmax(-1)

    try:
        return too_far(model, float((told(rows) - told(rows[1:])).abs().max()), where="beside a longer row")
    except REFUSALS as error:
        return refusal(error)
