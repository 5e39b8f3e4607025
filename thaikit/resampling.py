"""Bootstrap intervals: the items drawn anew, with replacement, by a generator that is always an argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thaikit.stats import CONFIDENCE, Estimate

RESAMPLES = 2_000
_CELLS = 2_000_000  # drawn at once: 16 MB of indices

Statistic = Callable[..., Any]


def bootstrap_interval(
    values: Sequence[float] | np.ndarray,
    *,
    rng: np.random.Generator,
    statistic: Statistic = np.mean,
    resamples: int = RESAMPLES,
) -> Estimate:
    """The statistic of the values with its percentile bootstrap interval (Efron 1979), n items.

    `values` is flat, or holds one item a row (paired measures). `statistic` takes an array and `axis`, as np.mean and
    np.median do: the items lie along that axis. Resamples whose statistic is NaN are left out, and `method` counts
    them. NaN limits and a reason for under two items, or where half of the resamples or more have no value.
    ValueError for NaN or infinity among the values.
    """
    x = np.asarray(values, dtype=float)
    if not np.isfinite(x).all():
        raise ValueError(f"bootstrap_interval: {int((~np.isfinite(x)).sum())} values are NaN or infinite; drop them.")
    n = len(x)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, "none: no items")
    value = float(statistic(x, axis=0))
    if n == 1:
        return Estimate(value, math.nan, math.nan, 1, "none: one item cannot be resampled")
    made = _resampled(x, statistic, rng, resamples)
    kept = made[~np.isnan(made)]
    if 2 * len(kept) <= resamples:
        return Estimate(value, math.nan, math.nan, n, f"none: {len(kept)} of {resamples} resamples have a value")
    if np.ptp(kept) <= 1e-12 * max(1.0, abs(value)):
        return Estimate(value, math.nan, math.nan, n, "none: the values have no spread")
    low, high = np.quantile(kept, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    lost = f", {resamples - len(kept)} without a value" if len(kept) < resamples else ""
    return Estimate(value, float(low), float(high), n, f"bootstrap, {resamples} resamples{lost}")


def _resampled(x: np.ndarray, statistic: Statistic, rng: np.random.Generator, resamples: int) -> np.ndarray:
    """The statistic of each resample, a block of resamples at a time."""
    block = max(1, _CELLS // x.size)
    found = []
    for begin in range(0, resamples, block):
        drawn = x[rng.integers(0, len(x), size=(min(block, resamples - begin), len(x)))]
        found.append(np.asarray(statistic(drawn, axis=1), dtype=float))
    return np.concatenate(found)
