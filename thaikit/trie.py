"""The plan of the tree kernel: token-id requests as a trie, cut into shared prefixes and packs. Plain Python, no torch.

Sharing is decided on ids, so nothing is assumed about tokenisation. Sorted inputs are the trie's depth-first order: the
plan walks them once, and only one pack is ever held as nodes, so memory does not grow with the number of items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Want = tuple[int, int, int]  # request index, place in its continuation, target id
MIN_PREFIX = 32  # a shared prefix shorter than this is repeated in each pack instead of being run on its own


@dataclass(frozen=True, slots=True)
class Feed:
    """An input and who reads it: (request index, continuation)."""

    ids: tuple[int, ...]
    readers: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def first(self) -> int:
        """Depth of the first position that anyone reads."""
        return len(self.ids) - max(len(target) for _, target in self.readers)

    def wants(self, begin: int, end: int) -> Iterator[tuple[int, Want]]:
        """(depth, want) of every reader for the depths from `begin` to before `end`."""
        for request, target in self.readers:
            start = len(self.ids) - len(target)
            for depth in range(max(begin, start), min(end, len(self.ids))):
                yield depth, (request, depth - start, target[depth - start])


@dataclass
class Segment:
    """Nodes that run in one forward pass over a cached prefix of `past` tokens.

    `parent` is a node of this segment, or -1 for one that follows the prefix directly; `wants` names what is read at a
    node. With `keep` the segment is a chain whose keys and values lengthen the cached prefix for what comes after.
    """

    past: int
    keep: bool = False
    ids: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    wants: dict[int, list[Want]] = field(default_factory=dict)

    def add(self, token: int, parent: int, depth: int) -> int:
        """Add a node; returns its number."""
        self.ids.append(token)
        self.parent.append(parent)
        self.depth.append(depth)
        return len(self.ids) - 1

    def ends(self) -> list[int]:
        """For each node the number after its subtree's last: node j is i or an ancestor of i where j <= i < ends[j],
        for nodes stand in depth-first order."""
        ends = list(range(1, len(self.ids) + 1))
        for node in range(len(self.ids) - 1, -1, -1):
            if self.parent[node] >= 0:
                ends[self.parent[node]] = max(ends[self.parent[node]], ends[node])
        return ends


@dataclass(frozen=True, slots=True)
class Drop:
    """The cached prefix goes back to `past` tokens."""

    past: int


def feeds(requests: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[Feed]:
    """Requests `(context, continuation)` by the ids that they feed, in sorted order (the trie's depth-first order)."""
    rows: dict[tuple[int, ...], list[tuple[int, tuple[int, ...]]]] = {}
    for index, (context, continuation) in enumerate(requests):
        if not len(context) or not len(continuation):
            raise ValueError(f"request {index}: context and continuation need at least one token each")
        rows.setdefault((*context, *continuation[:-1]), []).append((index, tuple(continuation)))
    return [Feed(ids, tuple(readers)) for ids, readers in sorted(rows.items())]


def shared(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common prefix."""
    size = min(len(a), len(b))
    if a[:size] == b[:size]:
        return size
    low, high = 0, size  # the longest equal prefix is below high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if a[:middle] == b[:middle] else (low, middle)
    return low


def distinct(fed: Sequence[Sequence[int]]) -> int:
    """Nodes of the trie over all inputs: the tokens a model runs if none is run twice."""
    rows = sorted(map(tuple, fed))
    return sum(map(len, rows)) - sum(shared(a, b) for a, b in zip(rows, rows[1:], strict=False))


def plan(rows: Sequence[Feed], pack: int) -> Iterator[Segment | Drop]:
    """Segments in running order, none of more than `pack` nodes; a `Drop` after each kept chain's subtree."""
    common = [0] + [shared(a.ids, b.ids) for a, b in zip(rows, rows[1:], strict=False)]
    yield from Planner(rows, common, pack).visit(0, len(rows), 0)


@dataclass
class Planner:
    """The recursion of `plan`: rows [begin, end) share their first `past` ids, whose keys and values are cached."""

    rows: Sequence[Feed]
    common: list[int]
    pack: int

    def size(self, begin: int, end: int, past: int) -> int:
        """Distinct nodes of the range below depth `past`."""
        rest = sum(len(self.rows[i].ids) - max(self.common[i], past) for i in range(begin + 1, end))
        return len(self.rows[begin].ids) - past + rest

    def depth(self, begin: int, end: int) -> int:
        """Ids that all rows of the range share."""
        return min(self.common[begin + 1 : end], default=len(self.rows[begin].ids))

    def visit(self, begin: int, end: int, past: int) -> Iterator[Segment | Drop]:
        """Run the range: a long shared prefix once, the rest in packs."""
        depth = self.depth(begin, end)
        if self.size(begin, end, past) > self.pack and (depth - past >= MIN_PREFIX or end - begin == 1):
            # The last id of a row that is itself the prefix stays for a pack, so that a chain never ends a row.
            stop = min(depth, len(self.rows[begin].ids) - 1)
            yield from self.chain(begin, end, past, stop)
            yield from self.packs(begin, end, stop)
            yield Drop(past)
        else:
            yield from self.packs(begin, end, past)

    def chain(self, begin: int, end: int, past: int, stop: int) -> Iterator[Segment]:
        """The shared ids from `past` to `stop` as kept segments, with what any row of the range reads there."""
        readers = [row for row in self.rows[begin:end] if row.first < stop]
        ids = self.rows[begin].ids
        for start in range(past, stop, self.pack):
            segment = Segment(start, keep=True)
            for depth in range(start, min(start + self.pack, stop)):
                segment.add(ids[depth], len(segment.ids) - 1, depth)
            for row in readers:
                for depth, want in row.wants(start, start + len(segment.ids)):
                    segment.wants.setdefault(depth - start, []).append(want)
            yield segment

    def packs(self, begin: int, end: int, past: int) -> Iterator[Segment | Drop]:
        """The subtrees below `past`: those that fit fill packs together, a larger one is visited on its own."""
        segment = Segment(past)
        for first, last, fits in self.units(begin, end, past, past):
            size = self.size(first, last, past) if fits else 0
            if segment.ids and (not fits or len(segment.ids) + size > self.pack):
                yield segment
                segment = Segment(past)
            if fits:
                self.fill(segment, first, last)
            else:
                yield from self.visit(first, last, past)
        if segment.ids:
            yield segment

    def units(self, begin: int, end: int, depth: int, past: int) -> Iterator[tuple[int, int, bool]]:
        """Subtrees that part at `depth`, and whether each fits a pack. One that does not, and shares too little to be
        run on its own, gives way to the subtrees below it, its few shared ids repeated in each."""
        for first, last in self.children(begin, end, depth):
            below = self.depth(first, last)
            if self.size(first, last, past) <= self.pack:
                yield first, last, True
            elif below - past >= MIN_PREFIX or last - first == 1:
                yield first, last, False
            else:
                yield from self.units(first, last, below, past)

    def children(self, begin: int, end: int, depth: int) -> list[tuple[int, int]]:
        """Ranges of the subtrees that part at `depth`."""
        cuts = [begin] + [i for i in range(begin + 1, end) if self.common[i] <= depth] + [end]
        return list(zip(cuts, cuts[1:], strict=False))

    def fill(self, segment: Segment, first: int, last: int) -> None:
        """Put the rows of a subtree into a segment, each shared node once."""
        past, path = segment.past, []
        for place in range(first, last):
            row = self.rows[place]
            known = max(self.common[place], past) if place > first else past
            del path[known - past :]
            for depth in range(known, len(row.ids)):
                path.append(segment.add(row.ids[depth], path[-1] if path else -1, depth))
            for depth, want in row.wants(past, len(row.ids)):
                segment.wants.setdefault(path[depth - past], []).append(want)
