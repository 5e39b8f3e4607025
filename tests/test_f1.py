"""F1 under every rule: hand-worked vectors, texts that are none, spellings that look alike, each text cut once."""

from __future__ import annotations

import math

import pytest

from thaikit import f1, text

NAM, NAM_DECOMPOSED = "น\u0e49\u0e33", "น\u0e4d\u0e49\u0e32"
FREE = ("whitespace", "whitespace-articles", "inspect", "characters")


def told(answer: str, *references: str, rule: str) -> tuple[float, float, float]:
    """Exact match, F1 and recall, as fractions of small numbers."""
    found = f1.score(answer, references, rule=rule)
    return found.em, round(found.f1, 9), round(found.recall, 9)


def third(k: int, n: int = 3) -> float:
    return round(k / n, 9)


@pytest.mark.parametrize(
    ("rule", "answer", "reference", "expected"),
    [
        ("whitespace", "The cat, sat!", "a cat sat", (1, 1, 1)),
        ("whitespace-articles", "The cat, sat!", "a cat sat", (0, third(2), third(2))),
        ("whitespace", "แมวกินปลา", "แมว", (0, 0, 0)),
        ("wangchanx", "แมวกินปลา", "แมว", (0, 0.5, 1)),
        ("wangchanx", "แมว กิน", "แมว", (0, third(2), 1)),
        ("wangchanx", "the แมว", "แมว", (1, 1, 1)),
        ("newmm-seahelm", "the แมว", "แมว", (0, third(2), 1)),
        ("helm", "แมว กิน", "แมว", (0, 0.5, 1)),  # the space is a word
        ("wangchanx", "แมว แมว", "แมว", (0, third(2), 1)),
        ("lighteval", "แมว แมว", "แมว", (0, 1, 1)),  # sets
        ("wangchanx", "“แมว”", "แมว", (0, 0.5, 1)),  # curly quotes are no ASCII punctuation
        ("lighteval", "“แมว”", "แมว", (1, 1, 1)),
        ("inspect", "10-12", "10", (0, third(2), 1)),
        ("inspect", "12 10", "10 12", (1, 1, 1)),  # no order
        ("inspect", "3.50", "3.5", (1, 1, 1)),
        ("inspect", "1,000", "1000.0", (1, 1, 1)),
        ("whitespace", "3.50", "3.5", (0, 0, 0)),
        ("characters", "กข", "ข ค", (0, 0.5, 0.5)),
    ],
)
def test_hand_worked(rule: str, answer: str, reference: str, expected: tuple[float, float, float]) -> None:
    assert told(answer, reference, rule=rule) == expected


def test_the_best_reference_counts_for_each_measure() -> None:
    assert told("แมวกินปลา", "หมา", "แมวกินปลา", rule="wangchanx") == (1, 1, 1)
    assert told("แมวกินปลา", "แมว", "แมวกินปลาตัวใหญ่", rule="wangchanx")[2] == 1


@pytest.mark.parametrize("rule", f1.RULES)
def test_an_empty_answer_scores_nothing_and_never_fails(rule: str) -> None:
    for answer in ("", "  \n", "\u200b"):
        assert told(answer, "แมว", rule=rule) == (0, 0, 0)


def test_a_reference_of_punctuation_alone_is_flagged_and_scored_as_its_tool_does() -> None:
    for rule, expected in (("whitespace", 1.0), ("wangchanx", 0.0), ("inspect", 1.0), ("helm", 0.0)):
        found = f1.score("%", ["%"], rule=rule)
        assert (found.em, found.f1, found.bare) == (1.0, expected, True), rule
        assert f1.score("แมว", ["%"], rule=rule).f1 == 0.0
    assert not f1.score("%", ["%", "แมว"], rule="wangchanx").bare


@pytest.mark.parametrize("value", [308, math.nan, None, b"308", ["308"]])
def test_what_is_no_text_is_an_error_and_never_a_zero(value: object) -> None:
    with pytest.raises(ValueError, match=r"item 1: .* read every text column as str"):
        f1.score_all(["a", value], [["a"], ["308"]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="item 1: .* read every text column as str"):
        f1.score_all(["a", "308"], [["a"], ["308", value]])  # type: ignore[list-item]
    assert told("308", "308", rule="wangchanx") == (1, 1, 1)
    assert told("NaN", "NaN", rule="wangchanx") == (1, 1, 1)


@pytest.mark.parametrize(
    ("references", "sentence"),
    [([], "no reference"), (["ก", "\n "], "a blank reference"), ("แมว", "pass a list of them")],
)
def test_references_are_there(references: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        f1.score("ก", references)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must pair up"):
        f1.score_all(["ก"], [])
    with pytest.raises(ValueError, match="no rule 'rouge'; there are whitespace,"):
        f1.score("ก", ["ก"], rule="rouge")


@pytest.mark.parametrize("long", ["แมวกินปลา" * 5_556, "1" * 50_000, "๑" * 50_000, " " * 50_000, "the " * 12_500])
def test_fifty_thousand_characters(long: str) -> None:
    segment = f1.Segmenter()
    for rule in f1.RULES:
        found = f1.score(long, ["แมว"], rule=rule, segment=segment)
        assert 0.0 <= found.f1 < 0.01 or "แมว" in long
        assert f1.score(long + "ก", [long + "ก"], rule=rule, segment=segment).em == 1.0


def test_each_distinct_text_is_segmented_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(text, "tokens", lambda s, *, engine: seen.append(s) or list(s))
    segment = f1.Segmenter()
    answers, references = ["กขค", "กขค", "Abc!", "ง"], [["กขค"], ["ง"], ["abc"], ["ง", "กขค"]]
    f1.score_all(answers, references, segment=segment)
    f1.score_all(answers, references, segment=segment, rules=f1.RULES)
    f1.word_counts(answers, segment=segment)
    assert sorted(seen) == sorted(set(seen)) and set(seen) == {"กขค", "ง", "Abc!", "abc"}
    seen.clear()
    f1.score_all(answers, references, rules=f1.UNSEGMENTED)
    assert not seen and f1.UNSEGMENTED == FREE


def test_words_per_answer_leave_white_space_out() -> None:
    assert f1.word_counts(["แมว กิน\nปลา", "", "  "]) == [3, 0, 0]


def test_a_signature_names_all_that_the_number_depends_on() -> None:
    import pythainlp

    every = [f1.signature(rule) for rule in f1.RULES]
    assert len(set(every)) == len(every)
    for line in every:
        assert f"words:newmm|pythainlp:{pythainlp.__version__}|dictionary:default" in line
        assert "normalise:none" in line and line.startswith("f1|rule:")
    assert "normalise:nfc,digits" in f1.signature("wangchanx", steps=["digits", "nfc"])


@pytest.mark.parametrize(
    ("step", "one", "other"),
    [
        ("sara_am", NAM_DECOMPOSED, NAM),
        ("sara_ae", "\u0e40\u0e40มว", "แมว"),
        ("zero_width", "\ufeffแม\u200bว", "แมว"),
        ("digits", "๓๐๘", "308"),
        ("mark_order", "ท\u0e48\u0e35", "ท\u0e35\u0e48"),
        ("mark_order", "น\u0e33\u0e49", NAM),
        ("doubled_marks", "ก\u0e48\u0e48า", "ก\u0e48า"),
        ("spaces", " แมว\u00a0\n กิน ", "แมว กิน"),
        ("nfc", "e\u0301", "\u00e9"),
    ],
)
def test_each_step_makes_two_spellings_one_and_is_taken_only_when_asked(step: str, one: str, other: str) -> None:
    assert text.normalise(one, steps=[step]) == other
    assert text.normalise(one, steps=[]) == one
    assert text.normalise(other, steps=[step]) == other
    assert text.normalise(one) == other and list(text.NORMALISE) == list(text.NORMALISE_TOLD)
    taken = f1.score_all([one], [[other]], rules=["wangchanx"], steps=[step])["wangchanx"][0]
    assert (taken.em, taken.f1) == (1.0, 1.0)
    if step not in ("spaces",):
        assert f1.score(one, [other]).f1 < 1.0


def test_an_unknown_step_is_named() -> None:
    with pytest.raises(ValueError, match="no step 'nfkc'; there are nfc, zero_width"):
        text.normalise("ก", steps=["nfkc"])


def test_the_effect_of_each_step_is_told() -> None:
    answers, references = [NAM_DECOMPOSED, "๓๐๘", "แมว"], [[NAM], ["308"], ["แมว"]]
    rows = {row["step"]: row for row in f1.step_effects(answers, references)}
    assert list(rows) == ["none", *text.NORMALISE]
    assert rows["none"]["f1_so_far"] == pytest.approx(1 / 3)
    assert (rows["sara_am"]["texts"], rows["sara_am"]["items"]) == (1, 1)
    assert rows["sara_am"]["f1_alone"] == pytest.approx(2 / 3) == rows["digits"]["f1_alone"]
    assert rows["digits"]["f1_so_far"] == 1.0 == rows["digits"]["em_so_far"]
    assert (rows["nfc"]["texts"], rows["nfc"]["f1_alone"]) == (0, pytest.approx(1 / 3))
