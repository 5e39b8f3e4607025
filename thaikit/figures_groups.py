"""Figures of matched pairs, of both benchmarks against each other, of open and closed models, and of the audit.

Pure functions from data frames of `analysis`, `analysis_pairs` and `audit` to a Figure.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thaikit import ThaikitError
from thaikit.figures import COLOURS, task_names
from thaikit.figures_analysis import CLOSED, GLOBAL, GREY, OPEN, WIDTH, colour_of, dot, keys, legend, nan, quiet
from thaikit.figures_labels import label_points

FORMAT_NAMES = {"average": ("Average", "ค่าเฉลี่ย"), "factoid": ("Factoid", "ถามทั่วไป"),
                "instruction": ("Instruction", "ทำตามคำสั่ง"), "gap": ("Factoid − instruction", "ผลต่าง")}  # fmt: skip
VERDICTS = {"holds": COLOURS[2], "does not hold": COLOURS[1], "cannot be told": "#aab3bc"}


def named(task: str) -> str:
    """A task or question format in English and Thai."""
    return " ".join(FORMAT_NAMES.get(task) or task_names(task)).strip()


def pairs_figure(made: pd.DataFrame, benchmark: str) -> Figure:
    """Differences of matched pairs, a panel a pair: dots with intervals where there are any, the average apart."""
    rows = made[made["benchmark"] == benchmark]
    if rows.empty:
        raise ThaikitError(f"figures: no pair of models has {benchmark}")
    titles = list(dict.fromkeys(rows["pair"]))
    tasks = list(dict.fromkeys(rows["task"]))[::-1]
    across = 2 if len(titles) > 1 else 1
    down = -(-len(titles) // across)
    figure = Figure(figsize=(WIDTH, down * (0.31 * len(tasks) + 0.75) + 0.4), layout="constrained")
    first: Axes | None = None
    for place, title in enumerate(titles):
        axes = figure.add_subplot(down, across, place + 1, sharex=first, sharey=first)
        first = first or axes
        part = rows[rows["pair"] == title]
        for row in part.itertuples():
            draw_difference(axes, row, tasks.index(row.task))
        axes.set_title(title, fontsize=9.5, loc="left", parse_math=False)
        axes.axvline(0, color=GREY, linewidth=1, zorder=1)
        axes.set_yticks(range(len(tasks)), [named(task) for task in tasks])
        axes.tick_params(axis="y", length=0, labelleft=place % across == 0)
        axes.set_ylim(-0.6, len(tasks) - 0.4)
        quiet(axes, "x")
    ends = rows[["value", "low", "high"]].astype(float)
    room = 0.24 * (np.nanmax(ends) - np.nanmin(ends))
    first.set_xlim(min(0.0, np.nanmin(ends)) - room, max(0.0, np.nanmax(ends)) + room)
    unit = "percentage points" if benchmark == "Thai-H6" else "points of 10; published means have no interval"
    figure.supxlabel(f"{benchmark}: first less second model, {unit}", fontsize=10, color="#4a5560")
    return figure


def draw_difference(axes: Axes, row: Any, y: float) -> None:
    """One difference: its interval where there is one, a dot (open for own results), its value."""
    end, side = row.value, 1 if row.value >= 0 else -1
    if not nan(row.low):
        axes.plot([row.low, row.high], [y, y], color=GLOBAL, linewidth=2, alpha=0.45, zorder=3)
        end = row.high if side > 0 else row.low
    colour = GREY if row.task == "average" else GLOBAL
    dot(axes, row.value, y, row.source, colour, "D" if row.task == "average" else "o")
    digits = 1 if row.benchmark == "Thai-H6" else 2
    axes.annotate(f"{row.value:+.{digits}f}".replace("-", "−"), (end, y), xytext=(6 * side, 0),
                  textcoords="offset points", ha="left" if side > 0 else "right", va="center", fontsize=8,
                  color=colour)  # fmt: skip


def scatter_figure(both: pd.DataFrame) -> Figure:
    """ThaiCLI against Thai-H6, each model named."""
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    axes = figure.add_subplot()
    for row in both.itertuples():
        dot(axes, row.h6, row.cli, row.source, colour_of(row.specialised), "D" if row.specialised else "o")
    axes.margins(x=0.12, y=0.12)
    axes.set_xlabel("Thai-H6, average (percent)")
    axes.set_ylabel("ThaiCLI, average (points of 10)")
    quiet(axes, "both")
    legend(figure, both)
    label_points(axes, list(both["h6"]), list(both["cli"]), list(both["short"]),
                 colours=[colour_of(special) for special in both["specialised"]])  # fmt: skip
    return figure


def ranks_figure(both: pd.DataFrame) -> Figure:
    """Places on both benchmarks, a line a model; those that move by three places or more stand out."""
    rows = both[both["ranked"].astype(bool)]
    figure = Figure(figsize=(WIDTH, 0.45 * len(rows) + 1.2), layout="constrained")
    axes = figure.add_subplot()
    for row in rows.itertuples():
        moved = abs(row.change) >= 3
        colour = COLOURS[1] if moved else "#7d8a96"
        face = colour if row.source == "published" else "white"
        axes.plot([0, 1], [row.h6_rank, row.cli_rank], color=colour, linewidth=2.6 if moved else 1.4, zorder=3,
                  marker="o", markersize=6, markerfacecolor=face)  # fmt: skip
        axes.text(-0.04, row.h6_rank, f"{row.short}  {row.h6:.2f}", ha="right", va="center", fontsize=9, color=colour,
                  parse_math=False)  # fmt: skip
        axes.text(1.04, row.cli_rank, f"{row.cli:.2f}  {row.short}", ha="left", va="center", fontsize=9, color=colour,
                  parse_math=False)  # fmt: skip
    axes.set_xlim(-0.75, 1.75)
    axes.set_ylim(len(rows) + 0.5, 0.5)
    axes.set_xticks([0, 1], ["Thai-H6\n(percent)", "ThaiCLI\n(points of 10)"])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    return figure


def chance_figure(n: int, seen: float) -> Figure:
    """How Spearman's rho of n models (at most 9) falls by chance alone, over all orders, with what was seen."""
    ranks = np.arange(n) - (n - 1) / 2
    rhos = np.array(list(itertools.permutations(ranks))) @ ranks / (ranks @ ranks)
    levels, counts = np.unique(np.round(rhos, 6), return_counts=True)
    share = 100 * counts / len(rhos)
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    axes = figure.add_subplot()
    tails = np.array([np.mean(np.abs(rhos) >= abs(level) - 1e-6) for level in levels])
    colours = [COLOURS[1] if tail <= 0.05 else "#aab3bc" for tail in tails]
    axes.bar(levels, share, width=0.04, color=colours, zorder=3)
    axes.annotate(f"seen: {seen:.2f}", (seen, 0), xytext=(seen, share.max() * 1.12), ha="center", fontsize=9,
                  color=GLOBAL, arrowprops={"arrowstyle": "-", "color": GLOBAL, "linewidth": 1.4})  # fmt: skip
    bar = levels[tails <= 0.05]
    if len(bar):
        edge = float(bar[bar > 0].min())
        axes.text(1.02, share.max() * 0.5, f"p ≤ 0.05\nfrom {edge:.2f} on", ha="right", va="center", fontsize=9,
                  color=COLOURS[1])  # fmt: skip
    axes.set_ylim(0, share.max() * 1.25)
    axes.set_xlabel(f"Spearman's rho of {n} models in random order")
    axes.set_ylabel("percent of orders")
    quiet(axes)
    return figure


def groups_figure(frame: pd.DataFrame) -> Figure:
    """Open and closed models on the average, on factoid and on instruction questions, each model named by its dot."""
    cli = frame[frame["benchmark"] == "ThaiCLI"]
    tasks = ["average", "factoid", "instruction"]
    order = cli[cli["task"] == "average"].sort_values("value")
    figure = Figure(figsize=(WIDTH, 0.29 * len(order) + 1.2), layout="constrained")
    first: Axes | None = None
    for place, task in enumerate(tasks):
        axes = figure.add_subplot(1, 3, place + 1, sharex=first, sharey=first)
        first = first or axes
        rows = cli[cli["task"] == task].set_index(["source", "model"])
        for y, model in enumerate(order.itertuples()):
            row = rows.loc[(model.source, model.model)]
            colour = CLOSED if model.access == "closed" else OPEN
            if not nan(row["low"]):
                axes.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=2, alpha=0.4)
            dot(axes, row["value"], y, model.source, colour, "s" if model.access == "closed" else "o")
        axes.set_title(named(task), fontsize=9.5, loc="left")
        axes.set_yticks(range(len(order)), list(order["short"]), parse_math=False)
        axes.tick_params(axis="y", length=0, labelleft=place == 0, labelsize=9)
        quiet(axes, "both")
    first.set_ylim(-0.7, len(order) - 0.3)
    figure.supxlabel("ThaiCLI (points of 10)", fontsize=10, color="#4a5560")
    access_keys(figure, cli)
    return figure


def access_keys(figure: Figure, frame: pd.DataFrame) -> None:
    """The legend of open and closed models."""
    marks = [("closed API", CLOSED, "s", CLOSED), ("open model", OPEN, "o", OPEN)]
    own = (frame["source"] == "own").any()
    keys(figure, [*marks, *([("own result", GREY, "o", "white")] if own else [])])


def formats_figure(gaps: pd.DataFrame) -> Figure:
    """Factoid and instruction scores of each model, joined, with the gap; closed models above, open ones below."""
    rows = gaps.iloc[::-1].reset_index(drop=True)
    figure = Figure(figsize=(WIDTH, 0.33 * len(rows) + 1.1), layout="constrained")
    axes = figure.add_subplot()
    for y, row in enumerate(rows.itertuples()):
        colour = CLOSED if row.access == "closed" else OPEN
        axes.plot([row.instruction, row.factoid], [y, y], color=colour, linewidth=2.2, alpha=0.45, zorder=2)
        dot(axes, row.factoid, y, row.source, colour, "o")
        dot(axes, row.instruction, y, row.source, colour, "v")
        axes.annotate(f"{row.value:+.2f}".replace("-", "−"), (max(row.factoid, row.instruction), y), xytext=(8, 0),
                      textcoords="offset points", va="center", fontsize=8.5, color=colour)  # fmt: skip
    axes.set_yticks(range(len(rows)), list(rows["short"]), parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.margins(x=0.1)
    axes.set_xlabel("ThaiCLI (points of 10); the number is factoid less instruction")
    quiet(axes, "x")
    marks = [(f"{named('factoid')}", GREY, "o", GREY), (f"{named('instruction')}", GREY, "v", GREY),
             ("closed API", CLOSED, "s", CLOSED), ("open model", OPEN, "s", OPEN)]  # fmt: skip
    own = (gaps["source"] == "own").any()
    keys(figure, [*marks, *([("own result", GREY, "o", "white")] if own else [])])
    return figure


def audit_figure(frame: pd.DataFrame) -> Figure:
    """How many statements hold, a bar a section of each paper."""
    places = list(dict.fromkeys(zip(frame["paper"], frame["section"], strict=True)))
    places.sort(key=lambda place: (place[0], [int(part) for part in place[1].split(".")]))
    figure = Figure(figsize=(WIDTH, 0.36 * len(places) + 1.1), layout="constrained")
    axes = figure.add_subplot()
    for y, (paper, section) in enumerate(reversed(places)):
        here = frame[(frame["paper"] == paper) & (frame["section"] == section)]["verdict"]
        sizes = [int((here == verdict).sum()) for verdict in VERDICTS]
        for (verdict, colour), size, left in zip(
            VERDICTS.items(), sizes, itertools.accumulate(sizes, initial=0), strict=False
        ):
            axes.barh(y, size, left=left, color=colour, height=0.62, label=verdict)
            if size:
                axes.text(left + size / 2, y, str(size), ha="center", va="center", fontsize=9,
                          color="#1f2933" if verdict == "cannot be told" else "white")  # fmt: skip
    axes.set_yticks(range(len(places)), [f"{paper}, section {section}" for paper, section in reversed(places)])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("statements")
    axes.xaxis.get_major_locator().set_params(integer=True)
    keys(figure, [(verdict, colour, "s", colour) for verdict, colour in VERDICTS.items()])
    return figure
