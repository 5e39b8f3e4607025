"""The append-only rows of one task: whole lines, on disk before the next item begins, read back after a kill."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thaikit import ThaikitError

HALF_PAIR = re.compile("[\ud800-\udfff]")


def open_failure(row: Mapping[str, Any]) -> bool:
    """Whether a row failed in a way that may pass: its item is asked again, and its leaf stays open until then."""
    return row.get("outcome") == "failed" and not row.get("for_good")


def write_atomic(path: Path, text: str) -> None:
    """Write a whole file or nothing: a temporary file beside it, then one rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)
    Path(name).chmod(0o644)
    Path(name).replace(path)


@dataclass
class RowLog:
    """The rows of one task in an open leaf: appended one whole line a write, on disk before the next item begins."""

    path: Path
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            drop_torn_line(self.path)
            self.ids = {row["id"] for row in self.rows() if not open_failure(row)}

    def append(self, row: Mapping[str, Any]) -> None:
        """Append one row; `id` must be new. NaN and infinities become null, half a surrogate pair its JSON escape."""
        self.extend([row])

    def extend(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows that are there together: one write, one wait for the disk."""
        new: set[str] = set()
        for row in rows:
            if row["id"] in self.ids or row["id"] in new:
                raise ThaikitError(f"{self.path.name}: id {row['id']!r} is already there; ids are unique within a task")
            new.add(row["id"])
        line = "".join(json.dumps(finite(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            data, size = line.encode(errors="backslashreplace"), os.fstat(handle).st_size
            if os.write(handle, data) != len(data):
                os.ftruncate(handle, size)
                raise ThaikitError(f"{self.path}: a row was written in part (disk full?); free space and run again")
            os.fsync(handle)
        finally:
            os.close(handle)
        # A failed item is tried again when the leaf is resumed, unless it failed for good.
        self.ids.update(row["id"] for row in rows if not open_failure(row))

    def rows(self) -> list[dict[str, Any]]:
        """All rows so far, in item order (`index`); of an item that failed and was tried again, the last row."""
        found = {row["id"]: row for row in (read_rows(self.path) if self.path.exists() else [])}
        return sorted(found.values(), key=lambda row: row.get("index", 0))


def finite(value: Any) -> Any:
    """The value with every NaN and infinity replaced by None, in lists and dicts too."""
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value


def drop_torn_line(path: Path) -> int:
    """Cut a last line that a killed process left unfinished; returns the number of bytes cut."""
    data = path.read_bytes()
    keep = data.rfind(b"\n") + 1
    if keep != len(data):
        with path.open("r+b") as handle:
            handle.truncate(keep)
    return len(data) - keep


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file, split on LF only (Thai text may hold other line separators).

    Half a surrogate pair comes back as U+FFFD: no table and no Parquet file can hold it.
    """
    rows = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if line.strip():
            row = parsed(line, f"{path}, line {number}", remedy="mend or delete the line and run again")
            if not isinstance(row, dict):
                raise ThaikitError(f"{path}, line {number}: found {type(row).__name__}; a row is an object with fields")
            rows.append(row)
    return rows


def parsed(line: bytes, where: str, *, remedy: str) -> Any:
    """The JSON of a line, half surrogate pairs as in `read_rows`; ThaikitError with the place and what to do."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ThaikitError(f"{where}: not JSON ({error}); {remedy}") from error
    return whole(value) if b"\\u" in line else value


def whole(value: Any) -> Any:
    """The value with U+FFFD for each half of a surrogate pair, in lists and dicts too."""
    if isinstance(value, str):
        return HALF_PAIR.sub("\ufffd", value)
    if isinstance(value, dict):
        return {whole(key): whole(inner) for key, inner in value.items()}
    return [whole(inner) for inner in value] if isinstance(value, list) else value
