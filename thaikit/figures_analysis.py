"""Figures of the ThaiCLI paper's analyses: size, specialization, both benchmarks, open and closed, question formats.

Pure functions from data frames of `analysis` to a Figure. Published models are filled, own ones open, in every figure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from thaikit import ThaikitError
from thaikit.figures import COLOURS, task_names
from thaikit.figures_labels import label_points
from thaikit.figures_text import HALO, SMALL, WIDTH, below, ink, key_above, signed, wrapped

GLOBAL, REGIONAL = COLOURS[0], COLOURS[1]
CLOSED, OPEN = COLOURS[3], COLOURS[2]
GREY, LIGHT = "#6b7680", "#e3e8ed"
LINE, INTERVAL = "slope", "interval"  # labels by which drawn lines are known


def size_figure(frame: pd.DataFrame, slopes: pd.DataFrame) -> Figure:
    """Thai-H6 and ThaiCLI against parameters on a log scale, each model named, with the published slope."""
    parts = {name: pick(frame, name, "average") for name in ("Thai-H6", "ThaiCLI")}
    most = max(len(rows) for rows in parts.values())
    figure = Figure(figsize=(WIDTH, 6.6 + 0.4 * max(0, most - 8)), layout="constrained")
    first: Axes | None = None
    for place, (benchmark, unit) in enumerate((("Thai-H6", "percent"), ("ThaiCLI", "points of 10"))):
        axes = figure.add_subplot(2, 1, place + 1, sharex=first)
        first = first or axes
        axes.set_ylabel(f"{benchmark}, average ({unit})")
        draw_sizes(axes, parts[benchmark], slope_of(slopes, benchmark, "average"))
        axes.margins(x=0.14, y=0.16)
    sizes(figure, pd.concat(parts.values()))
    legend(figure, frame)
    for axes, rows in zip(figure.axes, parts.values(), strict=True):
        colours = [colour_of(special) for special in rows["specialised"]]
        drawn = [line for line in axes.lines if line.get_label() in (LINE, INTERVAL)]
        label_points(axes, list(rows["parameters"]), list(rows["value"]), names_of(rows), colours=colours,
                     avoid=[point for line in drawn for point in along(line)])  # fmt: skip
    return figure


def names_of(rows: pd.DataFrame, *, width: int = 24) -> list[str]:
    """How models are named in every figure: those that enter no statistic in brackets."""
    ranked = rows["ranked"].astype(bool) if "ranked" in rows else [True] * len(rows)
    shown = [wrapped(name, width=width) for name in rows["short"]]
    return [name if fit else f"({name})" for name, fit in zip(shown, ranked, strict=True)]


def tasks_figure(frame: pd.DataFrame, slopes: pd.DataFrame) -> Figure:
    """The six tasks against parameters, one panel each, with intervals where counts are published."""
    figure = Figure(figsize=(WIDTH, 6.9), layout="constrained")
    tasks = sorted((task for task in set(frame["task"]) if task in task_order()), key=task_order().index)
    first: Axes | None = None
    for place, task in enumerate(tasks):
        axes = figure.add_subplot(3, 2, place + 1, sharex=first, sharey=first)
        first = first or axes
        draw_sizes(axes, pick(frame, "Thai-H6", task), found := slope_of(slopes, "Thai-H6", task))
        name, thai = task_names(task)
        title = f"{name} · {thai}\n{signed(found['value'], 1)} points a ten-fold"
        axes.set_title(title, fontsize=9, loc="left")
        axes.tick_params(labelleft=place % 2 == 0, labelbottom=place > len(tasks) - 3)
        axes.set_ylabel("score (percent)" if place % 2 == 0 else "")
    sizes(figure, frame[frame["benchmark"] == "Thai-H6"])
    legend(figure, frame)
    return figure


def sizes(figure: Figure, rows: pd.DataFrame) -> None:
    """Ticks at round numbers of billion parameters on the axes that the panels share, and what they are."""
    known = rows["parameters"].dropna()
    low, high = known.min() / 1.3, known.max() * 1.3
    ticks = [step * 10.0**power for power in range(-2, 4) for step in (1, 2, 5)]
    shown = [tick for tick in ticks if low <= tick <= high]
    if len(shown) > 7:
        shown = [step * 10.0**power for power in range(-2, 4) for step in (1, 3) if low <= step * 10.0**power <= high]
    figure.axes[0].set_xticks(shown, [f"{tick:g}" for tick in shown])
    figure.axes[0].xaxis.set_minor_locator(NullLocator())
    below(figure, "billion parameters (log scale)")


def along(line: Line2D) -> list[tuple[float, float]]:
    """Forty points of a straight line on a logarithmic axis."""
    xs, ys = (np.asarray(part, dtype=float) for part in line.get_data())
    return list(zip(np.geomspace(xs[0], xs[-1], 40), np.linspace(ys[0], ys[-1], 40), strict=True))


def task_order() -> list[str]:
    """The paper's six tasks."""
    return ["arc", "hellaswag", "mmlu", "truthfulqa", "winogrande", "gsm8k"]


def pick(frame: pd.DataFrame, benchmark: str, task: str) -> pd.DataFrame:
    """Rows of a task with a known size; ThaikitError where there is none."""
    rows = frame[(frame["benchmark"] == benchmark) & (frame["task"] == task)]
    rows = rows[rows["parameters"].notna() & rows["value"].notna()]
    if rows.empty:
        raise ThaikitError(f"figures: no model with a known size has {benchmark}, {task}")
    return rows


def slope_of(slopes: pd.DataFrame, benchmark: str, task: str) -> pd.Series:
    """The published slope of a task."""
    kept = slopes[(slopes["benchmark"] == benchmark) & (slopes["task"] == task) & (slopes["rows"] == "published")]
    return kept.iloc[0]


def colour_of(specialised: Any) -> str:
    """A model's colour by whether it was made for the region."""
    return REGIONAL if bool(specialised) else GLOBAL


def draw_sizes(axes: Axes, rows: pd.DataFrame, slope: pd.Series) -> None:
    """Dots with intervals, and the line of the slope between the published sizes."""
    for row in rows.itertuples():
        colour = colour_of(row.specialised)
        if pd.notna(row.low) and pd.notna(row.high):
            axes.plot([row.parameters] * 2, [row.low, row.high], color=colour, linewidth=1.8, alpha=0.45, zorder=3,
                      label=INTERVAL)  # fmt: skip
        dot(axes, row.parameters, row.value, row.source, colour, "D" if row.specialised else "o")
    published = rows.loc[rows["source"] == "published", "parameters"]
    ends = np.array([published.min(), published.max()])
    axes.plot(ends, slope["intercept"] + slope["value"] * np.log10(ends), color=GREY, linewidth=1, dashes=(4, 3),
              zorder=2, label=LINE)  # fmt: skip
    axes.set_xscale("log")
    quiet(axes)


def dot(axes: Axes, x: float, y: float, source: str, colour: str, marker: str = "o") -> None:
    """One model: filled if published, open if own."""
    face = colour if source == "published" else "white"
    edge = "white" if source == "published" else colour
    axes.plot([x], [y], marker, color=colour, markerfacecolor=face, markersize=7, markeredgecolor=edge,
              markeredgewidth=0.8 if source == "published" else 1.3, zorder=4)  # fmt: skip


def quiet(axes: Axes, axis: str = "y") -> None:
    """A light grid along one axis."""
    axes.grid(axis=axis, color=LIGHT, linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)


def legend(figure: Figure, frame: pd.DataFrame) -> None:
    """What colour, shape and filling mean."""
    marks = [("no regional specialization", GLOBAL, "o", GLOBAL),
             ("made for Thai or South-East Asia", REGIONAL, "D", REGIONAL)]  # fmt: skip
    keys(figure, [*marks, *own_mark(frame)])


def own_mark(frame: pd.DataFrame) -> list[tuple[str, str, str, str]]:
    """What tells own results, where there are any, and among them those that enter no statistic."""
    own = frame[frame["source"] == "own"]
    if own.empty:
        return []
    bare = "ranked" in own and not own["ranked"].astype(bool).all()
    return [("own (in brackets: not ranked)" if bare else "own result", GREY, "o", "white")]


def keys(figure: Figure, marks: Sequence[tuple[str, str, str, str]]) -> None:
    """A legend of marks above the figure: text, colour, marker, filling."""
    lines = [Line2D([], [], color=c, marker=m, markerfacecolor=f, linestyle="") for _, c, m, f in marks]
    key_above(figure, lines, [text for text, *_ in marks])


def slopes_figure(slopes: pd.DataFrame) -> Figure:
    """Each task's slope with its interval, and beside it where it goes when one model is left out."""
    rows = slopes[(slopes["rows"] == "published") & (slopes["benchmark"] == "Thai-H6")]
    rows = rows.sort_values("value", ignore_index=True)
    figure = Figure(figsize=(WIDTH, 0.4 * len(rows) + 0.9), layout="constrained")
    axes = figure.add_subplot()
    for y, row in enumerate(rows.itertuples()):
        colour = GREY if row.task == "average" else GLOBAL
        axes.plot([row.low, row.high], [y, y], color=colour, linewidth=2, alpha=0.4, zorder=3)
        axes.plot([row.lowest, row.highest], [y, y], color=colour, linewidth=7, alpha=0.35, zorder=3,
                  solid_capstyle="butt")  # fmt: skip
        axes.plot([row.value], [y], "o", color=colour, markersize=6.5, zorder=4)
        axes.annotate(f"{row.value:.1f}", (row.value, y), xytext=(0, 5), textcoords="offset points", ha="center",
                      va="bottom", fontsize=SMALL, color=ink(colour), path_effects=HALO)  # fmt: skip
    axes.axvline(0, color=GREY, linewidth=1)
    axes.set_yticks(range(len(rows)), [" ".join(task_names(task)) for task in rows["task"]], fontsize=9)
    axes.set_ylim(-0.5, len(rows) - 0.3)
    models = f"{int(rows['n'].max())} published models" if len(rows) else "published models"
    axes.set_xlabel(f"points a ten-fold of parameters, {models}:\ndot, 95 % interval (line), range with one model "
                    "left out (bar)", fontsize=9)  # fmt: skip
    quiet(axes, "x")
    return figure


def nan(value: Any) -> bool:
    """Whether a number is missing."""
    return value is None or math.isnan(float(value))
