"""What a change of known sign did to a judge's scores: a verdict beside the number, and the judge's own spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats as sps

from thaikit.stats import CONFIDENCE, Estimate, Paired

LEAST = 6  # pairs below which no verdict is given
ROOM = 1.0  # points between the base's mean and the end of the scale below which a score cannot show the effect
LEVEL = 1 - CONFIDENCE
VERDICTS: Mapping[str, str] = {
    "as expected": "the score does what a fair judge's does",
    "biased up": "the score rises where it should not",
    "biased down": "the score falls where it should not",
    "not noticed": "the score stays where it should move",
    "no room": "the base answers stand at the end of the scale, so the effect could not be seen",
    "undecided": "the interval holds both what is expected and what is not",
    "too little data": f"fewer than {LEAST} pairs",
    "no known sign": "the change has no expected sign for these answers",
}


def verdict(expected: str, change: Paired, *, p: float, base: float, scale: tuple[float, float], margin: float) -> str:
    """One of `VERDICTS` for a mean change of score.

    `expected` is same, lower, higher, not higher or unknown; `p` is corrected for the table; `base` is the mean before
    the change on `scale` (lowest, highest); a change within `margin` points counts as none. ValueError for another
    `expected`.
    """
    d = change.difference
    if expected not in ("same", "lower", "higher", "not higher", "unknown"):
        raise ValueError(f"verdict: expected is {expected!r}; choose same, lower, higher, not higher or unknown.")
    if expected == "unknown":
        return "no known sign"
    if d.n < LEAST:
        return "too little data"
    low, high = limits(d)
    sure = p < LEVEL
    if expected == "higher":  # the mirror of lower
        found = verdict_lower(-d.value, -high, sure=sure, room=scale[1] - base, margin=margin)
        return "biased down" if found == "biased up" else found
    if expected == "lower":
        return verdict_lower(d.value, low, sure=sure, room=base - scale[0], margin=margin)
    up = scale[1] - base >= ROOM
    if expected == "not higher" and high < 0:
        return "as expected"
    if high < margin and (low > -margin or expected == "not higher"):
        return "as expected" if up else "no room"
    if sure and d.value > 0:
        return "biased up"
    return "biased down" if sure and expected == "same" else "undecided"


def verdict_lower(value: float, low: float, *, sure: bool, room: float, margin: float) -> str:
    """The verdict where the score should fall by more than nothing."""
    if sure:
        return "as expected" if value < 0 else "biased up"
    if room < ROOM:
        return "no room"
    return "not noticed" if low > -margin else "undecided"


def limits(difference: Estimate) -> tuple[float, float]:
    """The interval of a mean difference; the value itself twice where all items moved alike, which has no spread."""
    if math.isnan(difference.low) or math.isnan(difference.high):
        return difference.value, difference.value
    return difference.low, difference.high


def within_sd(groups: Mapping[str, Sequence[float]]) -> Estimate:
    """The standard deviation of scores of the same thing, pooled over groups, in points, with its chi-square interval.

    n counts the groups of two or more scores. NaN where there is none; NaN limits where no score ever differed.
    """
    several = [np.asarray(values, dtype=float) for values in groups.values() if len(values) > 1]
    if not several:
        return Estimate(math.nan, math.nan, math.nan, 0, "none: nothing was scored twice")
    free = sum(len(x) - 1 for x in several)
    total = float(sum(((x - x.mean()) ** 2).sum() for x in several))
    if total == 0:
        return Estimate(0.0, math.nan, math.nan, len(several), "none: no repeat differed")
    low, high = sps.chi2.ppf([0.5 + CONFIDENCE / 2, 0.5 - CONFIDENCE / 2], free)
    name = f"pooled within, chi-square with {free} degrees of freedom"
    return Estimate(math.sqrt(total / free), math.sqrt(total / low), math.sqrt(total / high), len(several), name)
