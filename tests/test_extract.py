import re
import time

import pytest

from thaikit import extract as ex
from thaikit.text import thai_digits_to_arabic

INV = ex.INVALID

# completion, v1, strict, flexible, flexible after Thai digits were mapped
TABLE = [
    ("48/2=<<48/2=24>>24\n#### 72", "72", "72", "72", "72"),
    ("… so 72 in total.\n#### 72.", "72.", "72", "72", "72"),
    ("Step 1: 40+32=72\n#### 72", INV, "72", "72", "72"),
    ("ดังนั้น: #### 72", INV, "72", "72", "72"),
    ("The total is $1,234.50", INV, INV, "1234.50", "1234.50"),
    ("#### 1,234", "1234", "1234", "1234", "1234"),
    ("The answer is 72...", INV, INV, "72..", "72.."),
    ("Total 72\n#### 72\n\nQuestion: Next? #### 5", "72", "72", "72", "72"),
    ("คำตอบคือ 72 บาท", INV, INV, "72", "72"),
    ("คำตอบคือ ๗๒ บาท", INV, INV, INV, "72"),
    ("#### ๗๒", INV, INV, INV, "72"),
    ("ราคา 72.-", INV, INV, "72", "72"),
    ("ได้ 72 คน จากทั้งหมด 100 คน", INV, INV, "100", "100"),
    ("ตอบ 72 (เจ็ดสิบสอง)...", INV, INV, "..", ".."),
    ("#### 72 บาท", "72", "72", "72", "72"),
    ("#### 72.0", "72.0", "72.0", "72.0", "72.0"),
    ("#### -5", "-5", "-5", "-5", "-5"),
    ("#### 18\n#### 20", "18", "18", "20", "20"),
    ("", INV, INV, INV, INV),
    ("7", INV, INV, "7", "7"),
    ("ก", INV, INV, INV, INV),
    (".", INV, INV, INV, INV),  # พ.ศ.: a single point is no match
    ("####72", INV, INV, "72", "72"),
]


@pytest.mark.parametrize(("completion", "v1", "strict", "flexible", "mapped"), TABLE)
def test_gsm8k_table(completion: str, v1: str, strict: str, flexible: str, mapped: str) -> None:
    old, new = ex.cut_at_stops(completion, ex.STOPS_V1), ex.cut_at_stops(completion, ex.STOPS_HARNESS)
    assert (ex.gsm8k_v1(old) or INV) == v1
    assert (ex.strict(new) or INV) == strict
    assert (ex.flexible(new) or INV) == flexible
    assert (ex.flexible(thai_digits_to_arabic(new)) or INV) == mapped


def test_the_harness_filters_and_exact_match_agree_with_the_table() -> None:
    extraction = pytest.importorskip("lm_eval.filters.extraction")
    metrics = pytest.importorskip("lm_eval.api.metrics")
    filters = {
        ex.strict: extraction.RegexFilter(ex.STRICT_PATTERN),
        ex.flexible: extraction.RegexFilter(ex.FLEXIBLE_PATTERN, group_select=-1),
    }
    for completion, *_ in TABLE:
        cut = ex.cut_at_stops(completion, ex.STOPS_HARNESS)
        for ours, theirs in filters.items():
            raw = theirs.apply([[cut]], [{}])[0][0]
            found = ours(cut, normalise=False)
            assert (INV if found is None else found) == raw
            for gold in ("x\n#### 72", "#### 1,234", "#### 72.0", "#### 100", "#### ๗๒"):
                score = metrics.exact_match_hf_evaluate(
                    [raw], [gold], regexes_to_ignore=list(ex.IGNORED_PATTERNS), ignore_case=True
                )["exact_match"]
                assert (ours(cut) == ex.normalise_exact(gold)) == bool(score)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("…24 clips in May.\n#### 72", "72"),
        ("$1,234.", "1234"),
        ("72..", "72."),  # one final full stop only
        ("#### 1\n#### 2", "2"),  # everything up to the last mark
        ("[INVALID]", "[invalid]"),
        ("", ""),
        (".", ""),
        ("๗๒", "๗๒"),
        ("####72", "####72"),  # the mark needs its space
        ("72 ", "72 "),
    ],
)
def test_normalise_exact(raw: str, expected: str) -> None:
    assert ex.normalise_exact(raw) == expected


@pytest.mark.parametrize(
    ("raw", "stops", "expected"),
    [
        ("a:b", ex.STOPS_V1, "a"),
        ("เวลา 10:30", ex.STOPS_V1, "เวลา 10"),
        ("aQuestion b", ex.STOPS_V1, "a"),
        ("aQuestion b", ex.STOPS_HARNESS, "aQuestion b"),
        ("a</s>b<|im_end|>", ex.STOPS_HARNESS, "a"),
        ("a<eos>b", (*ex.STOPS_HARNESS, "<eos>"), "a"),
        ("x", (), "x"),
        ("", ex.STOPS_V1, ""),
        (" a ", ("",), " a "),  # an empty stop cuts nothing, and nothing is stripped
        ("1 คำถาม: 2", ("คำถาม:",), "1 "),
    ],
)
def test_cut_at_stops(raw: str, stops: tuple[str, ...], expected: str) -> None:
    assert ex.cut_at_stops(raw, stops) == expected


def test_cut_at_stops_refuses_a_string_where_a_list_is_due() -> None:
    with pytest.raises(ValueError, match="list of strings"):
        ex.cut_at_stops("a", "Question:")


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("#### ๗๒", "72"),
        ("#### 72.0", "72"),
        ("คำตอบคือ 72 จาก 100", "72"),
        ("ได้ 72 คน จากทั้งหมด 100 คน", "100"),
        ("ตอบ ๑,๒๓๔ บาท", "1234"),
        ("ราคา 72.-", "72"),
        ("พ.ศ. 2566 เหลือ 72 คน", "72"),
        ("เจ็ดสิบสอง", None),
        ("#### -5", "-5"),
        ("฿72.50", "72.5"),
        ("", None),
        ("7", "7"),
        ("๗", "7"),
        ("ก", None),
        ("-", None),
        ("####72", "72"),
        ("＃＃＃＃ 72", "72"),
        ("#### ฿ 1,234.00", "1234"),
        ("#### 18\n#### 20", "18"),
        ("#### ขั้นที่ 1\nคิดเลข\n#### 72 บาท", "72"),  # a heading is not the answer
        ("#### คำตอบคือ 72 จาก 100", "72"),
        ("คำตอบคือ มะลิมี 72 ผล จาก 100 ผล", "72"),
        ("คำตอบคือ: **72** จาก 100", "72"),
        ("The Answer is $1,234.50 of 2,000.", "1234.5"),
        ("คำตอบ: ไม่มี", None),
        ("ตอบ - 5 องศา จาก 9", "-5"),
        ("ตอบ −5", "-5"),
        ("ปีที่เกิดโควิด-19", "19"),  # a hyphen after a letter is no minus sign
        ("100-28", "28"),
        ("เหลือ -5", "-5"),
        ("ปี พ.ศ.2566", "2566"),  # the point of an abbreviation is no decimal point
        ("ได้ 72 บาท 50", "50"),  # dropping บาท does not glue numbers together
        ("1, 2, 3", "3"),
        ("3,5", "5"),  # a comma parts thousands or it parts numbers
        ("ได้ 1,234,567", "1234567"),
        ("0072", "72"),
        ("-0.0", "0"),
        ("ตอบ .5", "0.5"),
        ("ตอบ 72 (เจ็ดสิบสอง)...", "72"),
    ],
)
def test_em_thai(completion: str, expected: str | None) -> None:
    assert ex.em_thai(completion) == expected


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ("72", "72.0", True),
        ("72.00", "72.", True),
        ("๗๒", "72", True),
        ("1,234", "1234", True),
        ("-5", "5", False),
        ("-0", "0", True),
        ("+5", "5", True),
        (".5", "0.50", True),
        ("0.1", "0.10000000000000000000000000000000001", False),  # decimals, not floats
        (None, "72", False),
        (None, None, False),
        ("", "", False),
        ("nan", "nan", False),
        ("inf", "inf", False),
        ("7_2", "72", False),
        ("72..", "72", False),
        ("เจ็ด", "เจ็ด", False),
    ],
)
def test_same_number(a: str | None, b: str | None, equal: bool) -> None:
    assert ex.same_number(a, b) is equal
    assert ex.same_number(b, a) is equal


@pytest.mark.parametrize(
    ("answer", "pattern", "expected"),
    [
        ("…24 clips in May.\n#### 72", ex.STRICT_PATTERN, "72"),
        ("#### 1,234.", ex.STRICT_PATTERN, "1234"),
        ("#### -5", ex.STRICT_PATTERN, "-5"),
        ("72", ex.BARE_NUMBER_PATTERN, "72"),
        ("7", ex.BARE_NUMBER_PATTERN, "7"),
        ("คำตอบคือ 72", ex.MGSM_TH_PATTERN, "72"),
        ("๗๒", r"(\d+)", "72"),
    ],
)
def test_gold_number(answer: str, pattern: str, expected: str) -> None:
    assert ex.gold_number(answer, pattern) == expected


@pytest.mark.parametrize(
    "answer", ["", "7", "####72", "#### ๗๒", "#### ...", "#### 1.2.3", "#### 1\n#### 2", "ก" * 999]
)
def test_gold_number_refuses_a_reference_without_one_number(answer: str) -> None:
    with pytest.raises(ValueError, match="reference") as caught:
        ex.gold_number(answer)
    assert len(str(caught.value)) < 300


def test_strict_takes_another_pattern() -> None:
    assert ex.strict("คำตอบคือ 1,234.", pattern=ex.MGSM_TH_PATTERN) == "1234"
    assert ex.strict("คำตอบคือ72", pattern=ex.MGSM_TH_PATTERN) is None  # the space is part of the rule


def test_trap_backslash_d_and_int_take_thai_digits_and_the_protocol_does_not() -> None:
    assert re.fullmatch(r"\d+", "๑๒๓")
    assert int("๑๒๓") == 123
    assert ex.strict("#### ๑๒๓") is None
    assert ex.flexible("๑๒๓") is None
    assert ex.em_thai("๑๒๓") == "123"


def test_trap_word_boundary_fails_between_thai_and_latin() -> None:
    assert not re.search(r"\bA\b", "ตอบข้อA")
    assert ex.em_thai("ตอบ72บาท") == "72"  # so no pattern here relies on it
    assert ex.em_thai("คำตอบคือ72") == "72"


@pytest.mark.parametrize("long", ["ก" * 100_000, "#### " + " " * 100_000, "#" * 100_000, "1," * 50_000, "-" * 100_000])
def test_a_hostile_length_takes_no_time(long: str) -> None:
    start = time.perf_counter()
    for read in (ex.gsm8k_v1, ex.strict, ex.flexible, ex.em_thai, ex.normalise_exact):
        read(long)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(
    "raw", ["##### 7", "#### #### 7", "#### ", "a#### b#### c", "####  7", "x\n#### 1\n", "#### 7.\n"]
)
def test_normalise_exact_is_the_four_regular_expressions(raw: str) -> None:
    expected = raw
    for pattern in ex.IGNORED_PATTERNS:
        expected = re.sub(pattern, "", expected)
    assert ex.normalise_exact(raw) == expected.lower()
