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
from matplotlib.ticker import NullLocator

from thaikit import ThaikitError
from thaikit.figures_text import HALO, SMALL, WIDTH, counted, ink, key_above, row_height, wrapped

THAI_FONT = "Noto Sans Thai"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4B0055", "#555555")
# Six of Okabe and Ito 2008; the last two stay apart from them in protanopia and deuteranopia too.
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
            "ytick.color": "#4a5560",
            "ytick.labelcolor": "#1f2933",
            "ytick.major.size": 0,
            "text.color": "#1f2933",
            "axes.labelcolor": "#4a5560",
            "savefig.dpi": 192,
            "figure.dpi": 96,
            "savefig.facecolor": "white",
            "pdf.fonttype": 42,
            "svg.fonttype": "path",  # an SVG in a page cannot see the page's font
            "svg.hashsalt": "thaikit",  # the same figure is the same file
        }
    )
    warnings.filterwarnings("error", message=r"Glyph \d+ .*missing from")


def thai_h6_bars(table: pd.DataFrame) -> Figure:
    """Dots with 95 % intervals, one band a task and one dot a model, with the chance level marked.

    `table` has one row for each model and task: model, task, value, low, high, chance, in percent, NaN or None for what
    is not there; n, where it is told, stands at the task. Bands and models come in the order of their first rows; micro
    means (`mmlu_micro`) are left out, they are no part of the average. ThaikitError where no row has a value.
    """
    numbers = {key: pd.to_numeric(table[key]).astype(float) for key in ("value", "low", "high", "chance")}
    table = table.assign(**numbers)[~table["task"].str.endswith("_micro")]
    shown = table[table["value"].notna()]
    if shown.empty:
        raise ThaikitError("figures: no score to draw; the table has no row with a value")
    tasks, models = list(dict.fromkeys(table["task"])), list(dict.fromkeys(table["model"]))
    step = min(0.22, 0.7 / len(models))
    names = [band_name(task, shown) for task in tasks]
    height = max(0.14 * (max(name.count("\n") for name in names) + 1) + 0.12, 0.2 * len(models) + 0.2)
    figure = Figure(figsize=(WIDTH, height * len(tasks) + 0.6), layout="constrained")
    axes = figure.add_subplot()
    bands(axes, names, rule=tasks.index("average") if "average" in tasks else None)
    for place, model in enumerate(models):
        offset = (place - (len(models) - 1) / 2) * step
        draw_model(axes, shown[shown["model"] == model], tasks, offset=offset, place=place, name=model)
    draw_chance(axes, table, tasks)
    finish_axes(axes, shown)
    key_above(figure, *axes.get_legend_handles_labels())
    return figure


def band_name(task: str, shown: pd.DataFrame) -> str:
    """A task's name in English and Thai on two lines and, of a task that has items of its own, their number."""
    names = [wrapped(name) for name in task_names(task) if name]
    own = shown.loc[shown["task"] == task, "n"] if "n" in shown and task != "average" else []
    return "\n".join([*names, *filter(None, [counted(list(own))])])


def bands(axes: Axes, names: Sequence[str], *, rule: int | None = None) -> None:
    """One band a name, every other one tinted, the band `rule` set apart by a line above it."""
    for row in range(0, len(names), 2):
        axes.axhspan(row - 0.5, row + 0.5, color="#f4f6f8", zorder=0, linewidth=0)
    if rule is not None:
        axes.axhline(rule - 0.5, color="#9aa3ad", linewidth=1, zorder=1)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", labelsize=SMALL, pad=6)


def draw_model(axes: Axes, rows: pd.DataFrame, tasks: Sequence[str], *, offset: float, place: int, name: str) -> None:
    """One model's dots, intervals and values."""
    colour, marker = COLOURS[place % len(COLOURS)], mark_of(place)
    for row in rows.itertuples():
        y = tasks.index(row.task) + offset
        end = row.value
        if pd.notna(row.low) and pd.notna(row.high):
            axes.plot([row.low, row.high], [y, y], color=colour, linewidth=2, alpha=0.45, zorder=3,
                      solid_capstyle="round")  # fmt: skip
            end = row.high
        axes.annotate(f"{row.value:.1f}", (end, y), (6, 0), textcoords="offset points", va="center", fontsize=SMALL,
                      color=ink(colour), path_effects=HALO)  # fmt: skip
    axes.plot(
        rows["value"], [tasks.index(task) + offset for task in rows["task"]], marker, color=colour,
        markersize=6.5, markeredgecolor="white", markeredgewidth=0.8, zorder=4, label=name,
    )  # fmt: skip


def mark_of(place: int) -> str:
    """The mark of the n-th series: from the ninth on, where colours begin again, each has another one than before."""
    return MARKERS[(place + 3 * (place // len(COLOURS))) % len(MARKERS)]


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
    axes.set_xlim(-1.5, min(103.0, 10 * math.ceil((top + 5) / 10)))
    axes.set_xlabel("score in percent, with 95 % interval")
    axes.grid(axis="x", color="#e3e8ed", linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)


def ratio_bars(table: pd.DataFrame) -> Figure:
    """How many times as fast as the peer each shape runs, from 1 on a logarithmic scale (`shape`, `ratio`, `items`)."""
    shown = table[pd.to_numeric(table["ratio"]).gt(0)]
    if shown.empty:
        raise ThaikitError("figures: no ratio to draw; nothing was timed on both sides")
    told = shown.rename(columns={"shape": "task", "items": "n"})
    names = [band_name(shape, told) for shape in shown["shape"]]
    figure = Figure(figsize=(WIDTH, row_height(names) * len(shown) + 0.6), layout="constrained")
    axes = figure.add_subplot()
    bands(axes, names)
    ratios = shown["ratio"].astype(float)
    axes.barh(range(len(shown)), ratios - 1, left=1, height=0.5, color=[COLOURS[0] if r >= 1 else COLOURS[1]
                                                                        for r in ratios])  # fmt: skip
    for y, ratio in enumerate(ratios):
        axes.annotate(f"{ratio:.3g}×", (max(ratio, 1), y), (5, 0), textcoords="offset points", va="center",
                      fontsize=SMALL)  # fmt: skip
    axes.axvline(1.0, color="#333333", linewidth=1)
    axes.set_xscale("log")
    ends = min(ratios.min() / 1.3, 0.7), max(ratios.max() * 1.8, 2.0)
    axes.set_xlim(*ends)
    ticks = [t for t in (0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if ends[0] <= t <= ends[1]]
    axes.set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("items a second, kit over peer (log scale)")
    return figure
