"""The four length normalisations of the choice tasks side by side, and what each does to the order of the models.

Log-probabilities of choices are compared as they are (acc), by character (acc_norm), UTF-8 byte (acc_bytes) or token
(acc_tokens); Thai letters take three bytes and few tokens, so which is taken can turn a ranking.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from thaikit import ranks
from thaikit.figures import task_names
from thaikit.records import Leaf
from thaikit.report_parts import DASH, Group, cell, number

MEASURES = {"acc": "as they are", "acc_norm": "by character", "acc_bytes": "by byte", "acc_tokens": "by token"}
NO_RANK = {"rank": "", "move": "", "up": None}
Span = tuple[int, int]
PREDICTIONS = ("prediction", "prediction_norm", "prediction_bytes", "prediction_tokens")


def tables(group: Group) -> list[dict[str, Any]]:
    """One table a choice task that has all four scores: models with scores, ranks and changes, and a sentence. Tasks
    where the four cannot differ (letters, one shared end) say so in place of a table."""
    found = []
    for task in group.tasks:
        having = [leaf for leaf in group.leaves if set(MEASURES) <= set(metrics_of(leaf, task))]
        if having:
            found.append(table(task, having))
    return found


def metrics_of(leaf: Leaf, task: str) -> Mapping[str, Any]:
    """A task's metrics as run.json has them."""
    return (leaf.run.get("tasks", {}).get(task) or {}).get("metrics") or {}


def table(task: str, having: Sequence[Leaf]) -> dict[str, Any]:
    """One task's table."""
    name, thai = task_names(task)
    facts = having[0].run["tasks"][task]
    headline = str(facts.get("metric"))
    base = headline if headline in MEASURES else "acc"
    estimates = [metrics_of(leaf, task) for leaf in having]
    told = {"task": name, "thai": thai, "headline": base,
            "heads": [{"key": key, "how": how} for key, how in MEASURES.items()]}  # fmt: skip
    if all(same_choices(leaf, task) for leaf in having):
        return told | {"rows": [], "says": f"{name}: the choices that are scored are alike in length (letters, or one "
                       "shared end), so all four choose the same answers."}  # fmt: skip
    places = {key: rank_spans([number(one[key].get("value")) for one in estimates]) for key in MEASURES}
    unlike = len({one[base].get("n") for one in estimates}) > 1
    ranked = len(having) > 1 and not unlike
    rows = []
    for i, (leaf, one) in enumerate(zip(having, estimates, strict=True)):
        moves = {key: change(places[key][i], places[base][i]) if ranked else NO_RANK for key in MEASURES}
        cells = [cell(one[key]) | {"headline": key == base} | moves[key] for key in MEASURES]
        rows.append({"model": leaf.name, "cells": cells})
    names = [leaf.name for leaf in having]
    says = sentence(name, base, names, places) if ranked else (
        f"{name}: the models were scored on different numbers of items, so they are not ranked here." if unlike else
        f"{name}: one model, so there is no order that a normalisation could change."
    )  # fmt: skip
    return told | {"rows": rows, "says": says}


def same_choices(leaf: Leaf, task: str) -> bool:
    """Whether no normalisation can matter: all four choose alike, and they must, since one shared end is scored
    (Winogrande) or the choices of every item have one length in characters, bytes and tokens (letters)."""
    wanted = ("choices", "tokens", *PREDICTIONS)
    rows = leaf.rows(task, *wanted) if task in leaf.tasks() else {}
    if not all(name in rows for name in wanted):
        return False
    if any(not rows[name].equals(rows["prediction"]) for name in PREDICTIONS):
        return False
    if leaf.run["tasks"][task].get("kind") == "winogrande":
        return True
    return all(alike(choices, tokens) for choices, tokens in zip(rows["choices"], rows["tokens"], strict=True))


def alike(choices: Any, tokens: Any) -> bool:
    """Whether an item's choices are of one length by every measure."""
    if choices is None or tokens is None or isinstance(choices, float) or isinstance(tokens, float):
        return True  # an item that was not asked
    sizes = {
        (len(str(text)), len(str(text).encode()), int(count)) for text, count in zip(choices, tokens, strict=False)
    }
    return len(sizes) <= 1


def rank_spans(values: Sequence[float]) -> list[Span | None]:
    """Each value's rank from the highest; equal values share all their ranks, NaN has none. Nothing is tested here."""
    pairs = [(i, j, values[i] - values[j], 0.0) for i in range(len(values)) for j in range(i + 1, len(values))]
    return ranks.bands(values, [pair for pair in pairs if not math.isnan(pair[2])])


def change(now: Span | None, base: Span | None) -> dict[str, Any]:
    """A rank and its move against the headline's as texts; ranks that are shared count with their middle."""
    if now is None or base is None:
        return NO_RANK
    rank = str(now[0]) if now[0] == now[1] else f"{now[0]}{DASH}{now[1]}"
    moved = (sum(base) - sum(now)) / 2
    if not moved:
        return {"rank": rank, "move": "", "up": None}
    return {"rank": rank, "move": f"{'▲' if moved > 0 else '▼'} {abs(moved):g}", "up": moved > 0}


def sentence(name: str, base: str, models: Sequence[str], places: Mapping[str, Sequence[Span | None]]) -> str:
    """Which of the normalisations change the order, and whom they move."""
    told = []
    for key in MEASURES:
        moves = [f"{model} {step['move']}" for model, now, then in zip(models, places[key], places[base], strict=True)
                 if (step := change(now, then))["move"]]  # fmt: skip
        told += [f"{key} moves {', '.join(moves)}"] if moves else []
    if not told:
        return f"{name}: the order of the models is the same under all four."
    return f"{name}: against {base}, {'; '.join(told)}. These are ranks of the scores as they stand, without a test."
