"""Closed leaves with plausible rows, written through records.Run, for the tests of whatever reads leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from thaikit import metrics, stats
from thaikit.records import Run, root
from thaikit.tasks.summary import every_metric

TASKS = {"arc": "acc_norm", "hellaswag": "acc_norm", "mmlu": "acc", "truthfulqa": "mc2", "winogrande": "acc",
         "gsm8k": "strict"}  # fmt: skip
SHOTS = {"arc": 25, "hellaswag": 10, "mmlu": 5, "truthfulqa": 0, "winogrande": 5, "gsm8k": 5}
FILES = {"arc": "test", "hellaswag": "validation", "mmlu": "test", "truthfulqa": "validation",
         "winogrande": "validation", "gsm8k": "test"}  # fmt: skip
HOSTILE = (
    "<script>alert(1)</script></style><img src=x onerror=alert(1)> javascript:alert(1) {{7*7}} {% raw %} "
    "http://evil.example/ \u202eabc\u202c \x07 $x_1$ &amp; น้ำที่ปู่ซื้อ"
)
LONG = "ยาวมาก" * 16_667  # 100,002 characters without a space


def source_rows(task: str) -> list[dict[str, Any]]:
    """The bundled sample rows of a task."""
    path = root() / "thaikit" / "samples" / "thai_h6" / task / f"{FILES[task]}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def parts(task: str, row: dict[str, Any]) -> tuple[str, list[str], int, list[int]]:
    """(question, choices, gold, labels) of a sample row."""
    if task == "arc":
        return row["question"], row["choices"]["text"], row["choices"]["label"].index(row["answerKey"]), []
    if task == "hellaswag":
        return f"{row['activity_label']}: {row['ctx']}", row["endings"], int(row["label"]), []
    if task == "mmlu":
        return row["question"], row["choices"], int(row["answer"]), []
    if task == "winogrande":
        return row["sentence"], [row["option1"], row["option2"]], int(row["answer"]) - 1, []
    targets = row["mc2_targets"]
    return row["question"], targets["choices"], targets["labels"].index(1), targets["labels"]


def base(task: str, index: int, row: dict[str, Any], question: str) -> dict[str, Any]:
    """What every row begins with."""
    name = str(row.get("id") or row.get("qID") or f"{task}-{row.get('ind', index)}")
    return {
        "id": name, "task": task, "subject": row.get("subject", "") if task == "mmlu" else "", "index": index,
        "metric": TASKS[task], "question": question[:2000], "prompt_sha256": "0" * 64, "shots": SHOTS[task],
        "context_tokens": 900, "cut_tokens": 0, "outcome": "ok",
    }  # fmt: skip


def choice_row(task: str, index: int, row: dict[str, Any], rng: np.random.Generator, skill: float) -> dict[str, Any]:
    """A multiple-choice row with random log-probabilities, the right answer lifted by `skill`."""
    question, choices, gold, labels = parts(task, row)
    ll = (-2.0 * np.array([len(c) for c in choices]) ** 0.8 + rng.normal(0, 3, len(choices))).round(4)
    ll[gold] += skill
    tokens = [max(1, len(c) // 3) for c in choices]
    found = base(task, index, row, question) | {
        "choices": list("ABCD") if task == "mmlu" else choices, "gold": gold, "ll": ll.tolist(), "tokens": tokens,
        "greedy": [False] * len(choices), "boundary": 0,
    }  # fmt: skip
    if task == "mmlu":
        found["shown"] = choices
    if labels:
        best = int(np.argmax(ll))
        found |= {"mc2": metrics.mc2(ll.tolist(), labels), "labels": labels, "prediction": best,
                  "acc": float(labels[best]),
                  "mc1": float(best == gold), "mc1_choices": choices[:2], "mc1_ll": ll[:2].tolist()}  # fmt: skip
    else:
        scores = metrics.accuracies(ll.tolist(), gold, choices=found["choices"], tokens=tokens)
        found |= {k: float(v) if k.startswith("acc") else v for k, v in scores.items()}
    return found | {"score": found[TASKS[task]]}


def number_row(index: int, row: dict[str, Any], rng: np.random.Generator, skill: float) -> dict[str, Any]:
    """A GSM8K row: right, wrong, or without an answer at the token limit."""
    reference = row["answer"].split("####")[-1].strip()
    right, limit = rng.random() < skill / 10, rng.random() < 0.2
    answer = None if limit else (reference if right else "7")
    score = float(answer == reference)
    text = "คิดทีละขั้น\n  ก่อนอื่น บวกกัน " + ("ไปเรื่อย ๆ " * 20 if limit else f"แล้วได้คำตอบ\n#### {answer}")
    return base("gsm8k", index, row, row["question"]) | {
        "outcome": "truncated" if limit else "ok", "reference": reference, "completion": text,
        "finish": "length" if limit else "stop", "new_tokens": 128 if limit else 40,
        "answers": {"strict": answer, "flexible": answer, "em_thai": answer, "v1": answer},
        "strict": score, "flexible": score, "em_thai": score, "v1": score, "score": score,
    }  # fmt: skip


def facts(task: str, rows: list[dict[str, Any]], *, profile: str, labels: str) -> dict[str, Any]:
    """What run.json says of a task."""
    chance = {"winogrande": 0.5, "gsm8k": 0.0, "truthfulqa": 0.4321}.get(task, 0.25)
    found = {
        "kind": task, "metric": TASKS[task], "profile": profile, "labels": labels,
        "signature": f"{TASKS[task]}|version:1|profile:{profile}|labels:{labels}|shots:{SHOTS[task]}|delimiter:' '",
        "items": len(rows), "n": len(rows), "shots": SHOTS[task], "delimiter": " ", "bos": "auto",
        "first_ids": [2, 9413, 236],
        "chat": False, "max_length": 32768, "softmax_dtype": "float32", "chance": chance, "boundary": 0, "truncated": 0,
        "fewer_shots": 0, "skipped": 0, "total_tokens": 90_000, "distinct_tokens": 31_000, "exemplar_sha256": "e" * 64,
        "exemplars_removed": 1, "audit": {"zero_width": 2} if task == "arc" else {},
        "files": [{"file": f"{task}/{FILES[task]}.jsonl", "sha256": "f" * 64, "rows": 60, "scored": len(rows)}],
        "outcomes": {"ok": len(rows)}, "metrics": every_metric(rows),
    }  # fmt: skip
    if task == "gsm8k":
        hit = float(np.mean([row["finish"] == "length" for row in rows]))
        found |= {"stops": ["\n\n"], "max_new_tokens": 128, "limit_hit": hit, "invalid": hit, "several_marks": 0.0}
    return found


def estimates(rows: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The headline of a leaf."""
    found, extra = {}, {}
    for task, lines in rows.items():
        scores = [row["score"] for row in lines if row["score"] is not None]
        found[task] = stats.mean_interval(scores)
        if task == "mmlu":
            groups: dict[str, list[float]] = {}
            for row in lines:
                groups.setdefault(row["subject"], []).append(row["score"])
            found[task], extra["mmlu_micro"] = stats.macro_interval(groups), stats.mean_interval(scores)
    extra = {"average": stats.average_interval(list(found.values()))} | extra
    return {name: one.as_dict() for name, one in {**found, **extra}.items()}


def write_leaf(
    suite: Path, model: str, *, seed: int = 0, skill: float = 3.0, tasks: tuple[str, ...] = tuple(TASKS),
    items: int = 20, hostile: bool = False, profile: str = "thai-h6", labels: str = "en",
    data_place: str | None = "samples:thai_h6",
    rehearsal: bool = True, limit: int = 0,
) -> Path:  # fmt: skip
    """A closed leaf suite/thai_h6/model; `hostile` puts an attack into each task's first texts."""
    rng = np.random.default_rng(seed)
    params = {"model": model, "tasks": "thai-h6-samples", "limit": limit, "overlength": "error", "batch_size": 8}
    run = Run.open(
        "thai_h6", params=params, inputs={"tasks/thai-h6-samples": "a" * 64}, out_dir=str(suite / "thai_h6" / model)
    )
    rows: dict[str, list[dict[str, Any]]] = {}
    for task in tasks:
        rows[task] = []
        for index, row in enumerate(source_rows(task)[: limit or items]):
            made = number_row(index, row, rng, skill) if task == "gsm8k" else choice_row(task, index, row, rng, skill)
            rows[task].append(attack(made) if hostile and index < 3 else made)
            run.log(task).append(rows[task][-1])
    described = {
        "name": model, "source": f"embedded:{model}", "revision": "sha256:" + "1" * 64, "rehearsal": rehearsal,
        "note": "", "licence": "Apache-2.0", "class": "Gemma3ForCausalLM",
        "dtype": "float32", "logits_dtype": "float32",
        "tokenizer_sha256": "b" * 64, "versions": {"python": "3.11.9", "torch": "2.13.0"},
    }  # fmt: skip
    place = {} if data_place is None else {"data_place": data_place}
    told = {task: facts(task, rows[task], profile=profile, labels=labels) for task in tasks}
    run.finish(headline={"thai_h6": estimates(rows)}, model=described, tasks=told,
               machine={"device": "cpu", "threads": 2, "dtype": "float32"}, **place)  # fmt: skip
    return run.out_dir


def attack(row: dict[str, Any]) -> dict[str, Any]:
    """The row with hostile texts wherever a model's or a data set's text stands."""
    changed = row | {"question": HOSTILE}
    if "completion" in row:
        return changed | {"completion": HOSTILE + LONG, "answers": dict(row["answers"], flexible=HOSTILE)}
    name = "shown" if "shown" in row else "choices"
    return changed | {name: [HOSTILE, LONG, *row[name][2:]]}


def write_suite(suite: Path, *, hostile: bool = False) -> Path:
    """Two models on six tasks."""
    write_leaf(suite, "gemma3-270m", seed=1, skill=3.5, hostile=hostile)
    write_leaf(suite, "smollm2-135m-instruct", seed=2, skill=1.0)
    return suite
