"""Figures of F1 by rule, the four questions, and short against long answers. Pure functions that return a Figure."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thaikit import ThaikitError
from thaikit.figures import COLOURS, MARKERS

QUESTION_NAMES = {
    "q1": "Q1 correct\nถูกต้อง", "q2": "Q2 helpful\nมีข้อมูลเสริม", "q3": "Q3 irrelevant\nไม่เกี่ยวข้อง",
    "q4": "Q4 out of context\nนอกบทความ", "pooled": "all four\nรวมสี่ข้อ",
}  # fmt: skip
CHOICE_COLOURS = {"long": COLOURS[0], "tie": "#c9d1d9", "split": "#e8ecef", "short": COLOURS[1]}
BACK, GREY = "#f4f6f8", "#6b7680"


def agreement_figure(table: pd.DataFrame) -> Figure:
    """F1 against the majority for each question: one dot an assessor with its 95 % interval where there is one.

    `table` has assessor, kind (judge, people, dummy), question, f1, low, high in percent. Judges are filled marks,
    people (the human ceiling) a star, dummy judges hollow grey. ThaikitError where nothing has a value.
    """
    shown = table[pd.to_numeric(table["f1"]).notna()]
    if shown.empty:
        raise ThaikitError("figures: no F1 to draw; the table has no row with a value")
    questions = list(dict.fromkeys(shown["question"]))
    names = list(dict.fromkeys(zip(shown["assessor"], shown["kind"], strict=True)))
    height = max(0.75, 0.19 * len(names) + 0.2)
    figure = Figure(
        figsize=(8.6, height * len(questions) + 1.1 + 0.24 * math.ceil(len(names) / 3)), layout="constrained"
    )
    axes = figure.add_subplot()
    question_bands(axes, questions)
    step, drawn = 0.8 / max(1, len(names)), {"judge": 0, "dummy": 0}
    for place, (name, kind) in enumerate(names):
        rows = shown[(shown["assessor"] == name) & (shown["kind"] == kind)]
        draw_assessor(
            axes, rows, questions, offset=(place - (len(names) - 1) / 2) * step, kind=kind, place=drawn.get(kind, 0)
        )
        drawn[kind] = drawn.get(kind, 0) + 1
    axes.set_xlim(-1.5, 108)
    axes.set_xlabel("F1 against the majority of people, in percent, with 95 % interval")
    axes.grid(axis="x", color="#e3e8ed", linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    legend = figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=9, handletextpad=0.5)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def question_bands(axes: Axes, questions: list[str]) -> None:
    """One band a question, every other one tinted."""
    for row in range(0, len(questions), 2):
        axes.axhspan(row - 0.5, row + 0.5, color=BACK, zorder=0, linewidth=0)
    axes.set_yticks(range(len(questions)), [QUESTION_NAMES.get(name, name) for name in questions])
    axes.set_ylim(len(questions) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0, labelsize=9.5, pad=8)


def draw_assessor(
    axes: Axes, rows: pd.DataFrame, questions: list[str], *, offset: float, kind: str, place: int
) -> None:
    """One assessor's dots with intervals and values."""
    colour = {"judge": COLOURS[place % len(COLOURS)], "people": "#1f2933"}.get(kind, GREY)
    marker = {"people": "*"}.get(kind, MARKERS[place % len(MARKERS)])
    ys = [questions.index(question) + offset for question in rows["question"]]
    for y, row in zip(ys, rows.itertuples(), strict=True):
        end = row.f1
        if pd.notna(row.low) and pd.notna(row.high):
            axes.plot([row.low, row.high], [y, y], color=colour, linewidth=1.8, alpha=0.45, zorder=3)
            end = row.high
        axes.text(end + 1.2, y, f"{row.f1:.1f}", va="center", fontsize=7.5, color=colour)
    face = "white" if kind == "dummy" else colour
    size = 10 if marker == "*" else 6
    name = str(rows["assessor"].iloc[0])
    axes.plot(rows["f1"], ys, marker, color=colour, markerfacecolor=face, markersize=size, zorder=4, label=name)


def votes_figure(counts: pd.DataFrame, items: pd.DataFrame) -> Figure:
    """Which answer people prefer: a bar of items for each source (long, tie, no majority, short), and, where there are
    votes, each item's margin against how much longer the long answer is.

    `counts` has source, items, long, short, tie, split; `items` has margin, ratio and majority, and may be empty.
    """
    dots = items[items["ratio"].notna() & items["margin"].notna()] if len(items) else items
    figure = Figure(figsize=(8.6, 0.62 * len(counts) + 1.2 + (3.2 if len(dots) else 0)), layout="constrained")
    ratios = [0.62 * len(counts) + 0.6] + ([3.4] if len(dots) else [])
    panels = figure.subplots(len(ratios), 1, height_ratios=ratios, squeeze=False)[:, 0]
    draw_counts(panels[0], counts)
    if len(dots):
        draw_margins(panels[1], dots)
    return figure


def draw_counts(axes: Axes, counts: pd.DataFrame) -> None:
    """One bar a source, in percent of its items, each part with its number and name."""
    names = {"long": "long", "tie": "tie", "split": "no majority", "short": "short"}
    for y, row in enumerate(counts.to_dict("records")):
        left = 0.0
        for key, name in names.items():
            width = 100 * row[key] / row["items"]
            axes.barh(y, width, left=left, color=CHOICE_COLOURS[key], height=0.62, edgecolor="white")
            if width > 4:
                told = f"{row[key]} {name}" if width > 11 else str(row[key])
                colour = "white" if key in ("long", "short") else "#1f2933"
                axes.text(left + width / 2, y, told, ha="center", va="center", fontsize=9, color=colour)
            left += width
    axes.set_yticks(range(len(counts)), [f"{row.source}\n{row.items} items" for row in counts.itertuples()])
    axes.set_ylim(len(counts) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("items by what most people preferred, in percent")


def draw_margins(axes: Axes, items: pd.DataFrame) -> None:
    """One dot an item."""
    for choice, marker in (("long", "o"), ("short", "s"), ("tie", "D"), ("split", "x")):
        part = items[items["majority"] == choice]
        if len(part):
            colour = CHOICE_COLOURS[choice] if choice in ("long", "short") else GREY
            name = {"split": "no majority"}.get(choice, choice)
            axes.plot(part["ratio"], 100 * part["margin"], marker, color=colour, markersize=6, label=name)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.axhline(0, color="#9aa3ad", linewidth=1)
    axes.set_xlabel("words of the long answer over words of the short one")
    axes.set_ylabel("votes for the long answer\nless those for the short, in percent")
    axes.legend(frameon=False, fontsize=9, ncols=4, loc="lower right", bbox_to_anchor=(1, 1), title="majority for",
                title_fontsize=9, alignment="right")  # fmt: skip


def f1_figure(card: pd.DataFrame, *, headline: str = "wangchanx") -> Figure:
    """The same answers under every rule: one dot a rule with its 95 % interval where there is one, the headline apart.

    `card` has rule, f1, low, high in percent and used_by. ThaikitError where no rule has a value.
    """
    shown = card[pd.to_numeric(card["f1"]).notna()]
    if shown.empty:
        raise ThaikitError("figures: no F1 to draw; no answer was scored")
    figure = Figure(figsize=(8.6, 0.46 * len(shown) + 1.0), layout="constrained")
    axes = figure.add_subplot()
    for y, row in enumerate(shown.itertuples()):
        colour = COLOURS[0] if row.rule == headline else GREY
        end = row.f1
        if pd.notna(row.low) and pd.notna(row.high):
            axes.plot([row.low, row.high], [y, y], color=colour, linewidth=2, alpha=0.45, solid_capstyle="round")
            end = row.high
        axes.plot([row.f1], [y], "o", color=colour, markersize=6.5)
        axes.text(end + 1.2, y, f"{row.f1:.2f}", va="center", fontsize=9, color=colour)
    names = [
        row.rule if row.used_by.lower() == row.rule else f"{row.rule}\n{row.used_by}" for row in shown.itertuples()
    ]
    axes.set_yticks(range(len(shown)), names, fontsize=8.5)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, min(108.0, float(shown[["f1", "high"]].max().max()) + 12))
    axes.set_xlabel("mean F1 in percent, with 95 % interval")
    axes.grid(axis="x", color="#e3e8ed", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure
