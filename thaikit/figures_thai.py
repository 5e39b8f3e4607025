"""The figure of the Thai tax: tokens of Thai text over tokens of English text that says the same, a dot a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from thaikit.figures import COLOURS

NAME = 34  # characters of a model's name that are drawn


def tax_dots(lines: Sequence[Mapping[str, Any]]) -> Figure:
    """One row a model, lowest tax first: `model`, `value`, `low`, `high` (NaN where there is no interval). The line at
    1 is a tokenizer that spends as much on Thai as on English."""
    ranked = sorted(lines, key=lambda line: line["value"])
    figure = Figure(figsize=(8.6, 0.34 * len(ranked) + 1.1), layout="constrained")
    axes = figure.add_subplot()
    for row, line in enumerate(ranked):
        if row % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color="#f4f6f8", zorder=0, linewidth=0)
        end = line["value"]
        if np.isfinite([line["low"], line["high"]]).all():
            axes.plot([line["low"], line["high"]], [row, row], color=COLOURS[0], linewidth=2, alpha=0.45)
            end = line["high"]
        axes.annotate(f"{line['value']:.2f}", (end, row), (6, 0), textcoords="offset points", va="center", fontsize=8.5,
                      color=COLOURS[0])  # fmt: skip
    axes.plot([line["value"] for line in ranked], range(len(ranked)), "o", color=COLOURS[0], markersize=6.5,
              markeredgecolor="white", zorder=4)  # fmt: skip
    axes.axvline(1, color="#6b7680", linestyle="--", linewidth=1.2)
    axes.annotate("as English", (1, 1), (4, 4), xycoords=("data", "axes fraction"), textcoords="offset points",
                  fontsize=8.5, color="#4a5560")  # fmt: skip
    axes.set_yticks(range(len(ranked)), [shortened(str(line["model"])) for line in ranked])
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(len(ranked) - 0.5, -0.5)
    axes.set_xlim(0, 1.12 * max(1.0, *(np.nanmax([line["value"], line["high"]]) for line in ranked)))
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("tokens of Thai text for each token of English text of the same meaning, with 95 % interval")
    axes.grid(axis="x", color="#e3e8ed", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure


def shortened(name: str, *, size: int = NAME) -> str:
    """A name that fits beside the axis; its end tells checkpoints apart and stays. A letter that is neither Latin nor
    Thai is drawn as a question mark: the fonts lack it."""
    safe = "".join(char if char.isprintable() and (char < "\u0250" or "ก" <= char <= "๛") else "?" for char in name)
    return safe if len(safe) <= size else f"{safe[: size // 2]}…{safe[-(size // 2) :]}"
