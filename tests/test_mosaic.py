"""Mosaics: each item in one cell, widths and counts right, nothing overlapping for one model or for twelve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_leaves
import pandas as pd
import pytest
from matplotlib.figure import Figure

from thaikit import ThaikitError, figures, report_mosaic, report_parts
from thaikit.figures_mosaic import ANSWERED, SCORED, band_edges, mosaic
from thaikit.records import leaves


@pytest.fixture(autouse=True)
def style() -> None:
    figures.use_style()


def row(theme: str = "culture", outcome: str = "ok", score: int | None = 9, name: str = "factoid") -> dict[str, Any]:
    return {"theme": theme, "format": name, "outcome": outcome, "score": score}


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for panel in figure.axes for text in panel.texts]


def drawn(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=60)
    assert path.stat().st_size > 5_000


@pytest.mark.parametrize(
    ("outcome", "score", "part"),
    [("ok", 10, "high"), ("ok", 8, "high"), ("ok", 7, "middle"), ("ok", 5, "middle"), ("ok", 4, "low"),
     ("refused", None, "refused"), ("unreadable", None, "unreadable"), ("what", None, "failed")],
)  # fmt: skip
def test_the_part_of_a_judged_answer(outcome: str, score: int | None, part: str) -> None:
    assert report_mosaic.judged(row(outcome=outcome, score=score)) == part and part in SCORED


@pytest.mark.parametrize(
    ("given", "part"),
    [({"metric": "acc", "score": 1.0}, "right"), ({"metric": "acc_norm", "score": 0.0}, "wrong"),
     ({"metric": "mc2", "score": 0.31, "acc": 1.0}, "right"), ({"metric": "mc2", "score": 0.31}, ""),
     ({"metric": "strict", "score": 0.0, "answers": {"strict": None}}, "none"),
     ({"metric": "strict", "score": 0.0, "answers": {"strict": "7"}}, "wrong"),
     ({"metric": "acc", "score": None, "outcome": "filtered"}, "filtered"),
     ({"metric": "acc", "score": None, "outcome": "ok"}, "")],
)  # fmt: skip
def test_the_part_of_a_thai_h6_row(given: dict[str, Any], part: str) -> None:
    assert report_mosaic.answered(given) == part and (not part or part in ANSWERED)


def test_cells_are_shares_with_their_counts_in_fixed_order(tmp_path: Path) -> None:
    rows = [row()] * 3 + [row(score=5)] * 2 + [row(outcome="refused", score=None)] + [row("religion")]
    ((name, figure),) = report_mosaic.thaicli({"<b>$x_1$|": rows})
    assert name == "factoid"
    panel = figure.axes[0]
    widths = [round(bar.get_width(), 6) for bar in panel.patches if bar.get_width()]
    assert widths == [100.0, 50.0, 33.333333, 16.666667]  # religion, then culture: high, middle, refused
    assert texts(figure) == ["1", "1", "3", "2", "1", "6"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["Religion ศาสนา", "Culture วัฒนธรรม"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["score 8 to 10", "score 5 to 7", "refused"]
    assert panel.get_title(loc="left") == "<b>$x_1$|\nn 7"
    drawn(figure, tmp_path / "one.png")


def test_twelve_models_and_a_theme_of_few_items(tmp_path: Path) -> None:
    rows = [row(theme, outcome, 5 if outcome == "ok" else None) for theme, many in (("culture", 40), ("economy", 1))
            for outcome in ("ok", "ok", "filtered", "failed") for _ in range(many)]  # fmt: skip
    models = {f"organisation/a-model-with-a-long-name-{n}" + "x" * n * 9: rows for n in range(12)}
    ((_, figure),) = report_mosaic.thaicli(models)
    figure.draw_without_rendering()
    boxes = [panel.title.get_window_extent() for panel in figure.axes]
    boxes += [panel._left_title.get_window_extent() for panel in figure.axes]
    page = figure.bbox
    for place, one in enumerate(boxes):
        assert one.x1 <= page.x1 and not any(one.overlaps(other) and one.width and other.width for other in
                                             boxes[place + 1 :])  # fmt: skip
    labels = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    assert not labels[0].overlaps(labels[1]) and min(label.x0 for label in labels) >= 0
    assert figure.get_size_inches()[1] < 12
    drawn(figure, tmp_path / "twelve.png")


def test_a_small_row_keeps_a_readable_height() -> None:
    assert band_edges([10, 10]) == [0, 0.5, 1]
    low, high = band_edges([100, 1])[1:]
    assert 0.2 < high - low < 0.3


def test_nothing_counted_and_unknown_parts_are_told() -> None:
    table = pd.DataFrame({"model": ["m"], "row": ["r"], "part": ["right"], "count": [0]})
    with pytest.raises(ThaikitError, match="no items to draw"):
        mosaic(table, parts=ANSWERED, names={"r": "r"})
    with pytest.raises(ThaikitError, match="part 'odd' is unknown; there are right"):
        mosaic(table.assign(count=1, part="odd"), parts=ANSWERED, names={"r": "r"})
    assert report_mosaic.thaicli({"m": []}) == []


def test_leaves_give_tasks_and_subjects(tmp_path: Path) -> None:
    fake_leaves.write_suite(tmp_path)
    (group,) = report_parts.groups(leaves(tmp_path, stage="thai_h6"))
    found = dict(report_mosaic.thai_h6(group))
    assert set(found) == {"tasks", "subjects"}
    assert "GSM8K โจทย์เลข" in [label.get_text() for label in found["tasks"].axes[0].get_yticklabels()]
    assert found["tasks"].axes[1].get_title(loc="left") == "smollm2-135m-instruct\nn 120"
