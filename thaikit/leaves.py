"""Leaves as readers see them: closed ones with their rows, and what is on disk of those that are not done."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thaikit import ThaikitError

LIMIT_HIT_ALLOWED = 0.01  # of answers; Thai needs two to four times the tokens of English, a small budget cuts them off


@dataclass(frozen=True)
class Leaf:
    """A closed leaf: its folder and what run.json says."""

    path: Path
    run: dict[str, Any]

    @property
    def name(self) -> str:
        """The leaf's own name: the model, with what varies after it."""
        return self.path.name

    def tasks(self) -> list[str]:
        """The names of the tasks that have rows, in file order of run.json where it lists them."""
        there = {path.stem for path in (self.path / "rows").glob("*.parquet")}
        listed = [name for name in self.run.get("tasks", {}) if name in there]
        return listed + sorted(there - set(listed))

    def rows(self, task: str, *columns: str) -> Any:
        """A task's rows as a data frame (from Parquet), in item order: every column, or those of `columns` that are
        there. Without the texts a large file is read in a tenth of the time."""
        from pyarrow import parquet

        return parquet.ParquetFile(self.path / "rows" / f"{task}.parquet").read(columns or None).to_pandas()


def read_leaf(path: Path | str) -> Leaf:
    """A closed leaf; ThaikitError where run.json is missing, which means that it is not done, or cannot be read."""
    folder = Path(path)
    if not folder.is_dir() and not partial(folder).is_dir():
        raise ThaikitError(f"{folder}: no such folder; name a leaf, outputs/<suite>/<stage>/<model>")
    if not (folder / "run.json").exists():
        raise ThaikitError(f"{folder}: no run.json, so this leaf is not done; run its notebook again to resume it")
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise ThaikitError(
            f"{folder / 'run.json'}: not JSON ({error}), as a power cut may leave it; delete the leaf and run again"
        ) from error
    return Leaf(folder, record)


def leaves(suite_dir: Path | str, *, stage: str = "") -> list[Leaf]:
    """The closed leaves of a suite folder, of one stage or of all, by name; open and partial ones are left out."""
    base = Path(suite_dir)
    found = sorted(path.parent for path in base.glob(f"{stage or '*'}/**/run.json"))
    return [read_leaf(path) for path in found if not any(map(set_aside, path.relative_to(base).parts))]


def set_aside(name: str) -> bool:
    """Whether a folder's name says that it is no leaf: being built, or about to be removed."""
    return ".partial" in name or name.startswith(".")


def partial(folder: Path) -> Path:
    """Where a leaf is built until its notebook has ended well."""
    return folder.with_name(folder.name + ".partial")


@dataclass(frozen=True)
class State:
    """What is on disk of a leaf. `state` is closed, stale, partial or missing; `rows` are those written so far."""

    name: str
    state: str
    rows: int = 0
    record: dict[str, Any] = field(default_factory=dict)


CLOSE = ".close"  # in an open leaf: its next run asks nobody and closes it with what is there
ASKING = ("thaicli_answer", "thaicli_judge", "judge_bench", "mrc_answer", "mrc_judge")  # stages that ask for replies


def give_up(path: Path | str) -> Path:
    """Mark an open leaf, so that its next run asks nobody and closes it with what is there; returns its folder.

    ThaikitError where there is no open leaf, or one of a stage that asks for no replies.
    """
    given = Path(path)
    there = [folder for folder in (given, partial(given)) if (folder / ".inputs.json").is_file()]
    if not there:
        told = "this leaf is closed already" if (given / "run.json").exists() else "no leaf was begun here"
        raise ThaikitError(f"{given}: {told}; name the folder of one that is open")
    stage = json.loads((there[0] / ".inputs.json").read_text(encoding="utf-8")).get("stage", "")
    if stage and stage not in ASKING:
        told = f"{stage} asks for no replies; only leaves of {', '.join(ASKING)} can be closed so"
        raise ThaikitError(f"{there[0]}: {told}")
    if not count_rows(there[0]):
        raise ThaikitError(f"{there[0]}: no reply is there to close it with; mend what failed and run again")
    (there[0] / CLOSE).touch()
    return there[0]


def state_of(folder: Path, *, name: str = "", digest: str = "") -> State:
    """The state of one leaf. With `digest` (its input hash now) a leaf closed with other inputs is stale."""
    name = name or folder.name
    record = read_leaf(folder).run if (folder / "run.json").exists() else {}
    if record and digest in ("", record.get("input_hash")):
        return State(name, "closed", count_rows(folder), record)
    if partial(folder).is_dir():
        return State(name, "partial", count_rows(partial(folder)), record)
    return State(name, "stale", count_rows(folder), record) if record else State(name, "missing")


def count_rows(folder: Path) -> int:
    """Rows of a leaf, whole lines only: an item, answer or judgement each. Raw replies count where nothing else is
    there yet, since the other rows repeat them."""
    lines = {path.stem: path.read_bytes().count(b"\n") for path in (folder / "rows").glob("*.jsonl")}
    replies = lines.pop("replies", 0)
    return sum(lines.values()) or replies


def status(suite_dir: Path | str) -> list[State]:
    """The states of all leaves that are on disk below a suite folder, by name."""
    base = Path(suite_dir)
    marks = [path.parent for path in base.glob("**/run.json") if not any(map(set_aside, path.relative_to(base).parts))]
    open_ones = [path.with_name(path.name.removesuffix(".partial")) for path in base.glob("**/*.partial/")]
    return [state_of(path, name=str(path.relative_to(base))) for path in sorted({*marks, *open_ones})]
