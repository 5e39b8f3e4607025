"""The public rows that THAIKIT_REAL_DATA names, by parameter files alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kit import ask, build_in, roomy, spec_of

from thaikit import extract, params
from thaikit.models import LocalModel
from thaikit.tasks.build import Task, build_all
from thaikit.tasks.items import context
from thaikit.tasks.score import number_scores, stop_strings

DATA = os.environ.get("THAIKIT_REAL_DATA", "")
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not DATA, reason="THAIKIT_REAL_DATA is not set: name the folder of the public rows"),
]


def load(name: str, *, limit: int = 0, only: tuple[str, ...] = ()) -> list[Task]:
    return build_all(params.load("tasks", name, params.TaskSet), limit=limit, only=only)


@pytest.mark.parametrize(
    ("name", "rows", "shots"), [("xcopa-th", 250, 0), ("belebele-th", 200, 5), ("mgsm-th", 125, 8)]
)
def test_thai_sets_by_a_parameter_file(tiny: LocalModel, tmp_path: Path, name: str, rows: int, shots: int) -> None:
    (task,) = load(name)
    assert len(task.items) == rows and {len(task.shots(n)) for n in range(rows)} == {shots}
    (few,) = load(name, limit=2)
    few = few.__class__(**{**vars(few), "spec": params.changed(few.spec, {"max_new_tokens": 3}, where="test")})
    found = ask(few, roomy(tiny), tmp_path / "rows.jsonl")
    assert [row["id"] for row in found] == [item.id for item in task.items[:2]]
    assert {row["outcome"] for row in found} <= {"ok", "truncated", "unreadable"}
    assert all(row["score"] in (0.0, 1.0) for row in found)


def test_xcopa_takes_the_right_connector() -> None:
    (task,) = load("xcopa-th")
    ends = [item.queries[0].rsplit(" ", 1)[1] for item in task.items]
    assert set(ends) == {"เพราะ", "ดังนั้น"} and 100 < ends.count("เพราะ") < 150
    assert {item.gold for item in task.items} == {0, 1}


def test_belebele_prompt() -> None:
    (task,) = load("belebele-th", limit=1)
    prompt = context(task.items[0], task.shots(0), delimiter=" ")
    assert prompt.startswith("บทความ: ") and prompt.endswith("\nคำตอบ:")
    assert sum(line in ("คำตอบ: A", "คำตอบ: B", "คำตอบ: C", "คำตอบ: D") for line in prompt.split("\n")) == 5
    assert {item.gold for item in load("belebele-th")[0].items} == {0, 1, 2, 3}


def test_mgsm_prompt_and_gold() -> None:
    (task,) = load("mgsm-th")
    prompt = context(task.items[0], task.shots(0), delimiter=" ")
    assert prompt.count("โจทย์:") == 9 and prompt.count("คำตอบทีละขั้นตอน:") == 9 and "โจทย์: โจทย์:" not in prompt
    assert prompt.endswith("\nคำตอบทีละขั้นตอน:")
    for item in task.items:
        completion = extract.cut_at_stops(f" คำตอบคือ {item.reference}\n\nโจทย์: 5", stop_strings(task))
        row = number_scores(task, item, completion, False)
        assert (row["strict"], row["em_thai"], row["score"]) == (1.0, 1.0, 1.0), item.id


@pytest.mark.parametrize("profile", ["v1", "harness-0.4", "thai-h6"])
def test_english_rows_load(profile: str) -> None:
    found = params.load("tasks", "h6-english-rows", params.TaskSet)
    found = params.changed(found, {"profile": profile, "sampler": "first_n"}, where="test")
    tasks = {task.name: task for task in build_all(found)}
    sizes = {"arc": 120, "hellaswag": 140, "mmlu": 16, "truthfulqa": 150, "winogrande": 145, "gsm8k": 195}
    assert {name: len(task.items) for name, task in tasks.items()} == sizes
    for name, task in tasks.items():
        for index, item in enumerate(task.items):
            asked = {(shot.question, shot.choices) for shot in task.shots(index)}
            assert (item.question, item.choices) not in asked or name == "mmlu"


def test_english_gold_passes() -> None:
    (task,) = load("h6-english-rows", only=("gsm8k",))
    for item in task.items:
        completion = extract.cut_at_stops(" " + item.answer + "\n\nQuestion: x", stop_strings(task))
        assert number_scores(task, item, completion, False)["strict"] == 1.0, item.id


def test_arc_rows_with_odd_labels() -> None:
    fields = {"question": "question.stem", "choices": "question.choices[].text", "labels": "question.choices[].label"}
    source = {"files": "arc_challenge_en/test_odd_labels.jsonl"}
    task = build_in(Path(DATA), spec_of("arc", source=source, fields=fields))
    assert len(task.items) == 28 and {len(item.choices) for item in task.items} == {3, 4, 5}


def test_two_english_items_a_task(tiny: LocalModel, tmp_path: Path) -> None:
    for task in load("h6-english-rows", limit=2, only=("arc", "hellaswag", "mmlu", "truthfulqa", "winogrande")):
        rows = ask(task, roomy(tiny), tmp_path / f"{task.name}.jsonl")
        assert len(rows) == 2 and {row["outcome"] for row in rows} == {"ok"}
