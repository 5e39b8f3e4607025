"""Statistics of the papers' analyses: differences of two groups, correlations over a handful of models, slopes on size.

Models are few, so p-values are exact where all orders can be counted. Too little data gives NaN and a reason.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import stats as sps

from thaikit.resampling import bootstrap_interval
from thaikit.stats import CONFIDENCE, Estimate, wilson

Kind = Literal["spearman", "pearson"]
ALPHA = 1 - CONFIDENCE
_EXACT_ORDERS = 8  # 8! = 40,320 orders are counted, more are drawn
_EXACT_SPLITS = 50_000
_DRAWS = 10_000
_TIE = 1e-12


@dataclass(frozen=True)
class Tested:
    """An estimate with a two-sided p-value and the test that gave it."""

    estimate: Estimate
    p: float
    test: str

    def as_dict(self) -> dict[str, float | int | str]:
        """The fields of the estimate, then p and test."""
        return self.estimate.as_dict() | {"p": self.p, "test": self.test}


@dataclass(frozen=True)
class Slope:
    """Points a ten-fold of x: the slope with interval, its intercept at x = 1, and the slope without each point."""

    estimate: Estimate
    intercept: float
    without: tuple[float, ...]


def newcombe(k1: int, n1: int, k2: int, n2: int) -> Estimate:
    """k1 / n1 - k2 / n2 of independent items with Newcombe's hybrid score interval (1998, method 10), n1 + n2 items.

    Where both rest on the same items this is wider than a paired interval if the two agree more often than by chance.
    NaN and a reason where either has no items; ValueError unless 0 <= k <= n.
    """
    if not (n1 and n2):
        return Estimate(math.nan, math.nan, math.nan, n1 + n2, "none: one side has no items")
    return replace(minus(wilson(k1, n1), wilson(k2, n2)), method="newcombe")


def minus(a: Estimate, b: Estimate) -> Estimate:
    """a - b of independent estimates, n summed: the limits' distances squared, summed and rooted (method of variance
    estimates recovery, Zou and Donner 2008). NaN limits and the reason where either has no interval."""
    value, n = a.value - b.value, a.n + b.n
    bare = next((one for one in (a, b) if math.isnan(one.low) or math.isnan(one.high)), None)
    if bare is not None:
        return Estimate(value, math.nan, math.nan, n, bare.method)
    below = math.hypot(a.value - a.low, b.high - b.value)
    above = math.hypot(a.high - a.value, b.value - b.low)
    return Estimate(value, value - below, value + above, n, "mover")


def welch(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """mean(a) - mean(b) of independent items with Welch's t interval; NaN limits and a reason for too little data."""
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    n = len(x) + len(y)
    if not (len(x) and len(y)):
        return Estimate(math.nan, math.nan, math.nan, n, "none: one side has no items")
    value = float(x.mean() - y.mean())
    if min(len(x), len(y)) < 2:
        return Estimate(value, math.nan, math.nan, n, "none: one item has no spread")
    parts = np.array([x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)])
    if parts.sum() <= 1e-24 * max(1.0, value**2):
        return Estimate(value, math.nan, math.nan, n, "none: the values have no spread")
    df = parts.sum() ** 2 / (parts[0] ** 2 / (len(x) - 1) + parts[1] ** 2 / (len(y) - 1))
    half = float(sps.t.ppf(1 - ALPHA / 2, df)) * math.sqrt(parts.sum())
    return Estimate(value, value - half, value + half, n, "welch")


def split_test(a: Sequence[float], b: Sequence[float], *, rng: np.random.Generator | None = None) -> Tested:
    """mean(a) - mean(b) with Welch's interval and the two-sided p over all ways to deal the values to the two groups.

    Exact up to 50,000 ways; beyond, 10,000 draws from `rng` (ValueError without one). p is NaN for an empty group.
    """
    estimate = welch(a, b)
    values, size = np.concatenate([np.asarray(a, dtype=float), np.asarray(b, dtype=float)]), len(a)
    if not (len(a) and len(b)):
        return Tested(estimate, math.nan, "none: one side has no items")
    ways = math.comb(len(values), size)
    observed = abs(estimate.value) - _TIE
    if ways <= _EXACT_SPLITS:
        picked = np.array(list(itertools.combinations(range(len(values)), size)))
        p = float(np.mean(np.abs(_gaps(values, picked, size)) >= observed))
        return Tested(estimate, p, f"all {ways:,} splits")
    if rng is None:
        raise ValueError(f"split_test: {ways:,} splits are too many to count; pass a generator.")
    picked = np.argsort(rng.random((_DRAWS, len(values))), axis=1)[:, :size]
    hits = int((np.abs(_gaps(values, picked, size)) >= observed).sum())
    return Tested(estimate, (hits + 1) / (_DRAWS + 1), f"{_DRAWS} drawn splits")


def _gaps(values: np.ndarray, picked: np.ndarray, size: int) -> np.ndarray:
    """Mean of the picked values less that of the others, for each row of indices."""
    inside = values[picked].sum(axis=1)
    return inside / size - (values.sum() - inside) / (len(values) - size)


def correlation(x: Sequence[float], y: Sequence[float], *, kind: Kind, rng: np.random.Generator) -> Tested:
    """Pearson's or Spearman's coefficient of the pairs with a bootstrap interval over pairs and a permutation p.

    The two-sided p is exact up to 8 pairs (all orders of y), else from 10,000 drawn orders. NaN and a reason for under
    three pairs or for values without spread; ValueError for lists of unequal length.
    """
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(a) != len(b):
        raise ValueError(f"correlation: {len(a)} and {len(b)} values; both lists must hold the same models in order.")
    n = len(a)
    if n < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        why = f"none: {n} pairs" if n < 3 else "none: the values have no spread"
        return Tested(Estimate(math.nan, math.nan, math.nan, n, why), math.nan, why)
    made = bootstrap_interval(np.column_stack([a, b]), rng=rng, statistic=_pearson if kind == "pearson" else _spearman)
    ranked = (a, b) if kind == "pearson" else (sps.rankdata(a), sps.rankdata(b))
    p, test = _order_test(*ranked, rng)
    return Tested(made, p, test)


def _pearson(pairs: np.ndarray, axis: int) -> np.ndarray:
    """Pearson's r of pairs in the last axis, items along `axis`; NaN where a side has no spread."""
    centred = pairs - pairs.mean(axis=axis, keepdims=True)
    squares = (centred**2).sum(axis=axis)
    product = (centred[..., 0] * centred[..., 1]).sum(axis=axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = product / np.sqrt(squares[..., 0] * squares[..., 1])
    return np.where((squares <= _TIE).any(axis=-1), np.nan, r)


def _spearman(pairs: np.ndarray, axis: int) -> np.ndarray:
    """Pearson's r of the midranks."""
    return _pearson(sps.rankdata(pairs, axis=axis), axis)


def _order_test(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> tuple[float, str]:
    """Two-sided p of the correlation under random orders of b, and the test's name."""
    x = (a - a.mean()) / np.linalg.norm(a - a.mean())
    y = (b - b.mean()) / np.linalg.norm(b - b.mean())
    observed = abs(float(x @ y)) - 1e-9
    if len(x) <= _EXACT_ORDERS:
        orders = np.array(list(itertools.permutations(range(len(x)))))
        return float(np.mean(np.abs(y[orders] @ x) >= observed)), f"all {len(orders):,} orders"
    drawn = y[np.argsort(rng.random((_DRAWS, len(y))), axis=1)]
    return (int((np.abs(drawn @ x) >= observed).sum()) + 1) / (_DRAWS + 1), f"{_DRAWS} drawn orders"


def smallest_shown(n: int) -> dict[str, float]:
    """What n models could show at all: `spearman`, the smallest |rho| whose exact two-sided p over all n! orders is at
    most 0.05 (NaN where none is), its p; `pearson`, the same under the normal model; `true80`, the true correlation
    that would be found significant four times in five (Fisher's z). ValueError unless 3 <= n <= 8."""
    if not 3 <= n <= _EXACT_ORDERS:
        raise ValueError(f"smallest_shown: {n} models; all orders are counted for 3 to {_EXACT_ORDERS}.")
    ranks = np.arange(n) - (n - 1) / 2
    rhos = np.array(list(itertools.permutations(ranks))) @ ranks / (ranks @ ranks)
    levels = sorted({round(float(r), 9) for r in np.abs(rhos)})
    tails = {level: float(np.mean(np.abs(rhos) >= level - 1e-8)) for level in levels}
    rho = next((level for level in levels if tails[level] <= ALPHA), math.nan)
    t = float(sps.t.ppf(1 - ALPHA / 2, n - 2))
    z = (sps.norm.ppf(1 - ALPHA / 2) + sps.norm.ppf(0.8)) / math.sqrt(n - 3) if n > 3 else math.nan
    return {"n": n, "spearman": rho, "p": tails.get(rho, math.nan), "pearson": t / math.sqrt(n - 2 + t * t),
            "true80": float(np.tanh(z))}  # fmt: skip


def slope(x: Sequence[float], y: Sequence[float]) -> Slope:
    """Least squares of y on log10(x): points a ten-fold, Student's t interval with n - 2 degrees of freedom, and the
    slope without each point in turn (NaN where the rest has one x only). NaN and a reason for under three points or a
    single x. ValueError for an x that is not above 0 or lists of unequal length."""
    size, score = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(size) != len(score) or not (size > 0).all():
        raise ValueError(f"slope: {len(size)} sizes, all above 0, and {len(score)} values; pass as many of each.")
    log, n = np.log10(size), len(size)
    without = tuple(_fit(np.delete(log, i), np.delete(score, i))[0] for i in range(n)) if n > 2 else ()
    value, intercept = _fit(log, score)
    if n < 3 or math.isnan(value):
        why = f"none: {n} points" if n < 3 else "none: one size"
        return Slope(Estimate(value, math.nan, math.nan, n, why), intercept, without)
    residual = score - intercept - value * log
    error = math.sqrt(float(residual @ residual) / (n - 2) / float(((log - log.mean()) ** 2).sum()))
    half = float(sps.t.ppf(1 - ALPHA / 2, n - 2)) * error
    return Slope(Estimate(value, value - half, value + half, n, "least squares, t"), intercept, without)


def _fit(log: np.ndarray, score: np.ndarray) -> tuple[float, float]:
    """Slope and intercept; NaN for under two different x."""
    spread = float(((log - log.mean()) ** 2).sum()) if len(log) else 0.0
    if spread <= _TIE:
        return math.nan, math.nan
    value = float((log - log.mean()) @ (score - score.mean())) / spread
    return value, float(score.mean() - value * log.mean())


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from the highest value, 1, downwards; equal values share the mean of theirs, NaN stays NaN."""
    x = np.asarray(values, dtype=float)
    found = np.full(len(x), np.nan)
    told = ~np.isnan(x)
    found[told] = sps.rankdata(-x[told])
    return [float(rank) for rank in found]
