"""Direct labels that do not cover each other: beside their points, with a thin line where they had to move away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

RINGS = (7.0, 13.0, 20.0, 28.0)  # points from a dot to its label, nearest first
FOREIGN = 300.0  # what it costs a label, in square pixels, to stand nearer to another model's dot
SIDES = (("left", "center", 1, 0), ("left", "bottom", 0.7, 0.7), ("left", "top", 0.7, -0.7),
         ("right", "center", -1, 0), ("right", "bottom", -0.7, 0.7), ("right", "top", -0.7, -0.7),
         ("center", "bottom", 0, 1), ("center", "top", 0, -1))  # fmt: skip


def label_points(
    axes: Axes, xs: Sequence[float], ys: Sequence[float], texts: Sequence[str], *, colours: Sequence[str],
    size: float = 8.5, avoid: Sequence[tuple[float, float]] = (),
) -> None:  # fmt: skip
    """Write each text beside its point, in the first place that is inside the axes and free of dots and labels.

    `avoid` are further points, such as those of a line, to keep off. Call it when all else is drawn: limits must be
    final. A dollar sign in a text stays one.
    """
    figure = axes.figure
    assert_figure(figure)
    figure.draw_without_rendering()
    scale = figure.dpi / 72
    dots = [axes.transData.transform((x, y)) for x, y in zip(xs, ys, strict=True)]
    taken = [Bbox.from_extents(x - 5 * scale, y - 5 * scale, x + 5 * scale, y + 5 * scale) for x, y in dots]
    for x, y in map(axes.transData.transform, avoid):
        taken.append(Bbox.from_extents(x - scale, y - scale, x + scale, y + scale))
    taken += [text.get_window_extent() for text in axes.texts]
    for place, (x, y, text, colour) in enumerate(zip(xs, ys, texts, colours, strict=True)):
        others = [dot for n, dot in enumerate(dots) if n != place]
        taken.append(place_one(axes, (x, y), text, taken, others, colour=colour, size=size))


def assert_figure(figure: object) -> None:
    """A figure of its own is needed: text is measured by drawing it."""
    if not isinstance(figure, Figure):
        raise ValueError("label_points: the axes belong to no figure; make them with figure.add_subplot.")


def place_one(
    axes: Axes, point: tuple[float, float], text: str, taken: Sequence[Bbox], others: Sequence[Any], *, colour: str,
    size: float,
) -> Bbox:  # fmt: skip
    """Write one label in the best place, nearer to its own dot than to any of the `others`; its box in pixels."""
    frame, best = axes.get_window_extent(), None
    here = axes.transData.transform(point)
    note = axes.annotate(text, point, xytext=(0, 0), textcoords="offset points", fontsize=size, color=colour,
                         annotation_clip=False, parse_math=False, zorder=6,
                         path_effects=[withStroke(linewidth=2.5, foreground="white")])  # fmt: skip
    for ring in RINGS:
        for across, up, dx, dy in SIDES:
            note.set(ha=across, va=up, position=(ring * dx, ring * dy))
            box = note.get_window_extent()
            cost = sum(overlap(box, other) for other in taken) + 20 * outside(box, frame)
            cost += FOREIGN * sum(away(box, other) < away(box, here) for other in others)
            if best is None or cost < best[0] - 1e-9:
                best = (cost, ring, across, up, dx, dy)
        if best[0] == 0:
            break
    _, ring, across, up, dx, dy = best
    note.set(ha=across, va=up, position=(ring * dx, ring * dy))
    if ring > RINGS[1]:
        thin = {"arrowstyle": "-", "color": "#9aa3ad", "linewidth": 0.7}
        axes.annotate("", point, xytext=(ring * dx, ring * dy), textcoords="offset points",
                      arrowprops=thin, zorder=2)  # fmt: skip
    return note.get_window_extent()


def overlap(a: Bbox, b: Bbox) -> float:
    """The area two boxes share, in square pixels."""
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return max(0.0, width) * max(0.0, height)


def away(box: Bbox, point: Any) -> float:
    """The distance from a box to a point, in pixels."""
    return math.hypot(*(max(low - at, 0.0, at - high) for low, high, at in
                        zip((box.x0, box.y0), (box.x1, box.y1), point, strict=True)))  # fmt: skip


def outside(box: Bbox, frame: Bbox) -> float:
    """The area of a box that lies outside a frame, in square pixels."""
    return box.width * box.height - overlap(box, frame)
