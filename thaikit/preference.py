"""Which of two answers people prefer, and whether the choice follows length."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats as sps

from thaikit.stats import CONFIDENCE, Estimate, sign_test, wilson

LEAST = 6  # items below which a rank correlation has no interval worth the name
DRAWS = 2000


@dataclass(frozen=True)
class Tally:
    """Items by what most voters said: the long answer, the short one, a tie; `split` where two of these share first
    place, which is no majority and is not guessed."""

    long: int
    short: int
    tie: int
    split: int = 0

    @property
    def n(self) -> int:
        """All items."""
        return self.long + self.short + self.tie + self.split

    def win_rate(self) -> Estimate:
        """The long answer's share of the items that decide, with Wilson's interval; NaN where none does."""
        return wilson(self.long, self.long + self.short)

    def p(self) -> float:
        """The exact two-sided sign test, ties and splits left out; 1.0 where no item decides."""
        return sign_test(self.long, self.short)


def rank_correlation(x: Sequence[float], y: Sequence[float], *, rng: np.random.Generator) -> tuple[Estimate, float]:
    """Spearman's correlation over items with a bootstrap interval, and its two-sided permutation p (2,000 draws each).

    Pairs with a NaN are left out. NaN with the reason for fewer than 6 pairs or values without spread.
    """
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"rank_correlation: shapes {a.shape} and {b.shape}; pass two flat lists of the same items.")
    told = ~np.isnan(a) & ~np.isnan(b)
    a, b = a[told], b[told]
    n = len(a)
    if n < LEAST:
        return Estimate(math.nan, math.nan, math.nan, n, f"none: {n} items, {LEAST} are needed"), math.nan
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return Estimate(math.nan, math.nan, math.nan, n, "none: no spread"), math.nan
    value = float(sps.spearmanr(a, b).statistic)
    picks = rng.integers(0, n, size=(DRAWS, n))
    draws = _row_correlations(sps.rankdata(a[picks], axis=1), sps.rankdata(b[picks], axis=1))
    draws = draws[~np.isnan(draws)]
    low, high = np.quantile(draws, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2])
    ranks, other = sps.rankdata(a), sps.rankdata(b)
    shuffled = _row_correlations(np.tile(ranks, (DRAWS, 1)), rng.permuted(np.tile(other, (DRAWS, 1)), axis=1))
    p = (int((np.abs(shuffled) >= abs(value) - 1e-12).sum()) + 1) / (DRAWS + 1)
    return Estimate(value, float(low), float(high), n, f"spearman, bootstrap of {DRAWS}"), p


def _row_correlations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pearson's correlation of each row of a with that of b; NaN for a row without spread."""
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))


def longer_wins(ratios: Sequence[float], won_by_long: Sequence[float]) -> Estimate:
    """How often the answer with more words wins among the items that decide (Wilson).

    `ratios` are words of the long answer over those of the short one, `won_by_long` 1, 0 or NaN (nobody); items of
    equal length are left out.
    """
    r, w = np.asarray(ratios, dtype=float), np.asarray(won_by_long, dtype=float)
    told = ~np.isnan(r) & ~np.isnan(w) & (r != 1)
    return wilson(int(((r > 1) == (w == 1))[told].sum()), int(told.sum()))
