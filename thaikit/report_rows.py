"""The rows behind the report's numbers: a short table for each task, theme or file of rows of a leaf.

Where the texts of a leaf may not be shown, its ids, outcomes and scores still are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from thaikit.figures import task_names
from thaikit.figures_thaicli import FORMATS, THEMES
from thaikit.records import Leaf, read_rows
from thaikit.report_columns import (
    Column,
    Row,
    choice_columns,
    f1_columns,
    generated_columns,
    judged_columns,
    preference_columns,
    question_columns,
)
from thaikit.report_items import may_show
from thaikit.report_links import anchor

EACH = 200  # rows of a table at most
IN_PAGE = 3000  # rows of all tables together, unless FLOOR is more
FLOOR = 5
SENSITIVE = "royal family"
HIDDEN = "not shown"


@dataclass(frozen=True)
class Block:
    """One table of rows: where it stands, its file in the leaf's folder, its columns, its first rows, whether the texts
    of each may be shown, and how many rows there are in all."""

    anchor: str
    title: str
    file: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    shown: tuple[bool, ...]
    total: int

    @property
    def lines(self) -> list[list[str]]:
        """What stands in the table's cells."""
        return [
            [str(one.of(row)) if seen or not one.guarded else HIDDEN for one in self.columns]
            for row, seen in zip(self.rows, self.shown, strict=False)
        ]

    @property
    def note(self) -> str:
        """A sentence where all texts are left out."""
        return "" if any(self.shown) or not self.rows else "Texts are not shown here: ids, outcomes and scores are."


@dataclass(frozen=True)
class Part:
    """Tables that belong together (a leaf, a format), under one heading; a link to it shows them all."""

    anchor: str
    title: str
    blocks: tuple[Block, ...] = ()
    parts: tuple[Part, ...] = ()


def parts(read: Sequence[Leaf], *, gallery: bool = False, sensitive: bool = False) -> list[Part]:
    """The rows of every leaf that the report reads; `gallery` and `sensitive` as in `report.build`."""
    found, told = [], {"gallery": gallery, "sensitive": sensitive}
    for leaf in read:
        if leaf.run.get("stage") == "thai_h6":
            found.append(thai_h6(leaf, **told))
        elif leaf.run.get("stage") == "thaicli_judge":
            found.append(thaicli(leaf, **told))
        elif leaf.run.get("stage") == "thaicli_preference":
            found.append(preference(leaf, **told))
        elif leaf.run.get("stage") in ("mrc_f1", "mrc_judge"):
            found.append(mrc(leaf, gallery=gallery))
    return [part for part in found if part.blocks or part.parts]


def thai_h6(leaf: Leaf, *, gallery: bool = False, sensitive: bool = False) -> Part:
    """A Thai-H6 leaf's rows, a table a task; `gallery` and `sensitive` as in `report.build`."""
    texts = may_show(leaf, gallery=gallery)
    blocks = []
    for task in leaf.tasks():
        frame = leaf.rows(task)
        rows = frame.head(EACH).to_dict("records")
        shown = [texts and (sensitive or row.get("sensitive") is not True) for row in rows]
        columns = generated_columns(rows) if any("completion" in row for row in rows) else choice_columns(rows)
        file, name = f"rows/{task}.parquet", task_names(task)[0]
        blocks.append(block(anchor(leaf, task), name, file, columns, rows, shown=shown, total=len(frame)))
    return Part(anchor(leaf), f"{leaf.name}, Thai-H6", tuple(blocks))


def thaicli(leaf: Leaf, *, gallery: bool = False, sensitive: bool = False) -> Part:
    """A leaf of judged ThaiCLI answers, a part for each format, a table for each theme in it."""
    rows, texts = read_rows(leaf.path / "rows" / "judgements.jsonl"), may_show(leaf, gallery=gallery)
    parts = []
    for name in FORMATS:
        blocks = []
        for theme in THEMES:
            mine = [row for row in rows if row["format"] == name and row["theme"] == theme]
            shown = [texts and (sensitive or theme != SENSITIVE)] * len(mine)
            if mine:
                place, heading = anchor(leaf, f"{name}/{theme}"), f"{name.capitalize()}, {THEMES[theme][0].lower()}"
                blocks.append(block(place, heading, "rows/judgements.jsonl", judged_columns(), mine,
                                    shown=shown, total=len(mine)))  # fmt: skip
        parts.append(Part(anchor(leaf, name), f"{leaf.name}, {name}", tuple(blocks)))
    return Part(anchor(leaf), f"{leaf.name}, ThaiCLI", (), tuple(part for part in parts if part.blocks))


def preference(leaf: Leaf, *, gallery: bool = False, sensitive: bool = False) -> Part:
    """A leaf of chosen against rejected answers by log-probability, as one table."""
    rows, texts = read_rows(leaf.path / "rows" / "preference.jsonl"), may_show(leaf, gallery=gallery)
    shown = [texts and (sensitive or row["theme"] != SENSITIVE) for row in rows]
    made = block(anchor(leaf, "preference"), "Preference", "rows/preference.jsonl", preference_columns(), rows,
                 shown=shown, total=len(rows))  # fmt: skip
    return Part(anchor(leaf), f"{leaf.name}, ThaiCLI preference", (made,))


def mrc(leaf: Leaf, *, gallery: bool = False) -> Part:
    """A leaf of scored or judged MRC answers, a table for each model in it: at `report_links.link(leaf, "scores")` and
    `"judgements"`, of one model at `link(leaf, "scores/<model>")`."""
    file = "scores" if "scores" in leaf.tasks() else "judgements"
    places = [str(one.get("place", "")) for one in leaf.run.get("answers") or [{}]]
    texts = gallery or all(place.startswith("samples:") for place in places)
    columns = f1_columns() if file == "scores" else question_columns()
    rows = read_rows(leaf.path / "rows" / f"{file}.jsonl")
    made = []
    for name in dict.fromkeys(str(row["model"]) for row in rows):
        mine = [row for row in rows if str(row["model"]) == name]
        made.append(block(anchor(leaf, f"{file}/{name}"), name, f"rows/{file}.jsonl", columns, mine,
                          shown=[texts] * len(mine), total=len(mine)))  # fmt: skip
    return Part(anchor(leaf, file), f"{leaf.name}, MRC {'F1' if file == 'scores' else 'four questions'}", tuple(made))


def block(
    place: str, title: str, file: str, columns: Sequence[Column], rows: Sequence[Row], *, shown: Sequence[bool],
    total: int,
) -> Block:  # fmt: skip
    """The table of these rows, of `total`; `shown` says of each whether its texts may be."""
    used = tuple(one for one in columns if not one.guarded or any(shown))
    return Block(place, title, file, used, tuple(rows[:EACH]), tuple(shown), total)


def share(found: Sequence[Part]) -> int:
    """How many rows a table may have so that the page holds some IN_PAGE rows: EACH at most, FLOOR at least. Tables
    that are smaller leave their share to the others."""
    sizes = [len(one.rows) for one in tables(found)]
    return next((most for most in range(EACH, FLOOR, -1) if sum(min(size, most) for size in sizes) <= IN_PAGE), FLOOR)


def trimmed(found: Sequence[Part], most: int) -> list[Part]:
    """The parts with at most `most` rows a table."""
    return [
        replace(part, blocks=tuple(replace(one, rows=one.rows[:most]) for one in part.blocks),
                parts=tuple(trimmed(part.parts, most)))
        for part in found
    ]  # fmt: skip


def tables(found: Iterable[Part]) -> Iterator[Block]:
    """Every table of the parts."""
    for part in found:
        yield from part.blocks
        yield from tables(part.parts)
