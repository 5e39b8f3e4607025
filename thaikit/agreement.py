"""How far raters agree: majority vote, chance-corrected coefficients with intervals, the alternative-annotator test.

Labels are a list of items, each the list of its raters' labels in one order, None where a rater gave none. Intervals
come from leaving out one item (or one cluster of items, such as a passage) at a time.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats as sps

from thaikit.stats import CONFIDENCE, Estimate

Label = Hashable
Labels = Sequence[Sequence[Label | None]]
LEAST_ITEMS, LEAST_ANNOTATORS = 30, 3  # of the alternative-annotator test, as its authors advise


@dataclass(frozen=True)
class Vote:
    """What raters say of one item: the label that most name (None for a tie or no votes), its votes, and all votes."""

    label: Label | None
    top: int
    n: int

    @property
    def tie(self) -> bool:
        """Whether two labels share the first place."""
        return self.label is None and self.n > 0


def majority(labels: Sequence[Label | None]) -> Vote:
    """The most common label of one item (WangchanLion paper, section 3.2); a shared first place is a tie, no guess."""
    counts = Counter(label for label in labels if label is not None).most_common()
    if not counts:
        return Vote(None, 0, 0)
    (label, top), *rest = counts
    return Vote(None if rest and rest[0][1] == top else label, top, sum(count for _, count in counts))


def table(labels: Labels, categories: Sequence[Label]) -> np.ndarray:
    """How many raters gave each category to each item: an array (items, categories). ValueError for another label."""
    places = {category: place for place, category in enumerate(categories)}
    found = np.zeros((len(labels), len(categories)), dtype=int)
    for row, item in zip(found, labels, strict=True):
        for label in item:
            if label is not None and label not in places:
                raise ValueError(f"agreement: label {label!r} is none of {list(categories)}; map it first.")
            if label is not None:
                row[places[label]] += 1
    return found


# ------------------------------------------------------------------------------------------------ coefficients


def coefficients(
    labels: Labels, *, categories: Sequence[Label] = (), clusters: Sequence[Hashable] = ()
) -> dict[str, Estimate]:
    """Share of agreeing pairs, Fleiss' kappa, Krippendorff's alpha (nominal) and Gwet's AC1 among the raters.

    `categories` are the labels that could have been given (those that were, when empty). Items with fewer than two
    labels are left out, `n` counts the rest. Fleiss' kappa is NaN unless every item has the same number of labels;
    kappa and alpha are NaN where only one label was used, since chance alone would explain it. ValueError for clusters
    of another length.
    """
    named = list(categories) or sorted({x for item in labels for x in item if x is not None}, key=str)
    groups = _groups(len(labels), clusters)
    counts = table(labels, named)
    several = counts.sum(axis=1) >= 2
    counts, groups = counts[several], groups[several]
    names = ("agreement", "fleiss_kappa", "alpha", "ac1")
    if not len(counts):
        return dict.fromkeys(names, Estimate(math.nan, math.nan, math.nan, 0, "none: no item has two labels"))
    used, raters = int((counts.sum(axis=0) > 0).sum()), set(counts.sum(axis=1).tolist())
    single = "none: only one label was used" if used < 2 else ""
    uneven = "none: items have unequal numbers of labels" if len(raters) > 1 else ""
    by_name = {"agreement": "", "fleiss_kappa": single or uneven, "alpha": single, "ac1": ""}
    return {name: _estimate(FORMULAS[name], counts, groups, reason) for name, reason in by_name.items()}


def cohen(a: Sequence[Label | None], b: Sequence[Label | None], *, clusters: Sequence[Hashable] = ()) -> Estimate:
    """Cohen's kappa of two raters over the items that both labelled; NaN where both only ever used one label."""
    if len(a) != len(b):
        raise ValueError(f"cohen: {len(a)} and {len(b)} labels; both lists must hold the same items in one order.")
    both = np.array([x is not None and y is not None for x, y in zip(a, b, strict=True)], dtype=bool)
    groups = _groups(len(a), clusters)[both]
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    if not pairs:
        return Estimate(math.nan, math.nan, math.nan, 0, "none: no item has both labels")
    codes = {label: code for code, label in enumerate(dict.fromkeys(label for pair in pairs for label in pair))}
    rows = np.array([[codes[x], codes[y]] for x, y in pairs])
    return _estimate(_cohen, rows, groups, "none: only one label was used" if len(codes) < 2 else "")


def _agreement(counts: np.ndarray) -> float:
    """The mean over items of the share of pairs of raters that agree."""
    raters = counts.sum(axis=1)
    return float(((counts * (counts - 1)).sum(axis=1) / (raters * (raters - 1))).mean())


def _ac1(counts: np.ndarray) -> float:
    """Gwet 2008: chance agreement is sum p (1 - p) / (K - 1), p the mean over items of each label's share."""
    shares = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    chance = float((shares * (1 - shares)).sum()) / (len(shares) - 1) if len(shares) > 1 else 0.0
    return (_agreement(counts) - chance) / (1 - chance)


def _fleiss(counts: np.ndarray) -> float:
    from statsmodels.stats.inter_rater import fleiss_kappa

    return float(fleiss_kappa(counts)) if (counts.sum(axis=0) > 0).sum() > 1 else math.nan


def _alpha(counts: np.ndarray) -> float:
    import krippendorff

    if (counts.sum(axis=0) > 0).sum() < 2:
        return math.nan
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))


def _cohen(rows: np.ndarray) -> float:
    from sklearn.metrics import cohen_kappa_score

    if len(np.unique(rows)) < 2:
        return math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rater with one label all through is no fault: kappa is 0
        return float(cohen_kappa_score(rows[:, 0], rows[:, 1]))


FORMULAS = {"agreement": _agreement, "fleiss_kappa": _fleiss, "alpha": _alpha, "ac1": _ac1}


def _estimate(formula: Callable[[np.ndarray], float], rows: np.ndarray, groups: np.ndarray, reason: str) -> Estimate:
    """A coefficient with its jackknife interval over clusters; NaN with the reason where there is one."""
    n, names = len(rows), np.unique(groups)
    if reason:
        return Estimate(math.nan, math.nan, math.nan, n, reason)
    value = formula(rows)
    bare = Estimate(value, math.nan, math.nan, n, "none: one item or cluster")
    if len(names) < 2 or math.isnan(value):
        return bare
    without = _left_out(formula, rows, groups, names)
    if np.isnan(without).any():
        return Estimate(value, math.nan, math.nan, n, "none: one item alone makes the second label")
    count = len(names)
    error = math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    if error < 1e-12:
        return Estimate(value, math.nan, math.nan, n, "none: leaving an item out changes nothing")
    half = float(sps.t.ppf(0.5 + CONFIDENCE / 2, count - 1)) * error
    return Estimate(value, max(-1.0, value - half), min(1.0, value + half), n, f"jackknife over {count}, t")


def _left_out(
    formula: Callable[[np.ndarray], float], rows: np.ndarray, groups: np.ndarray, names: np.ndarray
) -> np.ndarray:
    """The formula without each cluster in turn; where every item is its own, once for each kind of item."""
    if len(names) < len(rows):
        return np.array([formula(rows[groups != name]) for name in names])
    _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return np.array([formula(np.delete(rows, place, axis=0)) for place in first])[kind.ravel()]


def _groups(n: int, clusters: Sequence[Hashable]) -> np.ndarray:
    """Each item's cluster as a number; every item its own without clusters."""
    if clusters and len(clusters) != n:
        raise ValueError(f"agreement: {len(clusters)} clusters for {n} items; give one for each item, or none.")
    codes = {name: code for code, name in enumerate(dict.fromkeys(clusters))}
    return np.array([codes[name] for name in clusters] if clusters else range(n), dtype=int)


# -------------------------------------------------------------------------------- the alternative-annotator test


@dataclass(frozen=True)
class AltTest:
    """Whether a judge may stand in for an annotator: `winning_rate` (share of annotators that it beats; at least 0.5
    passes), `advantage` (how often, on average, it is at least as close to the others as the annotator left out),
    `p` for each annotator after Benjamini and Yekutieli, and `method`, which says why there are none."""

    winning_rate: float
    advantage: float
    passed: bool | None
    p: tuple[float, ...]
    n: int
    epsilon: float
    method: str


def alt_test(judge: Sequence[Label | None], labels: Labels, *, epsilon: float = 0.15) -> AltTest:
    """The alternative-annotator test of a judge against annotators (Calderon, Reichart and Dror, ACL 2025).

    One annotator at a time is left out; on each item judge and annotator are scored by the share of the others whose
    label they match, and either wins where its score is at least the other's. A one-sided paired t-test asks whether
    the annotator wins by less than `epsilon` (0.2 for experts, 0.15 for trained annotators, 0.1 for crowd workers);
    p-values are corrected for the false discovery rate at 0.05. NaN with the reason for fewer than 3 annotators or 30
    shared items.
    """
    if len(judge) != len(labels):
        raise ValueError(f"alt_test: {len(judge)} verdicts for {len(labels)} items; give one for each item.")
    people = max((len(item) for item in labels), default=0)
    wins = [_wins(judge, labels, person) for person in range(people)]
    n = min((len(pair) for pair in wins), default=0)
    if people < LEAST_ANNOTATORS or n < LEAST_ITEMS:
        told = f"{people} annotators and {n} shared items, {LEAST_ANNOTATORS} and {LEAST_ITEMS} are needed"
        return AltTest(math.nan, math.nan, None, (), n, epsilon, f"none: {told}")
    from statsmodels.stats.multitest import multipletests

    pvalues = [_less_than(pair[:, 1] - pair[:, 0], epsilon) for pair in wins]
    rejected, corrected, *_ = multipletests(pvalues, alpha=0.05, method="fdr_by")
    rate, advantage = float(np.mean(rejected)), float(np.mean([pair[:, 0].mean() for pair in wins]))
    method = f"alt-test, {people} annotators, epsilon {epsilon:g}"
    return AltTest(rate, advantage, rate >= 0.5, tuple(float(p) for p in corrected), n, epsilon, method)


def _wins(judge: Sequence[Label | None], labels: Labels, person: int) -> np.ndarray:
    """An array (items, 2): whether the judge, and whether the annotator, is at least as close to the others."""
    found = []
    for verdict, item in zip(judge, labels, strict=True):
        own = item[person] if person < len(item) else None
        others = [label for place, label in enumerate(item) if place != person and label is not None]
        if verdict is None or own is None or not others:
            continue
        close = [sum(label == said for label in others) for said in (verdict, own)]
        found.append((close[0] >= close[1], close[1] >= close[0]))
    return np.array(found, dtype=float).reshape(-1, 2)


def _less_than(difference: np.ndarray, epsilon: float) -> float:
    """One-sided p of a mean below epsilon; differences without spread speak for themselves."""
    if float(difference.std()) == 0.0:
        return 0.0 if float(difference.mean()) < epsilon else 1.0
    return float(sps.ttest_1samp(difference, epsilon, alternative="less").pvalue)
