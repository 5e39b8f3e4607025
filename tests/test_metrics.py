import math
import random

import pytest

from thaikit import metrics as m

WATER = ["น้ำแข็ง", "ไอน้ำ", "น้ำ", "เมฆฝน"]
WATER_LL = [-9.1, -6.4, -4.2, -7.0]


def test_accuracies_water() -> None:
    assert [len(c) for c in WATER] == [7, 5, 3, 5]
    assert [len(c.encode()) for c in WATER] == [21, 15, 9, 15]
    found = m.accuracies(WATER_LL, 1, choices=WATER, tokens=[3, 2, 1, 2])
    assert (found["prediction"], found["acc"]) == (2, 0.0)
    assert (found["prediction_norm"], found["acc_norm"]) == (1, 1.0)
    assert found["prediction_bytes"] == 1  # pure Thai: bytes rank as characters do


def test_accuracies_mixed_script_bytes_and_characters_disagree() -> None:
    choices = ["โปรตีน", "DNA และ RNA"]
    assert [(len(c), len(c.encode())) for c in choices] == [(6, 18), (11, 17)]
    found = m.accuracies([-6.0, -9.0], 1, choices=choices, tokens=[3, 7])
    assert {k: v for k, v in found.items() if k.startswith("pred")} == {
        "prediction": 0,
        "prediction_norm": 1,
        "prediction_bytes": 0,
        "prediction_tokens": 1,
    }
    assert (found["acc"], found["acc_norm"], found["acc_bytes"], found["acc_tokens"]) == (0.0, 1.0, 0.0, 1.0)


def test_both_forms_of_sara_am_have_different_lengths_and_that_is_the_metric() -> None:
    typed, decomposed = "น\u0e49\u0e33", "น\u0e4d\u0e49\u0e32"
    found = m.accuracies([-3.0, -3.5], 0, choices=[typed, decomposed], tokens=[1, 1])
    assert (found["prediction"], found["prediction_norm"]) == (0, 1)


def test_ties_go_to_the_lowest_index_and_choice_counts_may_differ() -> None:
    assert m.accuracies([-1.0, -1.0, -1.0], 0, choices=["a", "b", "c"], tokens=[1, 1, 1])["prediction"] == 0
    assert m.accuracies([-1.0], 0, choices=["ก"], tokens=[1])["acc_norm"] == 1.0
    assert m.accuracies([-5.0, -4.0, -3.0, -2.0, -1.0], 4, choices=list("ABCDE"), tokens=[1] * 5)["acc"] == 1.0
    assert m.accuracies([-math.inf, -9.0], 1, choices=["a", "b"], tokens=[1, 1])["acc"] == 1.0


@pytest.mark.parametrize(
    ("ll", "gold", "choices", "tokens", "message"),
    [
        ([-1.0, -2.0], 0, ["ก", ""], [1, 1], r"choice 1 \(''\)"),
        ([-1.0, -2.0], 0, ["ก", "ข"], [1, 0], "choice 1"),
        ([-1.0, -2.0], 2, ["ก", "ข"], [1, 1], "gold is 2"),
        ([-1.0, -2.0], -1, ["ก", "ข"], [1, 1], "gold is -1"),
        ([-1.0, math.nan], 0, ["ก", "ข"], [1, 1], "NaN"),
        ([-1.0, -2.0], 0, ["ก"], [1, 1], "same length"),
        ([-1.0, -2.0], 0, "กข", [1, 1], "list of strings"),
        ([], 0, [], [], "0 choices"),
    ],
)
def test_accuracies_refuses(ll: list, gold: int, choices: list, tokens: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        m.accuracies(ll, gold, choices=choices, tokens=tokens)


TRUTH_LL = [-12.0, -10.5, -11.0, -9.8, -13.2]


@pytest.mark.parametrize(
    ("ll", "labels", "expected"),
    [
        (TRUTH_LL, [1, 1, 0, 0, 0], 0.312771),
        (TRUTH_LL, [1, 0, 0, 0, 0], 0.057058),
        (TRUTH_LL, [0, 1, 0, 0, 0], 0.255714),
        (TRUTH_LL, [0, 0, 1, 0, 0], 0.155098),
        (TRUTH_LL, [0, 0, 0, 1, 0], 0.514945),
        (TRUTH_LL, [0, 0, 0, 0, 1], 0.017185),
        (TRUTH_LL, [1, 0, 1, 0, 0], 0.212156),  # a mask; the first-zero rule would give 0.057058
        ([-800.0, -801.0], [1, 0], 0.731059),  # unshifted exponentials give 0/0
        ([-math.inf, -1.0], [1, 0], 0.0),
    ],
)
def test_mc2(ll: list[float], labels: list[int], expected: float) -> None:
    assert m.mc2(ll, labels) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("labels", [[1, 1], [0, 0], [], [1], [1, 2], [1, 0, 0]])
def test_mc2_needs_a_true_and_a_false_answer(labels: list[int]) -> None:
    with pytest.raises(ValueError, match="mc2"):
        m.mc2([-1.0, -2.0], labels)


def test_mc2_in_range_and_blind_to_order() -> None:
    rng = random.Random(0)
    for _ in range(200):
        labels = [1, 0] + [rng.randint(0, 1) for _ in range(rng.randint(0, 6))]
        ll = [rng.uniform(-2000, 0) for _ in labels]
        pairs = list(zip(ll, labels, strict=True))
        rng.shuffle(pairs)
        value = m.mc2(ll, labels)
        assert 0.0 <= value <= 1.0
        assert m.mc2([x for x, _ in pairs], [y for _, y in pairs]) == pytest.approx(value, abs=1e-12)


def test_mc1() -> None:
    assert m.mc1([-10.2, -10.1, -11.0]) == 0.0
    assert m.mc1([-10.1, -10.1]) == 1.0


def test_winogrande() -> None:
    assert m.winogrande([-21.35, -20.90], 1) == {"acc": 1.0, "prediction": 1}
    assert m.winogrande([-21.35, -20.90], 0) == {"acc": 0.0, "prediction": 1}
    with pytest.raises(ValueError, match="two"):
        m.winogrande([-1.0, -2.0, -3.0], 0)


def test_macro_micro_and_pooled_error() -> None:
    groups = {"small": [1.0] * 30 + [0.0] * 70, "large": [1.0] * 630 + [0.0] * 270}
    assert m.macro_micro(groups) == pytest.approx((0.50, 0.66))
    errors = [m.mean_stderr(values)[1] for values in groups.values()]
    assert errors == pytest.approx([0.046057, 0.015284], abs=1e-6)
    assert m.pooled_stderr([100, 900], errors) == pytest.approx(0.014506, abs=1e-6)


def test_aggregates_with_too_little_data_are_nan_and_never_zero() -> None:
    assert m.mean_stderr([1.0, 0.0, 1.0, 1.0]) == (0.75, 0.25)
    mean, error = m.mean_stderr([1.0])
    assert mean == 1.0
    assert math.isnan(error)
    assert all(math.isnan(x) for x in m.mean_stderr([]))
    assert all(math.isnan(x) for x in m.macro_micro({}))
    assert math.isnan(m.pooled_stderr([1, 1], [math.nan, math.nan]))
    assert m.pooled_stderr([1, 3], [math.nan, 0.1]) == pytest.approx(math.sqrt(2 * 0.01 * 3 / 2 / 4))
    with pytest.raises(ValueError, match="'law'"):
        m.macro_micro({"law": []})
    with pytest.raises(ValueError, match="same length"):
        m.pooled_stderr([1], [0.1, 0.2])


def test_aggregates_as_the_harness_computes_them() -> None:
    harness = pytest.importorskip("lm_eval.api.metrics")
    rng = random.Random(1)
    for _ in range(20):
        groups = [[float(rng.random() < 0.6) for _ in range(rng.randint(2, 40))] for _ in range(rng.randint(1, 5))]
        errors = [m.mean_stderr(g)[1] for g in groups]
        assert errors == pytest.approx([harness.mean_stderr(g) for g in groups])
        sizes = [len(g) for g in groups]
        assert m.pooled_stderr(sizes, errors) == pytest.approx(harness.pooled_sample_stderr(errors, sizes))


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [("72", "72", 1.0), ("72.0", "72", 0.0), (None, "72", 0.0), ("๗๒", "72", 0.0), ("", "72", 0.0), ("7", "7", 1.0)],
)
def test_exact_match_is_string_equality(prediction: str | None, gold: str, expected: float) -> None:
    assert m.exact_match(prediction, gold) == expected


def test_every_metric_has_its_own_signature() -> None:
    assert all(key and "|" in line for key, line in m.SIGNATURES.items())
    assert len(set(m.SIGNATURES.values())) == len(m.SIGNATURES)


def test_bf16_rounding_makes_ties_that_fp32_does_not() -> None:
    torch = pytest.importorskip("torch")
    rounded = torch.tensor([-150.3, -149.8, -63.2, -63.3, -21.84]).to(torch.bfloat16).tolist()
    assert rounded == [-150.0, -150.0, -63.25, -63.25, -21.875]
    assert m.accuracies(rounded[:2], 0, choices=["a", "b"], tokens=[1, 1])["prediction"] == 0
    kept = torch.tensor([-150.3, -149.8, -63.2, -63.3, -21.84], dtype=torch.float32).tolist()
    assert len(set(kept)) == 5
    assert m.accuracies(kept[:2], 0, choices=["a", "b"], tokens=[1, 1])["prediction"] == 1
