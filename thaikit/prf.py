"""Precision, recall and F1 of verdicts against people's, from counts or from labels; the human ceiling; dummy judges.

Verdicts are arrays (items, questions) of 1 agree, 0 disagree and NaN none. Everything is a share from 0 to 1.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from thaikit.stats import CONFIDENCE, Estimate, wilson

POOLED = "pooled"
METRICS = ("precision", "recall", "f1")
DRAWS = 2000


@dataclass(frozen=True)
class Counts:
    """How often people agree, the judge agrees, and both do, of `n` answers. ValueError where that cannot be."""

    both: int
    judge: int
    human: int
    n: int

    def __post_init__(self) -> None:
        least = max(0, self.judge + self.human - self.n)
        if not least <= self.both <= min(self.judge, self.human) <= max(self.judge, self.human) <= self.n:
            raise ValueError(
                f"counts: both {self.both}, judge {self.judge}, human {self.human} of {self.n} cannot be; "
                f"both lies between {least} and the smaller of the two, and none is above n."
            )

    def __add__(self, other: "Counts") -> "Counts":
        """The counts of two sets of answers together."""
        return Counts(self.both + other.both, self.judge + other.judge, self.human + other.human, self.n + other.n)


def from_counts(counts: Counts, *, pooled: bool = False) -> dict[str, Estimate]:
    """Precision, recall and F1 of one question's counts.

    Intervals are Wilson's, as if answers were independent; F1's is Wilson's for the Jaccard index both / (judge or
    human), of which F1 = 2 J / (1 + J) is a function. For `pooled` counts of several questions of the same answers
    they are NaN with the reason: counts do not tell how those hang together. A metric without a denominator is NaN.
    """
    either = counts.judge + counts.human - counts.both
    found = {
        "precision": _share(counts.both, counts.judge, "the judge never agreed"),
        "recall": _share(counts.both, counts.human, "people never agreed"),
        "f1": _f1(_share(counts.both, either, "nobody ever agreed")),
    }
    if not pooled:
        return found
    reason = "none: an answer's questions hang together, which counts do not show"
    return {name: Estimate(e.value, math.nan, math.nan, e.n, reason) for name, e in found.items()}


def _share(k: int, n: int, reason: str) -> Estimate:
    return wilson(k, n) if n else Estimate(math.nan, math.nan, math.nan, 0, f"none: {reason}")


def _f1(jaccard: Estimate) -> Estimate:
    value, low, high = (2 * x / (1 + x) for x in (jaccard.value, jaccard.low, jaccard.high))
    method = "wilson of the jaccard index" if jaccard.n else jaccard.method
    return Estimate(value, low, high, jaccard.n, method)


def count(human: np.ndarray, judge: np.ndarray) -> list[Counts]:
    """Each question's counts over the answers on which both gave a verdict."""
    told = ~np.isnan(human) & ~np.isnan(judge)
    parts = _parts(human, judge).sum(axis=0)
    return [Counts(*(int(x) for x in part), int(n)) for part, n in zip(parts, told.sum(axis=0), strict=True)]


def from_labels(
    human: np.ndarray,
    judge: np.ndarray,
    *,
    questions: Sequence[str],
    rng: np.random.Generator,
    clusters: Sequence[Hashable] = (),
) -> dict[str, dict[str, Estimate]]:
    """Precision, recall and F1 for each question and `pooled`, with a bootstrap interval over clusters of items.

    Both arrays hold the same items and questions in one order. `clusters` names each item's passage (none: each item
    by itself), so that an answer's four questions, and a passage's answers, are drawn together. `n` counts verdicts
    compared. Where all draws agree, the interval is that from the counts.
    """
    _check(human, judge, questions)
    parts = _parts(human, judge)
    draws = _draws(_by_cluster(parts, clusters), rng)
    told = (~np.isnan(human) & ~np.isnan(judge)).sum(axis=0)
    found = {}
    for place, name in enumerate([*questions, POOLED]):
        pooled, n = place == len(questions), int(told.sum() if place == len(questions) else told[place])
        both, said, people = (parts.sum(axis=(0, 1)) if pooled else parts[:, place].sum(axis=0)).astype(int)
        plain = from_counts(Counts(both, said, people, n), pooled=pooled and len(questions) > 1)
        spread = rates(draws.sum(axis=1) if pooled else draws[:, place])
        found[name] = {
            metric: _percentile(plain[metric], spread[:, column], n=n) for column, metric in enumerate(METRICS)
        }
    return found


def human_ceiling(
    labels: np.ndarray, *, questions: Sequence[str], rng: np.random.Generator, clusters: Sequence[Hashable] = ()
) -> dict[str, dict[str, Estimate]]:
    """What a judge could reach: each annotator against the majority of the others, averaged over the annotators.

    `labels` is (items, annotators, questions). Where the others are tied the item does not count for that annotator.
    The intervals are bootstrapped over clusters of items; the annotators are taken as they are. NaN with the reason for
    fewer than three annotators.
    """
    items, people, asked = labels.shape
    if asked != len(questions):
        raise ValueError(f"human_ceiling: {asked} questions in the labels, {len(questions)} names.")
    if people < 3:
        none = Estimate(math.nan, math.nan, math.nan, 0, f"none: {people} annotators; three are needed")
        return {name: dict.fromkeys(METRICS, none) for name in [*questions, POOLED]}
    rest = [_majority_of(np.delete(labels, person, axis=1)) for person in range(people)]
    parts = np.stack([_parts(rest[person], labels[:, person]) for person in range(people)], axis=1)
    told = [~np.isnan(rest[person]) & ~np.isnan(labels[:, person]) for person in range(people)]
    sizes = np.sum(told, axis=(0, 1))
    draws, found = _draws(_by_cluster(parts, clusters), rng), {}
    for place, name in enumerate([*questions, POOLED]):
        pooled = place == len(questions)
        total = parts.sum(axis=(0, 2)) if pooled else parts[:, :, place].sum(axis=0)
        spread = _mean(rates(draws.sum(axis=2) if pooled else draws[:, :, place]), axis=1)
        n = int(sizes.sum() if pooled else sizes[place])
        none = "none: annotators do not differ" if n else "none: no verdicts"
        values = _mean(rates(total), axis=0)
        found[name] = {
            metric: _percentile(Estimate(float(values[column]), math.nan, math.nan, n, none), spread[:, column], n=n)
            for column, metric in enumerate(METRICS)
        }
    return found


def _majority_of(labels: np.ndarray) -> np.ndarray:
    """The majority over annotators (axis 1): 1, 0, or NaN for a tie or no labels."""
    agree, told = np.nansum(labels, axis=1), (~np.isnan(labels)).sum(axis=1)
    return np.where(2 * agree == told, np.nan, (2 * agree > told).astype(float))


def _parts(human: np.ndarray, judge: np.ndarray) -> np.ndarray:
    """(both, judge, human) agreeing, for each item and question; zeros where either gave no verdict."""
    told = ~np.isnan(human) & ~np.isnan(judge)
    h, j = np.where(told, human, 0.0), np.where(told, judge, 0.0)
    return np.stack([h * j, j, h], axis=-1)


def rates(parts: np.ndarray) -> np.ndarray:
    """(…, both judge human) → (…, precision recall f1), NaN without a denominator."""
    both, judge, human = parts[..., 0], parts[..., 1], parts[..., 2]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([both / judge, both / human, 2 * both / (judge + human)], axis=-1)


def _by_cluster(parts: np.ndarray, clusters: Sequence[Hashable]) -> np.ndarray:
    """Items' counts summed within each cluster."""
    if clusters and len(clusters) != len(parts):
        raise ValueError(f"prf: {len(clusters)} clusters for {len(parts)} items; give one for each item, or none.")
    if not clusters:
        return parts
    codes = {name: code for code, name in enumerate(dict.fromkeys(clusters))}
    found = np.zeros((len(codes), *parts.shape[1:]))
    np.add.at(found, [codes[name] for name in clusters], parts)
    return found


def _draws(parts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Counts of resampled clusters: (draws, …); none for fewer than two clusters."""
    count = len(parts)
    if count < 2:
        return np.empty((0, *parts.shape[1:]))
    weights = rng.multinomial(count, np.full(count, 1 / count), size=DRAWS)
    return (weights @ parts.reshape(count, -1)).reshape(DRAWS, *parts.shape[1:])


def _percentile(plain: Estimate, draws: np.ndarray, *, n: int) -> Estimate:
    """The value with the percentile interval of its draws; the plain estimate where there is nothing to draw from."""
    if math.isnan(plain.value):
        return plain
    if not len(draws):
        return Estimate(plain.value, math.nan, math.nan, n, "none: one item or cluster")
    told = draws[~np.isnan(draws)]
    if len(told) < 0.95 * len(draws):
        return Estimate(plain.value, math.nan, math.nan, n, "none: too few agree for a bootstrap")
    if np.ptp(told) < 1e-12:
        return Estimate(plain.value, plain.low, plain.high, n, plain.method)
    low, high = np.quantile(told, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2])
    return Estimate(plain.value, float(low), float(high), n, f"bootstrap, {DRAWS} draws")


def _mean(values: np.ndarray, *, axis: int) -> np.ndarray:
    """The mean over the values that are there; NaN where none is."""
    told = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(told, values, 0.0).sum(axis=axis) / told.sum(axis=axis)


def _check(human: np.ndarray, judge: np.ndarray, questions: Sequence[str]) -> None:
    if human.shape != judge.shape or human.ndim != 2 or human.shape[1] != len(questions):
        raise ValueError(
            f"prf: arrays of shapes {human.shape} and {judge.shape} for {len(questions)} questions; "
            "both are items by questions, in one order."
        )
    values = np.concatenate([human.ravel(), judge.ravel()])
    if not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        raise ValueError("prf: a verdict is neither 1, 0 nor NaN; map labels to agree and disagree first.")


# ------------------------------------------------------------------------------------------------ dummy judges


def always_agree(items: int, questions: int) -> np.ndarray:
    """The judge that agrees with everything."""
    return np.ones((items, questions))


def longest_agree(words: Sequence[float], judge: np.ndarray) -> np.ndarray:
    """The judge that agrees with the longest answers, on each question with as many as `judge` did.

    Answers as long as the last of these agree too; answers of unknown length (NaN) get no verdict.
    """
    lengths = np.asarray(words, dtype=float)
    found = np.full(judge.shape, np.nan)
    known = ~np.isnan(lengths)
    for question in range(judge.shape[1]):
        share = np.nanmean(judge[:, question]) if (~np.isnan(judge[:, question])).any() else 0.0
        wanted = round(float(share) * int(known.sum()))
        line = np.sort(lengths[known])[::-1][wanted - 1] if wanted else math.inf
        found[known, question] = (lengths[known] >= line).astype(float)
    return found


def above(values: Sequence[float], threshold: float, questions: int) -> np.ndarray:
    """The judge that agrees with the answers whose value (say, F1) is above the threshold; NaN gets no verdict."""
    x = np.asarray(values, dtype=float)
    verdict = np.where(np.isnan(x), np.nan, (x > threshold).astype(float))
    return np.repeat(verdict[:, None], questions, axis=1)
