import random
import re
import time
import unicodedata

import pytest

from thaikit import text

NAM = "น\u0e49\u0e33"  # น้ำ as people type it
NAM_DECOMPOSED = "น\u0e4d\u0e49\u0e32"
NAM_NFKC = "น\u0e49\u0e4d\u0e32"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("A [title] B [step] C   D", "A. B C  D"),
        ("", ""),
        (" ", ""),
        ("ก", "ก"),
        ("a   b", "a  b"),  # three spaces become two
        ("a     b", "a   b"),  # five become three
        ("\u00a0ก\u00a0", "ก"),  # strip takes the no-break space
        ("\u200bก", "\u200bก"),  # and leaves the zero-width one
        ("[header] วิธีล้างจาน", " วิธีล้างจาน"),  # stripped before the bracket goes
        ("จบ [x]", "จบ "),
        ("a [b\nc] d", "a [b\nc] d"),  # the bracket rule does not cross a newline
        ("a [b [c] d] e", "a  d] e".replace("  ", " ")),  # the shortest span
        ("[เท่านั้น]", ""),
    ],
)
def test_preprocess_hellaswag(raw: str, expected: str) -> None:
    assert text.preprocess_hellaswag(raw) == expected


def test_the_bracket_rule_is_the_protocols_and_linear() -> None:
    rng = random.Random(5)
    for _ in range(3000):
        raw = "".join(rng.choices("[]\nก ", k=rng.randint(0, 12)))
        assert text.preprocess_hellaswag(raw) == re.sub(r"\[.*?\]", "", raw.strip()).replace("  ", " ")
        assert text.bracket_contents(raw) == re.findall(r"\[.*?\]", raw)
    start = time.perf_counter()
    text.preprocess_hellaswag("[" * 100_000)
    assert time.perf_counter() - start < 5


def test_translated_title_mark_needs_to_be_named() -> None:
    raw = "วิธีชงชา [ชื่อ] ต้มน้ำ"
    assert text.preprocess_hellaswag(raw) == "วิธีชงชา ต้มน้ำ"
    marks = text.TITLE_MARKS + text.TRANSLATED_TITLE_MARKS
    assert text.preprocess_hellaswag(raw, title_marks=marks) == "วิธีชงชา. ต้มน้ำ"


@pytest.mark.parametrize(
    ("raw", "v1", "thai_h6"),
    [
        ("ผู้ชายใช้ iPhone", "ผู้ชายใช้ iphone", "ผู้ชายใช้ iPhone"),
        ("DIY ง่ายๆ", "Diy ง่ายๆ", "DIY ง่ายๆ"),
        ("he uses iOS", "He uses ios", "He uses iOS"),
        ("é bon", "É bon", "É bon"),
        ("", "", ""),
        ("a", "A", "A"),
        ("ก", "ก", "ก"),
        ("๑ a", "๑ a", "๑ a"),
        ("αB", "Αb", "αB"),  # Greek is not Latin
    ],
)
def test_capitalise_lower_cases_latin_in_v1_only(raw: str, v1: str, thai_h6: str) -> None:
    assert text.capitalise(raw, mode="v1") == v1
    assert text.capitalise(raw, mode="thai-h6") == thai_h6


def test_capitalise_refuses_another_mode() -> None:
    with pytest.raises(ValueError, match="v2"):
        text.capitalise("a", mode="v2")


def test_preprocess_and_capitalise_as_the_harness_does() -> None:
    utils = pytest.importorskip("lm_eval.tasks.hellaswag.utils")
    for raw in ("A [title] B [step] C   D", " [title] x  ", "ก [ข] ค     ง", "[a][b]", "", "  a [b\n] c"):
        assert text.preprocess_hellaswag(raw) == utils.preprocess(raw)


@pytest.mark.parametrize(("raw", "expected"), [("๐๑๒๓๔๕๖๗๘๙", "0123456789"), ("ปี ๒๕๖๖/2023", "ปี 2566/2023"), ("", "")])
def test_thai_digits(raw: str, expected: str) -> None:
    assert text.thai_digits_to_arabic(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (NAM_DECOMPOSED, NAM),
        (NAM_NFKC, NAM),
        (NAM, NAM),
        ("ท\u0e4d\u0e32", "ท\u0e33"),
        ("\u0e4d", "\u0e4d"),  # a nikhahit by itself (Pali) stays
        ("", ""),
        (NAM_DECOMPOSED * 2 + "ใจ", NAM * 2 + "ใจ"),
    ],
)
def test_fold_sara_am(raw: str, expected: str) -> None:
    assert text.fold_sara_am(raw) == expected
    assert text.fold_sara_am(text.fold_sara_am(raw)) == expected


def test_sara_am_trap_nfc_keeps_both_forms_apart_and_nfkc_decomposes() -> None:
    assert unicodedata.normalize("NFC", NAM) != unicodedata.normalize("NFC", NAM_DECOMPOSED)
    assert unicodedata.normalize("NFKC", NAM) == NAM_NFKC
    assert text.fold_sara_am(unicodedata.normalize("NFKC", NAM)) == NAM


@pytest.mark.parametrize(
    ("raw", "faults"),
    [
        ("", {}),
        ("ก", {}),
        (NAM, {}),
        ("ผู้ใหญ่บ้านที่นี่ ก็ดื่มน้ำ", {}),
        (NAM_DECOMPOSED, {"sara_am_decomposed": 1}),
        (NAM_NFKC + NAM_DECOMPOSED, {"sara_am_decomposed": 2}),
        ("เพ\u0e37\u0e48\u0e37\u0e48อน", {"doubled_marks": 1}),
        ("ท\u0e35\u0e48\u0e48", {"doubled_marks": 1}),
        ("น\u0e49\u0e33\u0e33", {"doubled_marks": 1}),
        (
            "\u200bก\ufeffข\u00a0ค\u200eง",
            {"zero_width_space": 1, "bom": 1, "no_break_space": 1, "left_to_right_mark": 1},
        ),
        ("๑2", {"mixed_digits": 1}),
        ("๑๒", {}),
        ("12", {}),
        ("\u0e40\u0e40ม่", {"double_sara_e": 1}),
        (" ก\u00a0\n", {"leading_space": 1, "trailing_space": 2, "no_break_space": 1}),
        ("  ", {"leading_space": 2}),
    ],
)
def test_audit(raw: str, faults: dict[str, int]) -> None:
    found = text.audit(raw)
    assert {key: count for key, count in found.items() if count} == faults
    assert len(found) == 10


def test_double_sara_e_trap_looks_like_sara_ae_and_nfc_keeps_it() -> None:
    assert unicodedata.normalize("NFC", "\u0e40\u0e40") != "\u0e41"


def test_bracket_audit() -> None:
    assert text.bracket_contents("ก [ชื่อ] ข [a] [b\n]") == ["[ชื่อ]", "[a]"]
    assert text.has_bracket_artefacts("ก [ชื่อ] ข")
    assert text.has_bracket_artefacts("x [title] y")
    assert not text.has_bracket_artefacts("สาร [H2O]")
    assert not text.has_bracket_artefacts("")


def test_words_segments_thai_without_spaces() -> None:
    found = text.words("แมวกินปลา 2 ตัว")
    assert "".join(found) == "แมวกินปลา2ตัว"
    assert len(found) >= 4  # a white-space split would give 3
    assert text.words("") == []
    assert text.words("   ") == []
    assert text.words("ก") == ["ก"]


def test_words_refuses_what_pythainlp_turns_into_nothing() -> None:
    for value in (None, 308, float("nan")):
        with pytest.raises(ValueError, match="read every text column as str"):
            text.words(value)
    with pytest.raises(ValueError, match="no-such-engine"):
        text.words("ก", engine="no-such-engine")


def test_words_signature_names_engine_and_version() -> None:
    import pythainlp

    assert text.words_signature("newmm").startswith(f"words:newmm|pythainlp:{pythainlp.__version__}|")


def test_trap_choice_letters_are_not_consecutive_in_unicode() -> None:
    assert [chr(ord("ก") + i) for i in range(4)] != list("กขคง")


def test_a_long_run_of_marks_is_normalised_in_no_time() -> None:
    begun = time.perf_counter()
    assert text.normalise("ก" + "\u0e49" * 50_000 + "\u0e35", steps=["mark_order"]) == "ก\u0e35" + "\u0e49" * 50_000
    text.normalise("\u0e49" * 50_000)
    assert time.perf_counter() - begun < 2
