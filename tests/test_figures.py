"""Figures: Thai marks are where they belong, nothing is drawn as a box, and the forest plot shows what it is given."""

from __future__ import annotations

import io
import math
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from thaikit import ThaikitError, figures


@pytest.fixture(autouse=True)
def style() -> None:
    figures.use_style()


def ink(text: str) -> tuple[int, float]:
    """Height in pixels and amount of the ink of a text at 60 points."""
    figure = Figure(figsize=(3, 3), dpi=96)
    figure.text(0.3, 0.4, text, fontsize=60)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=96)
    stream.seek(0)
    dark = 1 - imread(stream)[:, :, :3].mean(axis=2)
    rows = np.flatnonzero(dark.max(axis=1) > 0.5)
    return int(rows[-1] - rows[0] + 1), float(dark.sum())


def test_a_tone_mark_stands_above_the_vowel() -> None:
    both, vowel, tone = ink("ที่"), ink("ที"), ink("ท่")
    assert both[0] > vowel[0] and both[0] > tone[0]
    assert both[1] > vowel[1] and both[1] > tone[1]


def test_letters_lose_their_tails_over_a_vowel_below() -> None:
    assert ink("ญู")[1] < ink("ญ")[1] + ink("ทู")[1] - ink("ท")[1]


def test_a_missing_glyph_is_an_error() -> None:
    figure = Figure()
    figure.text(0.5, 0.5, "\U0001f9ed")
    with pytest.raises(UserWarning, match="Glyph"):
        figure.savefig(io.BytesIO(), format="png")


def test_a_missing_font_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "THAI_FONT", "No Such Thai")
    with pytest.raises(ThaikitError, match="No Such Thai is not installed.*pip install fontpkg-noto-sans-thai"):
        figures.use_style()
    monkeypatch.setitem(sys.modules, "fontpkg", None)
    with pytest.raises(ThaikitError, match="pip install fontpkg-noto-sans-thai"):
        figures.use_style()


def test_an_old_matplotlib_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures.matplotlib, "__version__", "3.10.9")
    with pytest.raises(ThaikitError, match="3.10.9 draws Thai marks wrongly"):
        figures.use_style()


def table(models: int = 2) -> pd.DataFrame:
    rows = [
        {"model": f"model-{m}", "task": task, "value": 30.0 + 7 * m, "low": 20.0, "high": 60.0, "chance": 25.0}
        for task in [*figures.THAI_NAMES, "mmlu_micro"]
        for m in range(models)
    ]
    return pd.DataFrame(rows)


def texts(figure: Figure) -> list[str]:
    axes = figure.axes[0]
    return [label.get_text() for label in (*axes.get_yticklabels(), *axes.texts, *figure.legends[0].get_texts())]


@pytest.mark.parametrize("models", [1, 2, 8, 13])
def test_forest_plot_has_every_task_and_model(models: int) -> None:
    figure = figures.thai_h6_bars(table(models))
    figure.savefig(io.BytesIO(), format="png")
    shown = texts(figure)
    assert "ARC\nวิทยาศาสตร์" in shown and "Average\nค่าเฉลี่ย" in shown
    assert {f"model-{m}" for m in range(models)} <= set(shown) and "guessing" in shown
    assert not [text for text in shown if "micro" in text]
    assert shown.count("30.0") == 7


def test_forest_plot_leaves_out_what_is_not_there() -> None:
    frame = table().astype({"low": object, "value": object})
    frame.loc[0, ["value", "low", "high"]] = None
    frame.loc[1, ["low", "high"]] = math.nan
    figure = figures.thai_h6_bars(frame)
    figure.savefig(io.BytesIO(), format="png")
    assert texts(figure).count("30.0") == 6
    with pytest.raises(ThaikitError, match="no score to draw"):
        figures.thai_h6_bars(frame.assign(value=math.nan))


def test_names_are_no_formulas() -> None:
    figure = figures.thai_h6_bars(table().assign(model="a$x_1$b").replace({"task": {"arc": r"$\frac$"}}))
    figure.savefig(io.BytesIO(), format="png")
    figure.savefig(io.BytesIO(), format="pdf")
