import math

import numpy as np
import pytest

from thaikit import stats as st

TRIALS = 2000  # a 95 % interval then covers 0.95 with a standard error of 0.005


def _rng() -> np.random.Generator:
    return np.random.default_rng(20240917)


def _covers(found: st.Estimate, truth: float) -> bool:
    return found.low <= truth <= found.high


def _bare(found: st.Estimate) -> bool:
    return math.isnan(found.low) and math.isnan(found.high) and found.method.startswith("none: ")


def test_wilson_known_values() -> None:
    found = st.wilson(31, 43)
    assert round(found.low, 2) == 0.57
    assert round(found.high, 2) == 0.83
    assert found.value == pytest.approx(31 / 43)
    assert (found.n, found.method) == (43, "wilson")
    assert st.wilson(0, 5).low == 0.0
    assert st.wilson(0, 5).high > 0.4
    assert st.wilson(5, 5).high == 1.0
    assert _bare(st.wilson(0, 0))
    assert math.isnan(st.wilson(0, 0).value)
    for k, n in ((6, 5), (-1, 5)):
        with pytest.raises(ValueError, match="between 0 and n"):
            st.wilson(k, n)


def test_wilson_as_statsmodels_and_scipy_compute_it() -> None:
    from scipy.stats import binomtest
    from statsmodels.stats.proportion import proportion_confint

    for n in (1, 2, 7, 43, 1319):
        for k in {0, 1, n // 3, n - 1, n}:
            found = st.wilson(k, n)
            assert (found.low, found.high) == pytest.approx(proportion_confint(k, n, method="wilson"), abs=1e-12)
            interval = binomtest(k, n).proportion_ci(method="wilson")
            assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-12)
            assert found.low <= found.value <= found.high


def test_mean_interval_chooses_its_method() -> None:
    assert st.mean_interval([1, 0, 1, 1]) == st.wilson(3, 4)
    assert st.mean_interval([1.0]) == st.wilson(1, 1)
    found = st.mean_interval([0.2, 0.4, 0.9])
    assert found.method == "t"
    half = 4.302652729911275 * np.std([0.2, 0.4, 0.9], ddof=1) / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx((0.5 - half, 0.5 + half))


def test_too_little_data_gives_nan_and_a_reason() -> None:
    assert math.isnan(st.mean_interval([]).value)
    for values in ([], [0.3], [0.3, 0.3, 0.3], [0.1] * 7):
        assert _bare(st.mean_interval(values))
    assert st.mean_interval([0.3]).value == 0.3
    for values in ([0.3, math.nan], [math.inf]):
        with pytest.raises(ValueError, match="NaN or infinite"):
            st.mean_interval(values)
    with pytest.raises(ValueError, match="2 dimensions"):
        st.mean_interval([[1.0], [0.0]])


@pytest.mark.parametrize(("p", "n"), [(0.5, 30), (0.9, 40), (0.25, 60)])
def test_mean_interval_coverage_for_proportions(p: float, n: int) -> None:
    draws = (_rng().random((TRIALS, n)) < p).astype(float)
    assert 0.93 <= np.mean([_covers(st.mean_interval(x), p) for x in draws]) <= 0.98


def test_mean_interval_coverage_for_scores() -> None:
    draws = _rng().beta(2, 3, (TRIALS, 20))
    assert 0.935 <= np.mean([_covers(st.mean_interval(x), 0.4) for x in draws]) <= 0.965


def _groups(rng: np.random.Generator, ps: np.ndarray, sizes: list[int]) -> dict[str, np.ndarray]:
    return {str(j): (rng.random(n) < p).astype(float) for j, (p, n) in enumerate(zip(ps, sizes, strict=True))}


@pytest.mark.parametrize("sizes", [[6] * 8, [100] * 5, [3, 10, 40, 5, 8, 90], [1, 1, 12, 15, 20, 9]])
def test_macro_interval_coverage(sizes: list[int]) -> None:
    rng = _rng()
    ps = np.linspace(0.25, 0.75, len(sizes))
    found = [st.macro_interval(_groups(rng, ps, sizes)) for _ in range(TRIALS)]
    low, high = (0.92, 0.98) if 1 not in sizes else (0.90, 0.995)  # groups of one rest on a guess
    assert low <= np.mean([_covers(e, ps.mean()) for e in found]) <= high


def test_macro_interval_known_value() -> None:
    groups = {"a": [1, 1, 0, 0], "b": [1, 0, 0, 0, 0]}
    found = st.macro_interval(groups)
    variance = (np.var(groups["a"], ddof=1) / 4 + np.var(groups["b"], ddof=1) / 5) / 4
    assert found.value == pytest.approx(0.35)
    assert (found.n, found.method) == (9, "macro, t")
    from scipy.stats import t, ttest_ind

    df = ttest_ind(groups["a"], groups["b"], equal_var=False).df  # Welch's is Satterthwaite's for two groups
    assert found.high == pytest.approx(0.35 + t.ppf(0.975, df) * math.sqrt(variance))
    assert st.macro_interval(dict(reversed(groups.items()))) == found


def test_macro_interval_says_when_groups_of_one_borrow_a_variance() -> None:
    with_one = st.macro_interval({"a": [1, 0, 1, 0], "b": [1]})
    assert "pooled variance for 1 of 2 groups" in with_one.method
    assert with_one.high - with_one.low > 0.5
    assert _bare(st.macro_interval({"a": [1], "b": [0]}))
    assert st.macro_interval({"a": [1], "b": [0]}).value == 0.5


def test_macro_interval_without_spread_is_never_of_width_zero() -> None:
    perfect = st.macro_interval({"a": [1] * 6, "b": [1] * 6})
    assert (perfect.value, perfect.low) == (1.0, pytest.approx(st.wilson(12, 12).low))
    assert "no spread" in perfect.method
    split = st.macro_interval({"a": [1] * 6, "b": [0] * 6})
    assert split.low < 0.3 < 0.7 < split.high
    assert _bare(st.macro_interval({"a": [0.5, 0.5], "b": [0.1, 0.1]}))
    assert _bare(st.macro_interval({}))
    with pytest.raises(ValueError, match="'law' has no items"):
        st.macro_interval({"law": []})


def test_average_interval_of_equal_symmetric_estimates() -> None:
    one = st.Estimate(0.5, 0.4, 0.6, 100, "t")
    found = st.average_interval([one] * 4)
    assert (found.value, found.low, found.high, found.n) == pytest.approx((0.5, 0.45, 0.55, 400))
    assert "4" in found.method


def test_average_interval_keeps_lopsided_limits_and_names_missing_ones() -> None:
    perfect = st.average_interval([st.wilson(10, 10), st.wilson(10, 10)])
    assert perfect.high == 1.0
    assert perfect.low < 0.9
    missing = st.average_interval([st.wilson(3, 5), st.mean_interval([0.2])])
    assert missing.value == pytest.approx(0.4)
    assert _bare(missing)
    assert "1 of 2" in missing.method
    assert math.isnan(st.average_interval([st.wilson(3, 5), st.mean_interval([])]).value)
    assert _bare(st.average_interval([]))


def test_average_interval_coverage_for_six_benchmarks() -> None:
    rng, sizes = _rng(), [60, 40, 30, 40, 30]
    ps = np.array([0.4, 0.5, 0.9, 0.6, 0.05])
    truth = (ps.sum() + 0.4) / 6
    hits = 0
    for _ in range(TRIALS):
        parts = [st.mean_interval((rng.random(n) < p).astype(float)) for p, n in zip(ps, sizes, strict=True)]
        parts.append(st.mean_interval(rng.beta(2, 3, 30)))
        hits += _covers(st.average_interval(parts), truth)
    assert 0.93 <= hits / TRIALS <= 0.975


def test_sign_test_known_values() -> None:
    assert round(st.sign_test(31, 12), 4) == 0.0054
    assert st.sign_test(12, 31) == st.sign_test(31, 12)
    assert st.sign_test(0, 0) == 1.0
    assert st.sign_test(1, 0) == 1.0
    assert st.sign_test(0, 6) == pytest.approx(2 / 64)
    with pytest.raises(ValueError, match="negative"):
        st.sign_test(-1, 3)


def test_paired_binary_is_mcnemar() -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    a = [1] * 31 + [0] * 12 + [1] * 40 + [0] * 17
    b = [0] * 31 + [1] * 12 + [1] * 40 + [0] * 17
    found = st.paired(a, b, rng=_rng())
    assert (found.wins, found.losses, found.test) == (31, 12, "mcnemar exact")
    assert found.p == pytest.approx(mcnemar([[40, 31], [12, 17]], exact=True).pvalue)
    assert found.difference.value == pytest.approx(0.19)
    assert found.difference.low > 0
    assert found.as_dict()["p"] == found.p
    back = st.paired(b, a, rng=_rng())
    assert (back.difference.low, back.difference.high) == pytest.approx((-found.difference.high, -found.difference.low))


def test_paired_scores_permute_signs_with_the_given_generator() -> None:
    from scipy.stats import permutation_test

    rng = _rng()
    a = rng.beta(3, 3, 60)
    b = np.clip(a - rng.normal(0.03, 0.1, 60), 0, 1)
    found = st.paired(a, b, rng=np.random.default_rng(1))
    assert found == st.paired(a, b, rng=np.random.default_rng(1))
    theirs = permutation_test((a - b,), np.mean, permutation_type="samples", n_resamples=9999, random_state=1).pvalue
    assert found.p == pytest.approx(theirs, abs=0.015)
    assert 1 / 10001 <= found.p <= 1
    exact = st.paired([0.5, 0.7, 0.9, 0.3], [0.1, 0.2, 0.3, 0.3], rng=_rng())
    assert (exact.p, exact.test) == (0.25, "sign flip, exact")  # three differences, all one way: 2 of 8


def test_paired_edge_cases() -> None:
    assert math.isnan(st.paired([], [], rng=_rng()).p)
    assert _bare(st.paired([], [], rng=_rng()).difference)
    one = st.paired([0.5], [0.2], rng=_rng())
    assert _bare(one.difference)
    assert one.p == 1.0
    same = st.paired([0.5, 0.2], [0.5, 0.2], rng=_rng())
    assert (same.p, same.difference.value) == (1.0, 0.0)
    assert _bare(same.difference)
    alike = st.paired([1, 0, 1], [1, 0, 1], rng=_rng())
    assert alike.p == 1.0
    assert alike.difference.low < 0 < alike.difference.high
    with pytest.raises(ValueError, match="2 and 1 scores"):
        st.paired([1, 0], [1], rng=_rng())


def test_paired_coverage_and_size() -> None:
    rng, hits, rejected = _rng(), 0, 0
    for _ in range(TRIALS):
        hard = rng.random(50)
        a = (hard + rng.normal(0, 0.3, 50) > 0.5).astype(float)
        b = (hard + rng.normal(0, 0.3, 50) > 0.5).astype(float)
        found = st.paired(a, b, rng=rng)
        hits += _covers(found.difference, 0.0)
        rejected += found.p < 0.05
    assert 0.93 <= hits / TRIALS <= 0.985
    assert rejected / TRIALS <= 0.06


def test_paired_scores_size() -> None:
    rng = _rng()
    ps = [st.paired(*rng.beta(2, 2, (2, 12)), rng=rng).p for _ in range(300)]
    assert np.mean(np.array(ps) < 0.05) <= 0.08


def test_holm() -> None:
    assert st.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert st.holm([0.9, 0.8]) == [1.0, 1.0]
    assert st.holm([0.02]) == [0.02]
    assert st.holm([]) == []
    with_nan = st.holm([0.01, math.nan, 0.04])
    assert with_nan[0] == pytest.approx(0.02)
    assert math.isnan(with_nan[1])


def test_estimate_as_dict() -> None:
    keys = ["value", "low", "high", "n", "method"]
    assert list(st.wilson(1, 2).as_dict()) == keys
    with pytest.raises(AttributeError):
        st.wilson(1, 2).value = 0.0
