"""People's and judges' labels from files of any layout → one line a label; ties and gaps stay what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from thaikit import ThaikitError, params
from thaikit.params import Source
from thaikit.records import root
from thaikit.shapes import LabelSet
from thaikit.tasks.load import Row, pick, read_source, shorten, subset

DEFAULT_VALUES = {
    "agree": "agree", "disagree": "disagree", "yes": "agree", "no": "disagree", "true": "agree", "false": "disagree",
    "1": "agree", "0": "disagree", "เห็นด้วย": "agree", "ไม่เห็นด้วย": "disagree",
}  # fmt: skip
ONE_QUESTION = "label"  # the name of the question where a file asks only one
QUESTION_COLUMN = re.compile(r"q[0-9]+", re.IGNORECASE)
PERSON_COLUMN = re.compile(r"(?:annotator|voter|rater|labell?er|คนที่|ผู้ตอบ).+", re.IGNORECASE)
BOTH_COLUMN = re.compile(r"(.+?)[ ._/-]+(q[0-9]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Label:
    """One label: whose, of which item and question. `swapped` is a judge's for the same pair in the other order."""

    item: str
    rater: str
    question: str
    label: str
    swapped: str | None = None


@dataclass(frozen=True)
class Labels:
    """A label file as read: people's and judges' labels, each item's answer and references where the file has them."""

    name: str
    people: list[Label]
    judges: list[Label]
    answers: dict[str, str] = field(default_factory=dict)
    references: dict[str, list[str]] = field(default_factory=dict)
    labels: tuple[str, ...] = ("agree", "disagree")
    positive: str = "agree"

    @property
    def items(self) -> list[str]:
        """Item names in file order."""
        return list(dict.fromkeys(one.item for one in self.people))

    @property
    def questions(self) -> list[str]:
        """Question names in file order."""
        return list(dict.fromkeys(one.question for one in self.people))

    @property
    def annotators(self) -> list[str]:
        """Annotators in file order."""
        return list(dict.fromkeys(one.rater for one in self.people))

    @property
    def judge_names(self) -> list[str]:
        """Judges in file order."""
        return list(dict.fromkeys(one.rater for one in self.judges))

    def of_people(self, question: str) -> list[list[str | None]]:
        """Each item's labels for a question, one an annotator, None where there is none."""
        found = {(one.item, one.rater): one.label for one in self.people if one.question == question}
        return [[found.get((item, rater)) for rater in self.annotators] for item in self.items]

    def of_judge(self, judge: str, question: str) -> list[str | None]:
        """A judge's label for a question of each item, None where there is none."""
        found = {one.item: one.label for one in self.judges if (one.rater, one.question) == (judge, question)}
        return [found.get(item) for item in self.items]

    def array(self) -> np.ndarray:
        """People's labels as (items, annotators, questions): 1 for `positive`, 0 for another, NaN for none."""
        rows = [np.array([[self.code(x) for x in item] for item in self.of_people(q)]) for q in self.questions]
        return np.stack(rows, axis=-1)

    def judge_array(self, judge: str) -> np.ndarray:
        """A judge's labels as (items, questions), coded as in `array`."""
        return np.array([[self.code(x) for x in self.of_judge(judge, q)] for q in self.questions], dtype=float).T

    def code(self, label: str | None) -> float:
        """1.0 for the positive label, 0.0 for another, NaN for none."""
        return np.nan if label is None else float(label == self.positive)


def load(name: str) -> Labels:
    """The labels of a file: a CSV, JSONL or JSON file by its path (`samples:` allowed), or a file of params/analyses/.

    A plain file has the columns item, annotator and label (and question), or item, annotator and one column a question
    (Q1, Q2 …), or item and one column an annotator (annotator_1, or "annotator_1 Q1"); anything else needs a parameter
    file. ThaikitError names file, row and column of a fault: an unknown value, two labels for one thing, no column.
    """
    if is_plain(name):
        path = params.expand(name, base=root())
        if not path.is_file():
            told = "no such file; name a CSV or JSONL file, or a params/analyses file"
            raise ThaikitError(f"annotations {name!r}: {told}")
        rows = read_source(Source(files=path.name), path.parent).rows
        return read_rows(plain_layout(rows, path.name), rows, name=path.stem)
    spec = params.load("analyses", name, LabelSet)
    rows = read_source(spec.source, params.expand(spec.data, base=root())).rows
    return read_rows(spec, subset(rows, spec.source, subject_of=lambda row: ""), name=spec.name)


def is_plain(name: str) -> bool:
    """Whether the name means a file of labels rather than a parameter file."""
    return Path(name).suffix.lower() in (".csv", ".jsonl", ".json")


def plain_layout(rows: Sequence[Row], name: str) -> LabelSet:
    """The layout of a file by its column names; ThaikitError where they tell none."""
    columns = list(rows[0].data)
    for row in rows:
        late = [column for column in row.data if column not in columns and labels_column(str(column))]
        if late:
            raise ThaikitError(
                f"{row.where()}: column {late[0]!r} is not in the first row; give every row the same ones"
            )
    known = {column.strip().casefold(): column for column in columns}
    item = known.get("item") or known.get("id")
    person, label = known.get("annotator") or known.get("voter"), known.get("label")
    asked = [column for column in columns if QUESTION_COLUMN.fullmatch(column.strip())]
    given: dict[str, Any] = {"name": name, "source": Source(files=name), "item": item or ""}
    if item and person and label:
        return LabelSet(**given, annotator=person, label=label, question=known.get("question", ""))
    if item and person and asked:
        return LabelSet(**given, annotator=person, questions={column.strip().lower(): column for column in asked})
    both = {column: found for column in columns if (found := BOTH_COLUMN.fullmatch(column.strip()))}
    if item and both:
        people = {found[1]: column[: column.rindex(found[2])] + "{question}" for column, found in both.items()}
        return LabelSet(**given, annotators=people, questions={found[2].lower(): found[2] for found in both.values()})
    people = [column for column in columns if PERSON_COLUMN.fullmatch(column.strip())]
    if item and people:
        return LabelSet(**given, annotators={one: one for one in people})
    told = "needed are item, annotator and label, or item and a column an annotator; or describe it in params/analyses"
    raise ThaikitError(f"{name}: columns {shorten(columns)} tell no layout; {told}")


def labels_column(column: str) -> bool:
    """Whether a column's name says that labels stand in it."""
    return any(kind.fullmatch(column.strip()) for kind in (QUESTION_COLUMN, PERSON_COLUMN, BOTH_COLUMN))


def read_rows(spec: LabelSet, rows: Sequence[Row], *, name: str) -> Labels:
    """The labels of rows in a layout; ThaikitError as in `load`."""
    people: list[Label] = []
    judges: list[Label] = []
    answers: dict[str, str] = {}
    references: dict[str, list[str]] = {}
    for row in rows:
        for stacked in spec.stack or [""]:
            item = item_name(row, spec, stacked)
            people += list(people_of(row, spec, item, stacked))
            judges += list(judges_of(row, spec, item, stacked))
            if spec.answer:
                answers[item] = text_at(row, spec.answer, stacked)
            if spec.references:
                references[item] = references_at(row, spec, stacked)
    people, judges = once(name, people), once(name, judges)
    if not people:
        raise ThaikitError(f"{name}: every label is blank; at least one is needed")
    return Labels(name, people, judges, answers, references, tuple(spec.labels), spec.positive)


def people_of(row: Row, spec: LabelSet, item: str, stacked: str) -> Iterator[Label]:
    """A row's labels by people."""
    people = spec.annotators or {rater_name(row, spec.annotator): spec.label or "{question}"}
    for rater, path in people.items():
        for question, column in questions_of(row, spec, path):
            value = meaning(row, filled(column, stacked), spec)
            if value is not None:
                yield Label(item, rater, question, value)


def rater_name(row: Row, column: str) -> str:
    """Who labelled, outer white space off: "a" and "a " are one person, who labels a thing once."""
    written = at(row, column)
    if written is None or not str(written).strip():
        raise ThaikitError(f"{row.where(column)}: found {shorten(written)}; each row names who labelled")
    return str(written).strip()


def questions_of(row: Row, spec: LabelSet, path: str) -> Iterator[tuple[str, str]]:
    """(question, path of its label) for one annotator of a row."""
    if spec.questions:
        yield from ((question, path.replace("{question}", column)) for question, column in spec.questions.items())
    else:
        yield str(at(row, spec.question)).strip().lower() if spec.question else ONE_QUESTION, path


def judges_of(row: Row, spec: LabelSet, item: str, stacked: str) -> Iterator[Label]:
    """A row's labels by judges."""
    columns = spec.judges
    named = dict(columns.names)
    if columns.name:
        named = {str(at(row, columns.name)): columns.label}
    for judge, path in named.items():
        value = meaning(row, filled(path, stacked), spec)
        if value is not None:
            other = meaning(row, filled(columns.swapped, stacked), spec) if columns.swapped else None
            yield Label(item, judge, ONE_QUESTION, value, other)


def meaning(row: Row, path: str, spec: LabelSet) -> str | None:
    """What a written label means, None for none; ThaikitError for a value that `values` does not know."""
    written = pick(row, path, path) if "." in path and path not in row.data else at(row, path)
    told = "" if written is None else str(written).strip()
    if isinstance(written, bool):
        told = told.lower()
    if spec.values:
        if told in spec.values:
            return spec.values[told] or None
    elif told.casefold() in DEFAULT_VALUES:
        return DEFAULT_VALUES[told.casefold()]
    if told == "" or written != written:  # a NaN is no label
        return None
    known = ", ".join(map(repr, spec.values or DEFAULT_VALUES))
    raise ThaikitError(f"{row.where(path)}: label {shorten(written)}; known are {known}; mend it or map it in values")


def at(row: Row, column: str) -> Any:
    """A column's value; ThaikitError where there is no such column."""
    if column not in row.data:
        raise ThaikitError(f"{row.where()}: no column {column!r}; there are {', '.join(map(str, row.data))}")
    return row.data[column]


def filled(path: str, stacked: str) -> str:
    """A path with {stack} replaced."""
    return path.replace("{stack}", stacked)


def item_name(row: Row, spec: LabelSet, stacked: str) -> str:
    """An item's name: the value or values of its column, outer white space off, and the stacked name."""
    paths = [spec.item] if isinstance(spec.item, str) else spec.item
    found = [pick(row, path, "item") if path not in row.data else row.data[path] for path in paths]
    parts = ["" if one is None else str(one).strip() for one in found]
    if not all(parts):
        raise ThaikitError(f"{row.where(paths[parts.index('')])}: found no item; each row names one")
    return "/".join([*parts, *filter(None, [stacked])])


def text_at(row: Row, path: str, stacked: str) -> str:
    """A text; ThaikitError where it is none."""
    value = pick(row, filled(path, stacked), "answer")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ThaikitError(f"{row.where(filled(path, stacked))}: found {shorten(value)}, a text is needed")
    return value


def references_at(row: Row, spec: LabelSet, stacked: str) -> list[str]:
    """An item's references: a list as it stands, a text cut at `split_references`."""
    value = pick(row, filled(spec.references, stacked), "references")
    if isinstance(value, str):
        value = value.split(spec.split_references) if spec.split_references else [value]
    return [str(one).strip() for one in value if str(one).strip()]


def once(name: str, labels: Sequence[Label]) -> list[Label]:
    """The labels, one that a file repeats taken once; ThaikitError where somebody labelled a thing in two ways."""
    found: dict[tuple[str, str, str], Label] = {}
    for one in labels:
        first = found.setdefault((one.item, one.rater, one.question), one)
        if first != one:
            told = f"item {shorten(one.item)}, {one.rater}, {one.question}: {first.label!r} and {one.label!r}"
            raise ThaikitError(f"{name}: {told} stand there; keep one of the rows")
    return list(found.values())


def order_table(labels: Labels) -> list[dict[str, Any]]:
    """How judges stand up to the other order: judge, n, right, right_swapped (both against the majority), same_verdict;
    only those with labels for both orders."""
    from thaikit.agreement import majority

    majorities = [majority(votes).label for votes in labels.of_people(ONE_QUESTION)]
    truth: Mapping[str, Any] = dict(zip(labels.items, majorities, strict=True))
    found = []
    for judge in labels.judge_names:
        pairs = [one for one in labels.judges if one.rater == judge and one.swapped is not None]
        if pairs:
            right, swapped = (
                sum(getattr(one, key) == truth.get(one.item) for one in pairs) for key in ("label", "swapped")
            )
            same = sum(one.label == one.swapped for one in pairs)
            found.append(
                {"judge": judge, "n": len(pairs), "right": right, "right_swapped": swapped, "same_verdict": same}
            )
    return found
