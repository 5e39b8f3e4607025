"""Greedy generation with stop strings tracked per row on the decoded text. Finished rows leave the batch at once.

Two ways to run the same loop: `Native` leaves masks and cache to the model (any architecture), `Shared` runs the ids
that all prompts begin with once, keeps their keys and values, and masks by position (models that the tree can pack).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional

from thaikit.loglikelihood import decoder, logits
from thaikit.tree import Prefix, additive, cache_argument, layer_masks, run_chain
from thaikit.trie import MIN_PREFIX, shared


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
    desk = Desk(model, prompts, rules, prefix if share else None, past, deque(order), max(1, batch_size))
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
    """The batch under way and the prompts that wait for a place in it."""

    model: Any
    prompts: Sequence[Sequence[int]]
    rules: Rules
    prefix: Prefix | None
    past: int
    waiting: deque[int]
    size: int
    rows: list[Writing] = field(default_factory=list)
    state: Any = None

    def turn(self, on_batch: Callable[[int], None] | None) -> list[tuple[int, Generated]]:
        """One token for every row, after new rows have come in where a quarter of the places is free."""
        room = self.size - len(self.rows)
        free = not self.rows or (self.prefix is not None and room >= max(1, self.size // 4))
        done = self.admit(room, on_batch) if self.waiting and free else []
        if self.rows:
            self.state, self.rows, ended = write(self.state, self.rows, self.rules)
            done += ended
        return done

    def admit(self, room: int, on_batch: Callable[[int], None] | None) -> list[tuple[int, Generated]]:
        """Prefill new rows, with their first token, and put them beside those under way."""
        chosen = [self.waiting[place] for place in range(min(room, len(self.waiting)))]
        rests = [list(self.prompts[index])[self.past :] for index in chosen]
        new = Native(self.model, rests) if self.prefix is None else Shared(self.model, rests, self.prefix)
        new, rows, done = write(new, [Writing(index, []) for index in chosen], self.rules)
        for _ in chosen:
            self.waiting.popleft()
        if rows:
            self.state = new if not self.rows else self.state.join(new)
            self.rows += rows
        if on_batch:
            on_batch(sum(map(len, rests)))
        return done

    def retreat(self) -> None:
        """Out of memory: halve the batch; rows under way wait again and are written from their start."""
        self.waiting.extendleft(row.index for row in reversed(self.rows))
        self.rows, self.state, self.size = [], None, max(1, self.size // 2)
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


def write(
    state: Native | Shared, rows: list[Writing], rules: Rules
) -> tuple[Native | Shared, list[Writing], list[tuple[int, Generated]]]:
    """One token for each row: the state, the rows that go on, and those that are finished, which leave."""
    tokens = state.step()
    for row, token in zip(rows, tokens, strict=True):
        row.finish = advance(row.ids, token, rules)
    done = [finished(row, rules) for row in rows if row.finish]
    keep = [line for line, row in enumerate(rows) if not row.finish]
    if keep:
        state.go_on([tokens[line] for line in keep], keep)
    return state, [rows[line] for line in keep], done


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
    """A batch under way with the model's own masks and cache."""

    def __init__(self, model: Any, rows: Sequence[Sequence[int]]) -> None:
        self.model, self.cache = model, None
        self.ids, self.mask = left_pad(rows, model.get_input_embeddings().weight.device)

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
        device = self.ids.device
        if len(keep) < len(self.mask):
            self.cache.batch_select_indices(torch.tensor(keep, device=device))
            self.mask = self.mask[list(keep)]
        self.ids = torch.tensor(list(tokens), device=device).unsqueeze(1)
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(keep), 1)], dim=1)


class Shared:
    """A batch under way over a prefix that was run once. Keys know their position, -1 for padding."""

    def __init__(self, model: Any, rows: Sequence[Sequence[int]], prefix: Prefix) -> None:
        self.model = model
        self.ids, mask = left_pad(rows, model.get_input_embeddings().weight.device)
        past = prefix.get_seq_length()
        self.cache = prefix.spread(len(rows))
        self.at = (mask.cumsum(-1) - 1 + past).masked_fill(mask == 0, -1)
        before = torch.arange(past, device=self.at.device).expand(len(rows), past)
        self.keys = torch.cat([before, self.at], dim=1)

    @torch.inference_mode()
    def step(self) -> list[int]:
        """The arg-max token of each row."""
        query, key = self.at[:, :, None], self.keys[:, None, :]
        seen = (key >= 0) & (key <= query)
        # A padding query would see nothing and give NaN, which spreads through the values: let it see itself.
        width = self.at.shape[1]
        own = torch.eye(width, dtype=torch.bool, device=seen.device)
        seen[:, :, -width:] |= own & (self.at < 0)[:, :, None]
        stack = decoder(self.model)
        out = stack(
            input_ids=self.ids,
            position_ids=self.at.clamp(min=0),
            attention_mask=layer_masks(self.model, seen, query - key, additive),
            use_cache=True,
            **{cache_argument(stack): self.cache},
        )
        return logits(self.model, out[0][:, -1]).argmax(-1).tolist()

    def go_on(self, tokens: Sequence[int], keep: Sequence[int]) -> None:
        """Feed the new tokens of the rows that stay."""
        lines = torch.tensor(list(keep), device=self.ids.device)
        if len(keep) < len(self.at):
            self.cache.select(lines)
        self.at = self.at[lines][:, -1:] + 1
        self.keys = torch.cat([self.keys[lines], self.at], dim=1)
        self.ids = torch.tensor(list(tokens), device=self.ids.device).unsqueeze(1)

    def join(self, other: Shared) -> Shared:
        """Other rows beside these: caches and key positions padded on the left to one length."""
        width = max(self.keys.shape[1], other.keys.shape[1])
        self.cache.join(other.cache, width - 1)  # the token to be fed has its key position, not yet its key
        wide = [functional.pad(state.keys, (width - state.keys.shape[1], 0), value=-1) for state in (self, other)]
        self.keys = torch.cat(wide)
        self.at, self.ids = torch.cat([self.at, other.at]), torch.cat([self.ids, other.ids])
        return self
