"""Rows of a task, from files or a hub, as they stand in the source: nothing is stripped, guessed or converted.

JSON, JSONL and CSV are read by the standard library (a table reader would turn ISO dates into time stamps, "NA" into
nothing and TruthfulQA's dict-valued targets into one column for each answer); Parquet and hub data sets by `datasets`.
"""

from __future__ import annotations

import csv
import glob
import io
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thaikit import ThaikitError
from thaikit.params import Source
from thaikit.records import sha256_file, sha256_json

SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")
WRITTEN_LIST = re.compile(r"""\s*(?:\[\s*\{?\s*['"].*\]|\{\s*['"](?:text|answer_start)['"]\s*:.*\})\s*""", re.DOTALL)
SHOWN = 120  # characters of a faulty value that a message repeats


def shorten(value: Any) -> str:
    """A value as a message shows it: its repr, cut where it is long."""
    told = repr(value)
    return told if len(told) <= SHOWN else told[:SHOWN] + "…"


@dataclass(frozen=True)
class Row:
    """One source row: the file it came from, its number there from 1, its values, and a subject read off the path."""

    file: str
    number: int
    data: Mapping[str, Any]
    subject: str = ""

    def where(self, field: str = "") -> str:
        """The place for a message: file, row, id, field."""
        name = self.data.get("id", self.data.get("qID"))
        told = f" (id {str(name)[:SHOWN]})" if name not in (None, "") else ""
        return f"{self.file}, row {self.number}{told}" + (f", field {field}" if field else "")


def one_text(row: Row, text: str, field: str) -> str:
    """The text, unless it is a list or an object written out, as table programs do; that would score as one text."""
    if WRITTEN_LIST.fullmatch(text):
        told = f"{shorten(text)} is a list written as text; give one text a cell, or lists in JSONL"
        raise ThaikitError(f"{row.where(field)}: {told}")
    return text


@dataclass(frozen=True)
class Table:
    """All rows of a source, and the SHA-256 of every file by its shown name."""

    rows: list[Row]
    hashes: dict[str, str]


def read_source(source: Source, base: Path) -> Table:
    """The rows of a source below `base`, with its `first`, `last` or `where` subset not yet taken."""
    if source.hub:
        return read_hub(source)
    patterns = [source.files] if isinstance(source.files, str) else source.files
    found = [(path, subject) for pattern in patterns for path, subject in match(base, pattern)]
    if not found:
        raise ThaikitError(f"{base}: no file matches {' or '.join(patterns)!r}; check the folder that `data` names")
    rows, hashes = [], {}
    for path, subject in found:
        name = str(path.relative_to(base)) if path.is_relative_to(base) else str(path)
        table = [Row(name, number, data, subject) for number, data in enumerate(read_file(path, name), 1)]
        if not table:
            raise ThaikitError(f"{name}: the file holds no rows; a task needs at least one")
        rows += table
        hashes[name] = sha256_file(path)
    return Table(rows, hashes)


def place_of(data: str, sources: Iterable[Source | None]) -> str:
    """Where a set's rows are, as records say it: `data`, or the first source that lies elsewhere (a hub, an absolute
    path), so that rows of another place never pass for the bundled samples."""
    for source in filter(None, sources):
        if source.hub:
            return f"hub {source.hub}"
        for pattern in [source.files] if isinstance(source.files, str) else source.files:
            path = Path(pattern).expanduser()
            if path.is_absolute() or ".." in path.parts:
                return str(path)
    return data


def match(base: Path, pattern: str) -> list[tuple[Path, str]]:
    """Files of a pattern (`*`, `{subject}`, or a folder) below `base`, sorted, with the subject each path names."""
    target = Path(pattern).expanduser()
    full = target if target.is_absolute() else base / pattern
    if full.is_dir():
        return [(path, "") for path in sorted(full.iterdir()) if path.suffix in SUFFIXES]
    top = Path(full.anchor)
    regex = re.escape(str(full)).replace(r"\*", "[^/]*")
    regex = regex.replace(r"\{subject\}", "(?P<subject>[^/]+)", 1).replace(r"\{subject\}", "(?P=subject)")
    fixed = "" if target.is_absolute() else glob.escape(str(base.relative_to(top))) + "/"
    wild = fixed + str(target.relative_to(top) if target.is_absolute() else target).replace("{subject}", "*")
    hits = [(path, re.fullmatch(regex, str(path))) for path in sorted(top.glob(wild))]
    return [(path, hit.groupdict().get("subject", "")) for path, hit in hits if hit]


def read_file(path: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """The rows of one file by its suffix; ThaikitError where it cannot be read as that."""
    if path.suffix == ".jsonl":
        yield from read_jsonl(path, name)
    elif path.suffix == ".json":
        yield from read_json(path, name)
    elif path.suffix == ".csv":
        yield from read_csv(path, name)
    elif path.suffix == ".parquet":
        yield from read_parquet(path, name)
    else:
        raise ThaikitError(f"{name}: suffix {path.suffix!r} is not known; allowed are {', '.join(SUFFIXES)}")


def decoded(path: Path, name: str) -> str:
    """A file's text: UTF-8, a byte-order mark at the start dropped."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ThaikitError(f"{name}, byte {error.start}: not UTF-8; save the file as UTF-8") from error


def read_jsonl(path: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """One object a line, split on LF only."""
    for number, line in enumerate(decoded(path, name).split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                told = f"not JSON ({error}); one object a line is allowed"
                raise ThaikitError(f"{name}, line {number}: {told}") from error
            yield checked_row(row, f"{name}, line {number}")


def read_json(path: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """A list of objects, or an object with such a list as its only list (`data`, `rows`)."""
    text = decoded(path, name)
    if not text.strip():
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ThaikitError(f"{name}: not JSON ({error}); a list of objects is allowed") from error
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        value = lists[0] if len(lists) == 1 else None
    if not isinstance(value, list):
        raise ThaikitError(f"{name}: found no list of rows; a list of objects is allowed")
    for number, row in enumerate(value, 1):
        yield checked_row(row, f"{name}, row {number}")


def checked_row(row: Any, where: str) -> Mapping[str, Any]:
    """The row if it is an object."""
    if not isinstance(row, dict):
        raise ThaikitError(f"{where}: found {type(row).__name__}, a row is an object with named fields")
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        told = f"half a character ({error.object[error.start : error.start + 1]!r}), which is no text; mend the row"
        raise ThaikitError(f"{where}: holds {told}") from error
    return row


def read_csv(path: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """Comma-separated rows below one line of names; every cell is text, and a quoted one may hold newlines."""
    csv.field_size_limit(1 << 30)
    lines = csv.reader(io.StringIO(decoded(path, name), newline=""), strict=True)
    try:
        filled = [cells for cells in lines if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise ThaikitError(f"{name}, line {lines.line_num}: not readable as csv ({error})") from error
    head = filled[0] if filled else []
    if len(set(head)) < len(head):
        raise ThaikitError(f"{name}: a column name stands twice in {shorten(head)}; each names one column")
    for number, cells in enumerate(filled[1:], 1):
        if len(cells) != len(head):
            told = f"found {len(cells)} cells, the first line names {len(head)} columns"
            raise ThaikitError(f"{name}, row {number}: {told}")
        yield dict(zip(head, cells, strict=True))


def read_parquet(path: Path, name: str) -> Iterator[Mapping[str, Any]]:
    """The rows of a Parquet file, through `datasets`."""
    import datasets

    if not path.stat().st_size:
        return
    try:
        with tempfile.TemporaryDirectory() as cache:
            yield from datasets.Dataset.from_parquet(str(path), keep_in_memory=True, cache_dir=cache).to_list()
    except (datasets.exceptions.DatasetGenerationError, ValueError, OSError) as error:
        cause = error.__cause__ or error
        raise ThaikitError(f"{name}: not readable as parquet ({' '.join(str(cause).split())[:200]})") from error


def read_hub(source: Source) -> Table:
    """A hub data set at its revision; ThaikitError in one sentence where it cannot be fetched."""
    import datasets

    name = "/".join(part for part in (source.hub, source.config, source.split) if part)
    try:
        options = {"name": source.config or None, "split": source.split or "test", "revision": source.revision}
        table = datasets.load_dataset(source.hub, **options)
    except (OSError, ValueError, datasets.exceptions.DatasetNotFoundError) as error:
        told = " ".join(str(error).split())[:200]
        raise ThaikitError(
            f"hub data set {name} at {source.revision}: cannot be loaded ({told}); "
            "check the id and the connection, or clone it and name its folder as `data`"
        ) from error
    rows = [Row(name, number, data) for number, data in enumerate(table.to_list(), 1)]
    return Table(rows, {name: sha256_json([row.data for row in rows])})


def subset(rows: Sequence[Row], source: Source, *, subject_of: Any) -> list[Row]:
    """The source's `first`, `last` (of each subject) or `where` rows; all rows where it names no subset."""
    if source.where:
        return [row for row in rows if all(row.data.get(key) == value for key, value in source.where.items())]
    if not source.first and not source.last:
        return list(rows)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(subject_of(row), []).append(row)
    return [row for part in groups.values() for row in (part[: source.first] if source.first else part[-source.last :])]


def pick(row: Row, path: str | Sequence[str], field: str) -> Any:
    """The value at a path of a row; a list of paths gives the list of their values.

    `a.b` goes into objects, `a.0` into lists, `a[].b` takes b of every element, `a.@keys` and `a.@values` read an
    object's keys and values in file order. ThaikitError names the field that is missing and those that are there.
    """
    if not isinstance(path, str):
        return [pick(row, single, field) for single in path]
    return walk(row, row.data, path.replace("[]", ".[]").split("."), path, field)


def walk(row: Row, value: Any, parts: Sequence[str], path: str, field: str) -> Any:
    """The value that the remaining steps of a path lead to."""
    for place, part in enumerate(parts):
        if part == "[]":
            if not isinstance(value, list):
                told = f"{path!r} goes through a list, found {shorten(value)}; mend the file or the field map"
                raise ThaikitError(f"{row.where(field)}: {told}")
            return [walk(row, inner, parts[place + 1 :], path, field) for inner in value]
        value = enter(row, value, part, path, field)
    return value


def enter(row: Row, value: Any, part: str, path: str, field: str) -> Any:
    """One step of a path."""
    if part in ("@keys", "@values") and isinstance(value, Mapping):
        return list(value.keys() if part == "@keys" else value.values())
    if isinstance(value, Mapping) and part in value:
        return value[part]
    if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
        return value[int(part)]
    there = ", ".join(sorted(map(str, value))) if isinstance(value, Mapping) else f"a {type(value).__name__}"
    raise ThaikitError(f"{row.where(field)}: no {part!r} at {path!r}, found {there}; mend the file or the field map")
