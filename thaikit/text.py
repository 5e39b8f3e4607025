"""Pure functions on Thai strings: benchmark preprocessing, folding, word lists and an audit of what hides in a string.

Nothing here is applied to benchmark text unless a caller says so: a different byte is a different benchmark.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

TITLE_MARKS = (" [title]",)
# The shapes the tag takes in machine-translated HellaSwag files (listed in lighteval's Thai HellaSwag).
TRANSLATED_TITLE_MARKS = (" [ชื่อ]", " [ส่วนหัว]", " [ขั้นตอน]", " [header]", " [Header]")
KNOWN_TAGS = frozenset(
    ("[title]", "[step]", "[substeps]", *(mark.strip() for mark in TRANSLATED_TITLE_MARKS)),
)

# The protocol says \[.*?\], which does not cross a newline. Taking an unclosed bracket as far as its line goes,
# and leaving it as it is, comes to the same and stays linear on a long run of "[".
_BRACKETED = re.compile(r"\[[^\]\n]*\]?")
_THAI_TO_ARABIC = str.maketrans("๐๑๒๓๔๕๖๗๘๙", "0123456789")
_DECOMPOSED_SARA_AM = re.compile("\u0e4d([\u0e48-\u0e4b]?)\u0e32")
_MARK_RUN = re.compile("[\u0e31\u0e33-\u0e3a\u0e47-\u0e4e]{2,}")
_THAI_DIGIT = re.compile("[๐-๙]")
_ARABIC_DIGIT = re.compile("[0-9]")  # never \d, which takes Thai digits too
_ZERO_WIDTH = re.compile("[\u200b-\u200f\u2060\ufeff]")
# A run of marks is tried from its beginning only: from every mark of it, the time would grow by its square.
_MARK_ORDER = re.compile(
    "(?<![\u0e48-\u0e4c])([\u0e48-\u0e4c]+)([\u0e31\u0e34-\u0e3a\u0e47]+)|\u0e33([\u0e48-\u0e4b]+)"
)
_SAME_MARK = re.compile("([\u0e31\u0e34-\u0e3a\u0e47-\u0e4e])\\1+")
_LONG_NUMBER = re.compile(r"(\d{500,})")  # the time PyThaiNLP takes for a run of digits grows by its square
_TONES = frozenset("\u0e48\u0e49\u0e4a\u0e4b")
_VOWELS = frozenset("\u0e31\u0e34\u0e35\u0e36\u0e37\u0e38\u0e39")


def preprocess_hellaswag(s: str, *, title_marks: tuple[str, ...] = TITLE_MARKS) -> str:
    """The string after HellaSwag's four steps: strip, title mark to full stop, brackets out, one pass of pair-merging.

    Three spaces become two and five become three, because each pair is merged once. A space may be left at either end,
    because stripping comes first; the result may be empty, which the caller has to refuse.
    Source: lm-evaluation-harness 0.4.13, tasks/hellaswag/utils.py.
    """
    s = s.strip()
    for mark in title_marks:
        s = s.replace(mark, ". ")
    return _BRACKETED.sub(lambda m: "" if m[0].endswith("]") else m[0], s).replace("  ", " ")


def capitalise(s: str, *, mode: Literal["v1", "thai-h6"]) -> str:
    """The string with its first letter in upper case.

    "v1" is `str.capitalize`, which also lower-cases everything after the first letter (iPhone becomes iphone);
    "thai-h6" touches a leading Latin letter only and never lower-cases anything. ValueError for another mode.
    """
    if mode == "v1":
        return s.capitalize()
    if mode != "thai-h6":
        raise ValueError(f"capitalise: mode is {mode!r}; choose 'v1' or 'thai-h6'.")
    if s and unicodedata.name(s[0], "").startswith("LATIN SMALL"):
        return s[0].title() + s[1:]
    return s


def thai_digits_to_arabic(s: str) -> str:
    """The string with ๐ to ๙ written 0 to 9; its length and everything else stay as they are."""
    return s.translate(_THAI_TO_ARABIC)


def fold_sara_am(s: str) -> str:
    """The string with every decomposed sara am (U+0E4D, perhaps a tone mark, U+0E32) written as [tone] U+0E33.

    The two spellings look alike and differ in code points. NFC keeps them apart and NFKC decomposes both; this folds
    to the spelling people type, and also the order NFKC leaves behind (tone, U+0E4D, U+0E32).
    """
    return _DECOMPOSED_SARA_AM.sub("\\1\u0e33", s)


# The steps by which two spellings that look alike become one, in the order in which they are taken.
NORMALISE: Mapping[str, Callable[[str], str]] = {
    "nfc": lambda s: unicodedata.normalize("NFC", s),
    "zero_width": lambda s: _ZERO_WIDTH.sub("", s),
    "spaces": lambda s: " ".join(s.split()),
    "sara_am": fold_sara_am,
    "sara_ae": lambda s: s.replace("\u0e40\u0e40", "\u0e41"),
    "mark_order": lambda s: _MARK_ORDER.sub(lambda m: m[3] + "\u0e33" if m[3] else m[2] + m[1], s),
    "doubled_marks": lambda s: _SAME_MARK.sub(r"\1", s),
    "digits": thai_digits_to_arabic,
}
NORMALISE_TOLD: Mapping[str, str] = {
    "nfc": "Unicode's canonical composition and order",
    "zero_width": "U+200B to U+200F, U+2060 and U+FEFF out",
    "spaces": "every run of white space one space, none at the ends",
    "sara_am": "sara am in two code points as U+0E33",
    "sara_ae": "two sara e as sara ae",
    "mark_order": "a vowel mark before its tone mark, a tone mark before sara am",
    "doubled_marks": "a mark typed twice in a row once",
    "digits": "Thai digits as 0 to 9",
}


def normalise(s: str, *, steps: Sequence[str] = tuple(NORMALISE)) -> str:
    """The string after the named steps of `NORMALISE`, taken in that table's order; ValueError for an unknown step."""
    unknown = [step for step in steps if step not in NORMALISE]
    if unknown:
        raise ValueError(f"normalise: no step {unknown[0]!r}; there are {', '.join(NORMALISE)}.")
    for name, step in NORMALISE.items():
        s = step(s) if name in steps else s
    return s


def audit(s: str) -> dict[str, int]:
    """How often each invisible or look-alike fault occurs in the string; every key is always present.

    sara_am_decomposed, doubled_marks (clusters with two marks of one kind), zero_width_space (U+200B), bom (U+FEFF),
    no_break_space (U+00A0), left_to_right_mark (U+200E), double_sara_e (U+0E40 twice, which looks like U+0E41) are
    counts; leading_space and trailing_space are numbers of characters `str.strip` would remove (it leaves U+200B and
    U+FEFF); mixed_digits is 1 when Thai and Arabic digits stand in one string.
    """
    rest = s.lstrip()
    return {
        "sara_am_decomposed": len(_DECOMPOSED_SARA_AM.findall(s)),
        "doubled_marks": sum(_doubled(run) for run in _MARK_RUN.findall(s)),
        "zero_width_space": s.count("\u200b"),
        "bom": s.count("\ufeff"),
        "no_break_space": s.count("\u00a0"),
        "left_to_right_mark": s.count("\u200e"),
        "mixed_digits": int(bool(_THAI_DIGIT.search(s) and _ARABIC_DIGIT.search(s))),
        "double_sara_e": s.count("\u0e40\u0e40"),
        "leading_space": len(s) - len(rest),
        "trailing_space": len(rest) - len(rest.rstrip()),
    }


def _doubled(run: str) -> bool:
    """Whether one cluster's marks hold two of one kind; sara am brings a nikhahit of its own."""
    kinds = ["tone" if c in _TONES else "vowel" if c in _VOWELS else "\u0e4d" if c == "\u0e33" else c for c in run]
    return len(set(kinds)) < len(kinds)


def bracket_contents(s: str) -> list[str]:
    """The bracketed spans HellaSwag's third step would delete, brackets included, in order of appearance."""
    return [span for span in _BRACKETED.findall(s) if span.endswith("]")]


def has_bracket_artefacts(s: str, *, tags: frozenset[str] = KNOWN_TAGS) -> bool:
    """Whether a known left-over tag, such as [title] or its translation, stands in the string."""
    return any(span in tags for span in bracket_contents(s))


def tokens(s: str, *, engine: str = "newmm") -> list[str]:
    """All tokens of a Thai string by PyThaiNLP, white space kept: joined, they are the string again.

    A run of 500 digits or more is one token by itself. ValueError when `s` is no string (PyThaiNLP would give [] for
    None or 308) or the engine is unknown, ImportError when the engine needs a package that is not installed.
    """
    from pythainlp.tokenize import word_tokenize

    if not isinstance(s, str):
        raise ValueError(f"words: {s!r} is a {type(s).__name__}; read every text column as str.")
    parts = _LONG_NUMBER.split(s)  # long numbers stand at the odd places
    made = ([part] if place % 2 else word_tokenize(part, engine=engine) for place, part in enumerate(parts) if part)
    return [token for some in made for token in some]


def words(s: str, *, engine: str = "newmm") -> list[str]:
    """The words of a Thai string by PyThaiNLP, white space dropped; [] for an empty string.

    Faults as in `tokens`. Report `words_signature(engine)` beside what is computed.
    """
    return [word for token in tokens(s, engine=engine) if (word := token.strip(" ")).strip()]


def words_signature(engine: str = "newmm") -> str:
    """The line that pins how words were made: engine, PyThaiNLP version, its own dictionary, white space dropped."""
    from importlib.metadata import version

    return f"words:{engine}|pythainlp:{version('pythainlp')}|dictionary:default|space:dropped"
