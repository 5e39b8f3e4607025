"""Agreement figures against values worked by hand, against the libraries, and against the papers' tables."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from thaikit import agreement, correction, counts, preference, prf, stats
from thaikit.prf import Counts

YES, NO = "agree", "disagree"
JUDGES = {
    "Gemini": [(187, 195), (44, 49), (10, 18), (22, 36)],
    "GPT-3.5": [(194, 213), (104, 150), (29, 47), (36, 72)],
    "GPT-4": [(195, 197), (66, 70), (48, 87), (46, 61)],
}
HUMAN = [207, 137, 73, 82]
TABLE_4 = {
    "Gemini": "95.90 90.34 93.03 89.80 32.12 47.31 55.56 13.70 21.98 61.11 26.83 37.29 88.26 52.71 66.00",
    "GPT-3.5": "91.08 93.72 92.38 69.33 75.91 72.47 61.70 39.73 48.33 50.00 43.90 46.75 75.31 72.75 74.01",
    "GPT-4": "98.98 94.20 96.53 94.29 48.18 63.77 55.17 65.75 60.00 75.41 56.10 64.34 85.54 71.14 77.68",
}


def of_judge(name: str) -> list[Counts]:
    return [Counts(both, judge, human, 300) for (both, judge), human in zip(JUDGES[name], HUMAN, strict=True)]


def test_majority_reports_ties() -> None:
    assert agreement.majority(["a", "a", "b", None]) == agreement.Vote("a", 2, 3)
    tied = agreement.majority(["a", "b", None])
    assert tied == agreement.Vote(None, 1, 2) and tied.tie
    assert not agreement.majority([None, None]).tie
    assert agreement.majority(["a", "b", "b", "a", "c"]).tie


def test_coefficients_of_a_worked_example() -> None:
    # 3 raters, 4 items, counts (3 0), (2 1), (0 3), (1 2): agreeing pairs 1, 1/3, 1, 1/3, mean 2/3; shares 1/2, 1/2.
    labels = [[YES] * 3, [YES, YES, NO], [NO] * 3, [NO, NO, YES]]
    found = agreement.coefficients(labels)
    assert found["agreement"].value == pytest.approx(2 / 3)
    assert found["fleiss_kappa"].value == pytest.approx((2 / 3 - 1 / 2) / (1 / 2))
    assert found["ac1"].value == pytest.approx((2 / 3 - 1 / 2) / (1 / 2))
    # alpha = 1 - D_o / D_e: D_o = 1/3; D_e = 2 * 6 * 6 / (12 * 11).
    assert found["alpha"].value == pytest.approx(1 - (1 / 3) / (72 / 132))
    assert all(e.low < e.value < e.high and e.n == 4 for e in found.values())


def test_skewed_verdicts_as_gwet_worked_them() -> None:
    # 118 both yes, 5 and 2 split, 0 both no: agreement 0.944, AC1 0.9408, kappa below 0 (Gwet 2008).
    pairs = [[YES, YES]] * 118 + [[YES, NO]] * 5 + [[NO, YES]] * 2
    found = agreement.coefficients(pairs)
    assert found["ac1"].value == pytest.approx(0.9408, abs=5e-5) and found["fleiss_kappa"].value < 0
    a, b = zip(*pairs, strict=True)
    assert agreement.cohen(a, b).value == pytest.approx((0.944 - 0.94528) / (1 - 0.94528), abs=1e-9)


def test_too_little_data_is_nan_with_a_reason() -> None:
    same = agreement.coefficients([[YES, YES]] * 5, categories=[YES, NO])
    assert math.isnan(same["alpha"].value) and "one label" in same["alpha"].method
    assert same["ac1"].value == 1.0 and math.isnan(same["ac1"].low)
    uneven = agreement.coefficients([[YES, YES, None], [YES, NO, NO], [NO, NO, NO]])
    assert math.isnan(uneven["fleiss_kappa"].value) and not math.isnan(uneven["alpha"].value)
    lone = agreement.coefficients([[YES, None]] * 4)
    assert all(math.isnan(e.value) and e.n == 0 for e in lone.values())
    assert math.isnan(agreement.cohen([YES, YES], [YES, YES]).value)
    with pytest.raises(ValueError, match="map it first"):
        agreement.coefficients([[YES, "maybe"]], categories=[YES, NO])


def test_clusters_widen_the_interval() -> None:
    labels = [[YES, YES], [YES, NO], [NO, NO], [NO, YES]] * 10
    blocks = sorted(range(40), key=lambda i: i % 4)  # items of one kind together
    labels = [labels[i] for i in blocks]
    alone = agreement.coefficients(labels)["ac1"]
    together = agreement.coefficients(labels, clusters=[i // 10 for i in range(40)])["ac1"]
    assert alone.value == together.value and together.high - together.low > 2 * (alone.high - alone.low)


def test_alternative_annotator_test() -> None:
    labels = [[YES] * 4 if i % 2 else [NO] * 4 for i in range(40)]
    for i, item in enumerate(labels):
        item[i % 4] = YES if item[i % 4] == NO else NO  # each item has one annotator who errs, in turn
    perfect = [YES if i % 2 else NO for i in range(40)]
    found = agreement.alt_test(perfect, labels)
    # The judge is never farther from the others than the one left out: rho 1, all four beaten.
    assert (found.winning_rate, found.advantage, found.passed, found.n) == (1.0, 1.0, True, 40)
    # A judge that always errs ties where the one left out errs too, on 10 of 40, and loses on the rest.
    lost = agreement.alt_test([NO if x == YES else YES for x in perfect], labels)
    assert (lost.winning_rate, lost.advantage, lost.passed) == (0.0, 0.25, False)
    few = agreement.alt_test(perfect[:29], labels[:29])
    assert few.passed is None and math.isnan(few.winning_rate) and "30" in few.method
    assert agreement.alt_test(perfect, [item[:2] for item in labels]).passed is None


@pytest.mark.parametrize("name", JUDGES)
def test_table_4_from_counts(name: str) -> None:
    questions = of_judge(name)
    pooled = sum(questions[1:], questions[0])
    found = [e for one in (*questions, pooled) for e in prf.from_counts(one).values()]
    for printed, estimate in zip(TABLE_4[name].split(), found, strict=True):
        assert counts.rounds_to(printed, 100 * estimate.value)
        assert estimate.low < estimate.value < estimate.high
    assert all(math.isnan(e.low) and "questions" in e.method for e in prf.from_counts(pooled, pooled=True).values())


def test_counts_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="cannot be"):
        Counts(5, 4, 6, 10)
    with pytest.raises(ValueError, match="between 6 and"):
        Counts(2, 8, 8, 10)
    assert all(math.isnan(e.value) for e in prf.from_counts(Counts(0, 0, 0, 10)).values())
    assert prf.from_counts(Counts(0, 5, 0, 10))["precision"].value == 0.0


def test_labels_agree_with_sklearn_and_intervals_hold_clusters() -> None:
    rng = np.random.default_rng(3)
    human = (rng.random((60, 2)) < 0.4).astype(float)
    judge = np.where(rng.random((60, 2)) < 0.8, human, 1 - human)
    human[0, 0] = judge[1, 1] = np.nan
    found = prf.from_labels(human, judge, questions=("q1", "q2"), rng=np.random.default_rng(0))
    told = ~np.isnan(human) & ~np.isnan(judge)
    for name, mask in (("q1", [0]), ("q2", [1]), ("pooled", [0, 1])):
        keep = told[:, mask]
        p, r, f1, _ = precision_recall_fscore_support(
            human[:, mask][keep], judge[:, mask][keep], average="binary", pos_label=1.0
        )
        values = [found[name][metric].value for metric in prf.METRICS]
        assert values == pytest.approx([p, r, f1]) and found[name]["f1"].n == keep.sum()
        assert all(e.low < e.value < e.high for e in found[name].values())
    again = prf.from_labels(human, judge, questions=("q1", "q2"), rng=np.random.default_rng(0))
    assert again == found
    doubled = prf.from_labels(
        np.vstack([human] * 4), np.vstack([judge] * 4), questions=("q1", "q2"), rng=rng, clusters=[*range(60)] * 4
    )
    wide, narrow = (e["pooled"]["f1"].high - e["pooled"]["f1"].low for e in (doubled, found))
    assert wide == pytest.approx(narrow, rel=0.15)  # copies of the same items tell nothing new


def test_a_perfect_judge_keeps_an_interval() -> None:
    truth = np.array([[1.0], [0.0]] * 10)
    found = prf.from_labels(truth, truth, questions=("q1",), rng=np.random.default_rng(0))["q1"]["f1"]
    assert found.value == 1.0 and 0.6 < found.low < 0.9
    nobody = prf.from_labels(truth * 0, truth * 0, questions=("q1",), rng=np.random.default_rng(0))["q1"]
    assert all(math.isnan(e.value) and e.method.startswith("none: ") for e in nobody.values())
    with pytest.raises(ValueError, match="neither 1, 0"):
        prf.from_labels(truth * 2, truth, questions=("q1",), rng=np.random.default_rng(0))


def test_human_ceiling_by_hand() -> None:
    # Items by three annotators: 111, 110, 001, 000. Against the other two, ties left out:
    # a1 sees 11(1), 10(tie), 01(tie), 00(0): P R F1 1; a2 the same; a3 sees 11(1), 11(said 0), 00(said 1), 00(0): 1/2.
    labels = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=float)[:, :, None]
    found = prf.human_ceiling(labels, questions=("q1",), rng=np.random.default_rng(0))
    assert [found["q1"][m].value for m in prf.METRICS] == pytest.approx([5 / 6] * 3)
    assert found["q1"]["f1"].n == 2 + 2 + 4
    none = prf.human_ceiling(labels[:, :2], questions=("q1",), rng=np.random.default_rng(0))
    assert math.isnan(none["pooled"]["f1"].value) and "three" in none["pooled"]["f1"].method


def test_dummy_judges() -> None:
    judge = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [np.nan, 1.0]])
    longest = prf.longest_agree([3, 9, 9, math.nan], judge)
    assert longest[:, 0].tolist()[:3] == [0.0, 1.0, 1.0] and math.isnan(longest[3, 0])  # one wanted, two as long
    assert longest[:3, 1].tolist() == [0.0, 1.0, 1.0]
    assert prf.above([0.2, 0.6, math.nan], 0.5, 2)[:2].tolist() == [[0, 0], [1, 1]]
    assert prf.always_agree(2, 4).sum() == 8


@pytest.mark.parametrize(
    ("agreed", "printed"),
    [
        ((59, 26, 37, 34), ("61.8", "51.5", "40.8", "55.1")),
        ((73, 17, 16, 4), ("77.0", "31.8", "-2.4", "-5.9")),
        ((76, 28, 24, 22), ("80.2", "55.9", "14.0", "30.7")),
    ],
)
def test_rogan_gladen_of_table_5(agreed: tuple[int, ...], printed: tuple[str, ...]) -> None:
    for k, text, one in zip(agreed, printed, of_judge("GPT-4"), strict=True):
        right = (one.n - one.human - (one.judge - one.both), one.n - one.human)
        found = correction.rogan_gladen(judged=(k, 100), sensitivity=(one.both, one.human), specificity=right)
        assert counts.rounds_to(text, 100 * found.estimate.value)
        assert 0 <= found.shown.low <= found.shown.value <= found.shown.high <= 1
        assert ("at the bound" in found.shown.method) == text.startswith("-")
        assert math.isnan(found.more) and "without a judge" in found.more_reason


@pytest.mark.parametrize("agreed", [(16, 100), (4, 100), (59, 100), (73, 100)])
def test_labels_without_a_judge_halve_the_interval(agreed: tuple[int, int]) -> None:
    one = of_judge("GPT-4")[2 if agreed[0] < 20 else 0]
    right = (one.n - one.human - (one.judge - one.both), one.n - one.human)
    found = correction.rogan_gladen(judged=agreed, sensitivity=(one.both, one.human), specificity=right)
    alone = int(re.findall(r"([0-9]+) labels", found.more_reason)[0])
    width = found.estimate.high - found.estimate.low
    inside = min(1.0, max(0.0, found.estimate.value))
    half = [stats._wilson_limits(inside, n) for n in (alone, max(1, alone - 2))]
    assert half[0][1] - half[0][0] < 0.53 * width and half[1][1] - half[1][0] > 0.47 * width


def test_corrections_cover_and_know_their_limits() -> None:
    rng, inside = np.random.default_rng(1), np.zeros(2)
    for _ in range(400):
        truth, labelled = rng.random(300) < 0.3, rng.random(80) < 0.3
        said, on_labelled = (
            np.where(t, rng.random(len(t)) < 0.8, rng.random(len(t)) < 0.15) for t in (truth, labelled)
        )
        hit, miss = int((on_labelled & labelled).sum()), int((~on_labelled & ~labelled).sum())
        rg = correction.rogan_gladen(
            judged=(int(said.sum()), 300),
            sensitivity=(hit, int(labelled.sum())), specificity=(miss, int((~labelled).sum())),
        )  # fmt: skip
        pp = correction.prediction_powered(labelled.astype(float), on_labelled.astype(float), judged=(said.sum(), 300))
        inside += [e.estimate.low <= 0.3 <= e.estimate.high for e in (rg, pp)]
    assert (inside / 400 > 0.92).all()
    many = correction.rogan_gladen(judged=(3000, 9000), sensitivity=(20, 24), specificity=(50, 56))
    # Four times the labels would do if the judge saw every answer; it saw 9,000, so a little more than three times 80.
    assert 240 < many.more < 260 and "80" in many.more_reason


def test_prediction_powered_by_hand() -> None:
    # The judge agrees with 60 of 100; on labels it errs upwards 3 times and downwards once of 20: 0.6 - 0.1.
    human, judge = [1] * 8 + [0] * 12, [1] * 7 + [0] + [1] * 3 + [0] * 9
    found = correction.prediction_powered(human, judge, judged=(60, 100))
    assert found.estimate.value == pytest.approx(0.5) and found.estimate.low < 0.4 < 0.6 < found.estimate.high
    assert math.isnan(correction.prediction_powered([], [], judged=(60, 100)).estimate.value)
    assert math.isnan(correction.prediction_powered(human, judge).estimate.value)
    exact = correction.prediction_powered(human, human, judged=(60, 100)).estimate
    assert exact.high - exact.low > 0.19  # no error seen is not no error


def test_a_judge_no_better_than_chance() -> None:
    found = correction.rogan_gladen(judged=(5, 10), sensitivity=(5, 10), specificity=(5, 10))
    assert math.isnan(found.estimate.value) and "chance" in found.estimate.method
    assert "specificity" in correction.rogan_gladen(judged=(5, 9), sensitivity=(1, 1), specificity=(0, 0)).more_reason


def test_published_preference() -> None:
    tally = preference.Tally(long=31, short=12, tie=7)
    assert tally.n == 50 and tally.p() == pytest.approx(0.0054, abs=5e-5)
    rate = tally.win_rate()
    assert [round(100 * x) for x in (rate.value, rate.low, rate.high)] == [72, 57, 83]
    assert math.isnan(preference.Tally(0, 0, 3).win_rate().value)


def test_choice_and_length() -> None:
    rng = np.random.default_rng(0)
    up, p = preference.rank_correlation(range(20), [x**2 for x in range(20)], rng=rng)
    assert up.value == pytest.approx(1.0) and p < 0.01
    flat, p = preference.rank_correlation(range(20), [1.0] * 20, rng=rng)
    assert math.isnan(flat.value) and math.isnan(p) and "spread" in flat.method
    few, _ = preference.rank_correlation([1, 2, 3, math.nan], [1, 2, 3, 4], rng=rng)
    assert math.isnan(few.value) and few.n == 3
    none, p = preference.rank_correlation([1, 2, 3, 4, 5, 6, 7, 8], [5, 3, 8, 1, 7, 2, 6, 4], rng=rng)
    assert p > 0.3 and none.low < 0 < none.high
    assert preference.longer_wins([2, 2, 0.5, 1, 3], [1, 0, 0, 1, math.nan]).value == pytest.approx(2 / 3)
