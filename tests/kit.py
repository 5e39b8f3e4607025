"""What several test files share: tasks from rows written on the spot, and a tiny model with room for long prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from thaikit import embedded, params
from thaikit.asking import Local
from thaikit.models import LocalModel
from thaikit.rowlog import RowLog
from thaikit.tasks.build import Task, build
from thaikit.tasks.score import Settings, prepare, score

Rows = Sequence[Mapping[str, Any]]
PER_TOKEN = 1e-4


def write_jsonl(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def spec_of(kind: str, shots: int = 0, **keys: Any) -> dict[str, Any]:
    """A task of a task file that reads test.jsonl and, with shots, train.jsonl."""
    pool = {"exemplars": {"files": "train.jsonl"}} if shots else {}
    return {"kind": kind, "shots": shots, "source": {"files": "test.jsonl"}, **pool, **keys}


def build_in(folder: Path, spec: Mapping[str, Any], *, limit: int = 0, **shared: Any) -> Task:
    """The task of a spec whose files lie in the folder."""
    found = params.TaskSet.model_validate({"name": "test", "tasks": {spec["kind"]: spec}, **shared})
    return build(spec["kind"], found, folder, limit=limit)


def make(
    folder: Path, kind: str, rows: Rows, exemplars: Rows = (), *, limit: int = 0,
    shared: Mapping[str, Any] | None = None, **keys: Any,
) -> Task:  # fmt: skip
    """A task of rows and exemplars, every exemplar shown; `keys` go into the spec, `shared` into the task file."""
    write_jsonl(folder / "test.jsonl", rows)
    if exemplars:
        write_jsonl(folder / "train.jsonl", exemplars)
    return build_in(folder, spec_of(kind, **{"shots": len(exemplars), **keys}), limit=limit, **(shared or {}))


def samples(*, limit: int = 0, only: Sequence[str] = (), **shared: Any) -> list[Task]:
    """The bundled tasks."""
    found = params.load("tasks", "thai-h6-samples", params.TaskSet)
    found = params.changed(found, shared, where="test")
    base = params.expand(found.data, base=Path())
    return [build(name, found, base, limit=limit) for name in found.tasks if not only or name in only]


def roomy(model: LocalModel, window: int = 1 << 15) -> LocalModel:
    """The same model with another window (rotary positions know no end)."""
    return replace(model, max_length=window)


def ask(task: Task, model: Any, path: Path, **settings: Any) -> list[dict[str, Any]]:
    """The task's rows, asked of a loaded model or of one that answers tasks' four calls itself."""
    asked = Local(model) if isinstance(model, LocalModel) else model
    chosen, log = Settings(**settings), RowLog(path)
    ready = prepare(task, asked, chosen)
    score(task, asked, log, ready=ready, settings=chosen, tell=lambda _: None)
    return log.rows()


def tokenizer_of(name: str) -> Any:
    """The tokenizer of an embedded model, without its weights."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(embedded.folder(name)), local_files_only=True)


def numbered(count: int, start: int = 0) -> list[dict[str, Any]]:
    """ARC rows that differ by a number."""
    choices = {"text": ["ถ่านหิน", "แสงอาทิตย์"], "label": ["A", "B"]}
    numbers = range(start, start + count)
    return [{"id": f"n{n}", "question": f"ข้อที่ {n}", "choices": choices, "answerKey": "B"} for n in numbers]


def per_token(row: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest difference of two rows' log-probabilities per token."""
    a, b = ([*r.get("mc1_ll", []), *r.get("ll", [])] for r in (row, other))
    tokens = [*([1] * len(row.get("mc1_ll", []))), *row.get("tokens", [])]
    return max((abs(x - y) / n for x, y, n in zip(a, b, tokens, strict=True)), default=0.0)


def same(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """Ids, order, outcomes, predictions and texts equal; log-probabilities within 1e-4 per token."""
    assert [row["id"] for row in rows] == [row["id"] for row in others]
    for row, other in zip(rows, others, strict=True):
        loose = {"ll", "mc1_ll", "mc2", "token_logprobs"} | ({"score"} if row["metric"] == "mc2" else set())
        assert {k: v for k, v in row.items() if k not in loose} == {k: v for k, v in other.items() if k not in loose}
        assert per_token(row, other) <= PER_TOKEN
        assert row.get("mc2") == pytest.approx(other.get("mc2"), abs=1e-3)
