"""A judge's reply on the four questions → four verdicts, or why there are none: the kit's rule and the authors'."""

import re
from dataclasses import dataclass

from thaikit.reading import without_thoughts

QUESTIONS = ("q1", "q2", "q3", "q4")
RULES = ("numbered", "authors")

# A number that opens a line, or stands right after a verdict: "1.", "**2.**", "Q3:", "| 4 |", but not "3.5".
_NUMBER = re.compile(
    r"(?:^[^\w\n]*|(?<=gree)[^\w\n]+)(?:Q|Question |Criterion |Criteria )?([0-9]{1,2})[\"'*_ ]*[.):|](?![0-9])",
    re.MULTILINE | re.IGNORECASE,
)
_ASKED = re.compile(
    r"(?:do you )?\b(?:agree\s*(?:or|/)\s*disagree|disagree\s*(?:or|/)\s*agree)\b", re.IGNORECASE
)  # the criterion's own words
_VERDICT = re.compile(r"\b(Agree|AGREE|Disagree|DISAGREE)\b(?! ?\?)")
_ALONE = re.compile(
    r"(?:^|:)[^\w\n]*(agree|disagree)[^\w\n]*$", re.MULTILINE
)  # in lower case where nothing else stands
_DENIED = re.compile(
    r"(?:\b(?:not|cannot|never|hardly|neither|nor|partially|partly|somewhat)|n['’]t)[*_\s]+(?:agree|disagree)\b",
    re.IGNORECASE,
)
_MARK = re.compile('["“«]')
_QUOTED = re.compile(r"\"[^\"]*\"|“[^“”]*”|«[^«»]*»")
_ECHOED = re.compile(rf"(?:prediction|reference) answer\W{{0,9}}(?:{_QUOTED.pattern})", re.IGNORECASE)
_OPENED = re.compile(r"\W*(?:agree|disagree)\b", re.IGNORECASE)  # a quotation that begins with a verdict
_AUTHORS = re.compile(r"Agree|Disagree")


@dataclass(frozen=True)
class Reading:
    """Four verdicts (True for agree), or None and the fault."""

    verdicts: tuple[bool, bool, bool, bool] | None
    fault: str = ""


def read(reply: str, *, rule: str = "numbered") -> Reading:
    """The verdicts of one reply under a rule; ValueError for an unknown rule.

    `numbered`: the reply is cut at its numbers 1 to 4; within each part the criterion's own "Do you agree or disagree?"
    is left out and the verdict is the word Agree or Disagree, in lower case only where it stands alone. A part without
    a verdict, with none but quoted ones ('the answer says "Agree"'), with two different ones, or with a denied or
    halved one ("not Agree") makes the whole reply unreadable.
    `authors`: exactly four case-sensitive Agree or Disagree anywhere, in order (the authors' public code, which asks
    again without limit otherwise). Finished thought blocks in front are left out under both.
    """
    if rule not in RULES:
        raise ValueError(f"verdicts: rule is {rule!r}; choose {' or '.join(RULES)}.")
    text, thinking = without_thoughts(reply)
    if thinking:
        return Reading(None, "a thought block that never ends")
    return _numbered(text) if rule == "numbered" else _authors(text)


def _authors(text: str) -> Reading:
    found = _AUTHORS.findall(text)
    if len(found) != len(QUESTIONS):
        return Reading(None, f"{len(found)} times Agree or Disagree, four are needed")
    return _reading([word == "Agree" for word in found])


def _numbered(text: str) -> Reading:
    marks = list(_NUMBER.finditer(text))
    ends = [*(mark.start() for mark in marks), len(text)][1:]
    parts: dict[int, list[str]] = {}
    for mark, end in zip(marks, ends, strict=True):
        parts.setdefault(int(mark[1]), []).append(text[mark.end() : end])
    verdicts = []
    for number in range(1, len(QUESTIONS) + 1):
        if number not in parts:
            return Reading(None, f"no criterion {number}")
        said = _said("\n".join(parts[number]))
        if len(said) != 1:
            return Reading(None, f"criterion {number} has {'no single verdict' if said else 'no verdict'}")
        verdicts.append(said == {"agree"})
    return _reading(verdicts)


def _said(part: str) -> set[str]:
    """The different verdicts in one criterion's part; both where it denies or halves one, none where all are quoted."""
    rest = _ASKED.sub(" ", part)
    if _DENIED.search(rest) and not _clear(rest):
        return {"agree", "disagree"}
    return _words(rest) if not _MARK.search(rest) or _words(_unquoted(rest)) else set()


def _words(rest: str) -> set[str]:
    return {word.lower() for word in _VERDICT.findall(rest) or _ALONE.findall(rest)}


def _unquoted(rest: str) -> str:
    """A part without what it quotes: the answer's own "Agree" is no verdict. A quotation that opens a line or follows
    a colon or a dash, and begins with a verdict, is the judge's own; with an unpaired mark all stays."""
    rest = _ECHOED.sub(" ", rest)

    def kept(found: re.Match[str]) -> str:
        before = rest[rest.rfind("\n", 0, found.start()) + 1 : found.start()][-40:].rstrip(" *_`([{,")
        own = not re.search(r"\w", before) or before[-1] in ":-–—=|>"
        return found[0] if own and _OPENED.match(found[0]) else " "

    return rest if rest.count('"') % 2 else _QUOTED.sub(kept, rest)


def _clear(rest: str) -> bool:
    """Whether a verdict opens the part or a line, so that a later "does not agree with …" is only its explanation."""
    said = _DENIED.sub(" ", rest)
    opened = re.search(r"^[^\w\n]*(?:verdict|answer)?[^\w\n]*(Agree|AGREE|Disagree|DISAGREE)\b", said, re.MULTILINE)
    return opened is not None


def _reading(verdicts: list[bool]) -> Reading:
    first, second, third, fourth = verdicts
    return Reading((first, second, third, fourth))
