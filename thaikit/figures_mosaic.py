"""Mosaics: what became of the items of each row (theme, task, subject), one panel a model, counts in the cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thaikit import ThaikitError
from thaikit.figures import COLOURS
from thaikit.figures_text import SMALL, WIDTH, below, key_above, wrapped

ACROSS = 2  # panels beside each other
LEAST = 0.55  # of the mean row height: a row of few items keeps its name readable


class Part(NamedTuple):
    """How a part of a row is drawn: name in the legend, colour, pattern, whether numbers on it are white."""

    name: str
    colour: str
    hatch: str = ""
    white: bool = False


# In the order in which they are drawn. Parts that are no score have a pattern too, so that grey print tells them apart.
FAULTS = {
    "unreadable": Part("unreadable", COLOURS[4], "////"),
    "refused": Part("refused", COLOURS[1], "\\\\\\\\"),
    "filtered": Part("filtered", COLOURS[3], "...."),
    "truncated": Part("truncated", "#b9c2ca", "xxxx"),
    "failed": Part("failed", "#ffffff", "++++"),
}
SCORED = {
    "high": Part("score 8 to 10", COLOURS[0], white=True),
    "middle": Part("score 5 to 7", COLOURS[5]),
    "low": Part("score 1 to 4", "#d3e9f7"),
    **FAULTS,
}
ANSWERED = {"right": Part("right", COLOURS[0], white=True), "wrong": Part("wrong", "#f3dcc0"),
            "none": Part("no answer read", "#8a6d3b", "oo"), **FAULTS}  # fmt: skip


def mosaic(table: pd.DataFrame, *, parts: Mapping[str, Part], names: Mapping[str, str]) -> Figure:
    """One panel a model, one band a row, one cell a part: a cell's width is its share of the row's items, its number
    their count; a band's height follows the row's items (the most over the models, and at least 0.55 of the mean).

    `table` has model, row, part, count. Models come in the order of their first lines, rows in that of `names` (key to
    what is shown), parts in that of `parts`. ThaikitError where nothing was counted or a part is unknown.
    """
    counted = table[table["count"] > 0]
    if counted.empty:
        raise ThaikitError("figures: no items to draw; the table counts none")
    if unknown := sorted(set(counted["part"]) - set(parts)):
        raise ThaikitError(f"figures: part {unknown[0]!r} is unknown; there are {', '.join(parts)}")
    models = list(dict.fromkeys(table["model"]))
    rows = [row for row in names if row in set(counted["row"])]
    across = min(ACROSS, len(models))
    down = math.ceil(len(models) / across)
    edges = band_edges([most(counted, row) for row in rows])
    inches = 0.34 * len(rows)
    heads = [wrapped(model, width=22 if across > 1 else 48) for model in models]
    tall = 0.16 * max(head.count("\n") for head in heads)
    figure = Figure(figsize=(WIDTH, down * (inches + 0.55 + tall) + 0.4), layout="constrained")
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for place, panel in enumerate(panels.flat):
        if place < len(models):
            mine = counted[counted["model"] == models[place]]
            size = (0.62 * WIDTH / across, inches)
            draw_panel(panel, mine, rows=rows, edges=edges, parts=parts, size=size)
            head = f"{heads[place]}\nn {int(mine['count'].sum()):,}"
            panel.set_title(head, fontsize=SMALL, loc="left").set_parse_math(False)
        else:
            panel.axis("off")
    for panel in panels[:, 0]:  # the texts are shared, their size and the plain dollar sign are not
        label_rows(panel, [names[row] for row in rows], edges)
    below(figure, "share of the row's items in percent; n at the right end")
    handles = [panels[0, 0].barh(0, 0, height=0, left=-1, **look(part)) for key, part in parts.items()
               if key in set(counted["part"])]  # fmt: skip
    shown = [part.name for key, part in parts.items() if key in set(counted["part"])]
    key_above(figure, handles, shown)
    return figure


def most(counted: pd.DataFrame, row: str) -> float:
    """The items of a row in the model that has most of them."""
    return float(counted[counted["row"] == row].groupby("model")["count"].sum().max())


def band_edges(sizes: Sequence[float]) -> list[float]:
    """Where bands begin and end, from 0 to 1, heights after `sizes` with the floor."""
    floor = LEAST * sum(sizes) / len(sizes)
    heights = [max(size, floor) for size in sizes]
    edges = [0.0]
    for height in heights:
        edges.append(edges[-1] + height / sum(heights))
    return edges


def look(part: Part) -> dict[str, object]:
    """A part's colour and pattern as matplotlib takes them."""
    return {"color": part.colour, "hatch": part.hatch, "edgecolor": "#3a4651" if part.hatch else "white",
            "linewidth": 0.6}  # fmt: skip


def draw_panel(
    panel: Axes, mine: pd.DataFrame, *, rows: Sequence[str], edges: Sequence[float], parts: Mapping[str, Part],
    size: tuple[float, float],
) -> None:  # fmt: skip
    """One model's bands; a count is written where its cell is wide and high enough for it."""
    counts = mine.groupby(["row", "part"])["count"].sum()
    for place, row in enumerate(rows):
        middle, height = (edges[place] + edges[place + 1]) / 2, 0.9 * (edges[place + 1] - edges[place])
        of = {part: int(counts.get((row, part), 0)) for part in parts}
        total, left = sum(of.values()), 0.0
        for part, count in of.items():
            if count:
                share = 100 * count / total
                panel.barh(middle, share, height=height, left=left, **look(parts[part]))
                if share / 100 * size[0] > 0.05 + 0.085 * len(str(count)) and height * size[1] > 0.12:
                    write(panel, left + share / 2, middle, str(count), parts[part])
                left += share
        told = f"{total:,}" if total else "no items"
        panel.annotate(told, (100, middle), (4, 0), textcoords="offset points", va="center", fontsize=SMALL,
                       color="#4a5560")  # fmt: skip
    panel.set_xlim(0, 100)
    panel.set_ylim(1, 0)
    panel.set_xticks((0, 25, 50, 75))  # a 100 would touch the next panel's 0
    panel.tick_params(axis="x", labelsize=SMALL)


def write(panel: Axes, x: float, y: float, told: str, part: Part) -> None:
    """A count in its cell, on a white ground where a pattern would make it hard to read."""
    ground = {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none"} if part.hatch else None
    panel.text(x, y, told, ha="center", va="center", fontsize=SMALL, color="white" if part.white else "#1f2933",
               bbox=ground)  # fmt: skip


def label_rows(panel: Axes, labels: Sequence[str], edges: Sequence[float]) -> None:
    """The rows' names at the middle of their bands."""
    told = [wrapped(label.replace("_", " "), width=36, lines=1) for label in labels]
    middles = [(low + high) / 2 for low, high in zip(edges[:-1], edges[1:], strict=True)]
    panel.set_yticks(middles, told, fontsize=SMALL, parse_math=False)
