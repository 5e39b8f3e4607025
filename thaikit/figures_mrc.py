"""Figures of F1 by rule, the four questions, and short against long answers. Pure functions that return a Figure."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from thaikit import ThaikitError
from thaikit.figures import COLOURS, bands, mark_of
from thaikit.figures_text import HALO, SMALL, WIDTH, below, counted, ink, key_above, row_height, wrapped

QUESTION_NAMES = {
    "q1": "Q1 correct\nถูกต้อง", "q2": "Q2 helpful\nมีข้อมูลเสริม", "q3": "Q3 irrelevant\nไม่เกี่ยวข้อง",
    "q4": "Q4 out of context\nนอกบทความ", "pooled": "all four\nรวมสี่ข้อ",
}  # fmt: skip
CHOICE_COLOURS = {"long": COLOURS[0], "tie": "#c9d1d9", "split": "#e8ecef", "short": COLOURS[1]}
CHOICE_NAMES = {"long": "long", "tie": "tie", "split": "no majority", "short": "short"}
SIDES = ("long", "short")
HATCHES = {"split": "////", "tie": ".."}
GREY = "#6b7680"


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
    height = max(0.5, 0.19 * len(names) + 0.2)
    figure = Figure(figsize=(WIDTH, height * len(questions) + 0.8), layout="constrained")
    axes = figure.add_subplot()
    bands(axes, [question_name(name, shown) for name in questions])
    step, drawn = 0.8 / max(1, len(names)), {"judge": 0, "dummy": 0}
    for place, (name, kind) in enumerate(names):
        rows = shown[(shown["assessor"] == name) & (shown["kind"] == kind)]
        draw_assessor(
            axes, rows, questions, offset=(place - (len(names) - 1) / 2) * step, kind=kind, place=drawn.get(kind, 0)
        )
        drawn[kind] = drawn.get(kind, 0) + 1
    axes.set_xlim(-2, 102)
    below(figure, "F1 against the majority of people, in percent,\nwith 95 % interval")
    axes.grid(axis="x", color="#e3e8ed", linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    key_above(figure, *axes.get_legend_handles_labels())
    return figure


def question_name(question: str, shown: pd.DataFrame) -> str:
    """A question in English and Thai and, where it is told, how many items the F1 rest on."""
    items = shown[(shown["question"] == question) & (shown["kind"] != "people")]  # people have an n of labels
    n = counted(list(items["n"])) if "n" in items else ""
    return "\n".join(filter(None, [QUESTION_NAMES.get(question) or wrapped(question), n]))


def draw_assessor(
    axes: Axes, rows: pd.DataFrame, questions: list[str], *, offset: float, kind: str, place: int
) -> None:
    """One assessor's dots with intervals and values."""
    colour = {"judge": COLOURS[place % len(COLOURS)], "people": "#1f2933"}.get(kind, GREY)
    marker = {"people": "*"}.get(kind) or mark_of(place)
    ys = [questions.index(question) + offset for question in rows["question"]]
    for y, row in zip(ys, rows.itertuples(), strict=True):
        end = row.f1
        if pd.notna(row.low) and pd.notna(row.high):
            axes.plot([row.low, row.high], [y, y], color=colour, linewidth=1.8, alpha=0.45, zorder=3)
            end = row.high
        axes.annotate(f"{row.f1:.1f}", (end, y), (6, 0), textcoords="offset points", va="center", fontsize=SMALL,
                      color=ink(colour), path_effects=HALO)  # fmt: skip
    face = "white" if kind == "dummy" else colour
    size = 10 if marker == "*" else 6
    name = str(rows["assessor"].iloc[0]).replace("_", " ")
    axes.plot(rows["f1"], ys, marker, color=colour, markerfacecolor=face, markersize=size, zorder=4, label=name)


def votes_figure(counts: pd.DataFrame, items: pd.DataFrame) -> Figure:
    """Which answer people prefer: a bar of items for each source (long, tie, no majority, short), and, where there are
    votes, each item's margin against how much longer the long answer is.

    `counts` has source, items, long, short, tie, split; `items` has margin, ratio and majority, and may be empty.
    """
    dots = items[items["ratio"].notna() & items["margin"].notna()] if len(items) else items
    names = [f"{wrapped(row.source)}\nn = {row.items}" for row in counts.itertuples()]
    heights = [row_height(names, least=0.46) * len(counts) + 0.5] + ([2.9] if len(dots) else [])
    figure = Figure(figsize=(WIDTH, sum(heights) + 0.2), layout="constrained")
    panels = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    draw_counts(panels[0], counts, names)
    if len(dots):
        draw_margins(panels[1], dots)
        below(figure, f"words of the long answer over words of the short one (log scale, n = {len(dots)})")
    keys = [Patch(facecolor=CHOICE_COLOURS[key], hatch=HATCHES.get(key), edgecolor="white", label=name)
            for key, name in CHOICE_NAMES.items()]  # fmt: skip
    key_above(figure, keys, [f"{name} preferred" if key in SIDES else name for key, name in CHOICE_NAMES.items()])
    return figure


def draw_counts(axes: Axes, counts: pd.DataFrame, names: list[str]) -> None:
    """One bar a source, in percent of its items, each part with its number."""
    for y, row in enumerate(counts.to_dict("records")):
        left = 0.0
        for key in CHOICE_NAMES:
            width = 100 * row[key] / row["items"] if row["items"] else 0.0
            axes.barh(y, width, left=left, color=CHOICE_COLOURS[key], height=0.62, edgecolor="white",
                      hatch=HATCHES.get(key))  # fmt: skip
            if width > 4:
                colour = "white" if key in SIDES else "#1f2933"
                axes.text(left + width / 2, y, str(row[key]), ha="center", va="center", fontsize=9, color=colour)
            left += width
    axes.set_yticks(range(len(counts)), names, fontsize=9, parse_math=False)
    axes.set_ylim(len(counts) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.set_xlabel("items by what most people preferred, in percent")


def draw_margins(axes: Axes, items: pd.DataFrame) -> None:
    """One dot an item."""
    for choice, marker in (("long", "o"), ("short", "s"), ("tie", "D"), ("split", "x")):
        part = items[items["majority"] == choice]
        if len(part):
            colour = CHOICE_COLOURS[choice] if choice in SIDES else GREY
            axes.plot(part["ratio"], 100 * part["margin"], marker, color=colour, markersize=6,
                      label=CHOICE_NAMES[choice])  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.axhline(0, color="#9aa3ad", linewidth=1)
    axes.grid(axis="y", color="#e3e8ed", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_ylabel("votes for the long answer less\nthose for the short, in percent")
    axes.legend(frameon=False, fontsize=SMALL, ncols=4, loc="lower right", bbox_to_anchor=(1, 1), handletextpad=0.1,
                columnspacing=1.0, borderaxespad=0.1)  # fmt: skip


def f1_figure(card: pd.DataFrame, *, headline: str = "wangchanx") -> Figure:
    """The same answers under every rule: one dot a rule with its 95 % interval where there is one, the headline apart.

    `card` has rule, f1, low, high in percent and used_by. ThaikitError where no rule has a value.
    """
    shown = card[pd.to_numeric(card["f1"]).notna()]
    if shown.empty:
        raise ThaikitError("figures: no F1 to draw; no answer was scored")
    told = counted(list(shown["n"])) if "n" in shown else ""
    names = [rule_name(str(row.rule), str(row.used_by)) for row in shown.itertuples()]
    figure = Figure(figsize=(WIDTH, row_height(names, least=0.32) * len(shown) + 0.6), layout="constrained")
    axes = figure.add_subplot()
    bands(axes, names)
    for y, row in enumerate(shown.itertuples()):
        colour = COLOURS[0] if row.rule == headline else GREY
        end = row.f1
        if pd.notna(row.low) and pd.notna(row.high):
            axes.plot([row.low, row.high], [y, y], color=colour, linewidth=2, alpha=0.45, solid_capstyle="round")
            end = row.high
        axes.plot([row.f1], [y], "D" if row.rule == headline else "o", color=colour, markersize=6.5)
        axes.annotate(f"{row.f1:.2f}", (end, y), (6, 0), textcoords="offset points", va="center", fontsize=9,
                      color=ink(colour), path_effects=HALO)  # fmt: skip
    axes.set_xlim(-2, min(102.0, float(shown[["f1", "high"]].max().max()) + 6))
    below(figure, " · ".join(filter(None, ["mean F1 in percent, with 95 % interval", told])))
    axes.grid(axis="x", color="#e3e8ed", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure


def rule_name(rule: str, used_by: str) -> str:
    """A rule and, below it, who uses it; once where both are called the same."""
    return wrapped(rule) if used_by.lower() == rule else f"{wrapped(rule)}\n{wrapped(used_by, width=28)}"
