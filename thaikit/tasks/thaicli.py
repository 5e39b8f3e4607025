"""ThaiCLI's items: question, chosen and rejected answer, format and theme, from plain files or a clone of the release.

Two formats and seven themes (ThaiCLI paper, section 4.1); sizes are those of Table 3 where the task file names them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from thaikit import ThaikitError, text
from thaikit.params import changed, expand, nearest, shown
from thaikit.records import root, sha256_json
from thaikit.shapes import FORMATS, THEMES, CliSet, CliSource, load_tasks
from thaikit.tasks.h6 import blank
from thaikit.tasks.load import Row, Table, pick, place_of, read_source, shorten, subset

SENSITIVE = ("royal family",)  # shown by id and score only, unless a reader asks for the texts
COLUMNS = {"theme": ("theme", "category"), "question": ("question",), "id": ("id",)}


@dataclass(frozen=True, slots=True)
class CliItem:
    """One question with the answer that fits Thai norms (`chosen`) and the one that does not (`rejected`)."""

    id: str
    question: str
    chosen: str
    rejected: str
    format: str
    theme: str

    @property
    def sensitive(self) -> bool:
        """Whether its texts stay off a page that nobody asked to show them."""
        return self.theme in SENSITIVE

    def sha256(self) -> str:
        """Hash of the three texts: two models answered the same item where id and hash agree."""
        return sha256_json([self.question, self.chosen, self.rejected])

    def fields(self) -> dict[str, Any]:
        """What every row about the item begins with."""
        told = {"id": self.id, "format": self.format, "theme": self.theme, "question": self.question}
        return told | {"chosen": self.chosen, "rejected": self.rejected, "item_sha256": self.sha256()}


@dataclass(frozen=True)
class CliData:
    """The items in file order (factoid first), and what was read: files, sizes against the expected, odd things."""

    name: str
    place: str
    items: tuple[CliItem, ...]
    files: tuple[Mapping[str, Any], ...]
    cells: tuple[Mapping[str, Any], ...]
    audit: Mapping[str, int]

    @property
    def shipped(self) -> bool:
        """Whether the items are the bundled samples, whose texts may always be shown."""
        return self.place.startswith("samples:")

    @property
    def differing(self) -> list[Mapping[str, Any]]:
        """The cells (format and theme) whose size is not the expected one."""
        return [cell for cell in self.cells if cell.get("difference")]

    def file_table(self) -> pd.DataFrame:
        """A row for each file: format, rows, the first digits of its hash."""
        return pd.DataFrame(self.files).assign(sha256=lambda frame: frame["sha256"].str[:12])

    def size_table(self) -> pd.DataFrame:
        """Themes by format as in Table 3: items there, and the difference from the expected size where one is named."""
        return pd.DataFrame(self.cells)

    def facts(self) -> dict[str, Any]:
        """What run.json says of the items."""
        return {
            "task_set": self.name, "data_place": self.place, "items": len(self.items), "files": list(self.files),
            "sizes": list(self.cells), "size_mismatch": list(self.differing), "audit": dict(self.audit),
        }  # fmt: skip


def load(tasks: str, *, data: str = "", limit: int = 0, allow_size_mismatch: bool = False) -> CliData:
    """The items of a task file. `data` overrides its folder; `limit` items in all (0: every one), one of each theme in
    turn, the formats alternating.

    ThaikitError names file, row and field of a fault, and the cell of Table 3 whose size differs.
    """
    found = load_tasks(tasks)
    if not isinstance(found, CliSet):
        raise ThaikitError(f"tasks {tasks}: no ThaiCLI set, its file needs the key benchmark: thaicli")
    if allow_size_mismatch:
        found = changed(found, {"allow_size_mismatch": True}, where=f"tasks {tasks}")
    if limit < 0:
        raise ThaikitError(f"limit is {limit}; a number of items is needed (0: all)")
    base = expand(data or found.data, base=root())
    tables = {name: read_source(found.formats[name].source, base) for name in FORMATS if name in found.formats}
    items = [item for name, table in tables.items() for item in items_of(name, table, found.formats[name])]
    items = apart(items)
    cells = count_cells(items, found)
    refuse_sizes(found, cells, shown(base))
    files = [
        {"format": name, "file": file, "rows": sum(row.file == file for row in table.rows), "sha256": digest}
        for name, table in tables.items()
        for file, digest in table.hashes.items()
    ]
    place = place_of(data or found.data, (one for pair in found.sources().values() for one in pair))
    return CliData(found.name, place, tuple(taken(items, limit)), tuple(files), tuple(cells), odd(items))


def items_of(name: str, table: Table, spec: CliSource) -> list[CliItem]:
    """The items of one format, in row order."""
    rows = subset(table.rows, spec.source, subject_of=lambda row: theme_of(row, spec))
    return [item_of(row, name, spec, number) for number, row in enumerate(rows, 1)]


def item_of(row: Row, name: str, spec: CliSource, number: int) -> CliItem:
    """One row as an item."""
    chosen, rejected = answers_of(row, spec)
    column = spec.fields.get("id") or ("id" if "id" in row.data else "")
    told = pick(row, column, "id") if column else f"{name}-{number}"
    if told is None or told != told or blank(told := str(told)):
        raise ThaikitError(f"{row.where('id')}: the id is empty; give each row its own, or leave the column out")
    return CliItem(told, filled(row, value_of(row, spec, "question"), "question"), chosen, rejected, name,
                   theme_of(row, spec))  # fmt: skip


def value_of(row: Row, spec: CliSource, field: str) -> Any:
    """A field's value: at the path of the task file's `fields`, else in the first of its usual columns."""
    if field in spec.fields:
        return pick(row, spec.fields[field], field)  # type: ignore[index]
    for column in COLUMNS.get(field, (field,)):
        if column in row.data:
            return row.data[column]
    told = " or ".join(COLUMNS.get(field, (field,)))
    there = ", ".join(map(str, row.data))
    raise ThaikitError(f"{row.where(field)}: no column {told}, there are {there}; name it under fields")


def filled(row: Row, value: Any, field: str) -> str:
    """A text with something to see in it."""
    if not isinstance(value, str) or blank(value):
        raise ThaikitError(f"{row.where(field)}: found {shorten(value)}; a text that is not empty is needed")
    return value


def answers_of(row: Row, spec: CliSource) -> tuple[str, str]:
    """(chosen, rejected): two columns, or `answers`, a list of {content, score} with one score of 1 and one of 0 (in
    CSV as JSON)."""
    named = {"chosen", "rejected"} & set(spec.fields)
    if named or ("answers" not in spec.fields and {"chosen", "rejected"} <= set(row.data)):
        both = [filled(row, value_of(row, spec, field), field) for field in ("chosen", "rejected")]
        return both[0], both[1]
    listed = value_of(row, spec, "answers")
    if isinstance(listed, str):
        try:
            listed = json.loads(listed)
        except ValueError as error:
            raise ThaikitError(f"{row.where('answers')}: not JSON ({error}); a list of answers is needed") from error
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        told = f"found {shorten(listed)}; a list of {{content, score}} is needed"
        raise ThaikitError(f"{row.where('answers')}: {told}")
    scores = [str(one.get("score")).removesuffix(".0") for one in listed]
    if sorted(scores) != ["0", "1"]:
        told = (
            f"the scores are {', '.join(scores) or 'none'}; exactly one answer of score 1 and one of score 0 is needed"
        )
        raise ThaikitError(f"{row.where('answers')}: {told}")
    texts = [filled(row, listed[scores.index(score)].get("content"), "answers.content") for score in ("1", "0")]
    return texts[0], texts[1]


def squeezed(name: str) -> str:
    """A theme's name without case, spaces, hyphens and underscores."""
    return re.sub(r"[\s_-]+", "", name.casefold())


def theme_of(row: Row, spec: CliSource) -> str:
    """The row's theme, one of the seven: through the task file's value map, else by its name in any spelling."""
    value = value_of(row, spec, "theme")
    told = value.strip() if isinstance(value, str) else str(value)
    table = {squeezed(theme): theme for theme in THEMES}
    table |= {squeezed(key): theme for key, theme in spec.values.get("theme", {}).items()}
    if squeezed(told) not in table:
        hint = nearest(told, list(THEMES))
        allowed = f"themes are {', '.join(THEMES)}; map other names under values"
        raise ThaikitError(f"{row.where('theme')}: found {shorten(value)}{hint}; {allowed}")
    return table[squeezed(told)]


def apart(items: Sequence[CliItem]) -> list[CliItem]:
    """The items with ids that occur once: where both formats count from the same number, the format goes before."""
    for name in FORMATS:
        counts = Counter(item.id for item in items if item.format == name)
        twice = [key for key, count in counts.items() if count > 1]
        if twice:
            raise ThaikitError(f"{name}: id {twice[0]!r} stands {counts[twice[0]]} times; ids are unique in a format")
    ids = [{item.id for item in items if item.format == name} for name in FORMATS]
    if not ids[0] & ids[1]:
        return list(items)
    return [CliItem(f"{i.format}-{i.id}", i.question, i.chosen, i.rejected, i.format, i.theme) for i in items]


def count_cells(items: Iterable[CliItem], tasks: CliSet) -> list[dict[str, Any]]:
    """Size of each cell (format and theme), with the expected one where the task file names it."""
    counts = Counter((item.format, item.theme) for item in items)
    cells = []
    for name in (name for name in FORMATS if name in tasks.formats):
        expected: Mapping[str, int] = tasks.formats[name].expected  # type: ignore[index,assignment]
        for theme in THEMES:
            cell: dict[str, Any] = {"format": name, "theme": theme, "items": counts[name, theme]}
            if expected:
                wanted = expected.get(theme, 0)
                cell |= {"expected": wanted, "difference": cell["items"] - wanted}
            cells.append(cell)
    return cells


def refuse_sizes(tasks: CliSet, cells: Sequence[Mapping[str, Any]], where: str) -> None:
    """Stop where a cell's size is not the expected one, unless `allow_size_mismatch`; each such cell is named."""
    wrong = [
        f"{cell['format']} {cell['theme']} {cell['items']} for {cell['expected']}"
        for cell in cells
        if cell.get("difference")
    ]
    if wrong and not tasks.allow_size_mismatch:
        raise ThaikitError(
            f"{where}: sizes differ from those of task file {tasks.name} in {len(wrong)} cells ({'; '.join(wrong)}); "
            "check the files, or set allow_size_mismatch to go on and have it told"
        )


def taken(items: Sequence[CliItem], limit: int) -> list[CliItem]:
    """The first `limit` items (0: all), a theme after the other in turn with the formats alternating, in item order."""
    if not limit or limit >= len(items):
        return list(items)
    cells = [(place, FORMATS[(place + shift) % 2]) for shift in (0, 1) for place in range(len(THEMES))]
    order = {(THEMES[place], name): rank for rank, (place, name) in enumerate(cells)}
    seen: Counter[tuple[str, str]] = Counter()
    ranked = []
    for index, item in enumerate(items):
        key = (item.theme, item.format)
        ranked.append((seen[key], order[key], index))
        seen[key] += 1
    return [items[index] for index in sorted(index for _, _, index in sorted(ranked)[:limit])]


def odd(items: Sequence[CliItem]) -> dict[str, int]:
    """Odd things in the texts, counted and never mended: those of `text.audit`, equal answers, repeated questions."""
    total: Counter[str] = Counter()
    for item in items:
        for part in (item.question, item.chosen, item.rejected):
            total.update(text.audit(part))
    total["same_answers"] = sum(item.chosen == item.rejected for item in items)
    total["repeated_questions"] = len(items) - len({item.question for item in items})
    return {key: count for key, count in total.items() if count}
