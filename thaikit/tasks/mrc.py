"""Reading comprehension: a passage, a question, its references; from SQuAD files, nested or flat, and from hub sets.

XQuAD and iapp_wiki_qa_squad are read as they stand in their repositories (WangchanLion paper, section 3.1). Texts are
kept to the last mark: U+FEFF in a passage and sara am in two code points count in the offsets.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from thaikit import ThaikitError, text
from thaikit.params import changed, expand, shown
from thaikit.records import root, sha256_json
from thaikit.shapes import MrcSet, load_tasks
from thaikit.tasks.h6 import blank
from thaikit.tasks.load import Row, decoded, one_text, pick, place_of, read_file, read_source, shorten, subset

SAMPLES = "mrc-samples"
DASH = "–"  # stands for a text that is not shown
COLUMNS = {"id": ("id", "question_id"), "question": ("question",), "context": ("context",), "title": ("title",),
           "answers": ("answers", "references", "reference")}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MrcItem:
    """One question on a passage with its references, any of which is right; `title` names the article."""

    id: str
    title: str
    context: str
    question: str
    references: tuple[str, ...]

    @property
    def passage(self) -> str:
        """What items on one passage share, outer white space aside."""
        return passage_of(self.context)

    def sha256(self) -> str:
        """Hash of the texts: two models answered the same item where id and hash agree."""
        return sha256_json([self.context, self.question, self.references])

    def fields(self) -> dict[str, Any]:
        """What every row about the item begins with."""
        told = {"id": self.id, "title": self.title, "question": self.question, "context": self.context}
        return told | {"references": list(self.references), "passage": self.passage, "item_sha256": self.sha256()}


@dataclass(frozen=True)
class Exemplar:
    """The one worked example of the 1-shot prompts; it is never one of the evaluated items."""

    context: str
    question: str
    reference: str

    def facts(self) -> dict[str, str]:
        """The three texts and their hash, for run.json."""
        told = {"context": self.context, "question": self.question, "reference": self.reference}
        return told | {"sha256": sha256_json(list(told.values()))}


@dataclass(frozen=True)
class MrcData:
    """The items in file order, the worked example, and what was read: files, the number expected, odd things."""

    name: str
    place: str
    items: tuple[MrcItem, ...]
    exemplar: Exemplar | None
    files: tuple[Mapping[str, Any], ...]
    found: int
    expected: int
    audit: Mapping[str, int]

    @property
    def shipped(self) -> bool:
        """Whether the items are the bundled samples, whose texts may always be shown."""
        return self.place.startswith("samples:")

    def file_table(self) -> pd.DataFrame:
        """A row for each file: its questions and the first digits of its hash."""
        return pd.DataFrame(self.files).assign(sha256=lambda frame: frame["sha256"].str[:12])

    def audit_table(self) -> pd.DataFrame:
        """How often what cannot be seen, and what looks alike, occurs in the texts."""
        return pd.DataFrame([{"what": name, "count": count} for name, count in self.audit.items() if count])

    def facts(self) -> dict[str, Any]:
        """What run.json says of the items."""
        return {
            "task_set": self.name, "data_place": self.place, "items": len(self.items), "files": list(self.files),
            "found_rows": self.found, "expected_rows": self.expected, "audit": dict(self.audit),
            "exemplar": self.exemplar.facts() if self.exemplar else None,
        }  # fmt: skip


def passage_of(context: str) -> str:
    """A short name for a passage, by its text without outer white space (U+FEFF too: copies differ in it)."""
    return hashlib.sha256(context.strip("\ufeff \t\r\n").encode()).hexdigest()[:12]


def load(tasks: str = SAMPLES, *, data: str = "", limit: int = 0, allow_size_mismatch: bool = False) -> MrcData:
    """The items of a task file. `data` overrides its folder; `limit` takes the first items in file order (0: all).

    ThaikitError names file, row, id and field of a fault, what was found and what is allowed.
    """
    found = load_tasks(tasks)
    if not isinstance(found, MrcSet):
        raise ThaikitError(f"tasks {tasks}: no reading-comprehension set, its file needs the key benchmark: mrc")
    if limit < 0:
        raise ThaikitError(f"limit is {limit}; a number of items is needed (0: all)")
    if allow_size_mismatch:
        found = changed(found, {"allow_size_mismatch": True}, where=f"tasks {tasks}")
    base = expand(data or found.data, base=root())
    table = read_source(found.source, base)
    rows = [flat for row in table.rows for flat in questions(row)]
    rows = subset(rows, found.source, subject_of=lambda row: "")
    items = distinct([item_of(row, found.fields) for row in rows], rows)
    if found.expected_rows and len(items) != found.expected_rows and not found.allow_size_mismatch:
        raise ThaikitError(
            f"tasks {found.name}: {len(items)} questions in {shown(base)}, {found.expected_rows} are expected; "
            "fetch the whole set, or set allow_size_mismatch to work on a part"
        )
    exemplar = read_exemplar(found.exemplar, items) if found.exemplar else None
    files = [{"file": name, "questions": sum(row.file == name for row in rows), "sha256": digest}
             for name, digest in table.hashes.items()]  # fmt: skip
    chosen = tuple(items[:limit] if limit else items)
    place = place_of(data or found.data, (found.source,))
    return MrcData(found.name, place, chosen, exemplar, tuple(files), len(items), found.expected_rows, odd(chosen))


def questions(row: Row) -> Iterator[Row]:
    """The flat rows of a source row: an article with paragraphs, a paragraph with questions, or a question."""
    told = dict(row.data)
    if "paragraphs" in told:
        for part in listed(row, told.pop("paragraphs"), "paragraphs"):
            yield from questions(replace(row, data={**told, **part}))
    elif "qas" in told:
        for part in listed(row, told.pop("qas"), "qas"):
            yield replace(row, data={**told, **part})
    else:
        yield row


def listed(row: Row, value: Any, field: str) -> list[Mapping[str, Any]]:
    """A list of objects, as SQuAD nests them."""
    if not isinstance(value, list) or not all(isinstance(part, Mapping) for part in value):
        raise ThaikitError(f"{row.where(field)}: found {shorten(value)}; a list of objects is needed")
    return value


def item_of(row: Row, fields: Mapping[str, str]) -> MrcItem:
    """One flat row as an item, its answers checked against the passage."""
    named = value_of(row, fields, "id", default=f"row-{row.number}")
    if not isinstance(named, str | int) or blank(str(named)):
        raise ThaikitError(f"{row.where('id')}: found {shorten(named)}; an id is a text, or leave the column out")
    row = replace(row, data={**row.data, "id": str(named)})
    context, question = (filled(row, value_of(row, fields, name), name) for name in ("context", "question"))
    title = value_of(row, fields, "title", default="")
    answers = value_of(row, fields, "answers")
    references = tuple(dict.fromkeys(checked(row, pair, context) for pair in pairs(row, answers)))
    if not references:
        raise ThaikitError(f"{row.where('answers')}: found none; a question needs at least one reference")
    return MrcItem(str(named), title if isinstance(title, str) else str(title), context, question, references)


def value_of(row: Row, fields: Mapping[str, str], field: str, *, default: Any = None) -> Any:
    """A field's value: at the path that the task file names, else in the first of its usual columns."""
    if field in fields:
        return pick(row, fields[field], field)
    for column in COLUMNS[field]:
        if column in row.data:
            return row.data[column]
    if default is not None:
        return default
    there = ", ".join(map(str, row.data))
    raise ThaikitError(f"{row.where(field)}: no column {' or '.join(COLUMNS[field])}, there are {there}")


def filled(row: Row, value: Any, field: str) -> str:
    """A text with something to see in it. A number is refused: read as one, 308 or NaN would score 0 unseen."""
    if not isinstance(value, str):
        told = f"found {shorten(value)} ({type(value).__name__})"
        raise ThaikitError(f"{row.where(field)}: {told}; only text is allowed, write it in quotes")
    if blank(value):
        raise ThaikitError(f"{row.where(field)}: found {shorten(value)}; a text that is not empty is needed")
    return value


def pairs(row: Row, answers: Any) -> list[tuple[Any, Any, Any]]:
    """(text, start, end) of each answer: a list of objects, an object of lists, a text or a list of texts; None where
    a layout has no offsets."""
    if isinstance(answers, Mapping):
        texts = answers.get("text")
        texts = [texts] if isinstance(texts, str) else texts
        told = [answers.get("answer_start"), answers.get("answer_end")]
        starts, ends = ([None] * len(texts or ()) if one is None else one for one in told)
        lists = (texts, starts, ends)
        if not all(isinstance(one, list) for one in lists) or len({len(one) for one in lists}) != 1:
            raise ThaikitError(
                f"{row.where('answers')}: found {shorten(answers)}; text and answer_start are lists of one length"
            )
        return list(zip(*lists, strict=True))
    if isinstance(answers, list) and all(isinstance(one, Mapping) for one in answers):
        return [(one.get("text"), one.get("answer_start"), one.get("answer_end")) for one in answers]
    return [(one, None, None) for one in (answers if isinstance(answers, list) else [answers])]


def checked(row: Row, pair: tuple[Any, Any, Any], context: str) -> str:
    """A reference that stands in the passage where its offset says, counted in code points."""
    value, start, end = pair
    reference = one_text(row, filled(row, value, "answers"), "answers")
    if start is None:
        return reference
    if isinstance(start, bool) or not isinstance(start, int) or start < 0:
        raise ThaikitError(f"{row.where('answer_start')}: found {shorten(start)}; a whole number from 0 is allowed")
    there = context[start : start + len(reference)]
    if there != reference:
        place = context.find(reference)
        told = f"the passage has it at {place}" if place >= 0 else "the passage does not hold it"
        raise ThaikitError(
            f"{row.where('answer_start')}: {shorten(there)} stands at {start}, the answer is {shorten(reference)} "
            f"({told}); offsets count code points of the passage as it is in the file, U+FEFF too"
        )
    if end is not None and end != start + len(reference):
        raise ThaikitError(f"{row.where('answer_end')}: found {shorten(end)}; {start + len(reference)} is its end")
    return reference


def distinct(items: Sequence[MrcItem], rows: Sequence[Row]) -> list[MrcItem]:
    """The items if their ids are unique."""
    seen: dict[str, Row] = {}
    for item, row in zip(items, rows, strict=True):
        if item.id in seen:
            raise ThaikitError(
                f"{row.file}, row {row.number}: id {item.id!r} is there twice (first in row {seen[item.id].number}); "
                "ids are unique within a set"
            )
        seen[item.id] = row
    return list(items)


def read_exemplar(place: str, items: Sequence[MrcItem]) -> Exemplar:
    """The worked example at a place; ThaikitError where its passage is one of the evaluated ones."""
    path = expand(place, base=root())
    name = shown(path)
    if not path.is_file():
        raise ThaikitError(f"exemplar {place!r}: no such file; name a JSON object or rows with the worked example")
    row = Row(name, 1, first_object(path, name))
    item = item_of(row, {})
    if item.passage in {one.passage for one in items}:
        raise ThaikitError(f"{name}: the worked example's passage is one of the evaluated ones; choose another")
    return Exemplar(item.context, item.question, item.references[0])


def first_object(path: Path, name: str) -> Mapping[str, Any]:
    """The object that a JSON file is, or the first question of a file of rows."""
    if path.suffix == ".json":
        try:
            value = json.loads(decoded(path, name))
        except (ValueError, RecursionError) as error:
            raise ThaikitError(f"{name}: not JSON ({error}); an object with context, question, reference") from error
        if isinstance(value, dict) and "context" in value:
            return value
    rows = (flat for number, data in enumerate(read_file(path, name), 1) for flat in questions(Row(name, number, data)))
    first = next(rows, None)
    if first is None:
        raise ThaikitError(f"{name}: the file holds no rows; a worked example is needed")
    return first.data


def odd(items: Sequence[MrcItem]) -> dict[str, int]:
    """How often the faults of `text.audit` occur, and how many items have several references, or one that the passage
    holds more than once."""
    total: Counter[str] = Counter()
    for context in dict.fromkeys(item.context for item in items):
        total.update(text.audit(context))
    for one in (one for item in items for one in (item.question, *item.references)):
        total.update(text.audit(one))
    twice = sum(any(item.context.count(one) > 1 for one in item.references) for item in items)
    several = sum(len(item.references) > 1 for item in items)
    return {**total, "several_references": several, "reference_more_than_once": twice}


def table_of(data: MrcData, *, gallery: bool = False, first: int = 6) -> pd.DataFrame:
    """The first items as a person reads them; the texts of other data than the samples only with `gallery`, since test
    rows that stand in shared pages end up in training data."""
    keep = data.shipped or gallery
    lines = [(item.id, item.question, " / ".join(item.references), item.context[:80]) for item in data.items[:first]]
    hidden = [(line[0], *(line[1:] if keep else [DASH] * 3)) for line in lines]
    return pd.DataFrame(hidden, columns=["id", "question", "references", "passage"])
