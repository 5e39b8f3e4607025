"""Rows of leaves → counts by row, model and what became of the item, and the mosaics of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from thaikit.figures import task_names
from thaikit.figures_mosaic import ACROSS, ANSWERED, FAULTS, SCORED, mosaic
from thaikit.figures_thaicli import FORMATS, THEMES
from thaikit.records import Leaf
from thaikit.report_parts import Group, number

HIGH, MIDDLE = 8, 5  # where the bands of the judge's score begin
BANDS = 120  # in one column of a figure: beyond that nobody can read it
COLUMNS = ["model", "row", "part", "count"]


def thaicli(models: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[str, Figure]]:
    """Theme × model × outcome of judged answers, one figure a format that has rows; an ok item by its score's band."""
    names = {key: " ".join(both) for key, both in THEMES.items() if key != "all"}
    found = []
    for name in FORMATS:
        lines = [(model, row["theme"], judged(row)) for model, rows in models.items() for row in rows
                 if row["format"] == name]  # fmt: skip
        table = counts(lines)
        if len(table):
            others = {row: row for row in dict.fromkeys(table["row"]) if row not in names}
            found.append((name, mosaic(table, parts=SCORED, names=names | others)))
    return found


def judged(row: Mapping[str, Any]) -> str:
    """The part of a judged answer."""
    if row["outcome"] != "ok":
        return row["outcome"] if row["outcome"] in FAULTS else "failed"
    return "high" if row["score"] >= HIGH else "middle" if row["score"] >= MIDDLE else "low"


def counts(lines: Iterable[tuple[str, str, str]]) -> pd.DataFrame:
    """One line for each model, row and part that occur, in their order."""
    found: dict[tuple[str, str, str], int] = {}
    for key in lines:
        found[key] = found.get(key, 0) + 1
    return pd.DataFrame([(*key, count) for key, count in found.items()], columns=COLUMNS)


def thai_h6(group: Group) -> list[tuple[str, Figure]]:
    """Task × model × right, wrong or what else became of the item, and MMLU's subjects × model where a page holds
    them. TruthfulQA counts as right where the likeliest answer is a true one; a task without right and wrong is out."""
    lines = [(leaf.name, task, subject, part) for task in group.tasks for leaf in group.leaves if task in leaf.tasks()
             for subject, part in leaf_rows(leaf, task)]  # fmt: skip
    whole = counts((model, task, part) for model, task, _, part in lines)
    subjects = counts((model, subject, part) for model, _, subject, part in lines if subject)
    names = {task: " ".join(filter(None, task_names(task))) for task in group.tasks}
    found = [("tasks", mosaic(whole, parts=ANSWERED, names=names))] if len(whole) else []
    shown = sorted(set(subjects["row"]))
    if len(shown) > 1 and len(shown) * math.ceil(subjects["model"].nunique() / ACROSS) <= BANDS:
        found.append(("subjects", mosaic(subjects, parts=ANSWERED, names={one: one for one in shown})))
    return found


def leaf_rows(leaf: Leaf, task: str) -> list[tuple[str, str]]:
    """Subject and part of each row of a leaf's task."""
    rows = leaf.rows(task, "subject", "outcome", "metric", "acc", "score", "answers").to_dict("records")
    told = [(str(row.get("subject") or ""), answered(row)) for row in rows]
    return [(subject, part) for subject, part in told if part]


def answered(row: Mapping[str, Any]) -> str:
    """The part of a Thai-H6 row; "" where its score is a share that is neither right nor wrong."""
    metric = str(row.get("metric"))
    score = number(row.get("acc" if metric == "mc2" else "score"))
    if math.isnan(score):
        return str(row.get("outcome")) if row.get("outcome") in FAULTS else ""
    answers = row.get("answers")
    if score == 0 and isinstance(answers, Mapping) and answers.get(metric) is None:
        return "none"
    return {1.0: "right", 0.0: "wrong"}.get(score, "")
