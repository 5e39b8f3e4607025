"""Two systems on the items that both answered, and what a comparison of that size could show."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats as sps

from thaikit.stats import CONFIDENCE

ALPHA = 1 - CONFIDENCE
POWER = 0.8


@dataclass(frozen=True)
class Shared:
    """Scores of two systems on the items that both have, in one order, and how many items only one of them has."""

    items: tuple[Hashable, ...]
    a: tuple[float, ...]
    b: tuple[float, ...]
    only_a: int
    only_b: int

    @property
    def same(self) -> bool:
        """Whether both have the same items."""
        return not self.only_a and not self.only_b


def shared(a: Mapping[Hashable, float], b: Mapping[Hashable, float], *, on_shared: bool = False) -> Shared:
    """The scores of both systems, item by item, in the order of `a`.

    ValueError where the item sets differ, unless `on_shared` says that a comparison on the shared items is meant; the
    result then tells how many items were left out on each side.
    """
    both = [key for key in a if key in b]
    only_a, only_b = len(a) - len(both), len(b) - len(both)
    if (only_a or only_b) and not on_shared:
        raise ValueError(
            f"shared: the item sets differ, {only_a} items are only in the first and {only_b} only in the second; "
            f"say on_shared to compare on the {len(both)} that both have."
        )
    return Shared(tuple(both), tuple(a[k] for k in both), tuple(b[k] for k in both), only_a, only_b)


def smallest_difference(differences: Sequence[float]) -> float:
    """The true mean difference that a two-sided paired t test at 5 % would find four times in five, given the spread of
    these differences; NaN for fewer than two items or without spread.

    The usual normal-theory formula with t quantiles, (t of 1 - alpha/2 + t of power) times s over root n.
    """
    x = np.asarray(differences, dtype=float)
    n = len(x)
    if n < 2 or float(np.ptp(x)) == 0:
        return math.nan
    quantiles = sps.t.ppf(1 - ALPHA / 2, n - 1) + sps.t.ppf(POWER, n - 1)
    return float(quantiles * x.std(ddof=1) / math.sqrt(n))


def auc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """The rate at which a value of the first list beats one of the second over all pairs, ties half; NaN for none."""
    x, y = np.asarray(higher, dtype=float), np.asarray(lower, dtype=float)
    if not len(x) or not len(y):
        return math.nan
    ranks = sps.rankdata(np.concatenate([x, y]))
    return float((ranks[: len(x)].sum() - len(x) * (len(x) + 1) / 2) / (len(x) * len(y)))
