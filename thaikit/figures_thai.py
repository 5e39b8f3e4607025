"""The figure of the Thai tax: tokens of Thai text over tokens of English text that says the same, a dot a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from thaikit.figures import COLOURS, bands
from thaikit.figures_text import HALO, SMALL, WIDTH, below, ink, row_height, wrapped


def tax_dots(lines: Sequence[Mapping[str, Any]]) -> Figure:
    """One row a model, lowest tax first: `model`, `value`, `low`, `high` (NaN where there is no interval). The line at
    1 is a tokenizer that spends as much on Thai as on English."""
    ranked = sorted(lines, key=lambda line: line["value"])
    names = [wrapped(line["model"]) for line in ranked]
    figure = Figure(figsize=(WIDTH, row_height(names, least=0.32) * len(ranked) + 0.9), layout="constrained")
    axes = figure.add_subplot()
    bands(axes, names)
    for row, line in enumerate(ranked):
        end = line["value"]
        if np.isfinite([line["low"], line["high"]]).all():
            axes.plot([line["low"], line["high"]], [row, row], color=COLOURS[0], linewidth=2, alpha=0.45)
            end = line["high"]
        axes.annotate(f"{line['value']:.2f}", (end, row), (6, 0), textcoords="offset points", va="center",
                      fontsize=SMALL, color=ink(COLOURS[0]), path_effects=HALO)  # fmt: skip
    axes.plot([line["value"] for line in ranked], range(len(ranked)), "o", color=COLOURS[0], markersize=6.5,
              markeredgecolor="white", zorder=4)  # fmt: skip
    axes.axvline(1, color="#6b7680", linestyle="--", linewidth=1.2)
    axes.annotate("as English", (1, 1), (4, 4), xycoords=("data", "axes fraction"), textcoords="offset points",
                  fontsize=SMALL, color="#4a5560")  # fmt: skip
    axes.set_xlim(0, 1.12 * max(1.0, *(np.nanmax([line["value"], line["high"]]) for line in ranked)))
    below(figure, "tokens of Thai text for each token of English text of the same meaning,\nwith 95 % interval")
    axes.grid(axis="x", color="#e3e8ed", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure
