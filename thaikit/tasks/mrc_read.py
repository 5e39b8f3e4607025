"""Answers to passages read back: a leaf of 30_mrc_answer, WangchanX-Eval's own columns (references, context, question,
predictions) in CSV or JSONL, or the bundled written answers. Every column is read as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thaikit import ThaikitError, chat_replay, inputs, params
from thaikit.chat import OUTCOMES
from thaikit.params import ModelEntry, expand, shown
from thaikit.records import read_leaf, root, suite_folder
from thaikit.tasks import mrc
from thaikit.tasks.h6 import blank
from thaikit.tasks.load import Row, read_file, shorten
from thaikit.tasks.mrc import MrcItem

BUNDLED = "replay-mrc-answers"
PREDICTIONS = ("predictions", "prediction", "answer")
NOT_SCORED = ("filtered", "failed")  # answers that never came: coverage falls, no failure becomes a score


@dataclass(frozen=True)
class Answers:
    """The answers of one model to one set. A row holds the item's fields (id, title, question, context, references,
    passage) with index, answer, outcome and finish; `outcome` is ok for answers made elsewhere that name none."""

    model: str
    tasks: str
    shots: int | None
    place: str
    shipped: bool
    rows: tuple[Mapping[str, Any], ...]

    @property
    def scored(self) -> list[Mapping[str, Any]]:
        """The rows that get a score: an empty or a truncated answer as it stands, none that never came."""
        return [row for row in self.rows if row["outcome"] not in NOT_SCORED]

    def facts(self) -> dict[str, Any]:
        """What run.json says of the answers that a leaf scored or judged."""
        return {"model": self.model, "tasks": self.tasks, "shots": self.shots, "place": self.place,
                "answers": len(self.rows), "scored": len(self.scored)}  # fmt: skip


def find(stage: str, given: Mapping[str, Any]) -> list[Answers]:
    """What a stage's parameters name: `answers` (a leaf or a file), the suite's leaf for model, tasks and shots, all of
    a suite's leaves where neither is named (mrc_f1), or the bundled answers without a suite. ThaikitError for none."""
    if stage == "mrc_f1" and inputs.reads_every_answer(given):
        found = [from_leaf(leaf.path) for leaf in inputs.answer_leaves(stage, given)]
        if not found:
            raise ThaikitError(f"suite {suite_folder(str(given['suite']))}: no closed leaf of mrc_answer; run 30 first")
        return found
    path = inputs.answers_path(stage, given)
    if path is None:
        return [bundled()]
    return [from_leaf(path) if path.is_dir() else from_file(path)]


def bundled(model: str = BUNDLED) -> Answers:
    """The written answers to the bundled passages that a replay model repeats."""
    data = mrc.load()
    source = params.load("models", model, ModelEntry).source
    replies = dict(chat_replay.read_recorded(expand(source, base=root())))
    missing = [item.id for item in data.items if item.id not in replies]
    if missing:
        raise ThaikitError(f"model {model}: no answer to {missing[0]!r} among the bundled ones; name answers instead")
    rows = [
        {**item.fields(), "index": index, "task": data.name, "shots": 0, "answer": replies[item.id].text.strip(),
         "outcome": replies[item.id].outcome, "finish": replies[item.id].finish}
        for index, item in enumerate(data.items)
    ]  # fmt: skip
    return Answers(model, data.name, 0, data.place, True, tuple(rows))


def from_leaf(path: Path) -> Answers:
    """The answers of a closed leaf of 30_mrc_answer."""
    leaf = read_leaf(path)
    rows = read_rows(path / "rows" / "answers.jsonl", name=f"{path.name}/rows/answers.jsonl")
    given = leaf.run.get("params", {})
    place = str(leaf.run.get("data_place", ""))
    tasks = str(leaf.run.get("task_set") or given.get("tasks", ""))
    model = str(given.get("model") or path.name)
    return Answers(model, tasks, given.get("shots"), place, place.startswith("samples:"), tuple(rows))


def from_file(path: Path) -> Answers:
    """Answers made elsewhere; the file's name stands for the model."""
    return Answers(path.stem, "", None, shown(path), False, tuple(read_rows(path, name=path.name)))


def read_rows(path: Path, *, name: str) -> list[dict[str, Any]]:
    """The rows of a file of answers, checked. ThaikitError names file, row and id of a fault: a column that is missing,
    a text that is none (308, NaN, null), an empty reference, an id that stands twice."""
    if not path.is_file():
        raise ThaikitError(f"{name}: no such file; name a leaf of 30_mrc_answer, or a CSV or JSONL with predictions")
    rows = [answer_of(Row(name, number, data)) for number, data in enumerate(read_file(path, name), 1)]
    if not rows:
        raise ThaikitError(f"{name}: the file holds no answers; at least one is needed")
    seen: dict[str, int] = {}
    for place, row in enumerate(rows, 1):
        if row["id"] in seen:
            raise ThaikitError(f"{name}, row {place}: id {row['id']!r} is there twice (first in row {seen[row['id']]})")
        seen[row["id"]] = place
    return [{**row, "index": index} for index, row in enumerate(rows)]


def answer_of(row: Row) -> dict[str, Any]:
    """One row as an answer with its item. Offsets are checked where the row has them."""
    column = next((name for name in PREDICTIONS if name in row.data), "")
    if not column:
        there = ", ".join(map(str, row.data))
        raise ThaikitError(f"{row.where('predictions')}: no column {' or '.join(PREDICTIONS)}, there are {there}")
    item = item_of(row)
    answer, outcome = row.data[column], row.data.get("outcome") or "ok"
    if outcome not in OUTCOMES:
        raise ThaikitError(f"{row.where('outcome')}: found {shorten(outcome)}; allowed are {', '.join(OUTCOMES)}")
    if not isinstance(answer, str):
        told = f"found {shorten(answer)} ({type(answer).__name__})"
        raise ThaikitError(f"{row.where(column)}: {told}; only text is allowed, empty where the model said nothing")
    told = {key: row.data[key] for key in ("task", "shots", "new_tokens") if key in row.data}
    return {**item.fields(), **told, "answer": answer, "outcome": outcome, "finish": str(row.data.get("finish") or "")}


def item_of(row: Row) -> MrcItem:
    """The item of an answer row; a question or passage that the file does not have is empty."""
    if "answers" not in row.data and "references" not in row.data and "reference" not in row.data:
        there = ", ".join(map(str, row.data))
        raise ThaikitError(f"{row.where('references')}: no column references, there are {there}")
    if all(name in row.data and not blank(str(row.data[name])) for name in ("context", "question")):
        return mrc.item_of(row, {})
    probe = Row(row.file, row.number, {**row.data, "context": "-", "question": "-"}, row.subject)
    found = mrc.item_of(probe, {})
    texts = {name: row.data.get(name) or "" for name in ("context", "question")}
    faulty = [name for name, value in texts.items() if not isinstance(value, str)]
    if faulty:
        raise ThaikitError(f"{row.where(faulty[0])}: found {shorten(texts[faulty[0]])}; only text is allowed")
    return MrcItem(found.id, found.title, texts["context"], texts["question"], found.references)


def passages(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The passage of each row, an item without one its own."""
    return [row["passage"] if row["context"] else f"item {row['id']}" for row in rows]
