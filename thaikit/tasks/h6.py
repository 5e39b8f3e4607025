"""Thai-H6: ARC, HellaSwag, MMLU, TruthfulQA, Winogrande and GSM8K, from source rows to items.

Prompts and gold as the Open LLM Leaderboard's frozen harness commit has them (Thai-H6 paper, section 3: every set is
evaluated as its English original); each profile's departures stand in `labels.PROFILES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thaikit import ThaikitError, extract, text
from thaikit.params import TaskSpec
from thaikit.tasks.items import Item
from thaikit.tasks.labels import LABELS, LETTERS, Labels, Profile, subject_name
from thaikit.tasks.load import Row, pick, shorten

BLANK_RUN = re.compile(r"_+")
UNSEEN = re.compile("[\u200b-\u200f\u2060\ufeff]")  # zero-width marks, which str.strip leaves
FIELDS: dict[str, dict[str, str | list[str]]] = {
    "arc": {"question": "question", "choices": "choices.text", "labels": "choices.label", "answer": "answerKey"},
    "hellaswag": {
        "activity_label": "activity_label", "ctx_a": "ctx_a", "ctx_b": "ctx_b", "endings": "endings", "label": "label",
    },
    "mmlu": {"question": "question", "choices": "choices", "answer": "answer", "subject": "subject"},
    "truthfulqa": {
        "question": "question", "mc1_choices": "mc1_targets.choices", "mc1_labels": "mc1_targets.labels",
        "mc2_choices": "mc2_targets.choices", "mc2_labels": "mc2_targets.labels",
    },
    "winogrande": {"sentence": "sentence", "option1": "option1", "option2": "option2", "answer": "answer"},
    "gsm8k": {"question": "question", "answer": "answer"},
}  # fmt: skip
METRICS = {
    "arc": "acc_norm", "hellaswag": "acc_norm", "mmlu": "acc", "truthfulqa": "mc2", "winogrande": "acc",
    "gsm8k": "strict", "multiple_choice": "acc", "numeric": "strict",
}  # fmt: skip


def blank(value: str) -> bool:
    """Whether there is nothing to see in a text."""
    return not UNSEEN.sub("", value).strip()


@dataclass(frozen=True)
class Reader:
    """Reads one row's fields through the field map and value maps, and builds its item."""

    spec: TaskSpec
    fields: Mapping[str, str | list[str]]
    profile: Profile
    language: str

    @property
    def labels(self) -> Labels:
        """The words around the content."""
        return LABELS[self.language]

    def get(self, row: Row, field: str) -> Any:
        """A field's value, through its value map where it has one."""
        if not self.fields.get(field):
            raise ThaikitError(f"{row.where(field)}: the field map has no {field!r}, it has {', '.join(self.fields)}")
        value = pick(row, self.fields[field], field)
        table = self.spec.values.get(field)
        if table is None:
            return value
        if str(value) not in table:
            raise ThaikitError(f"{row.where(field)}: found {shorten(value)}; the value map has {', '.join(table)}")
        return table[str(value)]

    def text(self, row: Row, field: str) -> str:
        """A field that must be a string with something to see in it."""
        value = self.get(row, field)
        if not isinstance(value, str) or blank(value):
            raise ThaikitError(f"{row.where(field)}: found {shorten(value)}; a text that is not empty is needed")
        return value

    def texts(self, row: Row, field: str) -> tuple[str, ...]:
        """A field that must be a list of at least two texts, each with something in it."""
        values = self.listed(row, field)
        if len(values) < 2:
            raise ThaikitError(f"{row.where(field)}: found {shorten(values)}; a list of at least two texts is needed")
        for place, value in enumerate(values):
            if not isinstance(value, str) or blank(value):
                told = f"choice {place + 1} is {shorten(value)}; a text that is not empty is needed"
                raise ThaikitError(f"{row.where(field)}: {told}")
        return tuple(values)

    def listed(self, row: Row, field: str) -> list[Any]:
        """A field that must be a list."""
        values = self.get(row, field)
        if not isinstance(values, list | tuple):
            raise ThaikitError(f"{row.where(field)}: found {shorten(values)}; a list is needed")
        return list(values)

    def place(self, row: Row, field: str, allowed: Sequence[str]) -> int:
        """The index of a gold label among those allowed; compared as text, so Thai digits are not mistaken for 1."""
        value = self.get(row, field)
        if isinstance(value, bool) or str(value) not in allowed:
            raise ThaikitError(f"{row.where(field)}: gold is {shorten(value)}; allowed are {', '.join(allowed)}")
        return list(allowed).index(str(value))


def arc(reader: Reader, row: Row) -> dict[str, Any]:
    """ARC: options are not listed in the prompt, the full text of each is scored."""
    question, choices = reader.text(row, "question"), reader.texts(row, "choices")
    labels = [str(label) for label in reader.listed(row, "labels")]
    if len(labels) != len(choices) or len(set(labels)) != len(labels):
        told = f"found {shorten(labels)}; one label is needed for each of {len(choices)} choices"
        raise ThaikitError(f"{row.where('labels')}: {told}")
    gold = reader.place(row, "answer", labels)
    query = f"{reader.labels.question} {question}\n{reader.labels.answer}"
    return {"question": question, "query": query, "choices": choices, "gold": gold}


def hellaswag(reader: Reader, row: Row) -> dict[str, Any]:
    """HellaSwag: activity and context run on into the ending; a merged `ctx` is taken as it stands."""
    marks = tuple(reader.spec.title_marks)
    if "ctx" in reader.fields:
        story = reader.text(row, "ctx")
    else:
        begin, end = reader.get(row, "ctx_a"), reader.get(row, "ctx_b")
        if not isinstance(begin, str) or not isinstance(end, str) or not (begin + end).strip():
            told = f"found {shorten(begin)} and ctx_b {shorten(end)}; two texts are needed, not both empty"
            raise ThaikitError(f"{row.where('ctx_a')}: {told}")
        story = begin + " " + text.capitalise(end, mode=reader.profile.capitalise)
    query = text.preprocess_hellaswag(reader.text(row, "activity_label") + ": " + story, title_marks=marks)
    endings = tuple(text.preprocess_hellaswag(e, title_marks=marks) for e in reader.texts(row, "endings"))
    for place, ending in enumerate(endings):
        if blank(ending):
            told = f"ending {place + 1} is empty once brackets are removed; mend the row"
            raise ThaikitError(f"{row.where('endings')}: {told}")
    gold = reader.place(row, "label", [str(n) for n in range(len(endings))])
    return {"question": query, "query": query, "choices": endings, "gold": gold}


def mmlu(reader: Reader, row: Row) -> dict[str, Any]:
    """MMLU: the four choices are listed, the letters are scored."""
    question, choices = reader.text(row, "question"), reader.texts(row, "choices")
    if len(choices) != 4:
        raise ThaikitError(f"{row.where('choices')}: found {len(choices)} choices; MMLU has exactly 4")
    answer = reader.get(row, "answer")
    allowed = LETTERS[:4] if isinstance(answer, str) and answer in LETTERS[:4] else ("0", "1", "2", "3")
    gold = reader.place(row, "answer", allowed)
    listed = "".join(f"{letter}. {choice}\n" for letter, choice in zip(LETTERS, choices, strict=False))
    subject = subject_of(reader, row)
    if not subject:
        told = "no subject; name a field, or put {subject} into the file pattern"
        raise ThaikitError(f"{row.where('subject')}: {told}")
    header = reader.labels.mmlu_header.format(subject=subject_name(subject, reader.language))
    return {
        "question": question, "query": f"{question.strip()}\n{listed}{reader.labels.answer}", "choices": LETTERS[:4],
        "gold": gold, "description": header, "subject": subject, "shown": choices,
    }  # fmt: skip


def truthfulqa(reader: Reader, row: Row) -> dict[str, Any]:
    """TruthfulQA: mc1 and mc2 in one item, mc1's choices first; the preamble is part of the query."""
    question = reader.text(row, "question")
    sets = [((), (1,))] if not reader.fields["mc1_choices"] else []  # a source without mc1
    for part in ("mc1", "mc2")[len(sets) :]:
        choices, labels = reader.texts(row, f"{part}_choices"), reader.listed(row, f"{part}_labels")
        if len(labels) != len(choices) or not all(n in labels for n in (0, 1)) or any(n not in (0, 1) for n in labels):
            told = f"found {shorten(labels)}; 0 and 1, one for each choice, both present, are needed"
            raise ThaikitError(f"{row.where(f'{part}_labels')}: {told}")
        sets.append((choices, tuple(labels)))
    (first, mc1), (second, mc2) = sets
    if mc1[0] != 1 or sum(mc1) != 1:
        raise ThaikitError(f"{row.where('mc1_labels')}: found {list(mc1)}; exactly the first choice of mc1 is true")
    query = f"{reader.labels.preamble}\n\n{reader.labels.q} {question}\n{reader.labels.a}"
    item = {"question": question, "query": query, "choices": first + second, "gold": 0}
    return {**item, "labels": mc2, "first": len(first)}


def winogrande(reader: Reader, row: Row) -> dict[str, Any]:
    """Winogrande, partial evaluation: the contexts differ by the option, the tail after the blank is scored."""
    sentence = reader.text(row, "sentence")
    options = (reader.text(row, "option1"), reader.text(row, "option2"))
    gold = reader.place(row, "answer", ("1", "2"))
    if reader.profile.blank == "run":
        sentence = BLANK_RUN.sub("_", sentence.replace("＿", "_"), count=1)
    head, blank, tail = sentence.partition("_")
    if not blank:
        raise ThaikitError(f"{row.where('sentence')}: no blank; the sentence needs one '_'")
    item = {"question": sentence, "choices": options, "gold": gold, "queries": tuple(head + o for o in options)}
    if not tail.strip():
        return {**item, **empty_tail(reader, row, head, options, gold)}
    return {**item, "continuations": (tail.strip(),) * 2, "example_query": head + options[gold], "answer": tail.strip()}


def empty_tail(reader: Reader, row: Row, head: str, options: Sequence[str], gold: int) -> dict[str, Any]:
    """A blank at the end leaves nothing to score: stop, skip, or score the option after the head (`empty_tail`)."""
    if reader.spec.empty_tail == "error" or not head.strip():
        raise ThaikitError(
            f"{row.where('sentence')}: nothing follows the blank, so nothing can be scored; "
            "set empty_tail to 'sentence' (score the option after the head) or 'skip'"
        )
    if reader.spec.empty_tail == "skip":
        return {"skip": True}
    return {"queries": (head,), "continuations": tuple(options), "example_query": head, "answer": options[gold]}


def gsm8k(reader: Reader, row: Row) -> dict[str, Any]:
    """GSM8K: generation; the gold is the whole answer and must yield a number under the gold pattern."""
    question, answer = reader.text(row, "question"), reader.text(row, "answer")
    number = number_of(reader, row, "answer", answer, extract.STRICT_PATTERN)
    reference = number if reader.spec.gold_pattern else answer
    told = extract.normalise_exact(reference)
    if not reader.spec.gold_pattern and extract.strict(answer) != told:
        raise ThaikitError(
            f"{row.where('answer')}: after '#### ' stands {shorten(told)}, which no answer can equal; "
            "leave the number alone there, or set gold_pattern"
        )
    query = f"{reader.labels.question} {question}\n{reader.labels.answer}"
    return {"question": question, "query": query, "answer": answer, "reference": reference}


def number_of(reader: Reader, row: Row, field: str, gold: str, pattern: str) -> str:
    """The reference's number under `gold_pattern` (or `pattern`); ThaikitError with file, row and field where none."""
    try:
        return extract.gold_number(gold, reader.spec.gold_pattern or pattern)
    except ValueError as error:
        raise ThaikitError(f"{row.where(field)}: {error}") from error


def subject_of(reader: Reader, row: Row) -> str:
    """The row's subject: read off its path, or its field, or none."""
    if row.subject or "subject" not in reader.fields:
        return row.subject
    path = reader.fields["subject"]
    there = isinstance(path, str) and path.split(".")[0] in row.data
    return reader.text(row, "subject") if there else ""


BUILDERS: dict[str, Callable[[Reader, Row], dict[str, Any]]] = {
    "arc": arc, "hellaswag": hellaswag, "mmlu": mmlu, "truthfulqa": truthfulqa, "winogrande": winogrande,
    "gsm8k": gsm8k,
}  # fmt: skip


def item_from(parts: dict[str, Any], item_id: str) -> Item:
    """An item from a builder's parts; what a builder leaves out follows from the rest."""
    queries = parts.get("queries") or (parts["query"],)
    choices, gold = parts.get("choices", ()), parts.get("gold", -1)
    return Item(
        id=item_id,
        question=parts["question"],
        queries=queries,
        example_query=parts.get("example_query", queries[0]),
        answer=parts["answer"] if "answer" in parts else choices[gold],
        continuations=parts.get("continuations", choices),
        choices=choices,
        gold=gold,
        reference=parts.get("reference", ""),
        labels=parts.get("labels", ()),
        first=parts.get("first", 0),
        subject=parts.get("subject", ""),
        description=parts.get("description", ""),
        shown=tuple(parts.get("shown", ())),
    )
