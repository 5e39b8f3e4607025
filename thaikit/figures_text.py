"""Text in figures: names that no length and no sign can break, the key above, and sizes that hold at column width."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

COLUMN = 3.35  # inches, the 85 mm of a paper's column
SMALL = 8.5  # points, the smallest text of any figure
WIDTH = 5.6  # inches: shrunk to a column, SMALL is still 5 points
HALO = [withStroke(linewidth=2.2, foreground="white")]  # keeps a number legible where a line passes behind it
MARKS = "\u0300-\u036f\u0e30\u0e31-\u0e3a\u0e45-\u0e4e"  # what stays with the letter before it
CLUSTER = re.compile(rf"[เ-ไ]?[^{MARKS}][{MARKS}]*|.")
BREAKS = " -_/.:+"


def drawable(text: object) -> str:
    """A text on one line in which a character that cannot be seen, or that no font of the figure has, is a \ufffd."""
    known = glyphs(tuple(matplotlib.rcParams["font.family"]))
    return "".join(
        char if ord(char) in known and unicodedata.category(char)[0] != "C" else "\ufffd"
        for char in " ".join(str(text).split())
    )


@cache
def glyphs(families: tuple[str, ...]) -> frozenset[int]:
    """The code points that the fonts of these families can draw."""
    fonts = [
        font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=[family])))
        for family in families
    ]
    return frozenset(code for font in fonts for code in font.get_charmap())


def wrapped(text: object, *, width: int = 24, lines: int = 3) -> str:
    """A name on at most `lines` lines of `width` letters, broken at a space, else at a hyphen, stroke or point, where
    there is one in the line's second half; what is longer has "…" in its middle. Thai marks stay with their letters."""
    parts = CLUSTER.findall(drawable(text))
    if sum(map(weight, parts)) > width * lines:
        room = width * lines // 2
        head = [part for part, used in zip(parts, accumulate(map(weight, parts)), strict=True) if used < room]
        tail = [part for part, used in zip(parts[::-1], accumulate(map(weight, parts[::-1])), strict=True)
                if used <= room][::-1]  # fmt: skip
        parts = [*head, "…", *tail]
    rows = lines_of(parts, width, signs=BREAKS)
    return "\n".join("".join(row).strip() for row in (rows if len(rows) <= lines else lines_of(parts, width)))


def lines_of(parts: Sequence[str], width: int, *, signs: str = "") -> list[list[str]]:
    """Letters on lines of `width` at most, broken after a space or one of the `signs` in a line's second half."""
    rows: list[list[str]] = [[]]
    for part in parts:
        if sum(map(weight, rows[-1])) + weight(part) > width:
            cuts = [(sign == " ", n) for n, sign in enumerate(rows[-1], 1) if sign in signs and n > width / 2]
            cut = max(cuts)[1] if cuts else len(rows[-1])
            rows[-1:] = [rows[-1][:cut], rows[-1][cut:]]
        rows[-1].append(part)
    return rows


def weight(part: str) -> int:
    """How many letters a letter with its marks takes beside each other."""
    return sum(unicodedata.category(char) != "Mn" for char in part)


def row_height(labels: Sequence[str], *, least: float = 0.3) -> float:
    """Inches from one row to the next that the tallest of these labels needs."""
    return max(least, 0.07 + 0.16 * max((label.count("\n") + 1 for label in labels), default=1))


def ink(colour: str) -> str:
    """A colour, darkened until text in it has a contrast of 4.5 to white (WCAG 2.2, 1.4.3)."""
    shade = to_rgb(colour)
    while luminance(shade) > 1.05 / 4.5 - 0.05:
        shade = tuple(0.95 * part for part in shade)
    return to_hex(shade)


def luminance(shade: Sequence[float]) -> float:
    """Relative luminance of an sRGB colour, 0 to 1."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in shade]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def signed(value: float, digits: int) -> str:
    """A difference with its sign, a true minus among them."""
    return f"{value:+.{digits}f}".replace("-", "−")


def counted(numbers: Sequence[Any]) -> str:
    """How many items, as `n = 60`, or `n = 50 to 60` where the numbers differ; "" where nothing was counted."""
    whole = sorted({int(n) for n in numbers if n == n and n is not None and n > 0})
    if not whole:
        return ""
    return f"n = {whole[0]:,}" + (f" to {whole[-1]:,}" if len(whole) > 1 else "")


def key_above(figure: Figure, handles: Sequence[Any], labels: Sequence[str], *, size: float = 9.0) -> None:
    """A legend above all axes in as many columns as fit; the figure grows by its height, the axes keep theirs."""
    names = [wrapped(label, width=34, lines=2) for label in labels]
    for columns in range(min(len(names), 4), 0, -1):
        legend = figure.legend(handles, names, loc="outside upper left", ncols=columns, frameon=False, fontsize=size,
                               handletextpad=0.5, columnspacing=1.3, borderaxespad=0.2)  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)  # a dollar sign in a model's name is a dollar sign
        box = legend.get_window_extent()
        if box.width <= figure.bbox.width or columns == 1:
            break
        legend.remove()
    if names:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + box.height / figure.dpi)


def below(figure: Figure, text: str) -> None:
    """What the numbers below are, under the whole figure: under axes made narrow by long names it would not fit."""
    figure.supxlabel(text, fontsize=9.5, color="#4a5560")


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Places at least `gap` apart, in the same order, moved as little as that needs (least squares)."""
    order = sorted(range(len(places)), key=lambda n: places[n])
    blocks: list[tuple[float, int]] = []  # mean of what is wanted, how many share it
    for rank, n in enumerate(order):
        mean, size = places[n] - gap * rank, 1
        while blocks and blocks[-1][0] > mean:
            other, more = blocks.pop()
            mean, size = (mean * size + other * more) / (size + more), size + more
        blocks.append((mean, size))
    moved = [mean for mean, size in blocks for _ in range(size)]
    found = [math.nan] * len(places)
    for rank, n in enumerate(order):
        found[n] = moved[rank] + gap * rank
    return found
