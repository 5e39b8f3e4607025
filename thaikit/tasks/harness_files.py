"""A results folder of lm-evaluation-harness as it lies on disk: whose results, of when, and which samples go with them.

Layouts (0.4.x, loggers/evaluation_tracker.py): `<folder>/<model>/results_<date>.json` beside
`samples_<task>_<date>.jsonl`; the same without a model's folder; and the older `results.json` beside
`<any>_<task>.jsonl`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from thaikit import ThaikitError
from thaikit.rowlog import parsed, whole

DATE = re.compile(r"_?(\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}(?:\.\d+)?)$")
NAMED = re.compile(r"(?:^|,)\s*(?:peft|delta|pretrained|model|path|engine)=([^,]+)")


@dataclass(frozen=True)
class Results:
    """One results file: its content, date (sortable text), model, and the samples file of each task that has one."""

    path: Path
    content: dict[str, Any]
    date: str
    model: str
    samples: Mapping[str, Path]

    @property
    def tasks(self) -> list[str]:
        """The tasks that were asked: those with results that are no group of others."""
        groups = section(self.content, "group_subtasks")
        return [name for name in self.content["results"] if not groups.get(name)]

    @property
    def version(self) -> str:
        """Who wrote the file."""
        told = self.content.get("lm_eval_version")
        return f"lm-evaluation-harness {told or str(self.content.get('exported_by') or 'of unknown version')}"


@dataclass(frozen=True)
class Found:
    """One model: the newest results file of each of its tasks, and what a reader must know of the choice."""

    model: str
    tasks: Mapping[str, Results]
    notes: tuple[str, ...]

    @property
    def files(self) -> list[Results]:
        """The results files in use, the oldest first."""
        return sorted({one.path: one for one in self.tasks.values()}.values(), key=lambda one: one.date)


def section(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A part of a results file that maps tasks to something; {} where it is not there."""
    found = content.get(key)
    return found if isinstance(found, dict) else {}


def find(folder: Path | str) -> list[Found]:
    """The models of a results folder, by name; of several dates the newest counts, task by task.

    ThaikitError where there is no results file, or one is torn.
    """
    base = Path(folder).expanduser()
    if not base.exists():
        raise ThaikitError(f"{base}: no such folder; name the one that was given to lm_eval as --output_path")
    paths = sorted(base.rglob("*.json")) if base.is_dir() else [base]
    read = [one for path in paths if not hidden(path, base) for one in results_file(path)]
    if not read:
        raise ThaikitError(
            f"{base}: no results file of lm-evaluation-harness in it (results_<date>.json, an object with 'results'); "
            "name the folder that was given to lm_eval as --output_path"
        )
    models: dict[str, list[Results]] = {}
    for one in sorted(read, key=lambda one: (one.date, one.path)):
        models.setdefault(one.model, []).append(one)
    return [newest(model, files) for model, files in sorted(models.items())]


def hidden(path: Path, base: Path) -> bool:
    """Whether a file is none of ours: samples, and whatever begins with a dot."""
    parts = path.relative_to(base).parts if path != base else ()
    return path.name.startswith("samples_") or any(part.startswith(".") for part in parts)


def results_file(path: Path) -> list[Results]:
    """The file, if it is one of results; nothing for other JSON. A torn file named results… is a ThaikitError."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        if not path.name.startswith("results"):
            return []
        raise ThaikitError(f"{path}: not JSON ({error}); copy it again, or move it out of the folder") from error
    there = content.get("results") if isinstance(content, dict) else None
    if not isinstance(there, dict) or not all(isinstance(one, dict) for one in there.values()) or not there:
        return []
    content = whole(content)
    dated = DATE.search(path.stem)
    date = dated.group(1) if dated else told_date(content, path)
    tasks = list(content["results"])
    return [Results(path, content, date, model_of(content, path), samples_beside(path, dated, tasks))]


def told_date(content: Mapping[str, Any], path: Path) -> str:
    """When a file without a date in its name was made: what it says, else the file's time."""
    told = content.get("date")
    seconds = float(told) if isinstance(told, int | float) and 0 < told < 1e11 else path.stat().st_mtime
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H-%M-%S")


def model_of(content: Mapping[str, Any], path: Path) -> str:
    """The model's name as the harness was given it; the folder's name where the file does not say."""
    config = section(content, "config")
    args = config.get("model_args")
    if isinstance(args, dict):
        args = ",".join(f"{key}={value}" for key, value in args.items())
    found = NAMED.search(args) if isinstance(args, str) else None
    named = content.get("model_name") or (found.group(1) if found else "")
    return str(named or path.parent.name).strip() or path.parent.name


def samples_beside(path: Path, dated: re.Match[str] | None, tasks: list[str]) -> dict[str, Path]:
    """The samples files that belong to a results file: of the same date, each the task's with the longest name."""
    found: dict[str, Path] = {}
    for other in sorted(path.parent.iterdir()):
        if other == path or other.suffix not in (".jsonl", ".json") or not other.is_file():
            continue
        match = DATE.search(other.stem)
        if (match.group(1) if match else "") != (dated.group(1) if dated else ""):
            continue
        if other.suffix == ".json" and not other.name.startswith("samples_"):
            continue
        stem = DATE.sub("", other.stem)
        owners = [task for task in tasks if stem == task or stem.endswith(f"_{task}")]
        if owners:
            found.setdefault(max(owners, key=len), other)
    return found


def newest(model: str, files: list[Results]) -> Found:
    """Of each task the newest results; a sentence for each older file that is not used, or only in part."""
    tasks = {name: one for one in files for name in one.tasks}  # files come oldest first, so the newest stays
    notes = []
    for one in files:
        lost = [name for name in one.tasks if tasks[name] is not one]
        if lost:
            told = f"{', '.join(lost[:3])}{' …' if len(lost) > 3 else ''}"
            notes.append(f"{one.path.name}: a newer file has {len(lost)} of its {len(one.tasks)} tasks ({told})")
    templates = {one.content.get("chat_template_sha") or "none" for one in tasks.values()}
    if len(templates) > 1:
        notes.append(f"the tasks were asked under {len(templates)} chat templates, for they come from several files")
    return Found(model, tasks, tuple(notes))


def sample_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, sample) of a samples file: JSON lines, or in old versions one JSON array. ThaikitError where torn."""
    if path.suffix == ".json":
        try:
            lines = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise ThaikitError(
                f"{path}: not JSON ({error}); copy it again, or delete it to take the results alone"
            ) from error
        for number, line in enumerate(lines if isinstance(lines, list) else [lines], 1):
            yield checked(line, f"{path}, sample {number}")
        return
    with path.open("rb") as stream:
        for number, data in enumerate(stream, 1):
            if data.strip():
                where = f"{path}, line {number}"
                remedy = "copy it again, or delete the file to take the results alone"
                yield checked(parsed(data, where, remedy=remedy), where)


def checked(line: Any, where: str) -> tuple[str, dict[str, Any]]:
    """A sample with what every version writes; ThaikitError names what is missing."""
    missing = [key for key in ("doc_id", "arguments", "target") if not isinstance(line, dict) or key not in line]
    if missing:
        raise ThaikitError(
            f"{where}: no {missing[0]!r} in it; a sample of lm-evaluation-harness (--log_samples) has it"
        )
    return where, line
