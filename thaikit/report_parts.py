"""Leaves → what the report's tables say: plain dictionaries and lists of rows, numbers already written for display."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from thaikit import matched, stats
from thaikit.figures import THAI_NAMES, task_names
from thaikit.leaves import LIMIT_HIT_ALLOWED
from thaikit.records import Leaf
from thaikit.report_links import link

H6 = tuple(name for name in THAI_NAMES if name != "average")
CHOICE_METRICS = ("acc", "acc_norm", "acc_bytes", "acc_tokens", "mc1", "mc2")
NUMBER_METRICS = ("strict", "flexible", "em_thai", "v1")
SEED = 1234  # of the sign-flip draws; they are no part of any score
DASH = "–"


@dataclass(frozen=True)
class Group:
    """Leaves whose numbers may share a table: one profile, label language, delimiter, task file and data."""

    profile: str
    labels: str
    delimiter: str
    tasks_file: str
    data: str
    leaves: tuple[Leaf, ...]

    @property
    def tasks(self) -> list[str]:
        """The tasks in the paper's order, all six as soon as one of them is there; sets of another kind after them."""
        there = dict.fromkeys(task for leaf in self.leaves for task in [*leaf.run.get("tasks", {}), *scores(leaf)])
        own = [task for task in there if task not in H6 and task != "average" and not micro_of(task, there)]
        return [*(H6 if any(task in H6 for task in there) else ()), *own]


def micro_of(name: str, there: Mapping[str, Any]) -> bool:
    """Whether a headline entry is the micro mean of another."""
    return name.endswith("_micro") and name.removesuffix("_micro") in there


def groups(found: Sequence[Leaf]) -> list[Group]:
    """The leaves, parted by all that makes their numbers incomparable, in order of first appearance."""
    parted: dict[tuple[str, ...], list[Leaf]] = {}
    for leaf in found:
        parted.setdefault(group_key(leaf), []).append(leaf)
    return [Group(*key, tuple(leaves)) for key, leaves in parted.items()]


def group_key(leaf: Leaf) -> tuple[str, str, str, str, str]:
    """Profile, labels, delimiters, task file and data place of a leaf."""
    tasks = leaf.run.get("tasks", {}).values()
    params = leaf.run.get("params", {})

    def distinct(key: str) -> str:
        return ", ".join(sorted({repr(t[key]) if key == "delimiter" else str(t[key]) for t in tasks if key in t}))

    tasks_file = str(params.get("tasks") or params.get("task") or "")
    data = str(leaf.run.get("data_place") or params.get("data") or "")
    return distinct("profile"), distinct("labels"), distinct("delimiter"), tasks_file, data


def scores(leaf: Leaf) -> dict[str, dict[str, Any]]:
    """A leaf's headline: task → estimate."""
    headline = leaf.run.get("headline") or {}
    return dict(headline.get("thai_h6", headline))


def number(value: Any) -> float:
    """A number or NaN (run.json and Parquet write a missing one as null)."""
    return float(value) if isinstance(value, int | float) else math.nan


def percent(value: Any, digits: int = 2) -> str:
    """0..1 as percent without the sign; a dash for what is not there."""
    x = number(value)
    return DASH if math.isnan(x) else f"{100 * x:.{digits}f}".replace("-", "−")


def cell(estimate: Mapping[str, Any] | None, *, show: Callable[..., str] = percent) -> dict[str, str]:
    """An estimate as a table cell: value, interval, n, and where something is missing the reason. `show` writes a
    number, with fewer digits where it is told how many."""
    if not estimate:
        return {"value": DASH, "interval": "", "n": "", "why": "not run"}
    low, high = number(estimate.get("low")), number(estimate.get("high"))
    bare = math.isnan(low) or math.isnan(high)
    why = str(estimate.get("method", "")) if bare or math.isnan(number(estimate.get("value"))) else ""
    interval = DASH if bare else f"{show(low, 1)} to {show(high, 1)}"
    return {"value": show(estimate.get("value")), "interval": interval, "n": str(estimate.get("n", "")), "why": why}


def columns(group: Group) -> list[dict[str, str]]:
    """The columns of a group's table: each task, MMLU's micro mean beside its macro mean, the average last."""
    there = {name for leaf in group.leaves for name in scores(leaf)}
    found = []
    for task in group.tasks:
        facts = [leaf.run["tasks"][task] for leaf in group.leaves if task in leaf.run.get("tasks", {})]
        metric = ", ".join(dict.fromkeys(str(f.get("metric", "")) for f in facts))
        name, thai = task_names(task)
        has_micro = f"{task}_micro" in there
        told = f"{metric}, macro over subjects" if has_micro else metric
        found.append({"key": task, "name": name, "thai": thai, "metric": told, "kind": "task"})
        if has_micro:
            told = f"{metric}, micro over items"
            found.append({"key": f"{task}_micro", "name": f"{name} micro", "thai": "", "metric": told, "kind": "micro"})
    if "average" in there or len(group.tasks) > 1:
        name, thai = task_names("average")
        found.append({"key": "average", "name": name, "thai": thai, "metric": "unweighted mean", "kind": "average"})
    return found


def chance(leaf: Leaf, task: str) -> float:
    """What guessing scores on a leaf's task; of the average, where no task is missing, the mean."""
    tasks = leaf.run.get("tasks", {})
    if task == "average":
        told = [number(tasks[t].get("chance")) for t in scores(leaf) if t in tasks]
        return float(np.mean(told)) if told and "average" in scores(leaf) else math.nan
    return number(tasks.get(task.removesuffix("_micro"), {}).get("chance"))


def chance_cell(group: Group, task: str) -> str:
    """The chance level of a column; where models saw different items the lowest and the highest."""
    told = sorted({percent(chance(leaf, task)) for leaf in group.leaves} - {DASH}, key=float)
    return DASH if not told else told[0] if len(told) == 1 else f"{told[0]} to {told[-1]}"


def score_table(group: Group) -> dict[str, Any]:
    """The Thai-H6 table: columns, one row a model, and the chance row."""
    heads = columns(group)
    rows = [
        {
            "model": leaf.name,
            "rehearsal": rehearses(leaf),
            "limit": limited(leaf),
            "chat": any(facts.get("chat") for facts in leaf.run.get("tasks", {}).values()),
            "cells": [
                cell(scores(leaf).get(head["key"])) | {"kind": head["kind"], "link": link(leaf, head["key"])}
                for head in heads
            ],
        }
        for leaf in group.leaves
    ]
    return {"columns": heads, "rows": rows, "chance": [chance_cell(group, head["key"]) for head in heads]}


def rehearses(leaf: Leaf) -> bool:
    """Whether the leaf's model is there to rehearse the machinery."""
    return bool((leaf.run.get("model") or {}).get("rehearsal"))


def limited(leaf: Leaf) -> bool:
    """Whether fewer items were asked than the files hold, by `limit`."""
    return bool(leaf.run.get("params", {}).get("limit"))


def score_frame(group: Group) -> pd.DataFrame:
    """The scores in percent and full precision, one row for each model and column: model, profile, labels, task, value,
    low, high, n, chance, method; NaN for what is not there. `figures.thai_h6_bars` draws it."""
    rows = []
    for head, leaf in itertools.product(columns(group), group.leaves):
        one = scores(leaf).get(head["key"]) or {}
        told = {key: 100 * number(one.get(key)) for key in ("value", "low", "high")}
        told |= {
            "n": one.get("n", 0),
            "chance": 100 * chance(leaf, head["key"]),
            "method": one.get("method", "not run"),
        }
        rows.append({"model": leaf.name, "profile": group.profile, "labels": group.labels, "task": head["key"], **told})
    return pd.DataFrame(rows)


def leaf_table(found: Sequence[Leaf]) -> pd.DataFrame:
    """The leaves that a report reads: model, tasks, items scored, profile, labels, data, and when they were closed."""
    return pd.DataFrame([
        {
            "leaf": leaf.name, "tasks": ", ".join(leaf.run.get("tasks", {})),
            "items": sum(facts.get("n", 0) for facts in leaf.run.get("tasks", {}).values()),
            **dict(zip(("profile", "labels", "delimiter", "task file", "data"), group_key(leaf), strict=True)),
            "rehearsal": rehearses(leaf), "finished": leaf.run.get("finished", ""),
        }
        for leaf in found
    ])  # fmt: skip


def comparisons(group: Group) -> list[dict[str, Any]]:
    """Every two models on every task, over the items that both answered, with p-values after Holm over all of them."""
    rng = np.random.default_rng(SEED)
    answered = {(leaf.name, task): keyed(leaf, task) for leaf in group.leaves for task in leaf.tasks()}
    found = []
    for (a, b), task in itertools.product(itertools.combinations(group.leaves, 2), group.tasks):
        if (a.name, task) in answered and (b.name, task) in answered:
            both = matched.shared(answered[a.name, task], answered[b.name, task], on_shared=True)
            if both.items:
                found.append((a.name, b.name, task, stats.paired(both.a, both.b, rng=rng)))
    corrected = stats.holm([made.p for *_, made in found])
    return [comparison_row(*one, corrected=p) for one, p in zip(found, corrected, strict=True)]


def keyed(leaf: Leaf, task: str) -> dict[Any, float]:
    """A task's scores by the items' ids and questions."""
    rows = leaf.rows(task, "id", "question", "score")
    found = zip(zip(rows["id"], rows["question"], strict=True), map(number, rows["score"]), strict=True)
    return {key: score for key, score in found if score == score}


def comparison_row(a: str, b: str, task: str, made: stats.Paired, *, corrected: float) -> dict[str, Any]:
    """One comparison as text, and its `numbers` in full; it names a winner only where the corrected p is below 0.05."""
    told = cell(made.difference.as_dict())
    reading = f"{a if made.difference.value > 0 else b} is higher" if corrected < 0.05 else "no difference shown"
    exact = made.difference.as_dict() | {"wins": made.wins, "losses": made.losses, "p": made.p, "p_holm": corrected}
    return {
        "a": a, "b": b, "task": task_names(task)[0], "n": told["n"], "difference": told["value"],
        "interval": told["interval"], "why": told["why"], "p": p_value(made.p), "holm": p_value(corrected),
        "won": f"{made.wins} : {made.losses}", "test": made.test, "reading": reading,
        "numbers": {"a": a, "b": b, "task": task, **exact, "test": made.test},
    }  # fmt: skip


def p_value(p: float) -> str:
    """A p-value with three decimals."""
    return DASH if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def metric_tables(group: Group) -> list[dict[str, Any]]:
    """Every metric of every task, one table for those of choices and one for those of generated answers: the names that
    occur, and one row for each task and model; the task's own metric is marked."""
    facts = [(task, leaf, leaf.run["tasks"][task]) for task in group.tasks for leaf in group.leaves
             if task in leaf.run.get("tasks", {})]  # fmt: skip
    tables = []
    for family in (CHOICE_METRICS, NUMBER_METRICS):
        mine = [one for one in facts if any(name in one[2].get("metrics", {}) for name in family)]
        names = [name for name in family if any(name in f.get("metrics", {}) for *_, f in mine)]
        rows = [
            {
                "task": task_names(task)[0],
                "model": leaf.name,
                "cells": [
                    cell(f.get("metrics", {}).get(n)) | {"headline": n == f.get("metric")} | {"link": link(leaf, task)}
                    for n in names
                ],
            }
            for task, leaf, f in mine
        ]
        tables += [{"names": names, "rows": rows}] if rows else []
    return tables


def generated_table(group: Group) -> list[dict[str, Any]]:
    """Rates of the tasks answered by generation: limit hit, no answer, several answer marks."""
    return [
        {
            "task": task_names(task)[0],
            "model": leaf.name,
            "limit_hit": percent(facts["limit_hit"]),
            "invalid": percent(facts.get("invalid")),
            "several": percent(facts.get("several_marks")),
            "max_new_tokens": facts.get("max_new_tokens", ""),
            "loud": number(facts["limit_hit"]) > LIMIT_HIT_ALLOWED,
        }
        for leaf in group.leaves
        for task, facts in leaf.run.get("tasks", {}).items()
        if "limit_hit" in facts
    ]


def count_table(group: Group) -> list[dict[str, Any]]:
    """What was counted and never mended: one row for each task and model."""
    keys = ("items", "n", "boundary", "truncated", "skipped", "fewer_shots", "exemplars_removed")
    rows = []
    for task, leaf in itertools.product(group.tasks, group.leaves):
        facts = leaf.run.get("tasks", {}).get(task)
        if facts:
            total, distinct = number(facts.get("total_tokens")), number(facts.get("distinct_tokens"))
            rows.append({
                "task": task_names(task)[0], "model": leaf.name, **{key: facts.get(key, DASH) for key in keys},
                "distinct": whole(distinct), "total": whole(total),
                "ratio": f"{total / distinct:.1f}" if distinct > 0 and total == total else DASH,
                "audit": told(facts.get("audit")), "outcomes": told(facts.get("outcomes")),
            })  # fmt: skip
    return rows


def whole(value: float) -> str:
    """A count with separators."""
    return DASH if math.isnan(value) else f"{value:,.0f}"


def told(counts: Mapping[str, Any] | None) -> str:
    """Counts as text: `zero_width 2, double_vowel 1`."""
    return ", ".join(f"{key} {value}" for key, value in (counts or {}).items()) or DASH
