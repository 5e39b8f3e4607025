"""Figures: Thai marks are where they belong, nothing is drawn as a box, and the forest plot shows what it is given."""

from __future__ import annotations

import io
import itertools
import math
import re
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread

from thaikit import ThaikitError, figures, figures_text
from thaikit.records import Run


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


def test_a_vowel_below_keeps_off_the_foot_of_its_consonant() -> None:
    height, dark = ink("ฏู")
    assert height > ink("ฏ")[0] and height > ink("ทู")[0] + 5  # lowered by the foot
    assert dark > 0.97 * (ink("ฏ")[1] + ink("ทู")[1] - ink("ท")[1])  # both whole: nothing lies on anything


def test_sara_am_parts_around_a_tone_mark() -> None:
    assert ink("น้ำ")[0] > ink("นำ")[0] and ink("น้ำ")[1] > ink("นำ")[1]
    assert ink("น้ำ")[1] > 0.93 * (ink("น้")[1] + ink("นำ")[1] - ink("น")[1])  # in a stack it is smaller


MACHADO = {  # Machado, Oliveira and Fernandes 2009, Table 1, severity 1: linear RGB as a dichromat sees it
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "full sight": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
}


def lab(colour: str, sight: str) -> np.ndarray:
    """CIE L*a*b* (D65) of a colour as it is seen."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(MACHADO[sight]) @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ seen / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", MACHADO)
def test_colour_blind_readers_tell_the_colours_apart(sight: str) -> None:
    seen = [lab(colour, sight) for colour in figures.COLOURS]
    nearest = min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2))
    assert nearest > 15  # 2.3 is a just noticeable difference; a red beside its green is at 5 in deuteranopia
    assert min(100 - one[0] for one in seen) > 25  # none fades into the page


def test_no_two_of_many_series_look_alike() -> None:
    looks = {(figures.COLOURS[n % 8], figures.mark_of(n)) for n in range(32)}
    assert len(looks) == 32
    assert all(figures_text.luminance(to_rgb(figures_text.ink(c))) <= 1.05 / 4.5 - 0.05 for c in figures.COLOURS)


def test_a_file_tells_nothing_but_the_figure(tmp_path: Path) -> None:
    files = []
    for folder in ("a", "b"):
        run = Run.open("test", params={}, out_dir=str(tmp_path / folder))
        run.figure(figures.thai_h6_bars(table()), "f")
        files.append({path.suffix: path.read_bytes() for path in (tmp_path / folder / "figures").iterdir()})
    assert set(files[0]) == {".png", ".pdf", ".svg"} and files[0] == files[1]
    named = [b"/home", b"/tmp", b"/usr", str(Path.home()).encode(), b"CreationDate", b"ModDate", b"dc:date", b"<script"]
    assert not [(kind, word) for kind, data in files[0].items() for word in named if word in data]
    fonts = set(re.findall(rb"/FontName /(?:[A-Z]+\+)?([\w-]+)", files[0][".pdf"]))
    assert fonts == {b"DejaVuSans", b"NotoSansThai-Regular"}  # what matplotlib and the font package bring


@pytest.mark.parametrize(("name", "lines"), [
    ("model-a", ["model-a"]),
    ("meta-llama-3.1-typhoon-v1.5x-70b-instruct", ["meta-llama-3.1-typhoon-", "v1.5x-70b-instruct"]),
    ("x" * 60, ["x" * 24, "x" * 24, "x" * 12]),
    ("y" * 35 + "z" * 65, ["y" * 24, "y" * 11 + "…" + "z" * 12, "z" * 24]),
    ("a\u202eb\x07\n模", ["a\ufffdb\ufffd \ufffd"]),
    ("", [""]),
])  # fmt: skip
def test_any_name_can_be_drawn(name: str, lines: list[str]) -> None:
    assert figures_text.wrapped(name).split("\n") == lines


def test_thai_names_break_between_letters() -> None:
    whole = "แบบจำลองภาษาไทยขนาดใหญ่ที่ปรับให้ทำตามคำสั่งแล้ว"
    lines = figures_text.wrapped(whole, width=12, lines=6).split("\n")
    assert "".join(lines) == whole and len(lines) > 2
    assert not [
        line for line in lines if unicodedata.category(line[0]) == "Mn" or line[0] in "ะำ" or line[-1] in "เแโใไ"
    ]


def test_labels_are_spread_as_little_as_needed() -> None:
    assert figures_text.spread([3.0, 3.0, 9.0], 1.0) == [2.5, 3.5, 9.0]
    assert figures_text.spread([2.0, 1.0, 1.0, 1.5], 1.0) == pytest.approx([2.875, -0.125, 0.875, 1.875])
    assert figures_text.spread([], 1.0) == []


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
