"""Figures of ThaiCLI: scores by theme between rejected and chosen, and preferences by theme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thaikit.figures import COLOURS

THEMES = {
    "all": ("All themes", "ทุกหมวด"),
    "royal family": ("Royal family", "พระราชวงศ์"),
    "religion": ("Religion", "ศาสนา"),
    "culture": ("Culture", "วัฒนธรรม"),
    "economy": ("Economy", "เศรษฐกิจ"),
    "humanity": ("Humanity", "มนุษยธรรม"),
    "lifestyle": ("Lifestyle", "วิถีชีวิต"),
    "politics": ("Politics", "การเมือง"),
}
FORMATS = ("factoid", "instruction")
Lines = Sequence[Mapping[str, Any]]


def score_dots(cells: Lines, *, gate: Lines = ()) -> Figure:
    """The model's mean in every theme with its 95 % interval, one panel a format; where the judge was gated, its means
    of the rejected and the chosen answers as open marks. `cells` and `gate` as thaicli_summary gives them."""
    figure, panels = panels_of()
    for panel, name in zip(panels, FORMATS, strict=True):
        part = pd.DataFrame([line for line in cells if line["format"] == name])
        own = [line for line in gate if line["format"] == name]
        for mark, key, colour in (("<", "rejected", COLOURS[1]), (">", "chosen", COLOURS[2])):
            points = [(line[key], place_of(line["theme"])) for line in own if line["theme"] in THEMES]
            if points:
                xs, ys = zip(*points, strict=True)
                panel.plot(xs, ys, mark, color=colour, markerfacecolor="white", markersize=7, label=f"{key} answers")
        draw(panel, part, "value", "low", "high", digits=1)
        panel.set_title(name)
        panel.set_xlim(-0.4, 10.9)
        panel.set_xticks(range(0, 11, 2))
        panel.set_xlabel("judge's score, 1 to 10 (0: no verdict), with 95 % interval")
    legend(figure, panels[0])
    return figure


def preference_dots(cells: Lines, *, metric: str = "sum") -> Figure:
    """The share of items whose chosen answer is likelier, in percent by theme, one panel a format, guessing marked."""
    figure, panels = panels_of()
    for panel, name in zip(panels, FORMATS, strict=True):
        part = pd.DataFrame([line for line in cells if line["format"] == name])
        if len(part):
            keys = [metric, f"{metric}_low", f"{metric}_high"]
            part = part.assign(**{key: 100 * part[key].astype(float) for key in keys})
            draw(panel, part, *keys, digits=0)
        panel.axvline(50, color="#6b7680", linestyle="--", linewidth=1, label="guessing")
        panel.set_title(name)
        panel.set_xlim(-4, 112)
        panel.set_xticks(range(0, 101, 25))
        panel.set_xlabel("chosen likelier, % of items, with 95 % interval")
    legend(figure, panels[0])
    return figure


def panels_of() -> tuple[Figure, Sequence[Axes]]:
    """Two panels that share their rows: a band a theme, with its name in English and Thai."""
    figure = Figure(figsize=(9.6, 5.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    labels = [f"{english}\n{thai}" for english, thai in THEMES.values()]
    for panel in panels:
        for row in range(0, len(labels), 2):
            panel.axhspan(row - 0.5, row + 0.5, color="#f4f6f8", zorder=0, linewidth=0)
        panel.axhline(0.5, color="#9aa3ad", linewidth=1)
        panel.set_ylim(len(labels) - 0.5, -0.5)
        panel.tick_params(axis="y", length=0)
        panel.grid(axis="x", color="#e3e8ed", linewidth=0.8)
        panel.set_axisbelow(True)
    panels[0].set_yticks(range(len(labels)), labels)
    return figure, panels


def place_of(theme: str) -> int:
    """A theme's row."""
    return list(THEMES).index(theme)


def draw(panel: Axes, part: pd.DataFrame, value: str, low: str, high: str, *, digits: int) -> None:
    """Dots with intervals and values; a theme without a number stays empty."""
    rows = [line for line in part.to_dict("records") if pd.notna(line[value])]
    for line in rows:
        y, end = place_of(line["theme"]), line[value]
        if pd.notna(line[low]) and pd.notna(line[high]):
            panel.plot([line[low], line[high]], [y, y], color=COLOURS[0], linewidth=2, alpha=0.45)
        panel.annotate(f"{end:.{digits}f}", (end, y), (0, 7), textcoords="offset points", ha="center", fontsize=8,
                       color=COLOURS[0])  # fmt: skip
    places = [place_of(line["theme"]) for line in rows]
    panel.plot([line[value] for line in rows], places, "o", color=COLOURS[0], markersize=6.5, markeredgecolor="white",
               label="model")  # fmt: skip


def legend(figure: Figure, panel: Axes) -> None:
    """One legend above both panels."""
    handles, labels = panel.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False, fontsize=9.5)
