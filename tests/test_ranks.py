"""Comparisons over tasks and clusters, and the ranks that they allow: worked by hand, and by seeded simulation."""

import math

import numpy as np
import pytest

from thaikit import matched, ranks, stats


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_average_over_two_tasks_worked_by_hand() -> None:
    """Task x: differences 1, 0, 1, 0 (mean 1/2, s^2 1/3); task y: 1, -1 (mean 0, s^2 2).
    Mean (1/2 + 0) / 2 = 1/4; variance (1/3/4 + 2/2) / 4 = 13/48; df (13/48)^2 / ((1/48)^2 / 3 + (1/4)^2 / 1)."""
    found = ranks.macro_gap({"x": {"": [1, 0, 1, 0]}, "y": {"": [1, -1]}}, rng=rng())
    assert found.difference.value == pytest.approx(0.25) and found.error**2 == pytest.approx(13 / 48)
    df = (13 / 48) ** 2 / ((1 / 48) ** 2 / 3 + (1 / 4) ** 2)
    assert found.df == pytest.approx(df) and (found.wins, found.losses, found.difference.n) == (3, 1, 6)
    # Shares of the mean: 1/8, 1/8 (x), 1/4, -1/4 (y). Of the 16 patterns those with |sum| >= 1/4: the sums of x are
    # -1/4, 0, 0, 1/4, of y -1/2, 0, 0, 1/2. x and y both 0: 4 patterns are below, the other 12 are not.
    assert found.p == 12 / 16 and found.test == "sign flip, exact"


def test_subjects_count_alike_and_a_subject_of_one_item_borrows_the_variance() -> None:
    """Groups 1, 0 (mean 1/2, s^2 1/2) and -1 (mean -1): mean -1/4; variance (1/2/2 + 1/2) / 4 = 3/16, df 1."""
    found = ranks.macro_gap({"mmlu": {"a": [1, 0], "b": [-1]}}, rng=rng())
    assert found.difference.value == -0.25 and found.error**2 == pytest.approx(3 / 16) and found.df == pytest.approx(1)
    all_single = ranks.macro_gap({"mmlu": {"a": [1], "b": [0], "c": [-1]}}, rng=rng())
    assert all_single.error**2 == pytest.approx(1 / 3) and all_single.df == pytest.approx(2)


def test_one_task_of_one_group_is_the_paired_t_interval() -> None:
    d = [0.5, -0.25, 1.0, 0.0, 0.3]
    flat = stats.paired([2 + x for x in d], [2.0] * 5, rng=rng())
    for found in (ranks.macro_gap({"t": {"": d}}, rng=rng()), ranks.clustered_gap(d, "abcde", rng=rng())):
        assert found.difference.low == pytest.approx(flat.difference.low) and found.p == flat.p
        assert ranks.smallest(found.error, found.df) == pytest.approx(matched.smallest_difference(d))
    more = ranks.clustered_gap(d, "abcde", rng=rng())
    assert ranks.smallest(more.error, more.df, tests=10) > ranks.smallest(more.error, more.df)


def test_whole_clusters_turn() -> None:
    """Three passages that each favour a: sums 3, 2, 1, so 2 of the 8 patterns reach the whole sum, though 6 items
    would give 2 of 64. Deviations from the mean 1 are 0, so there is no spread and no interval."""
    found = ranks.clustered_gap([1.0] * 6, [1, 1, 1, 2, 2, 3], rng=rng())
    assert found.p == 2 / 8 and math.isnan(found.difference.low) and "no spread" in found.difference.method
    assert ranks.clustered_gap([1, 0, 1, 0], [1, 1, 2, 2], rng=rng()).test == "sign flip, exact"
    apart = stats.clustered_interval([3, 2, 2, 4, 3, 2.5], [1, 1, 2, 2, 3, 3])
    same = ranks.clustered_gap([3, 2, 2, 4, 3, 2.5], [1, 1, 2, 2, 3, 3], rng=rng()).difference
    assert (same.low, same.high) == (pytest.approx(apart.low), pytest.approx(apart.high))


@pytest.mark.parametrize(
    ("tasks", "why"),
    [({"t": {"": [0.5]}}, "one item"), ({"t": {"": [0, 0, 0]}}, "no spread"), ({"t": {"": [0.5] * 9}}, "no spread")],
)
def test_too_little_gives_no_interval_and_a_reason(tasks: dict[str, dict[str, list[float]]], why: str) -> None:
    found = ranks.macro_gap(tasks, rng=rng())
    assert math.isnan(found.difference.low) and why in found.difference.method
    assert math.isnan(ranks.smallest(found.error, found.df)) and 0 < found.p <= 1


def test_faults_are_refused() -> None:
    with pytest.raises(ValueError, match="no tasks"):
        ranks.macro_gap({}, rng=rng())
    with pytest.raises(ValueError, match="without items"):
        ranks.macro_gap({"t": {"a": []}}, rng=rng())
    with pytest.raises(ValueError, match="NaN"):
        ranks.macro_gap({"t": {"": [1.0, math.nan]}}, rng=rng())
    with pytest.raises(ValueError, match="2 differences and 1 clusters"):
        ranks.clustered_gap([1, 2], ["a"], rng=rng())
    with pytest.raises(ValueError, match="places"):
        ranks.bands([1.0, 2.0], [(0, 2, 1.0, 0.01)])
    assert math.isnan(ranks.clustered_gap([], [], rng=rng()).p)


def test_drawn_signs_agree_with_counted_ones() -> None:
    """13 items are drawn, 12 counted; of right and wrong items the p is that of the exact sign test."""
    d = [1.0] * 15 + [-1.0] * 5
    assert ranks.macro_gap({"t": {"": d}}, rng=rng()).p == pytest.approx(stats.sign_test(15, 5), abs=0.01)
    uneven = list(rng(3).normal(0.4, 1, 30))
    flat = stats.paired([9 + x for x in uneven], [9.0] * 30, rng=rng())
    assert ranks.macro_gap({"t": {"": uneven}}, rng=rng()).p == pytest.approx(flat.p, abs=0.015)


def test_ranks_are_shared_where_nothing_is_shown() -> None:
    pairs = [(0, 1, 0.1, 0.5), (0, 2, 0.3, 0.01), (1, 2, 0.2, 0.2)]
    assert ranks.bands([0.9, 0.8, 0.6], pairs) == [(1, 2), (1, 3), (2, 3)]
    assert ranks.bands([0.9, 0.8, 0.6], [(0, 1, 0.1, 0.049), (0, 2, 0.3, 0), (1, 2, 0.2, 0)]) == [
        (1, 1),
        (2, 2),
        (3, 3),
    ]
    assert ranks.bands([0.9, 0.8], [(0, 1, 0.1, 0.05)]) == [(1, 2), (1, 2)]  # 0.05 itself shows nothing
    assert ranks.bands([0.5, 0.5, 0.5], []) == [(1, 3)] * 3
    assert ranks.bands([0.9, math.nan, 0.8], [(0, 1, 1.0, 0.0), (0, 2, 0.1, math.nan)]) == [(1, 2), None, (1, 2)]


def test_the_interval_holds_the_true_difference() -> None:
    """Three tasks of unlike size with right and wrong items, 400 times: intervals cover in 95 %, p < 0.05 in 5 %."""
    draw, covered, found, times = rng(7), 0, 0, 400
    for _ in range(times):
        tasks = {}
        for name, n, p, q in (("a", 80, 0.6, 0.6), ("b", 40, 0.3, 0.3), ("c", 150, 0.8, 0.8)):
            tasks[name] = {"": (draw.random(n) < p).astype(float) - (draw.random(n) < q)}
        made = ranks.macro_gap(tasks, rng=draw, draws=1_000)
        covered += made.difference.low <= 0 <= made.difference.high
        found += made.p < 0.05
    assert 0.925 <= covered / times <= 0.975 and 0.025 <= found / times <= 0.08


def test_the_smallest_difference_is_found_four_times_in_five() -> None:
    draw, hits, times = rng(11), 0, 300
    size = ranks.smallest(math.sqrt(0.25 / 60 + 0.04 / 60) / 2, 80)  # df by Satterthwaite: some 77
    for _ in range(times):
        tasks = {"a": {"": draw.normal(size, 0.5, 60)}, "b": {"": draw.normal(size, 0.2, 60)}}
        hits += ranks.macro_gap(tasks, rng=draw, draws=1_000).p < 0.05
    assert 0.75 <= hits / times <= 0.85


def test_many_systems_can_still_be_told_apart() -> None:
    """Of 40 systems there are 780 pairs: the least p, one in so many draws, must survive Holm's first step."""
    for count in (2, 12, 40, 60):
        tests = count * (count - 1) // 2
        assert tests / (ranks.draws_for(tests) + 1) < 0.03
    d = [1.0] * 30 + [0.0] * 10
    assert ranks.macro_gap({"t": {"": d}}, rng=rng(), draws=31_200).p * 780 < 0.05
