"""The bundled Thai samples keep the published schemas and the counts, balance and spelling they were written to."""

from __future__ import annotations

import ast
import json
import operator
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import thaikit
from thaikit import params
from thaikit.tasks import build, items

FOLDER = Path(thaikit.__file__).parent / "samples" / "thai_h6"
COUNTS = {
    "arc/test": 60, "arc/exemplars": 25, "hellaswag/validation": 40, "hellaswag/train": 10, "mmlu/test": 48,
    "mmlu/dev": 40, "truthfulqa/validation": 30, "winogrande/validation": 40, "winogrande/train": 5, "gsm8k/test": 30,
    "gsm8k/train": 5,
}  # fmt: skip
KEYS = {
    "arc": ["id", "question", "choices", "answerKey"],
    "hellaswag": [
        "ind", "activity_label", "ctx_a", "ctx_b", "ctx", "endings", "source_id", "split", "split_type", "label",
    ],
    "mmlu": ["id", "question", "subject", "choices", "answer"],
    "truthfulqa": ["id", "question", "mc1_targets", "mc2_targets"],
    "winogrande": ["qID", "sentence", "option1", "option2", "answer"],
    "gsm8k": ["id", "question", "answer"],
}  # fmt: skip
EXEMPLARS = {
    "arc/test": "arc/exemplars", "hellaswag/validation": "hellaswag/train", "mmlu/test": "mmlu/dev",
    "winogrande/validation": "winogrande/train", "gsm8k/test": "gsm8k/train",
}  # fmt: skip
FEW_SHOT_ARC_LIMIT = 3700  # characters of 25 worked examples, so that they fit small contexts
MARK = re.compile(r"(\S+)=<<([^=<>]+)=([^<>]+)>>(\S+)")
SUMS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def strings(value: Any) -> Iterator[str]:
    """Every string inside a row."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def identity(row: dict[str, Any]) -> str:
    return str(row.get("id", row.get("qID", row.get("ind"))))


def question(row: dict[str, Any]) -> str:
    return row.get("question") or row.get("sentence") or row["ctx"]


def choice_lists(row: dict[str, Any]) -> list[list[str]]:
    """The lists of choices of a row, whatever its schema."""
    if "mc1_targets" in row:
        return [row["mc1_targets"]["choices"], row["mc2_targets"]["choices"]]
    if "option1" in row:
        return [[row["option1"], row["option2"]]]
    found = row.get("endings", row.get("choices"))
    return [found["text"] if isinstance(found, dict) else found] if found else []


def position(row: dict[str, Any]) -> int:
    """Where the right choice stands, from 0."""
    if "answerKey" in row:
        return row["choices"]["label"].index(row["answerKey"])
    return int(row["label"]) if "label" in row else int(row["answer"]) - ("option1" in row)


def value_of(text: str) -> Fraction:
    """The exact value of a sum of numbers with + - * /."""

    def walk(node: ast.expr) -> Fraction:
        if isinstance(node, ast.BinOp):
            return SUMS[type(node.op)](walk(node.left), walk(node.right))
        assert isinstance(node, ast.Constant), f"{text}: only numbers and + - * /"
        return Fraction(str(node.value))

    return walk(ast.parse(text, mode="eval").body)


@pytest.fixture(scope="module")
def tasks() -> list[build.Task]:
    return build.build_all(params.load("tasks", "thai-h6-samples", params.TaskSet))


@pytest.mark.parametrize("name", COUNTS)
def test_file_has_its_rows_and_keys(name: str) -> None:
    found = rows(name)
    assert len(found) == COUNTS[name]
    wanted = KEYS[name.split("/")[0]]
    assert [identity(row) for row in found if list(row) != wanted] == []


def test_no_file_is_left_unchecked() -> None:
    assert {str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.jsonl")} == set(COUNTS)


@pytest.mark.parametrize("task", KEYS)
def test_ids_and_questions_are_unique_over_both_files(task: str) -> None:
    found = [row for name in COUNTS if name.startswith(task) for row in rows(name)]
    for part in (identity, question):
        assert [text for text, n in Counter(map(part, found)).items() if n > 1] == []


@pytest.mark.parametrize(("name", "exemplars"), EXEMPLARS.items())
def test_no_exemplar_is_scored(name: str, exemplars: str) -> None:
    assert {question(row) for row in rows(name)} & {question(row) for row in rows(exemplars)} == set()


@pytest.mark.parametrize("name", [n for n in COUNTS if n.split("/")[0] in ("arc", "hellaswag", "mmlu")])
def test_right_position_is_balanced(name: str) -> None:
    places = [position(row) for row in rows(name) if len(choice_lists(row)[0]) == 4]
    assert {p: places.count(p) for p in range(4) if abs(places.count(p) - len(places) / 4) > 2} == {}


def test_winogrande_is_balanced_and_paired() -> None:
    found = rows("winogrande/validation")
    assert Counter(row["answer"] for row in found) == {"1": 20, "2": 20}
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert first["qID"][:-2] == second["qID"][:-2]
        assert [first["option1"], first["option2"]] == [second["option1"], second["option2"]]
        assert first["sentence"].partition("_")[0] == second["sentence"].partition("_")[0]
        assert {first["answer"], second["answer"]} == {"1", "2"}
    for row in found + rows("winogrande/train"):
        head, blank, tail = row["sentence"].partition("_")
        assert blank and head.strip() and tail.strip() and "_" not in tail, row["qID"]


@pytest.mark.parametrize("name", COUNTS)
def test_text_is_spelt_one_way(name: str) -> None:
    raw = (FOLDER / f"{name}.jsonl").read_bytes()
    assert raw.endswith(b"\n") and b"\r" not in raw
    for row in rows(name):
        for text in strings(row):
            where = f"{identity(row)}: {text!r}"
            assert text == unicodedata.normalize("NFC", text) == text.strip(), where
            assert "  " not in text and not re.search("[\u200b\ufeff\u00a0\u200e]", text), where
            assert not re.search("\u0e4d[\u0e48-\u0e4b]?\u0e32", text), where  # sara am is U+0E33
            assert not re.search("[^ ]ๆ|ๆ[^ ]", text), where  # the repetition mark stands between spaces


@pytest.mark.parametrize("name", COUNTS)
def test_choices_are_there_and_differ(name: str) -> None:
    for row in rows(name):
        for found in choice_lists(row):
            assert all(found) and len(set(found)) == len(found) >= 2, identity(row)


def test_arc_labels_fit_the_choices() -> None:
    for row in rows("arc/test") + rows("arc/exemplars"):
        labels = row["choices"]["label"]
        assert len(labels) == len(row["choices"]["text"]) and labels in ([*"ABCDE"[: len(labels)]], [*"1234"])
        assert row["answerKey"] in labels


def test_hellaswag_context_is_its_two_parts() -> None:
    for row in rows("hellaswag/validation") + rows("hellaswag/train"):
        assert row["ctx"] == (row["ctx_a"] + " " + row["ctx_b"]).strip(), row["ind"]
        assert len(row["endings"]) == 4 and row["label"] in ("0", "1", "2", "3")
        assert isinstance(row["ind"], int)


def test_mmlu_has_eight_subjects_with_six_items_and_five_exemplars() -> None:
    scored, shown = (Counter(row["subject"] for row in rows(f"mmlu/{part}")) for part in ("test", "dev"))
    assert set(scored.values()) == {6} and set(shown.values()) == {5} and len(scored) == 8 and set(scored) == set(shown)
    assert all(len(row["choices"]) == 4 and row["answer"] in range(4) for row in rows("mmlu/test") + rows("mmlu/dev"))


def test_truthfulqa_targets() -> None:
    for row in rows("truthfulqa/validation"):
        one, two = row["mc1_targets"], row["mc2_targets"]
        assert one["labels"] == [1] + [0] * (len(one["choices"]) - 1), row["id"]
        known = dict(zip(two["choices"], two["labels"], strict=True))
        assert sum(known.values()) >= 2 and len(known) - sum(known.values()) >= 2, row["id"]
        assert [known.get(choice) for choice in one["choices"]] == one["labels"], row["id"]


@pytest.mark.parametrize("name", ["gsm8k/test", "gsm8k/train"])
def test_gsm8k_sums_are_right(name: str) -> None:
    for row in rows(name):
        steps, _, final = row["answer"].rpartition("\n#### ")
        lines = steps.split("\n")
        marks = [mark for line in lines for mark in MARK.findall(line)]
        assert len(marks) == len(lines) == row["answer"].count("<<") >= 2, row["id"]
        for before, inside, result, after in marks:
            assert before == inside and result == after, f"{row['id']}: {before}=<<{inside}={result}>>{after}"
            assert value_of(inside) == Fraction(result), f"{row['id']}: {inside} is not {result}"
        assert marks[-1][2] == final.replace(",", ""), row["id"]


def test_samples_load_with_an_empty_audit(tasks: list[build.Task]) -> None:
    assert [task.name for task in tasks] == ["arc", "hellaswag", "mmlu", "truthfulqa", "winogrande", "gsm8k"]
    assert [len(task.items) for task in tasks] == [60, 40, 48, 30, 40, 30]
    assert {task.name: dict(task.audit) for task in tasks if task.audit} == {}
    assert [task.name for task in tasks if task.removed] == []


def test_arc_exemplars_stay_short_in_thai() -> None:
    file = params.load("tasks", "thai-h6-samples", params.TaskSet).model_copy(update={"labels": "th"})
    (arc,) = build.build_all(file, only=["arc"])
    shown = "".join(items.example(shot, " ") + "\n\n" for shot in arc.shots(0))
    assert shown.startswith("คำถาม: ") and shown.count("คำตอบ: ") == 25
    assert len(shown) < FEW_SHOT_ARC_LIMIT
