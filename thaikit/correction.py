"""A judge's counts corrected for the judge's errors, and how many more human labels would halve the interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats as sps

from thaikit.stats import CONFIDENCE, Estimate, wilson

_Z = float(sps.norm.ppf(0.5 + CONFIDENCE / 2))


@dataclass(frozen=True)
class Corrected:
    """A corrected share of agreement: `estimate` as computed, which may lie outside [0, 1]; `shown`, the same at the
    bound where it does, its method saying so; `more`, the further human labels that would halve the interval with as
    many judged answers as now; NaN where none would do: `more_reason` then says how many would do without a judge."""

    estimate: Estimate
    shown: Estimate
    more: float
    more_reason: str


def rogan_gladen(*, judged: tuple[int, int], sensitivity: tuple[int, int], specificity: tuple[int, int]) -> Corrected:
    """The share that people would agree with, from a judge's (agreed, judged) and its errors on labelled answers.

    `sensitivity` is (judge agreed, people agreed), `specificity` (judge disagreed, people disagreed), each k of n. The
    value is Rogan and Gladen's (1978), (p + Sp - 1) / (Se + Sp - 1); the interval Lang and Reiczigel's (2014), which
    counts the errors of all three. NaN with the reason where a sample is empty or the judge is no better than chance.
    """
    samples = {"judged": judged, "sensitivity": sensitivity, "specificity": specificity}
    for name, (k, n) in samples.items():
        if not 0 <= k <= n:
            raise ValueError(f"rogan_gladen: {name} is {k} of {n}; k must lie between 0 and n.")
    empty = [name for name, (_, n) in samples.items() if n == 0]
    if empty:
        return _nothing(f"none: no answers for {empty[0]}", judged[1])
    p, se, sp = (k / n for k, n in samples.values())
    if se + sp <= 1:
        return _nothing("none: the judge is no better than chance", judged[1])
    value = (p + sp - 1) / (se + sp - 1)
    low, high, parts = _lang_reiczigel(judged, sensitivity, specificity)
    estimate = Estimate(value, min(low, value), max(high, value), judged[1], "rogan-gladen, lang-reiczigel")
    more, reason = _more(fixed=parts[0], labelled=parts[1], labels=sensitivity[1] + specificity[1], share=value)
    return Corrected(estimate, at_bound(estimate), more, reason)


def _lang_reiczigel(
    judged: tuple[int, int], sensitivity: tuple[int, int], specificity: tuple[int, int]
) -> tuple[float, float, tuple[float, float]]:
    """Limits, not clipped, and the variance's two parts: that of the judged answers, that of the labelled ones."""
    n, n_se, n_sp = judged[1] + _Z**2, sensitivity[1] + 2, specificity[1] + 2
    p, se, sp = (judged[0] + _Z**2 / 2) / n, (sensitivity[0] + 1) / n_se, (specificity[0] + 1) / n_sp
    youden = se + sp - 1
    if youden <= 0:
        return math.nan, math.nan, (math.nan, math.nan)
    share = (p + sp - 1) / youden
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    shift = 2 * _Z**2 * (share * of_se - (1 - share) * of_sp)
    fixed = p * (1 - p) / n / youden**2
    labelled = (share**2 * of_se + (1 - share) ** 2 * of_sp) / youden**2
    half = _Z * math.sqrt(fixed + labelled)
    return share + shift - half, share + shift + half, (fixed, labelled)


def prediction_powered(
    human: Sequence[float], judge: Sequence[float], *, judged: tuple[int, int] = (0, 0)
) -> Corrected:
    """The share that people would agree with: the judge's on answers without labels, plus the mean of human - judge.

    `human` and `judge` are 0/1 verdicts on the same labelled answers, a random part of all; `judged` is the judge's
    (agreed, judged) on the others. Angelopoulos et al., Prediction-powered inference, Science 2023. The interval joins
    Wilson's of the judge's share and Bonett and Price's of the mean difference (Zou and Donner 2008), so that it keeps
    a width where the judge happens to make no error. NaN with the reason without labels or without other answers.
    """
    h, j = np.asarray(human, dtype=float), np.asarray(judge, dtype=float)
    if h.shape != j.shape or h.ndim != 1 or not np.isin(np.concatenate([h, j]), (0.0, 1.0)).all():
        raise ValueError("prediction_powered: human and judge must be two flat lists of 0 and 1 of the same answers.")
    if len(h) < 2:
        return _nothing(f"none: needs labels of single answers, found {len(h)}", judged[1])
    if judged[1] == 0:
        return _nothing("none: the judge saw no answer without human labels", len(h))
    agreed = wilson(*judged)
    up, down, n = int(((h - j) > 0).sum()), int(((h - j) < 0).sum()), len(h)
    plus, minus = (up + 1) / (n + 2), (down + 1) / (n + 2)
    spread = plus + minus - (plus - minus) ** 2
    half = _Z * math.sqrt(spread / (n + 2))
    error = (up - down) / n
    below = math.hypot(agreed.value - agreed.low, max(0.0, error - (plus - minus - half)))
    above = math.hypot(agreed.high - agreed.value, max(0.0, plus - minus + half - error))
    value = agreed.value + error
    estimate = Estimate(value, value - below, value + above, n + judged[1], "prediction-powered, mover")
    fixed = ((agreed.high - agreed.low) / (2 * _Z)) ** 2
    more, reason = _more(fixed=fixed, labelled=spread / (n + 2), labels=n, share=value)
    return Corrected(estimate, at_bound(estimate), more, reason)


def at_bound(estimate: Estimate) -> Estimate:
    """The estimate as shown: value and limits moved to 0 or 1 where they lie beyond, the method saying so."""
    if math.isnan(estimate.value):
        return estimate
    value, low, high = (
        min(1.0, max(0.0, x)) if not math.isnan(x) else x for x in (estimate.value, estimate.low, estimate.high)
    )
    told = f"; {estimate.value:.3f} lies outside 0 to 1, shown at the bound" if value != estimate.value else ""
    return replace(estimate, value=value, low=low, high=high, method=estimate.method + told)


def _more(*, fixed: float, labelled: float, labels: int, share: float) -> tuple[float, str]:
    """Labels to add so that fixed + labelled / m is a quarter of the variance now, m the factor on their number."""
    if math.isnan(fixed + labelled):
        return math.nan, "none: no interval"
    room = (fixed + labelled) / 4 - fixed
    if room <= 0:
        alone = _labels_alone(min(1.0, max(0.0, share)), _Z * math.sqrt(fixed + labelled) / 2)
        return math.nan, f"none: the judged answers are too few for it; {alone} labels would do without a judge"
    return float(math.ceil((labelled / room - 1) * labels)), f"beside the {labels} there are"


def _labels_alone(share: float, half: float) -> int:
    """The fewest labels whose Wilson interval about the share is `half` wide on either side of its middle, at most: the
    root of that equation, which also holds at 0 and 1, where p (1 - p) / n is 0 for any n."""
    a, b = half**2, _Z**2 * (2 * half**2 - share * (1 - share))
    c = _Z**4 * (half**2 - 0.25)
    return max(1, math.ceil((-b + math.sqrt(max(0.0, b * b - 4 * a * c))) / (2 * a)))


def _nothing(reason: str, n: int) -> Corrected:
    none = Estimate(math.nan, math.nan, math.nan, n, reason)
    return Corrected(none, none, math.nan, reason)
