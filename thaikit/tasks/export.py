"""A leaf in lm-evaluation-harness's format (0.4.13, `--log_samples`): one JSONL of samples a task, and results.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from thaikit import ThaikitError, __version__, extract, records
from thaikit.records import Leaf
from thaikit.tasks import evaluate
from thaikit.tasks.build import Task
from thaikit.tasks.items import context, digest
from thaikit.tasks.score import stop_strings

CHOICE_METRICS = ("acc", "acc_norm", "acc_bytes")
FILTERS = {"strict-match": "strict", "flexible-extract": "flexible"}  # the harness's filter → our exact match


def export_leaf(path: Path | str, to: Path | str = "") -> list[Path]:
    """Write samples_<task>.jsonl for each task of a closed Thai-H6 leaf, and results.json; returns the files, it last.

    TruthfulQA is two tasks there, mc1 and mc2; a generated answer is logged once a filter. Prompts are built again from
    the task file, and must hash as the rows say; ThaikitError where data have changed, and for what was asked through
    a chat template, whose text is not kept.
    """
    leaf = records.read_leaf(path)
    if leaf.run.get("profile") == "harness-import":
        raise ThaikitError(
            f"{leaf.path}: imported from {leaf.run.get('source')}; that folder holds its samples already"
        )
    if leaf.run.get("stage") != "thai_h6" or not list((leaf.path / "rows").glob("*.jsonl")):
        raise ThaikitError(f"{leaf.path}: no rows/*.jsonl of 10_thai_h6 in it; name a leaf thai_h6/<model> of a suite")
    folder = Path(to) if to else leaf.path / "harness"
    given = leaf.run["params"]
    names = ("tasks", "data", "only", "limit", "profile", "labels", "allow_size_mismatch")
    run = records.Run("thai_h6", leaf.path, given, {}, True, leaf.run)
    loaded = evaluate.load(run, model=given["model"], **{name: given[name] for name in names if name in given})
    files: dict[str, list[dict[str, Any]]] = {}
    asked: dict[str, Task] = {}
    for task in loaded.tasks:
        if leaf.run["tasks"][task.name]["chat"]:
            raise ThaikitError(f"{leaf.path}: task {task.name} was asked through a chat template, which has no export")
        for row in records.read_rows(leaf.path / "rows" / f"{task.name}.jsonl"):
            if "ll" in row or "completion" in row:  # a skipped row has nothing to log
                for name, line in samples(leaf, task, row):
                    files.setdefault(name, []).append(line)
                    asked[name] = task
    paths = {name: folder / f"samples_{name}.jsonl" for name in files}
    for name, lines in files.items():
        records.write_atomic(paths[name], "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    told = json.dumps(records.finite(results(leaf, files, asked)), ensure_ascii=False, indent=2)
    records.write_atomic(folder / "results.json", told + "\n")
    return [*paths.values(), folder / "results.json"]


def results(leaf: Leaf, files: Mapping[str, list[dict[str, Any]]], asked: Mapping[str, Task]) -> dict[str, Any]:
    """The harness's results file over these samples: means, counts, worked examples, the model."""
    means: dict[str, dict[str, Any]] = {}
    for name, lines in files.items():
        values: dict[str, list[float]] = {}
        for line in lines:
            for metric in line["metrics"]:
                values.setdefault(f"{metric},{line['filter']}", []).append(line[metric])
        means[name] = {"alias": name, **{key: sum(each) / len(each) for key, each in values.items()}}
    facts, model = leaf.run["tasks"], leaf.run.get("model") or {}
    counts = {name: len({line["doc_id"] for line in lines}) for name, lines in files.items()}
    delimiters = {name: task.spec.delimiter for name, task in asked.items()}
    return {
        "results": means, "group_subtasks": {name: [] for name in files},
        "configs": {name: {"task": name, "target_delimiter": delimiters[name], "num_fewshot": asked[name].spec.shots}
                    for name in files},
        "versions": {name: facts[asked[name].name]["signature"] for name in files},
        "n-shot": {name: asked[name].spec.shots for name in files},
        "n-samples": {name: {"original": facts[asked[name].name].get("rows_scorable", count), "effective": count}
                      for name, count in counts.items()},
        "config": {"model": "thaikit", "model_args": f"pretrained={leaf.name}",
                   "model_num_parameters": model.get("parameters"), "limit": leaf.run["params"].get("limit") or None},
        "exported_by": f"thaikit {__version__}", "model_name": leaf.name, "chat_template": None,
    }  # fmt: skip


def samples(leaf: Leaf, task: Task, row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(harness task, sample) of an item, with what was asked as the harness names and writes it."""
    item = task.items[row["index"]]
    shots = task.shots(row["index"])[task.spec.shots - row["shots"] :]
    choices, glue = range(max(1, len(item.continuations))), task.spec.delimiter
    prompts = [context(item, shots, delimiter=glue, choice=n) for n in choices]
    if item.id != row["id"] or digest(prompts[0]) != row["prompt_sha256"]:
        raise ThaikitError(
            f"{leaf.path}: task {task.name}, item {row['id']}: its prompt is no longer the one scored; run it again"
        )
    base = {
        "doc_id": row["index"],
        "doc": {"id": item.id, "question": item.question, "choices": list(item.shown or item.choices),
                "subject": item.subject, **({"labels": list(item.labels)} if item.labels else {})},
        "prompt_hash": row["prompt_sha256"],
    }  # fmt: skip
    if task.generates:
        asked: list[tuple[str, Any]] = [(prompts[0], {"until": stop_strings(task), "do_sample": False})]
        for name, rule in FILTERS.items():
            answer = row["answers"][rule]
            told = [extract.INVALID if answer is None else answer]
            values = {"exact_match": row[rule]}
            yield task.name, sample(base, item.reference, asked, [[row["completion"]]], told, name, values)
        return
    pairs = [(prompt, glue + text) for prompt, text in zip(prompts, item.continuations, strict=True)]
    if not item.labels:
        values = {key: row[key] for key in CHOICE_METRICS if key in row}
        yield task.name, scored(base, row["gold"], pairs, row["ll"], row["greedy"], values)
        return
    if item.first:
        first = pairs[: item.first]
        yield f"{task.name}_mc1", scored(base, 0, first, row["mc1_ll"], row["mc1_greedy"], {"acc": row["mc1"]})
    yield f"{task.name}_mc2", scored(base, 0, pairs[item.first :], row["ll"], row["greedy"], {"acc": row["mc2"]})


def scored(base: Any, target: Any, pairs: Any, ll: Any, greedy: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """A multiple-choice sample: each response is the pair of log-likelihood and greedy flag, as texts."""
    told = [[str(value), str(flag)] for value, flag in zip(ll, greedy, strict=True)]
    return sample(base, target, pairs, [[pair] for pair in told], told, "none", values)


def sample(
    base: Mapping[str, Any], target: Any, asked: Any, resps: Any, filtered: Any, name: str, values: Mapping[str, Any]
) -> dict[str, Any]:
    """One line of the harness's log: arguments by its names, responses as texts, hashes and metrics."""
    arguments = {f"gen_args_{n}": {"arg_0": one, "arg_1": two} for n, (one, two) in enumerate(asked)}
    doc = json.dumps(base["doc"], indent=2, ensure_ascii=False)
    return {
        "doc_id": base["doc_id"], "doc": base["doc"], "target": str(target), "arguments": arguments, "resps": resps,
        "filtered_resps": filtered, "filter": name, "metrics": list(values), "doc_hash": digest(doc),
        "prompt_hash": base["prompt_hash"], "target_hash": digest(str(target)), **values,
    }  # fmt: skip
