"""Figures of matched pairs, of open and closed models, of question formats, and of the audit.

Pure functions from data frames of `analysis`, `analysis_pairs` and `audit` to a Figure.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from thaikit import ThaikitError
from thaikit.figures import COLOURS, task_names
from thaikit.figures_analysis import (
    CLOSED,
    GLOBAL,
    GREY,
    OPEN,
    dot,
    keys,
    names_of,
    nan,
    own_mark,
    quiet,
)
from thaikit.figures_text import HALO, SMALL, WIDTH, below, drawable, ink, key_above, row_height, signed, wrapped

FORMAT_NAMES = {"average": ("Average", "ค่าเฉลี่ย"), "factoid": ("Factoid", "ถามทั่วไป"),
                "instruction": ("Instruction", "ทำตามคำสั่ง"), "gap": ("Factoid − instruction", "ผลต่าง")}  # fmt: skip
VERDICTS = {"holds": COLOURS[2], "does not hold": COLOURS[1], "cannot be told": "#c3cad1"}
HATCHES = {"does not hold": "////", "cannot be told": ".."}


def named(task: str, between: str = " ") -> str:
    """A task or question format in English and Thai."""
    return between.join(filter(None, FORMAT_NAMES.get(task) or task_names(task)))


def pairs_figure(made: pd.DataFrame, benchmark: str) -> Figure:
    """Differences of matched pairs, a panel a pair: dots with intervals where there are any, the average apart."""
    rows = made[made["benchmark"] == benchmark]
    if rows.empty:
        raise ThaikitError(f"figures: no pair of models has {benchmark}")
    titles = list(dict.fromkeys(rows["pair"]))
    tasks = list(dict.fromkeys(rows["task"]))[::-1]
    across = 2 if len(titles) > 1 else 1
    down = -(-len(titles) // across)
    heads = {title: pair_title(title) for title in titles}
    tall = 0.16 * max(head.count("\n") for head in heads.values())
    figure = Figure(figsize=(WIDTH, down * (0.36 * len(tasks) + 0.65 + tall) + 0.3), layout="constrained")
    first: Axes | None = None
    for place, title in enumerate(titles):
        axes = figure.add_subplot(down, across, place + 1, sharex=first, sharey=first)
        first = first or axes
        part = rows[rows["pair"] == title]
        for row in part.itertuples():
            draw_difference(axes, row, tasks.index(row.task))
        axes.set_title(heads[title], fontsize=9, loc="left", parse_math=False)
        axes.axvline(0, color=GREY, linewidth=1, zorder=1)
        axes.set_yticks(range(len(tasks)), [named(task, "\n") for task in tasks], fontsize=SMALL, parse_math=False)
        axes.tick_params(axis="y", labelleft=place % across == 0)
        axes.set_ylim(-0.6, len(tasks) - 0.4)
        quiet(axes, "x")
    ends = rows[["value", "low", "high"]].astype(float)
    left, right = min(0.0, np.nanmin(ends)), max(0.0, np.nanmax(ends))
    room = 0.34 * (right - left) or 1.0
    first.set_xlim(left - room, right + room)
    first.xaxis.set_major_locator(MaxNLocator(4))
    unit = ("percentage points, with 95 % interval where there are counts" if benchmark == "Thai-H6"
            else "points of 10; published means have no interval")  # fmt: skip
    below(figure, f"{benchmark}: first less second model,\n{unit}")
    if (rows["source"] == "own").any():
        keys(figure, [("published models", GLOBAL, "o", GLOBAL), *own_mark(rows)])
    return figure


def pair_title(pair: str) -> str:
    """Both models of a pair; each on lines of its own where one line is too short for both."""
    first, _, second = drawable(pair).partition(" − ")
    return f"{first} − {second}" if len(first) + len(second) < 33 else f"{wrapped(first)}\n− {wrapped(second)}"


def draw_difference(axes: Axes, row: Any, y: float) -> None:
    """One difference: its interval where there is one, a dot (open for own results), its value; nothing for NaN."""
    if nan(row.value):
        return
    end, side = row.value, 1 if row.value >= 0 else -1
    if not nan(row.low):
        axes.plot([row.low, row.high], [y, y], color=GLOBAL, linewidth=2, alpha=0.45, zorder=3)
        end = row.high if side > 0 else row.low
    colour = GREY if row.task == "average" else GLOBAL
    dot(axes, row.value, y, row.source, colour, "D" if row.task == "average" else "o")
    digits = 1 if row.benchmark == "Thai-H6" else 2
    axes.annotate(signed(row.value, digits), (end, y), xytext=(6 * side, 0), textcoords="offset points",
                  ha="left" if side > 0 else "right", va="center", fontsize=SMALL, color=ink(colour),
                  path_effects=HALO)  # fmt: skip


def groups_figure(frame: pd.DataFrame) -> Figure:
    """Open and closed models on the average, on factoid and on instruction questions, each model named by its dot."""
    cli = frame[frame["benchmark"] == "ThaiCLI"]
    tasks = ["average", "factoid", "instruction"]
    order = cli[(cli["task"] == "average") & cli["value"].notna()].sort_values("value")
    if order.empty:
        raise ThaikitError("figures: no model has an average of ThaiCLI")
    names = names_of(order)
    figure = Figure(figsize=(WIDTH, row_height(names, least=0.26) * len(order) + 0.9), layout="constrained")
    first: Axes | None = None
    for place, task in enumerate(tasks):
        axes = figure.add_subplot(1, 3, place + 1, sharex=first, sharey=first)
        first = first or axes
        rows = cli[cli["task"] == task].set_index(["source", "model"])
        for y, model in enumerate(order.itertuples()):
            if (model.source, model.model) not in rows.index:
                continue
            row = rows.loc[(model.source, model.model)]
            colour = CLOSED if model.access == "closed" else OPEN
            if not nan(row["low"]):
                axes.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=2, alpha=0.4)
            dot(axes, row["value"], y, model.source, colour, "s" if model.access == "closed" else "o")
        axes.set_title(named(task, "\n"), fontsize=9, loc="left")
        axes.set_yticks(range(len(order)), names, parse_math=False, fontsize=SMALL)
        axes.tick_params(axis="y", labelleft=place == 0)
        quiet(axes, "both")
    first.set_ylim(-0.7, len(order) - 0.3)
    below(figure, "ThaiCLI (points of 10), with 95 % interval where there are rows")
    access_keys(figure, cli)
    return figure


def access_keys(figure: Figure, frame: pd.DataFrame) -> None:
    """The legend of open and closed models."""
    marks = [("closed API", CLOSED, "s", CLOSED), ("open model", OPEN, "o", OPEN)]
    keys(figure, [*marks, *own_mark(frame)])


def formats_figure(gaps: pd.DataFrame) -> Figure:
    """Factoid and instruction scores of each model, joined, with the gap; closed models above, open ones below."""
    rows = gaps.iloc[::-1].reset_index(drop=True)
    names = names_of(rows)
    figure = Figure(figsize=(WIDTH, row_height(names) * (len(rows) + 1.2) + 0.6), layout="constrained")
    axes = figure.add_subplot()
    closed = (rows["access"] == "closed").to_numpy()
    places = np.arange(len(rows)) + np.where(closed & (not closed.all()), 0.8, 0.0)  # room for a rule and its names
    for y, row in zip(places, rows.itertuples(), strict=True):
        colour = CLOSED if row.access == "closed" else OPEN
        axes.plot([row.instruction, row.factoid], [y, y], color=colour, linewidth=2.2, alpha=0.45, zorder=2)
        dot(axes, row.factoid, y, row.source, colour, "o")
        dot(axes, row.instruction, y, row.source, colour, "v")
        if not nan(row.value):
            axes.annotate(signed(row.value, 2), (max(row.factoid, row.instruction), y), xytext=(8, 0),
                          textcoords="offset points", va="center", fontsize=SMALL, color=ink(colour),
                          path_effects=HALO)  # fmt: skip
    part_groups(axes, places, closed)
    axes.set_yticks(places, names, fontsize=9, parse_math=False)
    axes.set_ylim(-0.7, places.max(initial=0) + 1.1)
    axes.margins(x=0.1)
    below(figure, "ThaiCLI (points of 10); the number is factoid less instruction")
    quiet(axes, "x")
    marks = [(named("factoid"), GREY, "o", GREY), (named("instruction"), GREY, "v", GREY)]
    keys(figure, [*marks, *own_mark(gaps)])
    return figure


def part_groups(axes: Axes, places: np.ndarray, closed: np.ndarray) -> None:
    """The names of both groups above their first rows, and a rule between them."""
    for name, kept, colour in (("closed APIs", closed, CLOSED), ("open models", ~closed, OPEN)):
        if kept.any():
            axes.annotate(name, (1, places[kept].max() + 0.5), (-3, 0), xycoords=("axes fraction", "data"), ha="right",
                          textcoords="offset points", va="center", fontsize=9, color=ink(colour),
                          path_effects=HALO)  # fmt: skip
    if closed.any() and not closed.all():
        axes.axhline(places[~closed].max() + 0.95, color="#9aa3ad", linewidth=0.8)


def audit_figure(frame: pd.DataFrame) -> Figure:
    """How many statements hold, a bar a section of each paper."""
    places = list(dict.fromkeys(zip(frame["paper"], frame["section"], strict=True)))
    places.sort(key=lambda place: (place[0], [int(part) for part in place[1].split(".")]))
    figure = Figure(figsize=(WIDTH, 0.3 * len(places) + 0.7), layout="constrained")
    axes = figure.add_subplot()
    for y, (paper, section) in enumerate(reversed(places)):
        here = frame[(frame["paper"] == paper) & (frame["section"] == section)]["verdict"]
        sizes = [int((here == verdict).sum()) for verdict in VERDICTS]
        for (verdict, colour), size, left in zip(
            VERDICTS.items(), sizes, itertools.accumulate(sizes, initial=0), strict=False
        ):
            axes.barh(y, size, left=left, color=colour, height=0.62, edgecolor="white", hatch=HATCHES.get(verdict))
            if size:
                ground = {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none"}
                plain = verdict not in HATCHES
                axes.text(left + size / 2, y, str(size), ha="center", va="center", fontsize=SMALL,
                          color="white" if plain else "#1f2933", bbox=None if plain else ground)  # fmt: skip
    axes.set_yticks(range(len(places)), [f"{paper}, section {section}" for paper, section in reversed(places)],
                    fontsize=9)  # fmt: skip
    axes.set_ylim(-0.6, len(places) - 0.4)
    axes.set_xlabel("number of statements")
    axes.xaxis.get_major_locator().set_params(integer=True)
    patches = [Patch(facecolor=colour, hatch=HATCHES.get(verdict), edgecolor="white")
               for verdict, colour in VERDICTS.items()]  # fmt: skip
    key_above(figure, patches, list(VERDICTS))
    return figure
