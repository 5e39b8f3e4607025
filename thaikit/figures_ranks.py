"""Figures of both benchmarks against each other: scores, places, and what chance does to six models.

Pure functions from data frames of `analysis` to a Figure.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from thaikit import ThaikitError
from thaikit.figures import COLOURS
from thaikit.figures_analysis import GLOBAL, GREY, colour_of, dot, keys, legend, names_of, nan, own_mark, quiet
from thaikit.figures_labels import label_points
from thaikit.figures_text import WIDTH, ink, key_above, row_height, spread


def scatter_figure(both: pd.DataFrame) -> Figure:
    """ThaiCLI against Thai-H6, each model named."""
    both = both[both["h6"].notna() & both["cli"].notna()]
    figure = Figure(figsize=(WIDTH, 4.0 + 0.3 * max(0, len(both) - 8)), layout="constrained")
    axes = figure.add_subplot()
    for row in both.itertuples():
        dot(axes, row.h6, row.cli, row.source, colour_of(row.specialised), "D" if row.specialised else "o")
    axes.margins(x=0.12, y=0.12)
    axes.set_xlabel("Thai-H6, average (percent)")
    axes.set_ylabel("ThaiCLI, average (points of 10)")
    quiet(axes, "both")
    legend(figure, both)
    label_points(axes, list(both["h6"]), list(both["cli"]), names_of(both),
                 colours=[colour_of(special) for special in both["specialised"]])  # fmt: skip
    return figure


def ranks_figure(both: pd.DataFrame) -> Figure:
    """Places on both benchmarks, a line a model; those that move by three places or more stand out.

    ThaikitError where no model may be ranked.
    """
    rows = both[both["ranked"].astype(bool) & both["h6_rank"].notna() & both["cli_rank"].notna()]
    if rows.empty:
        raise ThaikitError("figures: no model may be ranked on both benchmarks")
    height = row_height([f"{name}\n" if "\n" in name else name for name in names_of(rows, width=20)], least=0.34)
    figure = Figure(figsize=(WIDTH, height * len(rows) + 0.7), layout="constrained")
    axes = figure.add_subplot()
    right = axes.twinx()
    for row in rows.itertuples():
        moved = abs(row.change) >= 3
        colour = COLOURS[1] if moved else "#66727d"
        face = colour if row.source == "published" else "white"
        axes.plot([0, 1], [row.h6_rank, row.cli_rank], color=colour, linewidth=2.6 if moved else 1.4, zorder=3,
                  marker="o", markersize=6, markerfacecolor=face)  # fmt: skip
    scores = [f"{value:.2f}" for value in rows["h6"]], [f"{value:.2f}" for value in rows["cli"]]
    name_ranks(axes, rows, rows["h6_rank"], scores[0], edge=-0.06)
    name_ranks(right, rows, rows["cli_rank"], scores[1], edge=1.06)
    axes.set_xlim(-0.08, 1.08)
    axes.set_xticks([0, 1], ["Thai-H6\n(percent)", "ThaiCLI\n(points of 10)"], fontsize=9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for one in (axes, right):
        one.set_ylim(len(rows) + 0.5, 0.5)
        one.spines[:].set_visible(False)
    if (rows["source"] == "own").any():
        keys(figure, [("published result", GREY, "o", GREY), *own_mark(rows)])
    return figure


def name_ranks(axes: Axes, rows: pd.DataFrame, ranks: pd.Series, scores: list[str], *, edge: float) -> None:
    """Each model's name and score at its rank; names of equal ranks spread around it, with thin lines to their dot."""
    places = spread(list(ranks), 1.0)
    axes.set_yticks(places, [f"{name}\n{score}" if "\n" in name else f"{name}  {score}" if edge < 0.5 else
                             f"{score}  {name}" for name, score in zip(names_of(rows, width=20), scores, strict=True)],
                    fontsize=9, parse_math=False)  # fmt: skip
    for label, change in zip(axes.get_yticklabels(), rows["change"], strict=True):
        label.set_color(ink(COLOURS[1] if abs(change) >= 3 else "#66727d"))
    for rank, place in zip(ranks, places, strict=True):
        if abs(rank - place) > 1e-9:
            axes.plot([round(edge), edge], [rank, place], color="#9aa3ad", linewidth=0.7)


def chance_figure(n: int, seen: float) -> Figure:
    """How Spearman's rho of n models (at most 9) falls by chance alone, over all orders, with what was seen."""
    ranks = np.arange(n) - (n - 1) / 2
    rhos = np.array(list(itertools.permutations(ranks))) @ ranks / (ranks @ ranks)
    levels, counts = np.unique(np.round(rhos, 6), return_counts=True)
    share = 100 * counts / len(rhos)
    figure = Figure(figsize=(WIDTH, 2.7), layout="constrained")
    axes = figure.add_subplot()
    tails = np.array([np.mean(np.abs(rhos) >= abs(level) - 1e-6) for level in levels])
    colours = [COLOURS[1] if tail <= 0.05 else "#aab3bc" for tail in tails]
    bars = axes.bar(levels, share, width=min(0.3, 0.7 * float(np.diff(levels).min())) if n > 1 else 0.3, color=colours,
                    zorder=3)  # fmt: skip
    for one, tail in zip(bars, tails, strict=True):
        one.set(hatch="////" if tail <= 0.05 else None, edgecolor="white")
    handles = [Patch(facecolor="#aab3bc"), Patch(facecolor=COLOURS[1], hatch="////", edgecolor="white")]
    bar = levels[tails <= 0.05]
    told = f"p ≤ 0.05, |rho| from {bar[bar > 0].min():.2f} on" if len(bar) else "p ≤ 0.05: no order"
    key_above(figure, handles, ["all orders, p > 0.05", told])
    if not nan(seen):
        axes.plot([seen, seen], [0, share.max() * 1.1], color=GLOBAL, linewidth=1.6, zorder=4)
        axes.text(seen, share.max() * 1.12, f"seen: {seen:.2f}", ha="center", va="bottom", fontsize=9, color=GLOBAL)
    axes.set_xlim(-1.2, 1.2)
    axes.set_ylim(0, share.max() * 1.28)
    axes.set_xlabel(f"Spearman's rho of {n} models in random order")
    axes.set_ylabel("share of orders (percent)")
    quiet(axes)
    return figure
