"""Who is shown which worked examples, that none of them is scored, and that every file's rows are counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit import build_in, make, numbered, samples, spec_of, write_jsonl
from miniatures import MMLU_ROWS, ROWS

from thaikit import ThaikitError, fewshot


def test_mmlu_subjects_need_their_exemplars(tmp_path: Path) -> None:
    other = {**MMLU_ROWS[1], "subject": "anatomy"}
    write_jsonl(tmp_path / "test.jsonl", [MMLU_ROWS[1], other])
    write_jsonl(tmp_path / "train.jsonl", MMLU_ROWS[:1])
    with pytest.raises(ThaikitError, match="task mmlu: subject 'anatomy' has 0 exemplars, 1 shots are asked"):
        build_in(tmp_path, spec_of("mmlu", 1))
    task = build_in(tmp_path, spec_of("mmlu", 1, subjects=["astronomy"]))
    assert [item.subject for item in task.items] == ["astronomy"]
    with pytest.raises(ThaikitError, match=r"1 subjects, 57 expected"):
        build_in(
            tmp_path, spec_of("mmlu", 0, expected_rows=2) | {"exemplars": None, "source": {"files": "train.jsonl"}}
        )


def test_mmlu_shows_each_subject_its_own_exemplars_and_limit_takes_turns() -> None:
    (task,) = samples(only=["mmlu"], limit=10)
    assert len({item.subject for item in task.items}) == 8
    for index, item in enumerate(task.items):
        assert {shot.subject for shot in task.shots(index)} == {item.subject} and len(task.shots(index)) == 5


@pytest.mark.parametrize(("profile", "shuffled"), [("v1", True), ("harness-0.4", False)])
def test_random_streams(tmp_path: Path, profile: str, shuffled: bool) -> None:
    task = make(tmp_path, "arc", numbered(9), numbered(40, 100), shots=5, shared={"profile": profile})
    new = enumerate(fewshot.new_stream(9, 40, 5))
    expected = list(fewshot.old_stream(9, 40, 5) if shuffled else new)
    assert [item.id for item in task.items] == [f"n{doc}" for doc, _ in expected]
    for index, (_, shots) in enumerate(expected):
        assert [shot.id for shot in task.shots(index)] == [f"n{100 + shot}" for shot in shots]
    fixed = make(
        tmp_path, "arc", numbered(9), numbered(40, 100), shots=5, shared={"profile": profile, "sampler": "first_n"}
    )
    assert [item.id for item in fixed.items] == [f"n{n}" for n in range(9)] and set(fixed.draws) == {(0, 1, 2, 3, 4)}


def test_limit_keeps_the_first_shuffled_items(tmp_path: Path) -> None:
    whole = make(tmp_path, "arc", numbered(9), numbered(40, 100), shots=2, shared={"profile": "v1"})
    part = make(tmp_path, "arc", numbered(9), numbered(40, 100), shots=2, limit=3, shared={"profile": "v1"})
    assert part.items == whole.items[:3] and part.draws == whole.draws[:3]


@pytest.mark.parametrize("profile", ["v1", "harness-0.4", "thai-h6"])
def test_exemplars_by_subject_of_another_kind(tmp_path: Path, profile: str) -> None:
    """The random streams know one pool; exemplars grouped by subject are taken in order."""
    rows = [{"id": f"r{n}", "q": f"ถาม {n}", "s": "ก" if n % 2 else "ข", "gold": 0} for n in range(8)]
    keys = {
        "fields": {"q": "q", "subject": "s", "gold": "gold"},
        "query": "{q}",
        "choices": ["ใช่", "ไม่"],
        "gold": "gold",
    }
    task = make(tmp_path, "multiple_choice", rows[4:], rows[:4], shots=2, shared={"profile": profile}, **keys)
    assert [[shot.id for shot in task.shots(n)] for n in range(2)] == [["r0", "r2"], ["r1", "r3"]]


@pytest.mark.parametrize("kind", ["arc", "hellaswag", "mmlu", "winogrande", "gsm8k"])
def test_exemplars_inside_the_test_file_are_not_scored(tmp_path: Path, kind: str) -> None:
    shown, asked = ({**row, "id": str(n)} for n, row in enumerate(ROWS[kind]))
    task = make(tmp_path, kind, [{**shown, "id": "again"}, asked], [shown])
    assert [item.id for item in task.items] == ["1"] and task.removed == 1
    assert task.files[0]["rows"] == 2 and task.files[0]["scored"] == 1


@pytest.mark.parametrize(
    ("part", "kept", "shown"), [({"first": 2}, [2, 3, 4], [0, 1]), ({"last": 2}, [0, 1, 2], [3, 4])]
)
def test_exemplars_cut_from_the_scored_file(
    tmp_path: Path, part: dict[str, int], kept: list[int], shown: list[int]
) -> None:
    write_jsonl(tmp_path / "test.jsonl", numbered(5))
    task = build_in(tmp_path, spec_of("arc", 2, exemplars=part, expected_rows=3))
    assert [item.id for item in task.items] == [f"n{n}" for n in kept]
    assert [shot.id for shot in task.shots(0)] == [f"n{n}" for n in shown]


def test_exemplars_by_a_flag(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "test.jsonl", [{**row, "few": n in (1, 3)} for n, row in enumerate(numbered(5))])
    task = build_in(tmp_path, spec_of("arc", 2, exemplars={"where": {"few": True}}))
    assert [shot.id for shot in task.shots(0)] == ["n1", "n3"] and len(task.items) == 3


def test_expected_rows_are_told_per_file(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", numbered(3))
    write_jsonl(tmp_path / "b.jsonl", numbered(2, 10))
    spec = spec_of(
        "arc", source={"files": ["a.jsonl", "b.jsonl"]}, expected_rows={"a.jsonl": 3, "b.jsonl": 4, "c.jsonl": 1}
    )
    with pytest.raises(ThaikitError) as error:
        build_in(tmp_path, spec)
    assert "b.jsonl: 2 scored, 4 expected; c.jsonl: no such file" in str(error.value) and "a.jsonl" not in str(
        error.value
    )
    task = build_in(tmp_path, spec, allow_size_mismatch=True)
    assert [line.get("difference") for line in task.files] == [0, -2]
    with pytest.raises(ThaikitError, match=r"5 scored, 9 expected; a.jsonl: 3 scored of 3; b.jsonl: 2 scored of 2"):
        build_in(tmp_path, {**spec, "expected_rows": 9})
