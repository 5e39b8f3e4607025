"""People's labels beside judges' verdicts on the same answers, item by item, as arrays that the kernels read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from thaikit import ThaikitError, agreement, f1, params
from thaikit.agreement import Vote
from thaikit.params import expand
from thaikit.records import leaves, read_rows, root, suite_folder
from thaikit.tasks import annotations, mrc_read
from thaikit.tasks.annotations import Label, Labels
from thaikit.tasks.load import Row, read_file
from thaikit.tasks.mrc_judge import read_replies
from thaikit.tasks.mrc_judging import answered, own
from thaikit.verdicts import QUESTIONS

AGREE = {1: "agree", 0: "disagree"}


@dataclass(frozen=True)
class Study:
    """What people said, what judges said of the same items, and what judges said of answers without labels.

    `votes` holds each question's majority for each item; `other` counts, for each judge and model, the verdicts on
    answers that nobody labelled, as question → list of True and False. `words` and `scores` (F1 in 0..1) of the
    labelled answers are NaN where their texts are not known; `clusters` names each item's passage.
    """

    labels: Labels
    votes: Mapping[str, list[Vote]]
    words: np.ndarray
    scores: np.ndarray
    clusters: tuple[str, ...]
    model: str = ""
    other: Mapping[tuple[str, str], Mapping[str, list[bool]]] = field(default_factory=dict)

    @property
    def questions(self) -> list[str]:
        """The questions in file order."""
        return self.labels.questions

    @property
    def binary(self) -> bool:
        """Whether precision and recall mean something here: one label is the positive one."""
        return bool(self.labels.positive)

    def truth(self) -> np.ndarray:
        """The majority as (items, questions): 1 for the positive label, 0 for another, NaN for a tie or no labels."""
        columns = [[self.labels.code(vote.label) for vote in self.votes[q]] for q in self.questions]  # type: ignore[arg-type]
        return np.array(columns, dtype=float).T

    def majority(self, question: str) -> list[str | None]:
        """Each item's majority label, None for a tie or no labels."""
        return [None if vote.label is None else str(vote.label) for vote in self.votes[question]]


def load(
    annotated: str,
    *,
    judgements: str = "",
    reply_column: str = "text",
    model: str = "",
    answers: str = "",
    suite: str = "",
) -> Study | None:
    """The study of a label file, None for "" (then only the papers' counts are there).

    Judges' verdicts come from the label file itself, from `judgements` (a leaf of 32, a file of raw replies, or a file
    of labels in which the annotator is the judge), and from a suite's leaves of 32. `model` says whose answers people
    labelled, where their items do not (ITEM@MODEL); needed where judges saw several models' answers. `answers` are the
    labelled answers' texts (a leaf of 30 or a file); without it those of the judgements, or the bundled ones, count.
    """
    if not annotated:
        return None
    labels = annotations.load(annotated)
    rows, judged = verdict_rows(judgements, reply_column, answers, suite)
    labels = replace(labels, judges=[*labels.judges, *judged])
    model = whose(labels, rows, model)
    found, other = matched(labels, rows, model)
    labels = replace(labels, judges=annotations.once("judgements", [*labels.judges, *found]))
    votes = {question: [agreement.majority(one) for one in labels.of_people(question)] for question in labels.questions}
    texts = texts_of(labels, rows, model, answers, bundled=annotated.startswith("samples:mrc/"))
    words, scores, clusters = measured(labels, texts, model)
    return Study(labels, votes, words, scores, clusters, model, other)


def verdict_rows(
    judgements: str, reply_column: str, answers: str, suite: str
) -> tuple[list[dict[str, Any]], list[Label]]:
    """(rows of 32, labels by judges) that the parameters name."""
    rows: list[dict[str, Any]] = []
    for leaf in leaves(suite_folder(suite), stage="mrc_judge") if suite else []:
        rows += read_rows(leaf.path / "rows" / "judgements.jsonl")
    if not judgements:
        return rows, []
    path = expand(judgements, base=root())
    if path.is_dir():
        return rows + read_rows(path / "rows" / "judgements.jsonl"), []
    if not path.is_file():
        raise ThaikitError(f"judgements {judgements!r}: neither a leaf of 32 nor a file; name one that exists")
    raw = list(read_file(path, path.name))
    if raw and reply_column not in raw[0]:
        labelled = [Row(path.name, n, row) for n, row in enumerate(raw, 1)]
        made = annotations.read_rows(annotations.plain_layout(labelled, path.name), labelled, name=path.name)
        return rows, made.people
    given = answered([from_place(answers)] if answers else own(path))
    known = {key: case for case in given for key in (case.id, case.item)}
    return rows + read_replies(raw, known, column=reply_column, rule="numbered", judge=path.stem, where=path.name), []


def from_place(answers: str) -> mrc_read.Answers:
    """The answers of a leaf of 30 or of a file."""
    path = expand(answers, base=root())
    return mrc_read.from_leaf(path) if path.is_dir() else mrc_read.from_file(path)


def whose(labels: Labels, rows: Sequence[Mapping[str, Any]], model: str) -> str:
    """The model whose answers people labelled; "" where the items say it themselves or nobody judged."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    if not models or any("@" in item for item in labels.items):
        return ""
    if model and model not in models:
        hint = params.nearest(model, models)
        raise ThaikitError(f"model {model!r}{hint}: judges saw answers of {', '.join(models)}; name one of them")
    if not model and len(models) > 1:
        raise ThaikitError(f"judges saw answers of {', '.join(models)}; say in model whose answers people labelled")
    return model or models[0]


def matched(
    labels: Labels, rows: Sequence[Mapping[str, Any]], model: str
) -> tuple[list[Label], dict[tuple[str, str], dict[str, list[bool]]]]:
    """(judges' labels of the items that people labelled, their verdicts on all other answers)."""
    items, found = set(labels.items), []
    other: dict[tuple[str, str], dict[str, list[bool]]] = {}
    for row in rows:
        if row["outcome"] != "ok":
            continue
        item = f"{row['item']}@{row['model']}"
        named = item if item in items else row["item"] if row["model"] == model and row["item"] in items else ""
        if named:
            found += [Label(named, row["judge"], q, AGREE[row[q]]) for q in QUESTIONS]
        else:
            counts = other.setdefault((row["judge"], row["model"]), {q: [] for q in QUESTIONS})
            for q in QUESTIONS:
                counts[q].append(row[q] == 1)
    if rows and not found:
        raise ThaikitError(
            f"{labels.name}: no judged answer is one that people labelled (items such as {labels.items[0]!r} and "
            f"{rows[0]['item']!r}); the ids must agree"
        )
    return found, other


def texts_of(
    labels: Labels, rows: Sequence[Mapping[str, Any]], model: str, answers: str, *, bundled: bool
) -> dict[str, Mapping[str, Any]]:
    """Item → answer, references and passage of the labelled answers, as far as they are known."""
    if answers:
        return {row["id"]: row for row in from_place(answers).rows}
    if labels.answers:
        return {item: {"answer": text, "references": labels.references.get(item, []), "passage": item.split("/")[0]}
                for item, text in labels.answers.items()}  # fmt: skip
    told: Iterable[Mapping[str, Any]] = [row for row in rows if row["answer"] and row["references"]]
    if not told and bundled:
        name = model or mrc_read.BUNDLED
        told = [{**row, "item": row["id"], "model": name} for row in mrc_read.bundled(name).rows]
    found: dict[str, Mapping[str, Any]] = {}
    for row in told:
        found[f"{row['item']}@{row['model']}"] = row
        if row["model"] == model or not model:
            found[row["item"]] = row
    return found


def measured(
    labels: Labels, texts: Mapping[str, Mapping[str, Any]], model: str
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """(words, F1 under the headline rule, passage) of each labelled answer."""
    cut, words, scores, clusters = f1.Segmenter(), [], [], []
    for item in labels.items:
        row = texts.get(item)
        clusters.append(str(row["passage"]) if row and row.get("passage") else item.split("@")[0])
        words.append(float(cut.count(row["answer"])) if row else math.nan)
        known = row is not None and any(one.strip() for one in row["references"])
        references = [one for one in row["references"] if one.strip()] if row and known else []
        scores.append(f1.score(row["answer"], references, segment=cut).f1 if row and known else math.nan)
    return np.array(words), np.array(scores), tuple(clusters)
