"""A judge's prompt and its reply as text: placeholders filled in one pass, score and explanation read by a named rule.

The answer that is judged is data: it is never looked at when the judge's reply is read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

# The ThaiCLI paper's pattern, Figure 6, as printed. `find` below takes what its first match takes, in linear time: the
# pattern itself backtracks for hours on a reply of many opened and never closed tags.
PAPER_PATTERN = r"<score>([1-9]|10)</score>[\s\S]*?<explanation>([\s\S]*?)</explanation>"
SCORE = re.compile(r"<score>([1-9]|10)</score>")
TAGS = ("model_answer", "question", "good_answer", "bad_answer", "score", "explanation")  # of the prompt, Figure 5
_OUR_TAG = re.compile(rf"<(\s*/?\s*(?:{'|'.join(TAGS)})\b[^<>]{{0,80}})>", re.IGNORECASE)
_OPENS = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_CLOSES = re.compile(r"</think(?:ing)?>", re.IGNORECASE)

WITHOUT_VERDICT = ("unreadable", "truncated", "refused")  # a reply came and holds none: asked again, then zero

# rule → what is done to a reply before the paper's pattern is sought in it
RULES = {
    "paper": "the paper's pattern on the reply as it came, first match, also inside a finished thought block",
    "after-thought": "finished thought blocks before the reply are taken off, then the paper's pattern, first match",
    "open-tag": "finished thought blocks before the reply are taken off, the prompt's own opening <score> is put "
    "before the rest, then the paper's pattern, first match",
}
VARIANTS = {
    "": "the answer stands in the prompt as it is",
    "neutralise": "the prompt's own tags inside the answer are escaped (< and > become &lt; and &gt;)",
}


@dataclass(frozen=True)
class Verdict:
    """What a rule read from a reply: a score from 1 to 10 with its explanation, or None and "". `score_tags` counts
    well-formed score tags in the reply (two or more: the judge said more than one), `thinking` tells that a thought
    block never ends."""

    score: int | None
    explanation: str
    score_tags: int
    thinking: bool


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with each {NAME} of `values` replaced, all in one pass: what a value holds stays as it is.

    ValueError where a name has no place in the template, so that nothing is silently left out.
    """
    missing = [name for name in values if "{" + name + "}" not in template]
    if missing:
        raise ValueError(f"fill: the prompt has no place {{{missing[0]}}}; it needs {', '.join(values)}.")
    pattern = "|".join(re.escape("{" + name + "}") for name in values)
    return re.sub(pattern, lambda found: values[found[0][1:-1]], template) if values else template


def count_tags(text: str) -> int:
    """How many of the prompt's own tags a text holds, opening or closing, in any case."""
    return len(_OUR_TAG.findall(text))


def neutralised(text: str) -> str:
    """The text with the prompt's own tags escaped, everything else as it is."""
    return _OUR_TAG.sub(lambda found: f"&lt;{found[1]}&gt;", text)


def read(text: str, *, rule: str) -> Verdict:
    """Score and explanation of a judge's reply by one of `RULES`; ValueError for another rule.

    A reply whose thought block never ends has no verdict under any rule: what stands in it is not yet said.
    """
    if rule not in RULES:
        raise ValueError(f"read: rule is {rule!r}; choose {', '.join(RULES)}.")
    rest, thinking = without_thoughts(text)
    seen = {"paper": text, "after-thought": rest, "open-tag": "<score>" + rest}[rule]
    score, explanation = (None, "") if thinking else find(seen)
    return Verdict(score, explanation, len(SCORE.findall(text)), thinking)


def find(text: str) -> tuple[int | None, str]:
    """(score, explanation) of the first match of `PAPER_PATTERN`, (None, "") without one."""
    score = SCORE.search(text)
    begin = text.find("<explanation>", score.end()) if score else -1
    end = text.find("</explanation>", begin + len("<explanation>")) if begin >= 0 else -1
    if score is None or end < 0:
        return None, ""
    return int(score[1]), text[begin + len("<explanation>") : end]


def without_thoughts(text: str) -> tuple[str, bool]:
    """(the text after the thought blocks that it begins with, whether such a block never ends).

    A block opens with <think> or <thinking> at the very start, white space aside, and ends at the first closing tag.
    Without an opening one, the last closing tag ends a block that the model's template opened. A tag that is only
    quoted further down opens nothing.
    """
    opened = _OPENS.match(text)
    if opened is None:
        ends = list(_CLOSES.finditer(text))
        return (text[ends[-1].end() :] if ends else text), False
    while opened:
        closed = _CLOSES.search(text, opened.end())
        if closed is None:
            return "", True
        text = text[closed.end() :]
        opened = _OPENS.match(text)
    return text, False
