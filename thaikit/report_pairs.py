"""Models compared two by two: corrected over one table, written for display or as a frame. Used by several sections."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thaikit import ranks, stats
from thaikit.ranks import Gap
from thaikit.report_limits import few
from thaikit.report_parts import DASH, SEED, cell, p_value, percent

LEVEL = 0.05
Scores = Mapping[Hashable, tuple[Hashable, float]]  # an item's key → its group or cluster, and its score


@dataclass(frozen=True)
class Pair:
    """Two models on one measure: the comparison, or why there is none; items that only one has; p after Holm, over how
    many comparisons."""

    a: str
    b: str
    what: str
    gap: Gap | None
    why: str
    only: tuple[int, int]
    holm: float = math.nan
    tests: int = 1

    @property
    def ahead(self) -> str:
        """The model that is shown to be higher, "" for none."""
        if self.gap is None or not self.holm < LEVEL or not self.gap.difference.value:
            return ""
        return self.a if self.gap.difference.value > 0 else self.b


def corrected(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with p after Holm over those that have one."""
    raw = [math.nan if pair.gap is None else pair.gap.p for pair in pairs]
    tests = max(1, sum(not math.isnan(p) for p in raw))
    return [Pair(pair.a, pair.b, pair.what, pair.gap, pair.why, pair.only, p, tests)
            for pair, p in zip(pairs, stats.holm(raw), strict=True)]  # fmt: skip


def clustered(models: Mapping[str, Mapping[str, Scores]]) -> list[Pair]:
    """Every two models on each measure (model → measure → scores with their clusters), Holm over all of it."""
    rng = np.random.default_rng(SEED)
    places = [(a, b, what) for a, b in itertools.combinations(models, 2) for what in models[a]]
    draws = ranks.draws_for(len(places))
    found = [clustered_pair(a, b, what, models[a][what], models[b].get(what, {}), rng=rng, draws=draws)
             for a, b, what in places]  # fmt: skip
    return corrected(found)


def clustered_pair(a: str, b: str, what: str, x: Scores, y: Scores, *, rng: np.random.Generator, draws: int) -> Pair:
    """One comparison on the items that both have, whole clusters together."""
    both = [key for key in x if key in y]
    only = (len(x) - len(both), len(y) - len(both))
    if not both:
        return Pair(a, b, what, None, "no shared items", only)
    gap = ranks.clustered_gap([x[k][1] - y[k][1] for k in both], [x[k][0] for k in both], rng=rng, draws=draws)
    return Pair(a, b, what, gap, "", only)


def macro_pair(a: str, b: str, what: str, x: Mapping[str, Scores], y: Mapping[str, Scores], *,
               names: Mapping[str, str], rng: np.random.Generator, draws: int) -> Pair:  # fmt: skip
    """Two models' averages over tasks (task → scores with their groups), on the items of each task that both have."""
    tasks: dict[str, dict[str, list[float]]] = {}
    only = [0, 0]
    for task in x:
        other = y.get(task, {})
        both = [key for key in x[task] if key in other]
        only = [only[0] + len(x[task]) - len(both), only[1] + len(other) - len(both)]
        if not both:
            return Pair(a, b, what, None, f"no shared items in {names.get(task, task)}", (only[0], only[1]))
        groups: dict[str, list[float]] = {}
        for key in both:
            groups.setdefault(str(x[task][key][0]), []).append(x[task][key][1] - other[key][1])
        tasks[task] = groups
    if not tasks:
        return Pair(a, b, what, None, "no items", (0, 0))
    return Pair(a, b, what, ranks.macro_gap(tasks, rng=rng, draws=draws), "", (only[0], only[1]))


def table(pairs: Sequence[Pair], order: Sequence[str], *, by: str, show: Callable[..., str] = percent,
          scale: float = 100.0) -> dict[str, Any]:  # fmt: skip
    """The pairs as `lines` of a table, few where there are many (`report_limits.few`, with the sentence that says so as
    `note`), and `all` of them with their `numbers`. `order` is the models' by what `by` names."""
    every = [line(pair, show=show) | {"numbers": record(pair, scale=scale)} for pair in pairs]
    kept, note = few(every, order, by=by)
    return {"lines": kept, "note": note, "all": every}


def line(pair: Pair, *, show: Callable[..., str]) -> dict[str, Any]:
    """One pair as texts; a winner is named only where the corrected p is below 0.05. `show` writes a number in the
    scores' unit."""
    told = {"a": pair.a, "b": pair.b, "what": pair.what}
    left = DASH if pair.only == (0, 0) else f"{pair.only[0]} : {pair.only[1]}"
    if pair.gap is None:
        empty = dict.fromkeys(("n", "difference", "interval", "won", "p", "holm", "smallest", "among", "test"), DASH)
        return told | empty | {"why": pair.why, "left": left, "reading": "not compared"}
    made = cell(pair.gap.difference.as_dict(), show=show)
    alone, among = smallest(pair)
    return told | {
        "n": made["n"], "difference": made["value"], "interval": made["interval"], "why": made["why"], "left": left,
        "won": f"{pair.gap.wins} : {pair.gap.losses}", "p": p_value(pair.gap.p), "holm": p_value(pair.holm),
        "smallest": show(alone), "among": show(among), "test": pair.gap.test,
        "reading": f"{pair.ahead} is higher" if pair.ahead else "no difference shown",
    }  # fmt: skip


def smallest(pair: Pair) -> tuple[float, float]:
    """The smallest detectable difference of a pair tested alone, and at the strictest step of Holm over all tests."""
    if pair.gap is None:
        return math.nan, math.nan
    error, df = pair.gap.error, pair.gap.df
    return ranks.smallest(error, df), ranks.smallest(error, df, tests=pair.tests)


def record(pair: Pair, *, scale: float) -> dict[str, Any]:
    """One pair with numbers in full precision, for a data frame; `scale` is 100 for percent."""
    told = {
        "a": pair.a,
        "b": pair.b,
        "measure": pair.what,
        "only_a": pair.only[0],
        "only_b": pair.only[1],
        "why": pair.why,
    }
    if pair.gap is None:
        return told
    made = pair.gap.difference
    alone, among = smallest(pair)
    return told | {
        "n": made.n, "difference": scale * made.value, "low": scale * made.low, "high": scale * made.high,
        "method": made.method, "wins": pair.gap.wins, "losses": pair.gap.losses, "p": pair.gap.p,
        "p_holm": pair.holm, "test": pair.gap.test, "smallest_alone": scale * alone, "smallest_among": scale * among,
        "higher": pair.ahead,
    }  # fmt: skip
