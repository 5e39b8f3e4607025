"""Systems compared two by two on shared items, and the ranks that this allows: shared where no difference is shown."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats as sps

from thaikit.matched import ALPHA, POWER
from thaikit.stats import Estimate

DRAWS = 10_000  # of random signs; the least p that they can give is one in so many
_EXACT_UP_TO = 12  # sign patterns are counted up to 2**12
_CELLS = 2_000_000  # drawn at once


@dataclass(frozen=True)
class Gap:
    """Two systems on shared items: mean of a - b with interval, two-sided p and the test's name, items won and lost,
    the standard error of the mean with its degrees of freedom, and the least p that so many items or clusters can
    give."""

    difference: Estimate
    p: float
    test: str
    wins: int
    losses: int
    error: float
    df: float
    least: float


@dataclass(frozen=True)
class Spread:
    """The variance of a mean, its degrees of freedom, and the shares of the mean that random signs turn."""

    value: float
    variance: float
    df: float
    units: np.ndarray


def macro_gap(
    tasks: Mapping[str, Mapping[str, Sequence[float]]], *, rng: np.random.Generator, draws: int = DRAWS
) -> Gap:
    """The difference of two systems' unweighted averages over tasks, from their differences a - b item by item.

    `tasks` is task → group → differences; a task's mean is the unweighted mean of its groups' (MMLU's subjects; one
    group for others). The tasks and groups are taken as fixed and the items as drawn within each: the difference is the
    mean of the T tasks' differences, its variance the sum of their variances over T^2, the interval Student's t with
    Satterthwaite's degrees of freedom. A task of G groups has the variance sum(s_g^2 / n_g) / G^2, where a group of one
    item takes the task's pooled variance; if all its groups are of one item they are taken as one. The p-value is of a
    sign-flip permutation test stratified in the same way: each item's share of the mean (its difference over n_g G T)
    keeps its size and takes a random sign, all patterns up to 12 items that differ, else `draws` from `rng`.
    Limits are NaN with the reason where there is no spread or a task has one item. ValueError for no tasks, an empty
    group, NaN or infinity.
    """
    if not tasks:
        raise ValueError("macro_gap: no tasks; at least one is needed.")
    parts = [_task(name, groups) for name, groups in tasks.items()]
    count = len(parts)
    variance = sum(part.variance for part in parts) / count**2
    squares = sum((part.variance / count**2) ** 2 / part.df for part in parts if part.variance > 0)
    df = variance**2 / squares if squares > 0 else math.nan
    units = np.concatenate([part.units for part in parts]) / count
    alone = [name for name, part in zip(tasks, parts, strict=True) if math.isnan(part.variance)]
    why = f"none: task {alone[0]} has one item" if alone else ""
    value = math.fsum(part.value for part in parts) / count
    items = np.concatenate([np.asarray(d, dtype=float) for groups in tasks.values() for d in groups.values()])
    method = f"mean of {count} tasks, t" if count > 1 else "paired t"
    return _gap(items, Spread(value, variance, df, units), rng, draws, method=method, why=why)


def clustered_gap(
    differences: Sequence[float], clusters: Sequence[Hashable], *, rng: np.random.Generator, draws: int = DRAWS
) -> Gap:
    """The mean difference of two systems over items that come in clusters (questions on one passage).

    Variance and degrees of freedom as in `stats.clustered_interval`; the sign-flip test turns whole clusters. With one
    item in every cluster this is the paired t interval. ValueError for lists of unequal length, NaN or infinity.
    """
    d = _finite("clustered_gap", differences)
    if len(d) != len(clusters):
        raise ValueError(f"clustered_gap: {len(d)} differences and {len(clusters)} clusters; give each its own.")
    number = {name: place for place, name in enumerate(dict.fromkeys(clusters))}
    n, g = len(d), len(number)
    if n == 0:
        return _gap(d, Spread(math.nan, math.nan, math.nan, d), rng, draws, method="", why="none: no items")
    places, mean = [number[name] for name in clusters], float(d.mean())
    off = np.bincount(places, weights=d - mean, minlength=g)
    variance = float(off @ off) * g / (g - 1) / n**2 if g > 1 else math.nan
    units = np.bincount(places, weights=d, minlength=g) / n
    method = "paired t" if g == n else f"paired t, {g} clusters"
    why = "" if g > 1 else "none: one item has no spread" if n == 1 else f"none: all {n} items are of one cluster"
    return _gap(d, Spread(mean, variance, g - 1, units), rng, draws, method=method, why=why)


def smallest(error: float, df: float, *, tests: int = 1) -> float:
    """The true difference that a two-sided t test finds four times in five, given the error of the mean difference and
    its degrees of freedom: (t of 1 - alpha/2 + t of power) times the error, alpha 5 % over the number of tests (the
    strictest step of Holm's correction). NaN without an error. ValueError for fewer tests than one."""
    if tests < 1:
        raise ValueError(f"smallest: {tests} tests; at least one is needed.")
    if not error > 0 or not df > 0:
        return math.nan
    return float((sps.t.ppf(1 - ALPHA / tests / 2, df) + sps.t.ppf(POWER, df)) * error)


def draws_for(tests: int) -> int:
    """How many draws of random signs a test needs to be able to show something among so many after Holm: 40 a test,
    10,000 at least and 100,000 at most."""
    return min(100_000, max(DRAWS, 40 * tests))


def bands(
    values: Sequence[float], pairs: Sequence[tuple[int, int, float, float]], *, alpha: float = 0.05
) -> list[tuple[int, int] | None]:
    """The ranks that each system may have: (best, worst), None for a system whose value is NaN.

    `pairs` holds (a, b, difference a - b, corrected p) by place in `values`. Best is 1 and the number of systems shown
    to be higher (corrected p below `alpha`), worst the number of systems with a value less those shown to be lower. A
    pair that is missing or whose p is NaN shows nothing. ValueError for a place that is not there.
    """
    count = len(values)
    told = [not math.isnan(value) for value in values]
    above, below = [0] * count, [0] * count
    for a, b, difference, p in pairs:
        if not (0 <= a < count and 0 <= b < count and a != b):
            raise ValueError(f"bands: a pair names {a} and {b}; two places from 0 to {count - 1} are needed.")
        if told[a] and told[b] and p < alpha and difference != 0:
            high, low = (a, b) if difference > 0 else (b, a)
            above[low] += 1
            below[high] += 1
    total = sum(told)
    return [(1 + above[i], total - below[i]) if told[i] else None for i in range(count)]


def _task(name: str, groups: Mapping[str, Sequence[float]]) -> Spread:
    """A task's mean difference with its variance, NaN for a single item."""
    xs = [_finite(f"macro_gap, task {name!r}", values) for values in groups.values()]
    if not xs or any(len(x) == 0 for x in xs):
        raise ValueError(f"macro_gap: task {name!r} has a group without items; leave it out.")
    value, count = float(np.mean([x.mean() for x in xs])), len(xs)
    units = np.concatenate([x / len(x) for x in xs]) / count
    if all(len(x) == 1 for x in xs):  # of groups of one the mean is that of their items, which are taken as one group
        xs, count = [np.concatenate(xs)], 1
    several = [x for x in xs if len(x) > 1]
    if not several:
        return Spread(value, math.nan, math.nan, units)
    singles, free = count - len(several), np.array([len(x) - 1 for x in several])
    weights = (1 / (free + 1) + singles * free / free.sum()) / count**2
    each = weights * np.array([x.var(ddof=1) for x in several])
    variance, squares = float(each.sum()), float((each**2 / free).sum())
    return Spread(value, variance, variance**2 / squares if squares > 0 else math.nan, units)


def _gap(d: np.ndarray, found: Spread, rng: np.random.Generator, draws: int, *, method: str, why: str) -> Gap:
    """The parts of a comparison put together."""
    error, low, high = math.sqrt(found.variance) if found.variance >= 0 else math.nan, math.nan, math.nan
    if not why and found.variance <= 1e-24 * max(1.0, found.value**2):  # equal values leave rounding dust
        error, why = 0.0, "none: the differences have no spread"
    if not why:
        half = float(sps.t.ppf(1 - ALPHA / 2, found.df)) * error
        low, high = found.value - half, found.value + half
    p, test = _flipped(found.units, rng, draws) if len(d) else (math.nan, "none: no items")
    least = min(1.0, max(2.0 ** (1 - len(found.units)), 1 / (draws + 1)))
    estimate = Estimate(found.value, low, high, len(d), why or method)
    return Gap(estimate, p, test, int((d > 0).sum()), int((d < 0).sum()), error, found.df, least)


def _flipped(units: np.ndarray, rng: np.random.Generator, draws: int) -> tuple[float, str]:
    """Two-sided p of the sum of the units under random signs, and the test's name.

    Units of one size are drawn together, as a binomial: items of one task that are right or wrong differ by sign only.
    """
    size = np.abs(units[units != 0])
    observed = abs(float(units.sum())) - 1e-9 * float(size.sum())  # ties with the observed sum count, rounding aside
    if len(size) <= _EXACT_UP_TO:
        patterns = (np.arange(2 ** len(size))[:, None] >> np.arange(len(size))) & 1
        return float(np.mean(np.abs((1 - 2 * patterns) @ size) >= observed)), "sign flip, exact"
    sizes, counts = np.unique(size, return_counts=True)
    alone, many = sizes[counts == 1], counts[counts > 1]
    block, hits = max(1, _CELLS // len(sizes)), 0
    for begin in range(0, draws, block):
        rows = min(block, draws - begin)
        sums = (1 - 2 * rng.integers(0, 2, size=(rows, len(alone)), dtype=np.int8)) @ alone
        sums += (2 * rng.binomial(many, 0.5, size=(rows, len(many))) - many) @ sizes[counts > 1]
        hits += int((np.abs(sums) >= observed).sum())
    return (hits + 1) / (draws + 1), f"sign flip, {draws} draws"


def _finite(where: str, values: Sequence[float]) -> np.ndarray:
    x = np.asarray(values, dtype=float)
    if x.ndim != 1 or not np.isfinite(x).all():
        raise ValueError(f"{where}: the differences must be one flat list of numbers without NaN or infinity.")
    return x
