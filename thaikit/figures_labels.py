"""Direct labels that do not cover each other: beside their points, with a thin line where they had to move away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from thaikit.figures_text import HALO, ink

RINGS = (7.0, 13.0, 20.0, 28.0)  # points from a dot to its label, nearest first
FOREIGN = 300.0  # what it costs a label, in square pixels, to stand nearer to another model's dot
SIDES = (("left", "center", 1, 0), ("left", "bottom", 0.7, 0.7), ("left", "top", 0.7, -0.7),
         ("right", "center", -1, 0), ("right", "bottom", -0.7, 0.7), ("right", "top", -0.7, -0.7),
         ("center", "bottom", 0, 1), ("center", "top", 0, -1), ("left", "bottom", 0.4, 0.9), ("left", "top", 0.4, -0.9),
         ("right", "bottom", -0.4, 0.9), ("right", "top", -0.4, -0.9))  # fmt: skip
SHARE = {"left": 0.0, "bottom": 0.0, "center": 0.5, "right": 1.0, "top": 1.0}  # of a label that lies before its anchor


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
    dots = axes.transData.transform(np.column_stack([xs, ys])) if len(xs) else np.empty((0, 2))
    lines = axes.transData.transform(np.array(avoid)) if len(avoid) else np.empty((0, 2))
    taken = np.vstack([squares(dots, 5 * scale), squares(lines, scale)])
    told = [text.get_window_extent().extents for text in axes.texts]
    for place, (text, colour) in enumerate(zip(texts, colours, strict=True)):
        note = axes.annotate(text, (xs[place], ys[place]), xytext=(0, 0), textcoords="offset points", fontsize=size,
                             color=ink(colour), annotation_clip=False, parse_math=False, zorder=6,
                             path_effects=HALO)  # fmt: skip
        note.set_in_layout(False)  # else the axes would move away from under what was measured
        others = np.delete(dots, place, axis=0)
        told.append(place_one(axes, note, dots[place], taken, np.array(told).reshape(-1, 4), others))


def squares(points: Any, half: float) -> Any:
    """Boxes (x0, y0, x1, y1) around points, `half` a side to each."""
    return np.hstack([points - half, points + half])


def assert_figure(figure: object) -> None:
    """A figure of its own is needed: text is measured by drawing it."""
    if not isinstance(figure, Figure):
        raise ValueError("label_points: the axes belong to no figure; make them with figure.add_subplot.")


def place_one(axes: Axes, note: Annotation, here: Any, taken: Any, told: Any, others: Any) -> Any:
    """Put one label, off what is `taken` and above all off what is `told` (boxes in pixels), and nearer to its own dot
    than to any of the `others`; the label's box. Where there is no room around the dot, anywhere in the axes."""
    scale = axes.figure.dpi / 72
    frame, size = axes.get_window_extent().extents, note.get_window_extent().size
    best: tuple[float, Any] = (np.inf, frame)
    for ring in RINGS:
        for across, up, dx, dy in SIDES:
            corner = here + ring * scale * np.array([dx, dy]) - size * np.array([SHARE[across], SHARE[up]])
            box = np.concatenate([corner, corner + size])
            cost = ring + overlap(box, taken).sum() + 20 * overlap(box, told).sum()
            cost += 20 * (size.prod() - overlap(box, frame[None]).sum())
            cost += FOREIGN * (away(box, others) < away(box, here[None])).sum()
            if cost < best[0] - 1e-9:
                best = (cost, box)
        if best[0] <= ring + RINGS[1]:
            break  # farther away costs more than what is left
    if overlap(best[1], told).any() or overlap(best[1], frame[None]).sum() < 0.99 * size.prod():
        best = anywhere(here, size, frame, taken, told) or best
    box = best[1]
    note.set(ha="left", va="bottom", position=(box[:2] - here) / scale)
    reach = np.clip(here, box[:2], box[2:]) - here
    if np.hypot(*reach) > 1.2 * RINGS[1] * scale:
        thin = {"arrowstyle": "-", "color": "#9aa3ad", "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", note.xy, xytext=reach / scale, textcoords="offset points", arrowprops=thin,
                      zorder=2)  # fmt: skip
    return box


def anywhere(here: Any, size: Any, frame: Any, taken: Any, told: Any) -> tuple[float, Any] | None:
    """The nearest place in the frame that is off all labels, best off the dots too: (its cost, its box)."""
    ends = frame[2:] - size
    if (ends <= frame[:2]).any():
        return None
    grid = np.meshgrid(*(np.linspace(frame[n], ends[n], 60) for n in (0, 1)))
    corners = np.stack(grid, axis=-1).reshape(-1, 2)
    boxes = np.hstack([corners, corners + size])
    cost = np.array([20 * overlap(box, told).sum() + overlap(box, taken).sum() for box in boxes])
    cost += np.hypot(*(np.clip(here, boxes[:, :2], boxes[:, 2:]) - here).T)
    return float(cost.min()), boxes[int(cost.argmin())]


def overlap(box: Any, others: Any) -> Any:
    """The area that a box (x0, y0, x1, y1) shares with each of `others` (n × 4), in square pixels."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    return np.clip(sides, 0, None).prod(axis=1)


def away(box: Any, points: Any) -> Any:
    """The distance from a box to each of some points (n × 2), in pixels."""
    return np.hypot(*np.maximum(np.maximum(box[:2] - points, points - box[2:]), 0).T)
