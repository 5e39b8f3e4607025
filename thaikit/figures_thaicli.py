"""Figures of ThaiCLI: scores by theme between rejected and chosen, and preferences by theme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thaikit.figures import COLOURS, bands
from thaikit.figures_text import HALO, SMALL, WIDTH, below, ink, key_above

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
    """The model's mean in every theme with its 95 % interval and n, one panel a format; where the judge was gated, its
    means of the rejected and the chosen answers as open marks. `cells` are those of thaicli_summary, `gate` of
    thaicli_gate."""
    figure, panels = panels_of("judge's score in points, 1 to 10 (0: no verdict), with 95 % interval")
    for panel, name in zip(panels, FORMATS, strict=True):
        part = pd.DataFrame([line for line in cells if line["format"] == name])
        own = [line for line in gate if line["format"] == name]
        for mark, key, colour in (("<", "rejected", COLOURS[1]), (">", "chosen", COLOURS[2])):
            points = [(line[key], place_of(line["theme"])) for line in own if line["theme"] in THEMES]
            if points:
                xs, ys = zip(*points, strict=True)
                panel.plot(xs, ys, mark, color=colour, markerfacecolor="white", markersize=6.5, label=f"{key} answers")
        draw(panel, part, "value", "low", "high", digits=1)
        panel.set_xlim(-0.4, 13.4)
        panel.set_xticks(range(0, 11, 2))
    legend(figure, panels)
    return figure


def preference_dots(cells: Lines, *, metric: str = "sum") -> Figure:
    """The share of items whose chosen answer is likelier, in percent by theme, one panel a format, guessing marked."""
    figure, panels = panels_of("chosen answer likelier, in percent of items, with 95 % interval")
    for panel, name in zip(panels, FORMATS, strict=True):
        part = pd.DataFrame([line for line in cells if line["format"] == name])
        if len(part):
            keys = [metric, f"{metric}_low", f"{metric}_high"]
            part = part.assign(**{key: 100 * part[key].astype(float) for key in keys})
            draw(panel, part, *keys, digits=0)
        panel.axvline(50, color="#6b7680", linestyle="--", linewidth=1, label="guessing")
        panel.set_xlim(-4, 134)
        panel.set_xticks(range(0, 101, 25))
    legend(figure, panels)
    return figure


def panels_of(label: str) -> tuple[Figure, Sequence[Axes]]:
    """Two panels that share their rows: a band a theme, named in English and Thai; `label` tells the numbers."""
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, name in zip(panels, FORMATS, strict=True):
        bands(panel, [f"{english}\n{thai}" for english, thai in THEMES.values()], rule=1)
        panel.grid(axis="x", color="#e3e8ed", linewidth=0.8)
        panel.set_axisbelow(True)
        panel.set_title(name, fontsize=9.5, loc="left")
        panel.tick_params(axis="x", labelsize=9)
    panels[1].tick_params(labelleft=False)
    below(figure, label)
    return figure, panels


def place_of(theme: str) -> int:
    """A theme's row."""
    return list(THEMES).index(theme)


def draw(panel: Axes, part: pd.DataFrame, value: str, low: str, high: str, *, digits: int) -> None:
    """Dots with intervals and values, and n at the right; a theme without a number stays empty."""
    rows = [line for line in part.to_dict("records") if pd.notna(line[value])]
    for line in rows:
        y, end = place_of(line["theme"]), line[value]
        if pd.notna(line[low]) and pd.notna(line[high]):
            panel.plot([line[low], line[high]], [y, y], color=COLOURS[0], linewidth=2, alpha=0.45)
        panel.annotate(f"{end:.{digits}f}", (end, y), (0, 5), textcoords="offset points", ha="center", va="bottom",
                       fontsize=SMALL, color=ink(COLOURS[0]), path_effects=HALO)  # fmt: skip
        if line.get("n"):
            panel.annotate(f"n {line['n']:,}", (1, y), (-3, 0), xycoords=("axes fraction", "data"), ha="right",
                           textcoords="offset points", va="center", fontsize=SMALL, color="#4a5560")  # fmt: skip
    places = [place_of(line["theme"]) for line in rows]
    panel.plot([line[value] for line in rows], places, "o", color=COLOURS[0], markersize=6.5, markeredgecolor="white",
               label="model")  # fmt: skip


def legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend above both panels."""
    pairs = [zip(*panel.get_legend_handles_labels(), strict=True) for panel in panels]
    found = {text: handle for pair in pairs for handle, text in pair}
    key_above(figure, list(found.values()), list(found))
