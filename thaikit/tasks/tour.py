"""What the tour shows of an item: the source row, the worked steps from log-probabilities to a score, as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from thaikit.tasks.build import Task
from thaikit.tasks.items import context


def prompt_end(task: Task, *, index: int = 0, characters: int = 500) -> str:
    """The end of an item's prompt, with line ends and the trailing space made visible."""
    text = context(task.items[index], task.shots(index), delimiter=task.spec.delimiter)
    cut = text[-characters:]
    return ("… " if len(text) > characters else "") + cut


def choices(task: Task, row: Mapping[str, Any], *, index: int = 0) -> pd.DataFrame:
    """One line a choice: what is scored, its log-probability, and the same per character, byte and token."""
    item = task.items[index]
    shared = len(set(item.continuations)) == 1  # Winogrande: the tail is what is scored, and what its length divides
    measured = item.continuations if shared else row["choices"]
    lines = []
    for place, (choice, ll, tokens) in enumerate(zip(measured, row["ll"], row["tokens"], strict=True)):
        shown = row.get("shown", row["choices"])[place]
        lines.append(
            {
                "choice": shown,
                "right": bool(item.labels[place]) if item.labels else place == item.gold,
                "log-probability": ll,
                "per character": ll / len(choice),
                "per byte": ll / len(choice.encode()),
                "per token": ll / tokens,
                "tokens": tokens,
                "probability": math.exp(ll),
            }
        )
    return pd.DataFrame(lines)


def truth(row: Mapping[str, Any]) -> pd.DataFrame:
    """TruthfulQA's mc2 by hand: each answer's share of the probability of all, and the sum over the true ones."""
    top = max(row["ll"])
    weights = [math.exp(value - top) for value in row["ll"]]
    shares = [weight / sum(weights) for weight in weights]
    frame = pd.DataFrame({"answer": row["choices"], "true": row["labels"], "share": shares})
    total = {"answer": "sum over the true ones (mc2)", "true": None, "share": sum(frame["share"] * frame["true"])}
    return pd.concat([frame, pd.DataFrame([total])], ignore_index=True)


def answers(row: Mapping[str, Any]) -> pd.DataFrame:
    """What each rule reads in a completion, and whether it equals the reference."""
    lines = [
        {"rule": rule, "answer": answer, "reference": row["reference"], "score": row[rule]}
        for rule, answer in row["answers"].items()
    ]
    return pd.DataFrame(lines)
