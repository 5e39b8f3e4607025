"""Leaves of all benchmarks → the leaderboard: each group of comparable leaves ranked for itself, ranks shared."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thaikit import ranks, report_mrc, report_pairs, report_parts, report_thaicli
from thaikit.figures import task_names
from thaikit.records import Leaf, leaves, read_rows
from thaikit.report_links import link
from thaikit.report_pairs import Pair, Scores
from thaikit.report_parts import DASH, H6, SEED, cell, micro_of, number, percent
from thaikit.report_thaicli import point


@dataclass(frozen=True)
class Entry:
    """A model on a board: its headline as run.json has it, and its scores by task and item."""

    model: str
    estimate: Mapping[str, Any]
    rehearsal: bool
    items: Mapping[str, Scores]
    link: str = ""

    @property
    def value(self) -> float:
        """The headline's value, NaN where there is none."""
        return number(self.estimate.get("value"))


@dataclass(frozen=True)
class Board:
    """Models that may be ranked together: one benchmark, asked and judged in one way. `terms` says which."""

    benchmark: str
    measure: str
    terms: str
    entries: tuple[Entry, ...]
    pairs: tuple[Pair, ...]
    bands: tuple[tuple[int, int] | None, ...]
    show: Callable[..., str]
    scale: float

    @property
    def order(self) -> list[int]:
        """Places of the entries, the best first: by best rank, then by value; those without a value last."""
        keys = {i: (self.bands[i] or (10**6, 0), -entry.value) for i, entry in enumerate(self.entries)}
        return sorted(keys, key=lambda i: (keys[i][0], keys[i][1] if keys[i][1] == keys[i][1] else math.inf))


def boards(suite: Path | str) -> list[Board]:
    """The boards of a suite folder: Thai-H6, ThaiCLI, MRC, each once for every group of comparable leaves."""
    return [*h6_boards(leaves(suite, stage="thai_h6")), *thaicli_boards(suite), *mrc_boards(suite)]


# ------------------------------------------------------------------------------------------------- what is ranked


def h6_boards(found: Sequence[Leaf]) -> list[Board]:
    """One board for each way of asking and set of tasks: their average, or the score of a single task."""
    made = []
    for group in report_parts.groups(found):
        parted: dict[tuple[str, ...], list[Leaf]] = {}
        for leaf in group.leaves:
            parted.setdefault(tasks_of(leaf), []).append(leaf)
        for tasks, some in parted.items():
            six = set(tasks) == set(H6)
            name = "Thai-H6" if any(task in H6 for task in tasks) else group.tasks_file or "Tasks"
            measure = "average of the six" if six else f"average of {len(tasks)}" if len(tasks) > 1 else "score"
            asked = {"profile": group.profile, "labels": group.labels, "delimiter": group.delimiter}
            told = [f"{key} {value}" for key, value in asked.items() if value] + [group.tasks_file]
            told += [group.data and f"data {group.data}", "" if six else ", ".join(task_names(t)[0] for t in tasks)]
            entries = [h6_entry(leaf, tasks) for leaf in some]
            made.append(board(name, f"{measure}, %", terms(told), entries))
    return made


def h6_entry(leaf: Leaf, tasks: Sequence[str]) -> Entry:
    """A leaf's line."""
    to = link(leaf, tasks[0] if len(tasks) == 1 else "average") if tasks else ""
    return Entry(leaf.name, h6_estimate(leaf, tasks), report_parts.rehearses(leaf), h6_items(leaf, tasks), to)


def tasks_of(leaf: Leaf) -> tuple[str, ...]:
    """The tasks of a leaf's headline."""
    there = report_parts.scores(leaf)
    return tuple(sorted(task for task in there if task != "average" and not micro_of(task, there)))


def h6_estimate(leaf: Leaf, tasks: Sequence[str]) -> Mapping[str, Any]:
    """The leaf's average, or its only task's score."""
    found = report_parts.scores(leaf)
    if len(tasks) == 1:
        return found[tasks[0]]
    return found.get("average") or {"value": None, "method": f"no average over its {len(tasks)} tasks"}


def h6_items(leaf: Leaf, tasks: Sequence[str]) -> dict[str, Scores]:
    """Scores by task and item; grouped by subject where the headline is the macro mean over subjects."""
    found, there = {}, report_parts.scores(leaf)
    for task in tasks:
        if task not in leaf.tasks():
            continue
        rows = leaf.rows(task, "id", "question", "subject", "score").dropna(subset=["score"])
        macro = f"{task}_micro" in there and "subject" in rows
        groups = rows["subject"].tolist() if macro else [""] * len(rows)
        keys = zip(rows["id"].tolist(), rows["question"].tolist(), strict=True)
        scored = zip(groups, rows["score"].astype(float).tolist(), strict=True)
        found[task] = dict(zip(keys, scored, strict=True))
    return found


def thaicli_boards(suite: Path | str) -> list[Board]:
    """One board for each judge and data set."""
    made = []
    for group in report_thaicli.grouped(suite):
        entries = []
        for leaf in group:
            rows = read_rows(leaf.path / "rows" / "judgements.jsonl")
            items = {name: {key: ("", score) for key, score in report_thaicli.keyed(rows, name).items()}
                     for name in report_thaicli.FORMATS}  # fmt: skip
            estimate = (leaf.run["headline"].get("thaicli") or {}).get("average") or {}
            told = (report_thaicli.model_of(leaf), estimate, report_thaicli.rehearses(leaf), items)
            entries.append(Entry(*told, link(leaf)))
        judge = group[0].run.get("judge") or {}
        told = [f"judge {judge.get('name')}", f"rule {judge.get('rule')}", judge.get("variant"),
                f"data {group[0].run.get('data_place')}"]  # fmt: skip
        made.append(board("ThaiCLI", "mean of the formats, 1 to 10", terms(told), entries, show=point, scale=1.0))
    return made


def mrc_boards(suite: Path | str) -> list[Board]:
    """One board for each data set, number of worked examples and rule."""
    made = []
    for group in report_mrc.f1_groups(suite):
        entries = []
        for part in group.parts:
            items = {"f1": report_mrc.scored(part, "score")}
            entries.append(Entry(part.model, report_mrc.headline(part)["f1"], part.rehearsal, items, part.link))
        made.append(board("MRC", f"F1 by {group.rule}, %", group.terms, entries, clustered=True))
    return made


def terms(told: Sequence[Any]) -> str:
    """What makes a board's numbers comparable, as one line."""
    return " · ".join(str(one) for one in told if one) or "nothing recorded of how it was asked"


def board(benchmark: str, measure: str, told: str, entries: Sequence[Entry], *, show: Callable[..., str] = percent,
          scale: float = 100.0, clustered: bool = False) -> Board:  # fmt: skip
    """The models compared two by two, corrected over the board, and the ranks that follow."""
    rng, pairs = np.random.default_rng(SEED), []
    ranked = [i for i, entry in enumerate(entries) if not math.isnan(entry.value)]
    places = list(itertools.combinations(ranked, 2))
    how: dict[str, Any] = {"rng": rng, "draws": ranks.draws_for(len(places))}
    names = {task: task_names(task)[0] for entry in entries for task in entry.items}
    for a, b in ((entries[i], entries[j]) for i, j in places):
        if clustered:
            pairs.append(report_pairs.clustered_pair(a.model, b.model, "", a.items["f1"], b.items["f1"], **how))
        else:
            pairs.append(report_pairs.macro_pair(a.model, b.model, "", a.items, b.items, names=names, **how))
    done = report_pairs.corrected(pairs)
    found = [(i, j, math.nan if pair.gap is None else pair.gap.difference.value, pair.holm)
             for (i, j), pair in zip(places, done, strict=True)]  # fmt: skip
    bands = ranks.bands([entry.value for entry in entries], found)
    return Board(benchmark, measure, told, tuple(entries), tuple(done), tuple(bands), show, scale)


# ------------------------------------------------------------------------------------------------- what is shown


def section(found: Sequence[Board]) -> dict[str, Any]:
    """The leaderboard as the page shows it: a column a board, a row a model; {} where there is nothing to show."""
    if not found:
        return {}
    heads = [{"benchmark": one.benchmark, "measure": one.measure, "terms": one.terms} for one in found]
    return {
        "heads": heads, "rows": model_rows(found), "told": [told_of(one) for one in found], "seed": SEED,
        "pairs": [{"title": f"{one.benchmark}: {one.terms}"} | pair_table(one) for one in found if one.pairs],
        "rehearsal": any(entry.rehearsal for one in found for entry in one.entries),
    }  # fmt: skip


def pair_table(one: Board) -> dict[str, Any]:
    """A board's pairs as a table, those of its best model where they are many."""
    order = [one.entries[i].model for i in one.order]
    return report_pairs.table(one.pairs, order, by="score", show=one.show, scale=one.scale)


def model_rows(found: Sequence[Board]) -> list[dict[str, Any]]:
    """A row a model, those of the first board first and in its order."""
    names = dict.fromkeys(one.entries[i].model for one in found for i in one.order)
    rows = []
    for name in names:
        cells = [board_cell(one, name) for one in found]
        there = [cell for cell in cells if cell["there"]]
        whole = all(cell["rehearsal"] for cell in there)
        rows.append({"model": name, "rehearsal": whole, "cells": [c | {"tag": c["rehearsal"] and not whole}
                                                                  for c in cells]})  # fmt: skip
    return rows


def board_cell(one: Board, name: str) -> dict[str, Any]:
    """A model's cell on a board: rank, value, interval, n; empty where it is not on it."""
    for place, entry in enumerate(one.entries):
        if entry.model == name:
            made = cell(entry.estimate, show=one.show)
            return made | {
                "there": True,
                "rank": rank_text(one, place),
                "rehearsal": entry.rehearsal,
                "link": "" if math.isnan(entry.value) else entry.link,
            }
    return {"there": False, "rank": "", "rehearsal": False}


def rank_text(one: Board, place: int) -> str:
    """A rank as text, "1–3" where it is shared; "" where only one model has a value."""
    band = one.bands[place]
    if band is None or sum(other is not None for other in one.bands) < 2:
        return ""
    return str(band[0]) if band[0] == band[1] else f"{band[0]}{DASH}{band[1]}"


def told_of(one: Board) -> dict[str, str]:
    """A board in words: who is shown to be first, and what differences it could show at all."""
    ranked = [i for i in one.order if one.bands[i] is not None]
    said = {"title": one.benchmark, "terms": one.terms}
    if len(ranked) < 2:
        return said | {
            "says": "One model has a score: there is nothing to rank." if ranked else "No model has a score."
        }
    first = [one.entries[i].model for i in ranked if (one.bands[i] or (0, 0))[0] == 1]
    alone = len(first) == 1 and one.bands[ranked[0]] == (1, 1)
    shown = sum(bool(pair.ahead) for pair in one.pairs)
    count = f"{shown} of {len(one.pairs)} {'pair' if len(one.pairs) == 1 else 'pairs'} shown to differ"
    says = f"{first[0]} is higher than every other model ({count}). " if alone else (
        f"No model is shown to be higher than every other one; {joined(first)} may be first ({count}). "
    )  # fmt: skip
    return said | {"says": says + too_few(one) + detectable(one)}


def too_few(one: Board) -> str:
    """A sentence where no pair could be shown to differ, whatever its scores."""
    least = [pair.gap.least * pair.tests for pair in one.pairs if pair.gap is not None]
    if not least or min(least) < report_pairs.LEVEL:
        return ""
    return "There are too few items or passages for so many pairs: no difference, however large, could be shown. "


def joined(names: Sequence[str], most: int = 6) -> str:
    """Names as an English list, the rest counted."""
    some = list(names[:most]) + ([f"{len(names) - most} more"] if len(names) > most else [])
    return some[0] if len(some) == 1 else f"{', '.join(some[:-1])} and {some[-1]}"


def detectable(one: Board) -> str:
    """The smallest detectable differences of a board's pairs in one sentence."""
    both = [report_pairs.smallest(pair) for pair in one.pairs]
    alone, among = ([values[i] for values in both if not math.isnan(values[i])] for i in (0, 1))
    if not alone:
        return "What difference it could show cannot be told: no pair has items that differ."
    told = f"Smallest detectable difference: {span(alone, one)} points for a pair tested alone"
    return told + (f", {span(among, one)} at the strictest step of Holm." if one.pairs[0].tests > 1 else ".")


def span(values: Sequence[float], one: Board) -> str:
    """The range of some numbers."""
    low, high = one.show(min(values), 2 if one.scale == 1 else 1), one.show(max(values), 2 if one.scale == 1 else 1)
    return low if low == high else f"{low} to {high}"
