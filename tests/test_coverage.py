"""Intervals cover and tests err as often as they say: seeded simulations, 2,000 repeats, 100 items or more.

A 95 % interval then covers 95 of 100 within 1.5 points (the bootstrap, which knows only its sample, may be 3 low); its
standard error over 2,000 repeats is half a point.
"""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest
from scipy import stats as sps

from thaikit import analysis_stats, ranks, resampling, stats

REPEATS, N = 2000, 100
LOW, HIGH, BOOTSTRAP_LOW = 0.935, 0.965, 0.92
HIGH_ERROR = 0.065


def rng() -> np.random.Generator:
    return np.random.default_rng(20241008)


def share(hits: list[bool]) -> float:
    assert len(hits) == REPEATS
    return float(np.mean(hits))


def covers(found: stats.Estimate, truth: float) -> bool:
    assert found.n >= N and not math.isnan(found.low)
    return found.low <= truth <= found.high


def test_wilson() -> None:
    draw = rng()
    truths = draw.uniform(0.05, 0.95, REPEATS)
    right = draw.binomial(N, truths)
    assert LOW <= share([covers(stats.wilson(int(k), N), p) for k, p in zip(right, truths, strict=True)]) <= HIGH


def test_newcombe() -> None:
    draw = rng()
    truths = draw.uniform(0.1, 0.9, (REPEATS, 2))
    right = draw.binomial(N, truths)
    found = [analysis_stats.newcombe(int(a), N, int(b), N) for a, b in right]
    assert LOW <= share([covers(one, p - q) for one, (p, q) in zip(found, truths, strict=True)]) <= HIGH


def test_the_mean_of_scores() -> None:
    rows = rng().beta(2, 3, (REPEATS, N))
    assert LOW <= share([covers(stats.mean_interval(row), 0.4) for row in rows]) <= HIGH


@pytest.mark.parametrize("kind", ["proportion", "scores"])
def test_bootstrap(kind: str) -> None:
    draw = rng()
    rows = (draw.random((REPEATS, N)) < 0.4).astype(float) if kind == "proportion" else draw.beta(2, 3, (REPEATS, N))
    found = [resampling.bootstrap_interval(row, rng=draw, resamples=500) for row in rows]
    assert BOOTSTRAP_LOW <= share([covers(one, 0.4) for one in found]) <= HIGH


def test_paired_right_and_wrong() -> None:
    draw, hits, errors = rng(), [], 0
    hard = draw.random((REPEATS, N, 1))
    both = (hard + draw.normal(0, 0.3, (REPEATS, N, 2)) > np.array([0.45, 0.5])).astype(float)
    unit = np.linspace(0, 1, 20001)
    truth = float(np.mean(sps.norm.cdf((unit - 0.45) / 0.3) - sps.norm.cdf((unit - 0.5) / 0.3)))
    for pair in both:
        hits.append(covers(stats.paired(pair[:, 0], pair[:, 1], rng=draw).difference, truth))
    same = (hard + draw.normal(0, 0.3, (REPEATS, N, 2)) > 0.5).sum(axis=2) == 1
    first = draw.binomial(same.sum(axis=1), 0.5)
    errors = [stats.sign_test(int(k), int(m - k)) <= 0.05 for k, m in zip(first, same.sum(axis=1), strict=True)]
    assert LOW <= share(hits) <= HIGH
    assert share(errors) <= 0.065  # exact McNemar errs less often than it says, never more


def test_paired_scores() -> None:
    draw = rng()
    differences = draw.beta(2, 3, (REPEATS, N)) - draw.beta(2, 3, (REPEATS, N)) + draw.normal(0.05, 0.1, (REPEATS, N))
    one = stats.paired(differences[0] + 0.5, np.full(N, 0.5), rng=draw).difference
    plain = stats.mean_interval(differences[0])  # the same limits, without 10,000 sign flips each time
    assert (one.low, one.high) == pytest.approx((plain.low, plain.high))
    assert LOW <= share([covers(stats.mean_interval(row), 0.05) for row in differences]) <= HIGH


@pytest.mark.parametrize("binary", [False, True])
def test_clustered(binary: bool) -> None:
    draw, groups, each = rng(), 50, 4
    clusters = np.repeat(np.arange(groups), each).tolist()
    shift = np.repeat(draw.normal(0, 0.15, (REPEATS, groups)), each, axis=1)
    rows = 0.5 + shift + draw.normal(0, 0.2, (REPEATS, groups * each))
    rows = (rows > 0.5).astype(float) if binary else rows
    assert LOW <= share([covers(stats.clustered_interval(row, clusters), 0.5) for row in rows]) <= HIGH
    naive = share([covers(stats.mean_interval(row), 0.5) for row in rows[:REPEATS]])
    assert naive < 0.92  # what the clusters are there to mend


def test_a_difference_of_averages_over_tasks() -> None:
    """Two tasks, one of three subjects that differ in size, right and wrong items on which both models lean alike."""
    draw, hits, errors = rng(), [], []
    truth = ((0.6 - 0.5) + (0.3 - 0.3 + 0.5 - 0.4 + 0.7 - 0.8) / 3) / 2
    sizes = {"": (100, 0.6, 0.5), "a": (40, 0.3, 0.3), "b": (100, 0.5, 0.4), "c": (60, 0.7, 0.8)}
    for _ in range(REPEATS):
        groups = {}
        for name, (n, p, q) in sizes.items():
            hard = draw.random((2, n))
            both = np.where(draw.random(n) < 0.5, hard[0], hard)
            groups[name] = (both[0] < p).astype(float) - (both[1] < q)
        whole = {"arc": {"": groups.pop("")}, "mmlu": groups}
        hits.append(covers(ranks.macro_gap(whole, rng=draw, draws=1).difference, truth))
        same = {task: {name: d * draw.choice([-1, 1], len(d)) for name, d in groups.items()}
                for task, groups in whole.items()}  # fmt: skip
        errors.append(ranks.macro_gap(same, rng=draw, draws=199).p <= 0.05)
    assert LOW <= share(hits) <= HIGH
    assert share(errors) <= HIGH_ERROR


def test_a_difference_of_clustered_items() -> None:
    draw, groups, each, errors = rng(), 50, 4, []
    clusters = np.repeat(np.arange(groups), each).tolist()
    shift = np.repeat(draw.normal(0, 0.15, (REPEATS, groups)), each, axis=1)
    rows = 0.1 + shift + draw.normal(0, 0.2, (REPEATS, groups * each))
    hits = [covers(ranks.clustered_gap(row, clusters, rng=draw, draws=1).difference, 0.1) for row in rows]
    errors = [ranks.clustered_gap(row - 0.1, clusters, rng=draw, draws=199).p <= 0.05 for row in rows]
    assert LOW <= share(hits) <= HIGH
    assert share(errors) <= HIGH_ERROR


@pytest.mark.parametrize("true_effects", [0, 3])
def test_holm_family_error(true_effects: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "collect", lambda *_: 0)  # statsmodels collects garbage at each correction: 0.1 s a call
    draw, tests = rng(), 8
    shift = np.where(np.arange(tests) < true_effects, 0.4, 0.0)
    rows = draw.normal(0, 1, (REPEATS, tests, N)) + shift[:, None]
    ps = sps.ttest_1samp(rows, 0.0, axis=2).pvalue
    errors = share([min(stats.holm(p)[true_effects:]) <= 0.05 for p in ps])
    assert errors <= 0.065
    assert true_effects or errors >= 0.035
