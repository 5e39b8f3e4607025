"""Leaves → the report's gallery of items and the provenance of its numbers, as plain dictionaries of texts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thaikit.figures import task_names
from thaikit.records import Leaf
from thaikit.report_parts import NUMBER_METRICS, number, percent

EACH = 2  # items shown right, and as many wrong, for each model and task
SHOWN = 2000  # characters of a text
PREDICTIONS = {"acc_norm": "prediction_norm", "acc_bytes": "prediction_bytes", "acc_tokens": "prediction_tokens"}
UNITS = {"acc_norm": "a character", "acc_bytes": "a byte", "acc_tokens": "a token"}


def may_show(leaf: Leaf, *, gallery: bool) -> bool:
    """Whether item texts may be shown: of the shipped samples always, of other data only where it is asked for
    (test rows leak into training sets, and licences differ)."""
    return gallery or str(leaf.run.get("data_place") or "").startswith("samples:")


def gallery(leaf: Leaf, *, sensitive: bool = False) -> list[dict[str, Any]]:
    """A leaf's tasks, each with its first right and first wrong items; rows marked `sensitive` only where allowed."""
    found = []
    for task in leaf.tasks():
        told = enumerate(leaf.rows(task, "sensitive", "metric", "acc", "score").to_dict("records"))
        marks = {place: is_right(row) for place, row in told if sensitive or row.get("sensitive") is not True}
        chosen = [place for mark in (True, False) for place in [one for one in marks if marks[one] is mark][:EACH]]
        shown = zip(chosen, leaf.rows(task).iloc[chosen].to_dict("records"), strict=True)
        cards = [card(row, right=marks[place] is True) for place, row in shown]
        name, thai = task_names(task)
        found.append({"task": name, "thai": thai, "cards": cards})
    return found


def is_right(row: Mapping[str, Any]) -> bool | None:
    """Whether the item was answered rightly, None where it has no score. Of MC2, a share, its best choice decides."""
    if math.isnan(number(row.get("score"))):
        return None
    return number(row["acc"] if row.get("metric") == "mc2" else row["score"]) == 1.0


def card(row: Mapping[str, Any], *, right: bool) -> dict[str, Any]:
    """One item as it is shown."""
    found = {
        "id": row["id"], "subject": row.get("subject") or "", "right": right, "outcome": row.get("outcome", ""),
        "metric": row.get("metric", ""), "score": percent(row.get("score")), "shots": row.get("shots", ""),
        "question": cut(row.get("question")),
    }  # fmt: skip
    if isinstance(row.get("completion"), str):
        return found | completion_part(row)
    return found | {"choices": choice_part(row)}


def cut(text: Any) -> str:
    """A text's first 2,000 characters, and how many more there are."""
    whole = "" if text is None else str(text)
    return whole if len(whole) <= SHOWN else f"{whole[:SHOWN]} … ({len(whole) - SHOWN:,} more characters)"


def choice_part(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The choices: text, log-probability, what the metric compares, a bar, and which are right and which was chosen."""
    texts, ll = listed(row.get("choices")), [number(value) for value in listed(row.get("ll"))]
    labels, measured = listed(row.get("labels")), compared(row)
    best = max((value for value in measured if value == value), default=math.nan)
    metric = str(row.get("metric"))
    chosen = row.get(PREDICTIONS.get(metric, "prediction"))
    seen = listed(row.get("shown"))
    found = []
    for place, text in enumerate(texts):
        width = 100 * math.exp(measured[place] - best) if place < len(measured) and best == best else 0.0
        found.append({
            "text": cut(f"{text}. {seen[place]}" if place < len(seen) else text),
            "ll": f"{ll[place]:.2f}".replace("-", "−") if place < len(ll) else "",
            "each": f"{measured[place]:.3f} {UNITS[metric]}".replace("-", "−") if metric in UNITS else "",
            "width": f"{width:.1f}",
            "gold": bool(labels[place]) if labels else place == row.get("gold"),
            "chosen": place == chosen,
        })  # fmt: skip
    return found


def compared(row: Mapping[str, Any]) -> list[float]:
    """What the headline metric compares: log-probabilities, by character, byte or token where it divides by them."""
    ll = [number(value) for value in listed(row.get("ll"))]
    texts = [str(text) for text in listed(row.get("choices"))]
    sizes = {
        "acc_norm": [len(text) for text in texts],
        "acc_bytes": [len(text.encode()) for text in texts],
        "acc_tokens": [int(count) for count in listed(row.get("tokens"))],
    }.get(str(row.get("metric")), [1] * len(ll))
    return [value / max(1, size) for value, size in zip(ll, sizes, strict=False)]


def listed(value: Any) -> list[Any]:
    """A list cell of a Parquet row as a list; [] where the column holds nothing."""
    return list(value) if hasattr(value, "__len__") and not isinstance(value, str) else []


def completion_part(row: Mapping[str, Any]) -> dict[str, Any]:
    """A generated answer: the completion, how it ended, each rule's answer and score, the reference."""
    answers = row.get("answers") if isinstance(row.get("answers"), Mapping) else {}
    rules = [
        {"rule": rule, "answer": "[invalid]" if answers.get(rule) is None else cut(answers[rule]),
         "right": number(row.get(rule)) == 1.0, "headline": rule == row.get("metric")}
        for rule in NUMBER_METRICS if rule in row
    ]  # fmt: skip
    return {
        "completion": cut(row["completion"]), "rules": rules, "reference": cut(row.get("reference")),
        "finish": row.get("finish", ""), "new_tokens": row.get("new_tokens", ""),
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------- provenance


def provenance(leaf: Leaf, suite: Path) -> dict[str, Any]:
    """Where a leaf's numbers come from: facts of the run and the model, and for each task its protocol and files."""
    run, model = leaf.run, leaf.run.get("model") or {}
    keys = ("source", "revision", "class", "parameters", "dtype", "logits_dtype", "device", "attention", "quantisation",
            "adapter", "licence", "note", "tokenizer_sha256", "chat_template_sha256", "max_length",
            "eos_ids")  # fmt: skip
    facts = [("leaf folder", str(leaf.path.relative_to(suite)) if leaf.path.is_relative_to(suite) else leaf.path.name)]
    facts += [(key.replace("_", " "), text_of(model[key])) for key in keys if model.get(key) not in (None, "", [])]
    facts += [
        ("machine", text_of(run.get("machine"))),
        ("versions", text_of({**(model.get("versions") or {}), **run.get("versions", {})})),
        ("git commit", text_of(run.get("git_commit") or "not from a clone")),
        ("parameters of the run", text_of(run.get("params"))),
        ("seeds", text_of(run.get("seeds") or "none: nothing is drawn at random")),
        ("data", text_of(run.get("data_place") or run.get("params", {}).get("data") or "not recorded")),
        ("started, finished", f"{run.get('started', '')}, {run.get('finished', '')} ({run.get('seconds', '')} s)"),
        ("input hash", text_of(run.get("input_hash"))),
        ("input files", text_of(run.get("inputs"))),
    ]
    tasks = [task_part(task, told) for task, told in run.get("tasks", {}).items()]
    return {"model": leaf.name, "facts": facts, "tasks": tasks}


def task_part(task: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """A task's protocol as texts, and its files with hashes and counts."""
    keys = ("metric", "signature", "profile", "labels", "shots", "delimiter", "bos", "first_ids", "chat", "max_length",
            "softmax_dtype", "stops", "max_new_tokens", "exemplar_sha256", "seconds")  # fmt: skip
    told = [(key.replace("_", " "), quoted(key, facts[key])) for key in keys if key in facts]
    return {"task": task_names(task)[0], "facts": told, "files": list(facts.get("files", []))}


def quoted(key: str, value: Any) -> str:
    """A fact as text; those whose spaces matter as JSON."""
    return json.dumps(value, ensure_ascii=False) if key in ("delimiter", "stops") else text_of(value)


def text_of(value: Any) -> str:
    """Any recorded value as one line of text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {text_of(inner)}" for key, inner in value.items() if inner not in (None, "")) or "–"
    if isinstance(value, list | tuple):
        return ", ".join(text_of(inner) for inner in value)
    return "–" if value is None else str(value)


def mismatches(leaves: Sequence[Leaf]) -> list[str]:
    """One sentence for each file whose count of scored rows is not the expected one, or for a task over all files."""
    told = [
        f"{leaf.name}, {task_names(task)[0]}: {facts['rows_scorable']:,} rows can be scored, "
        f"{facts['expected_rows']:,} were expected."
        for leaf in leaves
        for task, facts in leaf.run.get("tasks", {}).items()
        if isinstance(facts.get("expected_rows"), int) and facts["expected_rows"] not in (0, facts["rows_scorable"])
        if not any("expected" in line for line in facts.get("files", []))
    ]
    return told + [
        f"{leaf.name}, {task_names(task)[0]}: {line.get('file')} has {line.get('scored')} scored rows, "
        f"{line.get('expected')} were expected."
        for leaf in leaves
        for task, facts in leaf.run.get("tasks", {}).items()
        for line in facts.get("files", [])
        if line.get("difference")
    ]
