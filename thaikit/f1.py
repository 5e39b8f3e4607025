"""Exact match, F1 and word recall of answers against references, by every rule that tools apply to Thai.

Thai is written without spaces, so what a "word" is decides the score: one answer gets a different F1 from each tool.
The rules are compared by name, each with a signature. All scores lie in 0..1. A fault in the data is a ValueError.
"""

import functools
import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from thaikit import text

HEADLINE = "wangchanx"
Segment = Callable[[str], Sequence[str]]

_ASCII_OUT = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@dataclass
class Segmenter:
    """PyThaiNLP's tokens of a string, white space kept, each distinct string segmented once."""

    engine: str = "newmm"
    known: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def __call__(self, s: str) -> tuple[str, ...]:
        """The tokens; joined, they are the string again."""
        if s not in self.known:
            # Words repeat from text to text: interned, a hundred thousand answers fit in memory.
            self.known[s] = tuple(map(sys.intern, text.tokens(s, engine=self.engine)))
        return self.known[s]

    def count(self, s: str) -> int:
        """The number of words, white space not counted."""
        return sum(1 for token in self(s) if token.strip())


@dataclass(frozen=True)
class Rule:
    """How a text becomes the tokens that are compared.

    `as_sets` compares distinct tokens, else each counts as often as it stands there. `ordered`: an exact match has the
    tokens in one order. `bare` is the F1 that the tool gives where answer and reference both lose every token. `steps`
    are the signature's words, in order.
    """

    name: str
    tokens: Callable[[str, Segment], Sequence[str]]
    steps: str
    used_by: str
    segments: bool = True
    as_sets: bool = False
    ordered: bool = True
    bare: float = 0.0


@dataclass(frozen=True, slots=True)
class Score:
    """One answer under one rule: exact match, F1 and recall in 0..1, each of the reference that serves it best.
    `bare` says that no reference has a token left under the rule, so that F1 cannot tell answers apart."""

    em: float
    f1: float
    recall: float
    bare: bool = False


def _squad(s: str, segment: Segment) -> list[str]:
    return _ARTICLES.sub(" ", s.lower().translate(_ASCII_OUT)).split()


def _squad_keeping_articles(s: str, segment: Segment) -> list[str]:
    return s.lower().translate(_ASCII_OUT).split()


def _wangchanx(s: str, segment: Segment) -> list[str]:
    return _squad(" ".join(segment(s)), segment)


def _seahelm(s: str, segment: Segment) -> list[str]:
    return _squad_keeping_articles(" ".join(segment(s)), segment)


def _helm(s: str, segment: Segment) -> Sequence[str]:
    return segment(s.lower().translate(_ASCII_OUT))


def _lighteval(s: str, segment: Segment) -> list[str]:
    return " ".join(segment(s.translate(_unicode_out()).lower())).split()


def _inspect(s: str, segment: Segment) -> list[str]:
    parts = (_inspect_number(part.casefold()) for part in re.split("[ -]", s))
    return [word for part in parts for word in _ARTICLES.sub(" ", part).split()]


def _inspect_number(part: str) -> str:
    """A part without ASCII punctuation; one that reads as a number is written as a float, its point kept."""
    number = _float(part)
    if number is None:
        part = part.translate(_ASCII_OUT)
        number = _float(part)
    return part if number is None else str(number)


def _float(part: str) -> float | None:
    try:
        return float(part)
    except ValueError:
        return None


def _characters(s: str, segment: Segment) -> list[str]:
    return list("".join(s.lower().translate(_ASCII_OUT).split()))


@functools.cache
def _unicode_out() -> dict[int, None]:
    """Every code point of a punctuation category (P*), to be taken out."""
    return {point: None for point in range(sys.maxunicode + 1) if unicodedata.category(chr(point)).startswith("P")}


_HARNESS = "lm-evaluation-harness 0.4.13, tasks/xquad"
_RULES = (
    Rule("whitespace", _squad, "lower>ascii_punctuation>articles>split", _HARNESS, segments=False, bare=1.0),
    Rule("whitespace-articles", _squad_keeping_articles, "lower>ascii_punctuation>split",
         "the rule above without its article step", segments=False, bare=1.0),
    Rule("wangchanx", _wangchanx, "words>lower>ascii_punctuation>articles>split",
         "WangchanX-Eval, the WangchanLion paper's Table 2"),
    Rule("newmm-seahelm", _seahelm, "words>lower>ascii_punctuation>split", "SEA-HELM"),
    Rule("helm", _helm, "lower>ascii_punctuation>words+space", "HELM's port of SEA-HELM"),
    Rule("lighteval", _lighteval, "unicode_punctuation>lower>words>split", "lighteval", as_sets=True),
    Rule("inspect", _inspect, "split:space,hyphen>casefold>ascii_punctuation>numbers>articles>split", "Inspect",
         segments=False, as_sets=True, ordered=False, bare=1.0),
    Rule("characters", _characters, "lower>ascii_punctuation>characters", "for reference", segments=False, bare=1.0),
)  # fmt: skip
RULES: Mapping[str, Rule] = {rule.name: rule for rule in _RULES}
UNSEGMENTED = tuple(rule.name for rule in _RULES if not rule.segments)


def signature(rule: str, *, engine: str = "newmm", steps: Sequence[str] = ()) -> str:
    """The line to print beside a score: rule, its steps, how tokens and references are compared, the normalisation,
    then engine, PyThaiNLP version and dictionary, which the words per answer depend on under every rule."""
    one = _rule(rule)
    told = [f"f1|rule:{rule}", one.steps, "sets" if one.as_sets else "bags", "references:best", f"bare:{one.bare:g}"]
    if rule == "lighteval":
        told.append(f"unicode:{unicodedata.unidata_version}")
    told.append("normalise:" + (",".join(step for step in text.NORMALISE if step in steps) or "none"))
    return "|".join([*told, text.words_signature(engine), "version:1"])


def score(answer: str, references: Sequence[str], *, rule: str = HEADLINE, segment: Segment | None = None) -> Score:
    """One answer against its references under a rule, best reference counting.

    An empty answer scores 0. ValueError for a text that is no string, for no reference and for a blank one.
    """
    return score_all([answer], [references], rules=[rule], segment=segment)[rule][0]


def score_all(
    answers: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    rules: Sequence[str] = tuple(RULES),
    segment: Segment | None = None,
    steps: Sequence[str] = (),
) -> dict[str, list[Score]]:
    """Rule → a Score for each answer, in order; `references[i]` are those of answer i.

    `steps` (of `text.NORMALISE`) are taken on answers and references first; none for parity with the tools. Pass one
    `Segmenter` to several calls and no text is segmented twice. Faults as in `score`.
    """
    check(answers, references)
    if steps:
        answers = [text.normalise(answer, steps=steps) for answer in answers]
        references = [[text.normalise(one, steps=steps) for one in some] for some in references]
    cut = segment or Segmenter()
    return {name: _scores(_rule(name), answers, references, cut) for name in rules}


def _scores(rule: Rule, answers: Sequence[str], references: Sequence[Sequence[str]], cut: Segment) -> list[Score]:
    """The scores under one rule; a reference that many items share is taken apart once."""
    known: dict[str, tuple[Sequence[str], Counter[str]]] = {}
    found = []
    for answer, some in zip(answers, references, strict=True):
        for one in some:
            if one not in known:
                known[one] = _bag(rule, one, cut)
        found.append(_best(rule, _bag(rule, answer, cut), [known[one] for one in some]))
    return found


def _bag(rule: Rule, s: str, cut: Segment) -> tuple[Sequence[str], Counter[str]]:
    """A text's tokens, in order where order counts for exact match, and how often each counts."""
    tokens = list(rule.tokens(s, cut))
    bag = Counter(dict.fromkeys(tokens, 1) if rule.as_sets else tokens)
    return (tokens if rule.ordered else sorted(bag)), bag


def _best(
    rule: Rule,
    answer: tuple[Sequence[str], Counter[str]],
    references: Sequence[tuple[Sequence[str], Counter[str]]],
) -> Score:
    """The best exact match, F1 and recall over the references."""
    em = f1 = recall = 0.0
    bare = True
    tokens, bag = answer
    size = bag.total()
    for other_tokens, other in references:
        wanted = other.total()
        bare = bare and not wanted
        same = tokens == other_tokens
        em = max(em, float(same))
        if not wanted or not size:
            f1 = max(f1, rule.bare if not wanted and not size else 0.0)
            recall = max(recall, float(same))
            continue
        shared = sum(min(count, other[token]) for token, count in bag.items() if token in other)
        f1 = max(f1, 2 * shared / (size + wanted))
        recall = max(recall, shared / wanted)
    return Score(em, f1, recall, bare)


def check(answers: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """ValueError where lengths differ, a text is no string (308, NaN, None), or a reference is missing or blank."""
    if len(answers) != len(references):
        raise ValueError(f"f1: {len(answers)} answers and {len(references)} lists of references; they must pair up.")
    for place, (answer, some) in enumerate(zip(answers, references, strict=True)):
        if isinstance(some, str):
            raise ValueError(f"f1, item {place}: references is a string; pass a list of them.")
        for value in (answer, *some):
            if not isinstance(value, str):
                told = f"{value!r:.80} is a {type(value).__name__}"
                raise ValueError(f"f1, item {place}: {told}; read every text column as str.")
        if not some or not all(map(str.strip, some)):
            raise ValueError(f"f1, item {place}: {'a blank' if some else 'no'} reference; give at least one with text.")


def word_counts(answers: Sequence[str], *, segment: Segmenter | None = None) -> list[int]:
    """The number of words of each answer, white space not counted (WangchanLion paper, Table 5, "Num Tokens")."""
    cut = segment or Segmenter()
    return [cut.count(answer) for answer in answers]


def step_effects(
    answers: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    rule: str = HEADLINE,
    steps: Sequence[str] = tuple(text.NORMALISE),
    segment: Segment | None = None,
) -> list[dict[str, float | int | str]]:
    """What each step of the normalisation does to the mean score under a rule: a row "none", then one a step.

    A row has `step`, `told`, `texts` (answers and references that the step alone changes), `items` (those whose F1 it
    changes alone), `f1_alone`, `f1_so_far` (this and all steps before it) and `em_so_far`; scores are means in 0..1.
    """
    cut = segment or Segmenter()
    texts = [*answers, *(one for some in references for one in some)]

    def means(taken: Sequence[str]) -> tuple[list[float], float, float]:
        scores = score_all(answers, references, rules=[rule], segment=cut, steps=taken)[rule]
        n = len(scores) or 1
        f1s = [one.f1 for one in scores]
        return f1s, sum(f1s) / n, sum(one.em for one in scores) / n

    plain, f1, em = means(())
    rows = [{"step": "none", "told": "the texts as they are", "texts": 0, "items": 0,
             "f1_alone": f1, "f1_so_far": f1, "em_so_far": em}]  # fmt: skip
    order = [step for step in text.NORMALISE if step in steps]
    for place, step in enumerate(order):
        alone, f1, _ = means([step])
        _, so_far, em = means(order[: place + 1])
        touched = sum(text.normalise(one, steps=[step]) != one for one in texts)
        moved = sum(a != b for a, b in zip(plain, alone, strict=True))
        rows.append({"step": step, "told": text.NORMALISE_TOLD[step], "texts": touched, "items": moved,
                     "f1_alone": f1, "f1_so_far": so_far, "em_so_far": em})  # fmt: skip
    return rows


def _rule(name: str) -> Rule:
    if name not in RULES:
        raise ValueError(f"f1: no rule {name!r}; there are {', '.join(RULES)}.")
    return RULES[name]
