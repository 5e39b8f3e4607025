r"""Reading a number out of a completion: the old and the new GSM8K rules, and one rule made for Thai.

Every function takes a completion already cut with `cut_at_stops` and returns the answer, or None when there is none.
The regular expressions of GSM8K are protocol constants (lm-evaluation-harness, tasks/gsm8k): they say [0-9], which
does not match Thai digits, while `\d` and `int` do.
"""

import re
from collections.abc import Sequence

from thaikit.text import thai_digits_to_arabic

INVALID = "[invalid]"
# Both lists are followed by the model's end-of-text string, which the caller appends.
STOPS_V1 = (":", "Question:", "Question")
STOPS_HARNESS = ("Question:", "</s>", "<|im_end|>")

STRICT_PATTERN = r"#### (\-?[0-9\.\,]+)"
FLEXIBLE_PATTERN = r"(-?[$0-9.,]{2,})|(-?[0-9]+)"
MGSM_TH_PATTERN = r"คำตอบคือ (\-?[0-9\.\,]+)"
BARE_NUMBER_PATTERN = r"^\s*(\-?[0-9\.\,]+)\s*$"
_UP_TO_MARK = r"(?s).*#### "
IGNORED_PATTERNS = (",", r"\$", _UP_TO_MARK, r"\.$")

# A minus sign after a letter or digit is a hyphen (โควิด-19, 100-28); a point after a letter is an abbreviation
# (พ.ศ.2566); a comma belongs to the number only where it parts thousands.
_NUMBER = (
    r"(?:(?<![0-9A-Za-z\u0e00-\u0e7f])-)?"
    r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|(?<![0-9A-Za-z\u0e00-\u0e7f.])\.[0-9]+)"
)
_MARKERS = ("####", "คำตอบคือ", "ตอบ", "answer is")
_READABLE = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")


def cut_at_stops(text: str, stops: Sequence[str]) -> str:
    """The text before the stop strings: for each stop in list order, what precedes its first occurrence; not stripped.

    An empty stop cuts nothing, as in the harness. ValueError when `stops` is one string and not a list of them.
    """
    if isinstance(stops, str):
        raise ValueError(f"cut_at_stops: stops is the string {stops!r}; pass a list of strings.")
    for stop in stops:
        if stop:
            text = text.split(stop)[0]
    return text


def normalise_exact(text: str) -> str:
    """The text after the four ordered deletions of exact match and lower-casing, for completions and references alike.

    Deleted in this order: every comma, every dollar sign, everything up to and including the last "#### ", one final
    full stop. Not idempotent ("72.." becomes "72." and then "72"): apply it once.
    Source: lm-evaluation-harness 0.4.13, tasks/gsm8k/gsm8k.yaml and api/metrics.py.
    """
    for pattern in IGNORED_PATTERNS:
        # The same deletion in linear time: re.sub takes minutes on a long text without the mark.
        text = text.rsplit("#### ", 1)[-1] if pattern == _UP_TO_MARK else re.sub(pattern, "", text)
    return text.lower()


def gsm8k_v1(text: str) -> str | None:
    """The first number after "#### " by the harness's first GSM8K rule, commas deleted, or None.

    A final full stop stays in the answer ("#### 72." gives "72."), so it differs from the reference.
    """
    match = re.search(STRICT_PATTERN, text)
    return None if match is None else match.group(1).strip().replace(",", "")


def strict(text: str, *, pattern: str = STRICT_PATTERN, normalise: bool = True) -> str | None:
    """The first match's group 1 under `pattern`, or None; the harness's strict-match filter.

    Normalised once (do not normalise again) unless `normalise` is False, which gives the filter's raw text.
    """
    found = re.findall(pattern, text)
    return _pick(found[0], normalise=normalise) if found else None


def flexible(text: str, *, pattern: str = FLEXIBLE_PATTERN, normalise: bool = True) -> str | None:
    """The last match's non-empty group under `pattern`, or None; the harness's flexible-extract filter.

    An ellipsis is a match: "72 ... end" gives "..". Normalised once unless `normalise` is False.
    """
    found = re.findall(pattern, text)
    return _pick(found[-1], normalise=normalise) if found else None


def _pick(match: str | tuple[str, ...], *, normalise: bool) -> str | None:
    """One findall match as text: of several groups the first non-empty one."""
    if isinstance(match, tuple):
        match = next((group for group in match if group), "")
        if not match:
            return None
    return normalise_exact(match.strip()) if normalise else match.strip()


def em_thai(text: str) -> str | None:
    """The number a Thai reader would take as the answer, as a plain decimal ("72", "-5", "72.5"), or None.

    Thai digits count; ฿, $, บาท and spaces around a number do not. Looked for in this order: after "####", after
    คำตอบคือ, after ตอบ, after "answer is" (each: a number right behind the marker, otherwise the first number after its
    first occurrence), and then the last number of the text. Number words are not read. Compare with `same_number`.
    Never to be mixed with `strict`.
    """
    text = thai_digits_to_arabic(text).replace("＃", "#").replace("\u2212", "-")
    text = re.sub("฿|\\$|บาท", " ", text)
    for marker in _MARKERS:
        found = _after(marker, text)
        if found is not None:
            return _plain(found)
    numbers = re.findall(_NUMBER, text)
    return _plain(numbers[-1]) if numbers else None


def _after(marker: str, text: str) -> str | None:
    """The number that follows a marker, or None when the marker or a number after it is missing."""
    # Right behind it first: "#### Step 1" as a heading must not beat a later "#### 72".
    near = re.search(rf"(?i){marker}[\s:=*]{{0,20}}(-?)\s{{0,9}}({_NUMBER})", text)
    if near:
        return near.group(1) + near.group(2).lstrip("-")
    start = re.search(f"(?i){marker}", text)
    later = re.search(_NUMBER, text[start.end() :]) if start else None
    return later.group() if later else None


def _plain(number: str) -> str:
    """A matched number without thousands commas, leading zeros and trailing zeros of the fraction."""
    sign = "-" if number.startswith("-") else ""
    whole, _, fraction = number.lstrip("-+").replace(",", "").partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    value = f"{whole}.{fraction}" if fraction else whole
    return value if value == "0" else sign + value


def same_number(a: str | None, b: str | None) -> bool:
    """Whether both are readable decimals of equal value (72, 72.0, 1,234 and ๗๒ are readable); None equals nothing."""
    left, right = (_readable(s) for s in (a, b))
    return left is not None and left == right


def _readable(s: str | None) -> str | None:
    if s is None:
        return None
    s = thai_digits_to_arabic(s).strip().replace(",", "")
    return _plain(s) if _READABLE.fullmatch(s) else None


def gold_number(answer: str, pattern: str = STRICT_PATTERN) -> str:
    """The reference's number: group 1 of `pattern` in the answer, commas and one final full stop deleted.

    Thai digits are written as Arabic ones if the pattern lets them through. ValueError when nothing matches, when what
    matches is no number, or when the matches are different numbers.
    """
    found = {thai_digits_to_arabic(m.group(1)).replace(",", "").removesuffix(".") for m in re.finditer(pattern, answer)}
    shown = answer if len(answer) <= 80 else "…" + answer[-80:]
    if not found:
        raise ValueError(f"reference {shown!r}: no number under the pattern {pattern!r}; mend the row or the pattern.")
    unreadable = [number for number in found if _readable(number) is None]
    if unreadable:
        raise ValueError(f"reference {shown!r}: {unreadable[0]!r} under the pattern {pattern!r} is no number; mend it.")
    if len({_readable(number) for number in found}) > 1:
        raise ValueError(
            f"reference {shown!r}: {len(found)} different numbers under the pattern {pattern!r}; keep one in the row."
        )
    return min(found)
