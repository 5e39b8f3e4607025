"""A leaf's rows in lm-evaluation-harness's sample format (0.4.13, `--log_samples`), one JSONL a task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from thaikit import ThaikitError, records
from thaikit.records import Leaf
from thaikit.tasks import evaluate
from thaikit.tasks.build import Task
from thaikit.tasks.items import Item, context, digest
from thaikit.tasks.score import stop_strings


def export_leaf(path: Path | str, to: Path | str = "") -> list[Path]:
    """Write samples_<task>.jsonl for each task of a closed Thai-H6 leaf; returns the files.

    Prompts are built again from the task file, and must hash as the rows say; ThaikitError where data have changed.
    """
    leaf = records.read_leaf(path)
    folder = Path(to) if to else leaf.path / "harness"
    folder.mkdir(parents=True, exist_ok=True)
    given = leaf.run["params"]
    names = ("tasks", "data", "only", "limit", "profile", "labels", "allow_size_mismatch")
    run = records.Run("thai_h6", leaf.path, given, {}, True, leaf.run)
    loaded = evaluate.load(run, model=given["model"], **{name: given[name] for name in names if name in given})
    written = []
    for task in loaded.tasks:
        target = folder / f"samples_{task.name}.jsonl"
        rows = records.read_rows(leaf.path / "rows" / f"{task.name}.jsonl")
        asked = [row for row in rows if "ll" in row or "completion" in row]  # a skipped row has nothing to log
        samples = [sample(leaf, task, row) for row in asked]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in samples)
        records.write_atomic(target, text)
        written.append(target)
    return written


def sample(leaf: Leaf, task: Task, row: Mapping[str, Any]) -> dict[str, Any]:
    """One item as the harness logs it: doc, target, arguments, resps, filtered_resps, hashes and metrics."""
    index = row["index"]
    item, shots = task.items[index], task.shots(index)[task.spec.shots - row["shots"] :]
    prompts = [
        context(item, shots, delimiter=task.spec.delimiter, choice=n) for n in range(max(1, len(item.continuations)))
    ]
    if item.id != row["id"] or (
        not leaf.run["tasks"][task.name]["chat"] and digest(prompts[0]) != row["prompt_sha256"]
    ):
        raise ThaikitError(
            f"{leaf.path}: task {task.name}, item {row['id']}: its prompt is no longer the one scored; run it again"
        )
    doc = {
        "id": item.id,
        "question": item.question,
        "choices": list(item.shown or item.choices),
        "subject": item.subject,
    }
    arguments, responses, filtered = exchanged(task, item, row, prompts)
    return {
        "doc_id": index, "doc": doc, "target": str(row.get("gold", row.get("reference"))), "arguments": arguments,
        "resps": [[response] for response in responses], "filtered_resps": filtered, "filter": "none",
        "metrics": [task.metric], "doc_hash": digest(json.dumps(doc, ensure_ascii=False)),
        "prompt_hash": row["prompt_sha256"], "target_hash": digest(str(row.get("gold", row.get("reference")))),
        **{key: row[key] for key in ("acc", "acc_norm", "acc_bytes", "mc1", "mc2", "strict", "flexible") if key in row},
    }  # fmt: skip


def exchanged(
    task: Task, item: Item, row: Mapping[str, Any], prompts: list[str]
) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """What was asked and what came back: argument pairs by the harness's names, raw and filtered responses."""
    if task.generates:
        rules = {"until": stop_strings(task), "do_sample": False}
        return {"gen_args_0": {"arg_0": prompts[0], "arg_1": rules}}, [row["completion"]], [row["answers"]["strict"]]
    asked = {
        f"gen_args_{n}": {"arg_0": prompt, "arg_1": task.spec.delimiter + text}
        for n, (prompt, text) in enumerate(zip(prompts, item.continuations, strict=True))
    }
    values = [*row.get("mc1_ll", []), *row["ll"]]
    greedy = row["greedy"] if len(row["greedy"]) == len(values) else [False] * len(values)
    responses = [[value, flag] for value, flag in zip(values, greedy, strict=True)]
    return asked, responses, responses
