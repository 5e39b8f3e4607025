"""The release's layout, built from the bundled samples: named as a folder it runs, and its counts are checked."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from kit import samples

import thaikit
from thaikit import ThaikitError, params
from thaikit.tasks.build import Task, build_all

SAMPLES = Path(thaikit.__file__).parent / "samples" / "thai_h6"
SETS = {
    "arc": ("th_arc_challenge", {"test": "arc/test", "validation": "arc/exemplars"}),
    "hellaswag": ("th_hellaswag", {"validation": "hellaswag/validation", "train": "hellaswag/train"}),
    "truthfulqa": ("th_truthfulqa", {"validation": "truthfulqa/validation"}),
    "winogrande": ("th_winogrande", {"validation": "winogrande/validation", "train": "winogrande/train"}),
    "gsm8k": ("th_gsm8k", {"test": "gsm8k/test", "train": "gsm8k/train"}),
}
ENGLISH = "English text that no prompt may show"


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def released(task: str, row: dict[str, Any]) -> dict[str, Any]:
    """A sample row with its Thai in th_ fields beside English ones, as the release has them."""
    if task == "arc":
        choices = {**row["choices"], "th_text": row["choices"]["text"], "text": [ENGLISH] * len(row["choices"]["text"])}
        return {
            "id": row["id"],
            "question": ENGLISH,
            "th_question": row["question"],
            "choices": choices,
            "answerKey": row["answerKey"],
        }
    if task == "hellaswag":
        thai = {f"th_{key}": row[key] for key in ("activity_label", "ctx_a", "ctx_b", "ctx", "endings")}
        return {"ind": row["ind"], **thai, "label": row["label"]}
    if task == "mmlu":
        return {
            "question": ENGLISH,
            "th_question": row["question"],
            "th_choices": row["choices"],
            "answer": row["answer"],
        }
    if task == "truthfulqa":
        targets = {
            "choices": [ENGLISH] * len(row["mc2_targets"]["choices"]),
            "th_choices": row["mc2_targets"]["choices"],
        }
        return {"th_question": row["question"], "mc2_targets": {**targets, "labels": row["mc2_targets"]["labels"]}}
    if task == "winogrande":
        return {f"th_{key}": row[key] for key in ("sentence", "option1", "option2")} | {"answer": row["answer"]}
    return {"question": ENGLISH, "th_question": row["question"], "answer": row["answer"]}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_parquet(path, index=False)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a clone of the release looks; half of MMLU's subjects call their exemplars validation."""
    folder = tmp_path_factory.mktemp("ThaiCLI_H6")
    for task, (name, files) in SETS.items():
        for split, source in files.items():
            write(folder / "h6" / name / f"{name}_{split}.parquet", [released(task, row) for row in read(source)])
    for split, source in {"test": "mmlu/test", "dev": "mmlu/dev"}.items():
        groups = defaultdict(list)
        for row in read(source):
            groups[row["subject"]].append(released("mmlu", row))
        for number, (subject, rows) in enumerate(sorted(groups.items())):
            shown = split if split == "test" else ("train" if number % 2 else "validation")
            write(folder / "h6" / "th_mmlu" / subject / f"th_mmlu_{subject}_{shown}.parquet", rows)
    return folder


def release(clone: Path, **changes: Any) -> list[Task]:
    found = params.load("tasks", "thai-h6-release", params.TaskSet)
    only = changes.pop("only", ())
    return build_all(params.changed(found, changes, where="test"), data=str(clone), only=only)


def comparable(task: Task) -> list[tuple[Any, ...]]:
    """Items and their exemplars but for ids, which the release does not have everywhere; mc1 is not in it."""
    found = []
    for index, item in enumerate(task.items):
        shots = [(shot.example_query, shot.answer) for shot in task.shots(index)]
        second = slice(item.first, None)
        found.append((item.queries, item.continuations[second], item.choices[second], item.gold, item.reference,
                      item.labels, item.subject, item.description, shots))  # fmt: skip
    return found


def test_naming_the_folder_gives_the_samples_items(clone: Path) -> None:
    tasks = release(clone, allow_size_mismatch=True)
    assert [task.name for task in tasks] == ["arc", "hellaswag", "mmlu", "truthfulqa", "winogrande", "gsm8k"]
    for ours, theirs in zip(samples(), tasks, strict=True):
        if ours.name == "mmlu":  # the release is read subject by subject, in the order of names
            key = lambda line: line[6]  # noqa: E731
            assert sorted(comparable(theirs), key=key) == sorted(comparable(ours), key=key)
        else:
            assert comparable(theirs) == comparable(ours), ours.name
        assert ENGLISH not in str([item.queries for item in theirs.items])


def test_folder_by_the_environment(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = params.load("tasks", "thai-h6-release", params.TaskSet)
    monkeypatch.delenv("THAI_H6_RELEASE", raising=False)
    with pytest.raises(ThaikitError, match="the environment variable THAI_H6_RELEASE is not set"):
        build_all(found)
    monkeypatch.setenv("THAI_H6_RELEASE", str(clone))
    relaxed = params.changed(found, {"allow_size_mismatch": True}, where="test")
    assert len(build_all(relaxed, only=["gsm8k"])[0].items) == 30


@pytest.mark.parametrize(("task", "told"), [
    ("arc", "60 scored, 1172 expected; h6/th_arc_challenge/th_arc_challenge_test.parquet: 60 scored of 60"),
    ("hellaswag", "40 scored, 10042 expected"),
    ("mmlu", "8 subjects, 57 expected; 48 scored, 14042 expected; h6/th_mmlu/"),
    ("truthfulqa", "30 scored, 817 expected"),
    ("winogrande", "40 scored, 1267 expected"),
    ("gsm8k", "30 scored, 1319 expected; h6/th_gsm8k/th_gsm8k_test.parquet: 30 scored of 30"),
])  # fmt: skip
def test_counts_are_held_to_the_published_ones(clone: Path, task: str, told: str) -> None:
    with pytest.raises(ThaikitError) as error:
        release(clone, only=[task])
    assert f"task {task}: the row counts differ from expected_rows" in str(error.value)
    assert told in str(error.value) and "allow_size_mismatch" in str(error.value)


def test_every_mmlu_file_is_told(clone: Path) -> None:
    with pytest.raises(ThaikitError) as error:
        release(clone, only=["mmlu"])
    assert str(error.value).count("_test.parquet: 6 scored of 6") == 8


def test_allowed_differences_are_recorded(clone: Path) -> None:
    (task,) = release(clone, only=["arc"], allow_size_mismatch=True)
    scored, shown = task.files
    assert (scored["rows"], scored["scored"], scored["expected"], scored["difference"]) == (60, 60, 1172, -1112)
    assert shown["scored"] == 0 and len(shown["sha256"]) == 64


def test_a_clone_without_its_files(tmp_path: Path) -> None:
    with pytest.raises(ThaikitError, match="no such folder"):
        release(tmp_path / "nowhere")
    with pytest.raises(ThaikitError, match=r"no file matches 'h6/th_arc_challenge/th_arc_challenge_test.parquet'"):
        release(tmp_path)
