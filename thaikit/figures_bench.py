"""The bias card of a judge as a figure: each change of known sign with its interval, what was expected, the verdict."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thaikit import ThaikitError
from thaikit.figures import COLOURS, MARKERS
from thaikit.figures_text import SMALL, WIDTH, below, counted, key_above, row_height, wrapped

WRONG = ("biased up", "biased down", "not noticed")
REGIONS = {"lower": (-9.0, 0.0), "higher": (0.0, 9.0), "not higher": (-9.0, 0.0)}  # where the change should lie
ROW = 0.34  # inches


def bias_card(card: pd.DataFrame, *, margin: float = 0.5) -> Figure:
    """One line for each change and kind of base answer: the mean change of the score in points with its 95 % interval.

    `card` has shift, source, expected, change, low, high, n, verdict (see `bench_card.bias_card`); NaN is left out.
    The tinted part of a line is where a fair judge's change lies (same: within `margin`). ThaikitError without a line.
    """
    shown = card.reset_index(drop=True)
    if shown.empty:
        raise ThaikitError("figures: the bias card has no line; no answer could be changed")
    sources = list(dict.fromkeys(shown["source"]))
    names = [line_name(row) for row in shown.itertuples()]
    figure = Figure(figsize=(WIDTH, row_height(names, least=ROW) * len(shown) + 0.7), layout="constrained")
    axes = figure.add_subplot()
    widest = float(shown[["change", "low", "high"]].abs().max().max())
    reach = max(2.0, widest * 1.08)
    for place, row in enumerate(shown.itertuples()):
        expect(axes, place, str(row.expected), margin=margin, reach=reach)
        draw(axes, place, row, colour=sources.index(row.source))
    tell(axes, shown, names, reach)
    handles = {text: line for line, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    key_above(figure, list(handles.values()), list(handles))
    return figure


def expect(axes: Axes, place: int, expected: str, *, margin: float, reach: float) -> None:
    """Tint the part of a line where the change should lie; nothing where no sign is known."""
    low, high = REGIONS.get(expected, (-margin, margin) if expected == "same" else (0.0, 0.0))
    left, right = max(low, -reach), min(high, reach)
    if right > left:
        axes.barh(
            place, right - left, left=left, height=0.72, color="#dfe9e2", zorder=1, label="expected of a fair judge"
        )


def draw(axes: Axes, place: int, row: object, *, colour: int) -> None:
    """One change: its value as a mark, filled in its source's colour, and the interval."""
    value, low, high = float(row.change), float(row.low), float(row.high)  # type: ignore[attr-defined]
    if value != value:
        return
    shade, mark = COLOURS[colour % len(COLOURS)], MARKERS[colour % len(MARKERS)]
    if low == low and high == high:
        axes.plot([low, high], [place, place], color=shade, linewidth=2, alpha=0.5, solid_capstyle="round", zorder=3)
    axes.plot(
        value, place, mark, color=shade, markersize=7, markeredgecolor="white", markeredgewidth=0.8, zorder=4,
        label=f"{row.source} answers changed",  # type: ignore[attr-defined]
    )  # fmt: skip


def line_name(row: object) -> str:
    """A change, what it was done to, and how often."""
    name = wrapped(f"{row.shift.replace('_', ' ')} · {row.source}", width=30)  # type: ignore[attr-defined]
    return " · ".join(filter(None, [name, counted([getattr(row, "n", 0)])]))


def tell(axes: Axes, shown: pd.DataFrame, names: list[str], reach: float) -> None:
    """Names at the left, verdicts at the right, the line of no change."""
    axes.axvline(0, color="#333333", linewidth=1, zorder=2)
    axes.set_yticks(range(len(shown)), names, parse_math=False)
    for place, row in enumerate(shown.itertuples()):
        wrong = row.verdict in WRONG
        colour = "#B03A00" if wrong else "#4a5560"
        sign = "× " if wrong else ""
        axes.text(reach * 1.04, place, sign + row.verdict, va="center", fontsize=SMALL, clip_on=False, color=colour)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", labelsize=SMALL)
    below(axes.figure, "change of the judge's score in points (scale 1 to 10),\nwith 95 % interval")
    axes.grid(axis="x", color="#e3e8ed", linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
