"""Rows → what a leaf says about a task, and the Thai-H6 headline (values from 0 to 1, each with n and interval)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from thaikit import metrics, stats, trie
from thaikit.encoding import Encoded
from thaikit.tasks.build import Task
from thaikit.tasks.score import Ready, new_tokens, stop_strings


def headline(
    tasks: Sequence[Task], rows: Mapping[str, Sequence[Mapping[str, Any]]], *, average: bool
) -> dict[str, Any]:
    """Each task's estimate (MMLU: macro mean over subjects, micro beside it) and their unweighted mean.

    Items without a score (over-length, skipped) are left out, and `n` says how many were scored.
    """
    found: dict[str, stats.Estimate] = {}
    extra: dict[str, stats.Estimate] = {}
    for task in tasks:
        scores = [(row["subject"], row["score"]) for row in rows[task.name] if row["score"] is not None]
        if task.spec.kind == "mmlu":
            groups: dict[str, list[float]] = {}
            for subject, value in scores:
                groups.setdefault(subject, []).append(value)
            found[task.name] = stats.macro_interval(groups)
            extra[f"{task.name}_micro"] = stats.mean_interval([value for _, value in scores])
        else:
            found[task.name] = stats.mean_interval([value for _, value in scores])
    whole = {"average": stats.average_interval(list(found.values()))} if average and len(found) > 1 else {}
    return {name: estimate.as_dict() for name, estimate in {**found, **whole, **extra}.items()}


def facts(task: Task, model: Any, ready: Sequence[Ready], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What run.json says of a task: protocol, counts, tokens, exemplars, files, rates, every metric with interval."""
    asked = [one for one in ready if not one.skipped]
    requests = [request for one in asked for request in one.requests]
    feeds = [one.prompt_ids for one in asked] if task.generates else [feed(r) for r in requests]
    lead = (feeds or [()])[0]
    found = {
        "kind": task.spec.kind, "metric": task.metric, "profile": task.profile.name, "labels": task.language,
        "signature": signature(task), "items": len(task.items), "n": sum(row["score"] is not None for row in rows),
        "shots": task.spec.shots, "delimiter": task.spec.delimiter, "bos": model.bos or task.profile.bos,
        "first_ids": list(lead[:3]), "chat": task.in_turns(model), "max_length": model.max_length,
        "softmax_dtype": "float32", "chance": chance(task), "rules": rules(task),
        "boundary": sum(r.boundary for r in requests), "truncated": sum(one.cut > 0 for one in ready),
        "fewer_shots": sum(one.shots < task.spec.shots for one in ready), "skipped": sum(one.skipped for one in ready),
        "total_tokens": sum(map(len, feeds)), "distinct_tokens": trie.distinct(feeds),
        "exemplar_sha256": task.exemplar_sha256(), "exemplars_removed": task.removed, "files": list(task.files),
        "expected_rows": task.spec.expected_rows, "rows_scorable": sum(line["scored"] for line in task.files),
        "rows_left_out": task.unscorable, "empty_tail": task.spec.empty_tail,
        "audit": dict(task.audit), "outcomes": count(row["outcome"] for row in rows), "metrics": every_metric(rows),
    }  # fmt: skip
    if task.generates:
        written = [row for row in rows if "completion" in row]  # a skipped item was not asked
        found |= {
            "stops": stop_strings(task), "max_new_tokens": new_tokens(task),
            "limit_hit": share(row["finish"] == "length" for row in written),
            "invalid": share(row["outcome"] in ("unreadable", "truncated") for row in written),
            "several_marks": share(row["completion"].count("####") > 1 for row in written),
        }  # fmt: skip
    return found


def feed(request: Encoded) -> tuple[int, ...]:
    """The ids that enter the model for a request."""
    return (*request.context, *request.continuation[:-1])


def every_metric(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and interval of each metric that the rows hold."""
    names = ("acc", "acc_norm", "acc_bytes", "acc_tokens", "mc1", "mc2", "strict", "flexible", "em_thai", "v1")
    there = [name for name in names if any(name in row for row in rows)]
    return {n: stats.mean_interval([row[n] for row in rows if row.get(n) is not None]).as_dict() for n in there}


def chance(task: Task) -> float:
    """What guessing scores: one in the number of choices, TruthfulQA the share of true answers, generation 0."""
    if task.generates:
        return 0.0
    if task.metric == "mc1":
        return sum(1 / item.first for item in task.items) / len(task.items)
    each = [sum(i.labels) / len(i.labels) if i.labels else 1 / len(i.continuations) for i in task.items]
    return sum(each) / len(each)


def rules(task: Task) -> dict[str, Any]:
    """The profile's settings and the task file's own, by which prompts and requests may depart from `v1`."""
    own = {key: getattr(task.spec, key) for key in ("title_marks", "gold_pattern", "answer_pattern", "subjects")}
    fixed = {key: value for key, value in asdict(task.profile).items() if key not in ("name", "bos", "stops")}
    return fixed | {key: value for key, value in own.items() if value}


def signature(task: Task) -> str:
    """One line that pins what was computed."""
    shared_tail = task.spec.kind == "winogrande" and task.metric == "acc"
    base = metrics.SIGNATURES["winogrande" if shared_tail else task.metric]
    if task.spec.answer_pattern and task.metric == "strict":
        base = base.replace("first####", f"first:{task.spec.answer_pattern}")
    asked = f"profile:{task.profile.name}|labels:{task.language}|shots:{task.spec.shots}"
    return f"{base}|{asked}|delimiter:{task.spec.delimiter!r}"


def count(values: Any) -> dict[str, int]:
    """How often each value occurs."""
    found: dict[str, int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return found


def share(flags: Any) -> float:
    """The share of true flags (NaN for none)."""
    found = list(flags)
    return sum(found) / len(found) if found else float("nan")
