"""Intervals and tests: every headline number leaves this module with an interval, n, and the method's name.

Too little data gives NaN and a reason in `method`, never a width of 0. A random generator is always an argument.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np
from scipy import stats as sps

CONFIDENCE = 0.95
_Z = float(sps.norm.ppf(0.5 + CONFIDENCE / 2))
_RESAMPLES = 10_000
_EXACT_UP_TO = 12  # sign patterns are enumerated up to 2**12


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval: value, low and high in the unit of the values, n items, and how it was made."""

    value: float
    low: float
    high: float
    n: int
    method: str

    def as_dict(self) -> dict[str, float | int | str]:
        """The five fields as a plain dictionary, for JSON and data frames."""
        return asdict(self)


@dataclass(frozen=True)
class Paired:
    """Two systems on the same items: mean of a - b with interval, two-sided p, the test's name, items won and lost."""

    difference: Estimate
    p: float
    test: str
    wins: int
    losses: int

    def as_dict(self) -> dict[str, float | int | str]:
        """All fields flat: those of the difference, then p, test, wins, losses."""
        rest = {"p": self.p, "test": self.test, "wins": self.wins, "losses": self.losses}
        return self.difference.as_dict() | rest


def wilson(k: int, n: int) -> Estimate:
    """The proportion k / n with Wilson's score interval (Wilson 1927); NaN for n = 0. ValueError unless 0 <= k <= n."""
    if not 0 <= k <= n:
        raise ValueError(f"wilson: {k} successes of {n}; k must lie between 0 and n.")
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, "none: no items")
    return Estimate(k / n, *_wilson_limits(k / n, n), n, "wilson")


def _wilson_limits(p: float, n: float) -> tuple[float, float]:
    """Wilson's limits for a proportion p; n need not be whole (an effective number of items)."""
    shrink = 1 + _Z**2 / n
    centre = (p + _Z**2 / (2 * n)) / shrink
    half = _Z * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2)) / shrink
    low = 0.0 if p == 0 else max(0.0, centre - half)  # rounding must not put the limit past the value
    return low, (1.0 if p == 1 else min(1.0, centre + half))


def mean_interval(values: Sequence[float]) -> Estimate:
    """The mean of the values: Wilson's interval when all are 0 or 1, else Student's t with n - 1 degrees of freedom.

    NaN limits for a single value or for values without spread, unless they are 0 or 1; NaN value for no values.
    ValueError for NaN or infinity among the values.
    """
    x = _clean("mean_interval", values)
    n = len(x)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, "none: no items")
    if _binary(x):
        return wilson(int(x.sum()), n)
    mean = float(x.mean())
    if n == 1:
        return Estimate(mean, math.nan, math.nan, 1, "none: one item has no spread")
    return _t_interval(mean, float(x.var(ddof=1)) / n, n - 1, n, method="t")


def _t_interval(value: float, variance: float, df: float, n: int, *, method: str) -> Estimate:
    """Student's t interval from the variance of the estimate."""
    if variance <= 1e-24 * max(1.0, value**2):  # equal values leave rounding dust
        return Estimate(value, math.nan, math.nan, n, "none: the values have no spread")
    half = float(sps.t.ppf(0.5 + CONFIDENCE / 2, df)) * math.sqrt(variance)
    return Estimate(value, value - half, value + half, n, method)


def clustered_interval(values: Sequence[float], clusters: Sequence[Hashable]) -> Estimate:
    """The mean over items, with an interval that lets items of one cluster (a passage, a theme) go together.

    The variance is G / (G - 1) times the sum over the G clusters of (sum of their deviations from the mean)^2, over
    n^2; Student's t with G - 1 degrees of freedom. With one item in every cluster this is `mean_interval`. Limits of
    0/1 values stay within [0, 1]; without any spread those are Wilson's with G for n. NaN limits with the reason for
    fewer than two clusters or other values without spread; ValueError for lists of unequal length.
    """
    x = _clean("clustered_interval", values)
    if len(x) != len(clusters):
        raise ValueError(f"clustered_interval: {len(x)} values and {len(clusters)} clusters; give each value its own.")
    number = {name: place for place, name in enumerate(dict.fromkeys(clusters))}
    n, g = len(x), len(number)
    if g == n:
        return mean_interval(values)
    mean = float(x.mean())
    if g < 2:
        return Estimate(mean, math.nan, math.nan, n, f"none: all {n} items are of one cluster")
    if _binary(x) and mean in (0.0, 1.0):
        return Estimate(mean, *_wilson_limits(mean, g), n, f"wilson with {g} clusters for n: no spread")
    sums = np.bincount([number[name] for name in clusters], weights=x - mean, minlength=g)
    variance = float((sums**2).sum()) * g / (g - 1) / n**2
    found = _t_interval(mean, variance, g - 1, n, method=f"t, {g} clusters")
    if not _binary(x) or math.isnan(found.low):
        return found
    return Estimate(mean, max(0.0, found.low), min(1.0, found.high), n, found.method)


def macro_interval(groups: Mapping[str, Sequence[float]]) -> Estimate:
    """The unweighted mean of the group means, with an interval from the sum of the within-group variances.

    The groups are taken as fixed (these subjects, other items). Each group mean has variance s_j^2 / n_j, their sum
    over J^2 that of the result, with Satterthwaite's degrees of freedom. A group of one item has no spread of its own:
    it takes the pooled within-group variance, and `method` counts such groups. When no group has any spread and all
    values are 0 or 1, Wilson's limits with the effective number of items J^2 / sum(1 / n_j) stand in. Limits of 0/1
    values stay within [0, 1]. NaN limits when there is nothing to go by; ValueError for a group without items.
    """
    xs = {name: _clean(f"macro_interval, group {name!r}", values) for name, values in groups.items()}
    empty = [name for name, x in xs.items() if len(x) == 0]
    if empty:
        raise ValueError(f"macro_interval: group {empty[0]!r} has no items; leave it out or load its rows.")
    if not xs:
        return Estimate(math.nan, math.nan, math.nan, 0, "none: no groups")
    sizes = np.array([len(x) for x in xs.values()])
    value, total = float(np.mean([x.mean() for x in xs.values()])), int(sizes.sum())
    binary = all(_binary(x) for x in xs.values())
    variance, df, singles = _macro_variance(list(xs.values()))
    if variance <= 1e-24 * max(1.0, value**2) and binary:
        effective = len(sizes) ** 2 / float((1 / sizes).sum())
        return Estimate(value, *_wilson_limits(value, effective), total, "macro, wilson with effective n: no spread")
    if math.isnan(variance):
        return Estimate(value, math.nan, math.nan, total, "none: every group has one item")
    method = "macro, t" + (f"; pooled variance for {singles} of {len(sizes)} groups with one item" if singles else "")
    found = _t_interval(value, variance, df, total, method=method)
    if not binary or math.isnan(found.low):
        return found
    return Estimate(value, max(0.0, found.low), min(1.0, found.high), total, method)


def _macro_variance(xs: list[np.ndarray]) -> tuple[float, float, int]:
    """Variance of the mean of group means, its degrees of freedom, and the number of groups of one; NaN if all are."""
    several = [x for x in xs if len(x) > 1]
    singles = len(xs) - len(several)
    if not several:
        return math.nan, math.nan, singles
    free = np.array([len(x) - 1 for x in several])
    # Every group of one adds the pooled variance, itself a weighted sum of the same s_j^2.
    weights = 1 / (free + 1) + singles * free / free.sum()
    parts = weights * np.array([x.var(ddof=1) for x in several])
    variance, spread = float(parts.sum()), float((parts**2 / free).sum())
    return variance / len(xs) ** 2, (variance**2 / spread if spread > 0 else math.nan), singles


def average_interval(estimates: Sequence[Estimate]) -> Estimate:
    """The unweighted mean of independent estimates (six benchmark scores), n summed.

    The limits' distances from their values are squared, summed and rooted, each side for itself, over J: the method of
    variance estimates recovery (Zou and Donner 2008), which keeps lopsided intervals lopsided. NaN limits, with the
    number of estimates at fault in `method`, when any has none.
    """
    if not estimates:
        return Estimate(math.nan, math.nan, math.nan, 0, "none: no estimates")
    count, n = len(estimates), sum(e.n for e in estimates)
    value = math.fsum(e.value for e in estimates) / count
    bare = sum(math.isnan(e.low) or math.isnan(e.high) for e in estimates)
    if bare:
        return Estimate(value, math.nan, math.nan, n, f"none: {bare} of {count} estimates have no interval")
    below = math.sqrt(math.fsum((e.value - e.low) ** 2 for e in estimates)) / count
    above = math.sqrt(math.fsum((e.high - e.value) ** 2 for e in estimates)) / count
    return Estimate(value, value - below, value + above, n, f"mean of {count}, mover")


def paired(a: Sequence[float], b: Sequence[float], *, rng: np.random.Generator) -> Paired:
    """The mean of a - b over the same items in the same order, with interval and two-sided p.

    Scores of 0 and 1: Bonett and Price's interval (2012) and the exact McNemar test. Other scores: Student's t and a
    sign-flip permutation test, exact up to 12 items that differ, else 10,000 draws from `rng`. The interval is NaN when
    there is too little data. ValueError for lists of unequal length.
    """
    x, y = _clean("paired", a), _clean("paired", b)
    if len(x) != len(y):
        raise ValueError(f"paired: {len(x)} and {len(y)} scores; both lists must hold the same items in one order.")
    d = x - y
    n, wins, losses = len(d), int((d > 0).sum()), int((d < 0).sum())
    if n == 0:
        return Paired(Estimate(math.nan, math.nan, math.nan, 0, "none: no items"), math.nan, "none: no items", 0, 0)
    if _binary(x) and _binary(y):
        return Paired(_bonett_price(wins, losses, n), sign_test(wins, losses), "mcnemar exact", wins, losses)
    difference = Estimate(float(d.mean()), math.nan, math.nan, n, "none: one item has no spread")
    if n > 1:
        difference = _t_interval(float(d.mean()), float(d.var(ddof=1)) / n, n - 1, n, method="paired t")
    return Paired(difference, *_sign_flip(d[d != 0], rng), wins, losses)


def _bonett_price(wins: int, losses: int, n: int) -> Estimate:
    """The difference of two paired proportions with the adjusted Wald interval, never of width 0."""
    up, down = (wins + 1) / (n + 2), (losses + 1) / (n + 2)
    half = _Z * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    low, high = max(-1.0, up - down - half), min(1.0, up - down + half)
    return Estimate((wins - losses) / n, low, high, n, "bonett-price")


def _sign_flip(d: np.ndarray, rng: np.random.Generator) -> tuple[float, str]:
    """Two-sided p of the sum of d under random signs, and the test's name."""
    observed = abs(d.sum()) - 1e-9 * np.abs(d).sum()  # ties with the observed sum count, rounding aside
    if len(d) <= _EXACT_UP_TO:
        patterns = (np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1
        return float(np.mean(np.abs((1 - 2 * patterns) @ d) >= observed)), "sign flip, exact"
    hits = sum(
        int((np.abs((1 - 2 * rng.integers(0, 2, size=(100, len(d)), dtype=np.int8)) @ d) >= observed).sum())
        for _ in range(_RESAMPLES // 100)
    )
    return (hits + 1) / (_RESAMPLES + 1), f"sign flip, {_RESAMPLES} draws"


@lru_cache(maxsize=4096)  # a table of forty models asks the same few hundred pairs of counts thousands of times
def sign_test(wins: int, losses: int) -> float:
    """The exact two-sided p of wins against losses, each as likely as the other, ties left out; 1.0 for 0 against 0.

    On items that only one of two systems got right this is the exact McNemar test.
    """
    if wins < 0 or losses < 0:
        raise ValueError(f"sign_test: {wins} wins and {losses} losses; neither can be negative.")
    return float(sps.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def holm(pvalues: Sequence[float]) -> list[float]:
    """The p-values after Holm's step-down correction (1979), in input order; NaN stays NaN and is not counted."""
    from statsmodels.stats.multitest import multipletests  # half a second to import, and not always needed

    p = np.asarray(pvalues, dtype=float)
    told = ~np.isnan(p)
    if told.any():
        p = p.copy()
        p[told] = multipletests(p[told], method="holm")[1]
    return [float(x) for x in p]


def _clean(where: str, values: Sequence[float]) -> np.ndarray:
    x = np.asarray(values, dtype=float)
    if x.ndim != 1:
        raise ValueError(f"{where}: values have {x.ndim} dimensions; pass one flat list.")
    if not np.isfinite(x).all():
        raise ValueError(f"{where}: {int((~np.isfinite(x)).sum())} of {len(x)} values are NaN or infinite; drop them.")
    return x


def _binary(x: np.ndarray) -> bool:
    return bool(np.isin(x, (0.0, 1.0)).all())
