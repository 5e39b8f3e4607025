"""Figures: Thai drawn right, colours that colour-blind readers tell apart. Pure functions that return a Figure."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib import font_manager, pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thaikit import ThaikitError

THAI_FONT = "Noto Sans Thai"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#555555")  # Okabe and Ito 2008
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
THAI_NAMES = {
    "arc": ("ARC", "วิทยาศาสตร์"),
    "hellaswag": ("HellaSwag", "เล่าเรื่องต่อ"),
    "mmlu": ("MMLU", "ความรู้รายวิชา"),
    "truthfulqa": ("TruthfulQA", "ข้อเท็จจริง"),
    "winogrande": ("Winogrande", "เติมช่องว่าง"),
    "gsm8k": ("GSM8K", "โจทย์เลข"),
    "average": ("Average", "ค่าเฉลี่ย"),
}


def task_names(task: str) -> tuple[str, str]:
    """A task's shown name in English and in Thai; for a set of another kind its own name and ""."""
    return THAI_NAMES.get(task, (task, ""))


def thai_font() -> Path:
    """The file of Noto Sans Thai; ThaikitError, in one sentence, where it is not installed."""
    try:
        import fontpkg
    except ImportError as error:
        raise missing_font(error) from error
    try:
        return Path(fontpkg.path(THAI_FONT))
    except fontpkg.FontpkgError as error:
        raise missing_font(error) from error


def missing_font(error: Exception) -> ThaikitError:
    """The one sentence for a missing Thai font."""
    return ThaikitError(
        f"figures: no Thai font, {THAI_FONT} is not installed ({type(error).__name__}) and without it Thai is drawn "
        "as boxes; install it with pip install fontpkg-noto-sans-thai"
    )


def use_style() -> None:
    """Set matplotlib up for Thai, for this process: fonts, calm axes, 192 dots an inch, PDF text that can be copied.

    A character that no font can draw is an error from then on. ThaikitError where the font is missing or matplotlib is
    older than 3.11, which puts Thai tone marks on top of vowels.
    """
    if tuple(int(part) for part in matplotlib.__version__.split(".")[:2]) < (3, 11):
        raise ThaikitError(
            f"figures: matplotlib {matplotlib.__version__} draws Thai marks wrongly, 3.11 or newer is needed; "
            "install it with pip install 'matplotlib>=3.11'"
        )
    pyplot.switch_backend(matplotlib.get_backend())  # loads it, which is what makes a notebook show a Figure

    font_manager.fontManager.addfont(str(thai_font()))
    matplotlib.rcParams.update(
        {
            "font.family": ["DejaVu Sans", THAI_FONT],  # in this order: the Thai font lacks signs such as ±
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.spines.left": False,
            "axes.edgecolor": "#9aa3ad",
            "xtick.color": "#4a5560",
            "text.color": "#1f2933",
            "axes.labelcolor": "#4a5560",
            "savefig.dpi": 192,
            "figure.dpi": 96,
            "savefig.facecolor": "white",
            "pdf.fonttype": 42,
            "svg.fonttype": "path",  # an SVG in a page cannot see the page's font
        }
    )
    warnings.filterwarnings("error", message=r"Glyph \d+ .*missing from")


def thai_h6_bars(table: pd.DataFrame) -> Figure:
    """Dots with 95 % intervals, one band a task and one dot a model, with the chance level marked.

    `table` has one row for each model and task: model, task, value, low, high, chance, in percent, NaN or None for what
    is not there. Bands and models come in the order of their first rows; micro means (`mmlu_micro`) are left out, they
    are no part of the average. ThaikitError where no row has a value.
    """
    numbers = {key: pd.to_numeric(table[key]).astype(float) for key in ("value", "low", "high", "chance")}
    table = table.assign(**numbers)[~table["task"].str.endswith("_micro")]
    shown = table[table["value"].notna()]
    if shown.empty:
        raise ThaikitError("figures: no score to draw; the table has no row with a value")
    tasks, models = list(dict.fromkeys(table["task"])), list(dict.fromkeys(table["model"]))
    step = min(0.22, 0.7 / len(models))
    height = max(0.5, 0.24 * len(models) + 0.16)
    legend_rows = math.ceil((len(models) + 1) / 4)
    figure = Figure(figsize=(8.6, height * len(tasks) + 0.75 + 0.25 * legend_rows), layout="constrained")
    axes = figure.add_subplot()
    bands(axes, tasks)
    for place, model in enumerate(models):
        offset = (place - (len(models) - 1) / 2) * step
        draw_model(axes, shown[shown["model"] == model], tasks, offset=offset, place=place, name=model)
    draw_chance(axes, table, tasks)
    finish_axes(axes, shown)
    legend = figure.legend(loc="outside upper left", ncols=4, frameon=False, fontsize=9.5, handletextpad=0.5)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a dollar sign in a model's name is a dollar sign
    return figure


def bands(axes: Axes, tasks: Sequence[str]) -> None:
    """One band a task, every other one tinted, with the task's name in English and Thai; the average set apart."""
    for row, _ in enumerate(tasks):
        if row % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color="#f4f6f8", zorder=0, linewidth=0)
    if "average" in tasks:
        axes.axhline(tasks.index("average") - 0.5, color="#9aa3ad", linewidth=1, zorder=1)
    axes.set_yticks(range(len(tasks)), ["\n".join(filter(None, task_names(task))) for task in tasks])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0, labelsize=9.5, pad=8)


def draw_model(axes: Axes, rows: pd.DataFrame, tasks: Sequence[str], *, offset: float, place: int, name: str) -> None:
    """One model's dots, intervals and values."""
    colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
    for row in rows.itertuples():
        y = tasks.index(row.task) + offset
        end = row.value
        if pd.notna(row.low) and pd.notna(row.high):
            axes.plot([row.low, row.high], [y, y], color=colour, linewidth=2, alpha=0.45, zorder=3,
                      solid_capstyle="round")  # fmt: skip
            end = row.high
        axes.text(end + 1, y, f"{row.value:.1f}", va="center", fontsize=8, color=colour)
    axes.plot(
        rows["value"], [tasks.index(task) + offset for task in rows["task"]], marker, color=colour,
        markersize=6.5, markeredgecolor="white", markeredgewidth=0.8, zorder=4, label=name,
    )  # fmt: skip


def draw_chance(axes: Axes, table: pd.DataFrame, tasks: Sequence[str]) -> None:
    """A dashed line across each band at the score of guessing (the mean over models where their items differ)."""
    told = table[table["chance"].notna()].groupby("task")["chance"].mean()
    style: dict[str, Any] = {"color": "#6b7680", "linewidth": 1.3, "linestyles": (0, (3, 2)), "zorder": 2}
    places = [(value, tasks.index(str(task))) for task, value in told.items()]
    if places:
        xs, ys = zip(*places, strict=True)
        axes.vlines(xs, [y - 0.42 for y in ys], [y + 0.42 for y in ys], label="guessing", **style)


def finish_axes(axes: Axes, shown: pd.DataFrame) -> None:
    """The percent axis, from 0 to a round number with room for the values."""
    top = float(shown[["value", "high"]].max().max())
    axes.set_xlim(-0.8, min(106.0, 10 * math.ceil((top + 5) / 10)))
    axes.set_xlabel("score in percent, with 95 % interval")
    axes.grid(axis="x", color="#e3e8ed", linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)


def ratio_bars(table: pd.DataFrame) -> Figure:
    """How many times faster than the peer each shape runs, on a logarithmic scale (`shape`, `ratio`)."""
    figure = Figure(figsize=(7.5, 0.5 * len(table) + 1.2), layout="constrained")
    axes = figure.add_subplot()
    labels = [" ".join(task_names(shape)) for shape in table["shape"]]
    bars = axes.barh(labels, table["ratio"], color=COLOURS[0], height=0.6)
    axes.bar_label(bars, labels=[f"{ratio:.1f}×" for ratio in table["ratio"]], padding=4)
    axes.axvline(1.0, color="#333333", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(right=2.0 * max(table["ratio"].max(), 1.0))
    axes.set_xlabel("items a second, kit over peer")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    return figure
