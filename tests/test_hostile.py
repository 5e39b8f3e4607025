"""Broken rows, files and maps: one sentence that names file, row, id and field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hostile import ARC, CHOICE, GOOD, OWN, changed, refused
from kit import build_in, make, spec_of

from thaikit import ThaikitError, params
from thaikit.tasks.build import build_all

FAULTS = [
    ("arc", {"answerKey": "C"}, ["(id ก1), field answer: gold is 'C'; allowed are A, B"]),
    ("arc", {"answerKey": "๑"}, ["field answer: gold is '๑'"]),
    ("arc", {"answerKey": True}, ["gold is True"]),
    ("arc", {"answerKey": ""}, ["gold is ''"]),
    ("arc", {"answerKey": None}, ["(id ก1), field answer: no 'answerKey'", "found choices, id, question"]),
    ("arc", {"choices__label": ["A", "A"]}, ["field labels", "one label is needed for each of 2 choices"]),
    ("arc", {"choices__label": ["A"]}, ["field labels"]),
    ("arc", {"choices__label": "AB"}, ["field labels: found 'AB'; a list is needed"]),
    ("arc", {"choices__label": 7}, ["field labels"]),
    ("arc", {"choices__text": ["100", ""]}, ["field choices: choice 2 is ''"]),
    ("arc", {"choices__text": ["100", "  "]}, ["field choices: choice 2 is"]),
    ("arc", {"choices__text": ["\u200b\ufeff", "1"]}, ["field choices: choice 1 is"]),
    ("arc", {"choices__text": ["100", 50]}, ["field choices: choice 2 is 50; a text"]),
    ("arc", {"choices__text": ["100"]}, ["field choices", "at least two"]),
    ("arc", {"choices__text": []}, ["field choices", "at least two"]),
    ("arc", {"choices": [1, 2]}, ["field choices"]),
    ("arc", {"question": ""}, ["field question: found ''"]),
    ("arc", {"question": "\ufeff\u200b"}, ["field question"]),
    ("arc", {"question": 5}, ["field question: found 5"]),
    ("arc", {"question": float("nan")}, ["field question: found nan"]),
    ("hellaswag", {"label": "2"}, ["field label: gold is '2'; allowed are 0, 1"]),
    ("hellaswag", {"label": -1}, ["gold is -1"]),
    ("hellaswag", {"label": False}, ["gold is False"]),
    ("hellaswag", {"label": float("nan")}, ["gold is nan"]),
    ("hellaswag", {"label": ""}, ["gold is ''"]),
    ("hellaswag", {"endings": ["[step] [substeps]", "นอน"]}, ["field endings: ending 1 is empty once brackets"]),
    ("hellaswag", {"endings": "ผัด"}, ["field endings"]),
    ("hellaswag", {"ctx_a": "", "ctx_b": " "}, ["field ctx_a", "not both empty"]),
    ("hellaswag", {"ctx_b": 3}, ["field ctx_a", "ctx_b 3"]),
    ("hellaswag", {"ctx_b": None}, ["field ctx_b: no 'ctx_b'"]),
    ("mmlu", {"answer": 4}, ["(id m1), field answer: gold is 4"]),
    ("mmlu", {"answer": "E"}, ["gold is 'E'"]),
    ("mmlu", {"answer": -1}, ["gold is -1"]),
    ("mmlu", {"answer": True}, ["gold is True"]),
    ("mmlu", {"answer": 1.0}, ["gold is 1.0"]),
    ("mmlu", {"choices": ["ก", "ข", "ค"]}, ["found 3 choices; MMLU has exactly 4"]),
    ("mmlu", {"subject": None}, ["field subject: no subject"]),
    ("mmlu", {"subject": ""}, ["field subject"]),
    ("mmlu", {"subject": 3}, ["field subject: found 3"]),
    ("truthfulqa", {"mc2_targets__labels": [1, 1, 1]}, ["field mc2_labels", "both present"]),
    ("truthfulqa", {"mc2_targets__labels": [1, 0]}, ["field mc2_labels"]),
    ("truthfulqa", {"mc2_targets__labels": [1, 0, 2]}, ["field mc2_labels"]),
    ("truthfulqa", {"mc2_targets__labels": 1}, ["field mc2_labels"]),
    ("truthfulqa", {"mc2_targets__labels": [[1], [0], [0]]}, ["field mc2_labels"]),
    ("truthfulqa", {"mc1_targets__labels": [0, 1]}, ["field mc1_labels", "exactly the first choice"]),
    ("truthfulqa", {"mc2_targets__choices": ["ไม่", "", "มั้ง"]}, ["field mc2_choices: choice 2"]),
    ("winogrande", {"answer": "๑"}, ["(id w1), field answer: gold is '๑'; allowed are 1, 2"]),
    ("winogrande", {"answer": 0}, ["gold is 0"]),
    ("winogrande", {"answer": ""}, ["gold is ''"]),
    ("winogrande", {"sentence": "แมวไล่หนู"}, ["field sentence: no blank"]),
    ("winogrande", {"sentence": "แมวไล่…หิว"}, ["field sentence: no blank"]),
    ("winogrande", {"option2": ""}, ["field option2"]),
    ("gsm8k", {"answer": "#### ๗๒"}, ["(id g1), field answer", "no number under the pattern"]),
    ("gsm8k", {"answer": "ได้ 72"}, ["field answer", "no number"]),
    ("gsm8k", {"answer": "####72"}, ["field answer"]),
    ("gsm8k", {"answer": "#### .."}, ["field answer", "is no number"]),
    ("gsm8k", {"answer": "#### 72 บาท"}, ["field answer", "no answer can equal"]),
    ("gsm8k", {"answer": "#### 1\n#### 2"}, ["2 different numbers"]),
    ("gsm8k", {"answer": 72}, ["field answer: found 72"]),
    ("multiple_choice", {"gold": 2}, ["field gold: gold is 2; allowed are 0 to 1"]),
    ("multiple_choice", {"gold": -1}, ["gold is -1"]),
    ("multiple_choice", {"gold": True}, ["gold is True"]),
    ("multiple_choice", {"gold": "๐"}, ["gold is '๐'"]),
    ("multiple_choice", {"gold": float("nan")}, ["gold is nan"]),
    ("multiple_choice", {"a": ""}, ["field choices", "none empty"]),
    ("multiple_choice", {"q": "\u200b"}, ["field query", "empty query"]),
    ("multiple_choice", {"q": float("nan")}, ["field q: found nan"]),
    ("numeric", {"gold": "เจ็ด"}, ["field gold", "no number"]),
    ("numeric", {"gold": float("nan")}, ["field gold"]),
    ("numeric", {"gold": ""}, ["field gold"]),
    ("numeric", {"q": ""}, ["empty query"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "change", "parts"), FAULTS, ids=[f"{k}-{n}" for n, (k, _, _) in enumerate(FAULTS)])
def test_faults_are_named(tmp_path: Path, kind: str, change: dict[str, Any], parts: list[str]) -> None:
    bad = changed(kind, **change)
    told = refused(lambda: make(tmp_path, kind, [bad], **OWN.get(kind, {})), "test.jsonl, row 1", *parts)
    assert told.count("test.jsonl") == 1


@pytest.mark.parametrize("kind", [*GOOD, *OWN])
def test_null_values_are_refused(tmp_path: Path, kind: str) -> None:
    """Every field that a task reads, once null."""
    names = [name for name in changed(kind) if name not in ("id", "ind", "qID")]
    for name in names if kind != "numeric" else ["q", "gold"]:
        row = {**changed(kind), name: None}
        refused(lambda row=row: make(tmp_path, kind, [row], **OWN.get(kind, {})), "test.jsonl, row 1")


def test_thai_digits_that_agree_are_right(tmp_path: Path) -> None:
    row = changed("arc", choices__label=["๑", "๒"], answerKey="๒")
    assert make(tmp_path / "a", "arc", [row]).items[0].gold == 1
    row = changed("gsm8k", answer="#### ๑,๐๗๒")
    task = make(tmp_path / "b", "gsm8k", [row], gold_pattern="#### ([0-9๐-๙,]+)")
    assert task.items[0].reference == "1072"
    table = {"answer": {"๑": "1", "๒": "2"}}
    assert make(tmp_path / "c", "winogrande", [changed("winogrande", answer="๒")], values=table).items[0].gold == 1


@pytest.mark.parametrize("name", ["test.jsonl", "test.json", "test.csv", "test.parquet"])
@pytest.mark.parametrize("content", ["", " \n\n \t\n", "\ufeff"])
def test_empty_files(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    told = refused(lambda: build_in(tmp_path, spec_of("arc", source={"files": name})), name)
    assert re.search(r"holds no rows|not readable as", told)


def test_csv_with_a_header_only(tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("sentence,option1,option2,answer\n", encoding="utf-8")
    refused(lambda: build_in(tmp_path, spec_of("winogrande", source={"files": "test.csv"})), "test.csv")


@pytest.mark.parametrize(("name", "content", "part"), [
    ("t.jsonl", b'{"id": 1}\n{"id": \n', "t.jsonl, line 2: not JSON"),
    ("t.jsonl", b"[1, 2]\n", "t.jsonl, line 1: found list, a row is an object"),
    ("t.jsonl", b'"text"\n', "found str"),
    ("t.jsonl", b"[" * 100_000 + b"\n", "t.jsonl, line 1: not JSON"),
    ("t.json", b"[" * 100_000, "t.json: not JSON"),
    ("t.json", b'{"a": 1}', "found no list of rows"),
    ("t.json", b'{"a": [], "b": []}', "found no list of rows"),
    ("t.json", b"7", "found no list of rows"),
    ("t.json", b"[1]", "t.json, row 1: found int"),
    ("t.json", b"[]", "holds no rows"),
    ("t.json", b'{"data": []}', "holds no rows"),
    ("t.jsonl", "{\"question\": \"ก\"}".encode("tis-620"), "byte 14: not UTF-8"),
    ("t.json", "[]".encode("utf-16"), "byte 0: not UTF-8"),
    ("t.csv", "ก,ข\nค,ง\n".encode("tis-620"), "t.csv, byte 0: not UTF-8"),
    ("t.csv", b'a,b\n"1,2\n3', "t.csv, line 3: not readable as csv"),
    ("t.csv", b"a,a\n1,2\n", "t.csv: a column name stands twice"),
    ("t.csv", b"a,b\n1,2\n1,2,3,4\n", "t.csv, row 2: found 4 cells, the first line names 2 columns"),
    ("t.parquet", b"PAR1 nothing here", "t.parquet: not readable as parquet"),
    ("t.tsv", b"a\tb\n", "suffix '.tsv' is not known"),
])  # fmt: skip
def test_unreadable_files(tmp_path: Path, name: str, content: bytes, part: str) -> None:
    (tmp_path / name).write_bytes(content)
    refused(lambda: build_in(tmp_path, spec_of("arc", source={"files": name})), part)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    refused(lambda: build_in(tmp_path, spec_of("arc")), "no file matches 'test.jsonl'", str(tmp_path))
    (tmp_path / "empty").mkdir()
    refused(lambda: build_in(tmp_path, spec_of("arc", source={"files": "empty"})), "no file matches 'empty'")


def test_duplicate_ids(tmp_path: Path) -> None:
    rows = [ARC, changed("arc", question="อื่น")]
    refused(lambda: make(tmp_path, "arc", rows), "test.jsonl, row 2 (id ก1): id 'ก1' is also in test.jsonl, row 1")
    numbers = [changed("arc", id=0), changed("arc", id=0, question="อื่น")]
    refused(lambda: make(tmp_path, "arc", numbers), "row 2 (id 0): id '0' is also in")


def test_nothing_left_to_score(tmp_path: Path) -> None:
    refused(lambda: make(tmp_path, "arc", [ARC], [{**ARC, "id": "x"}]), "no row is left to score")


@pytest.mark.parametrize(("keys", "part"), [
    ({"fields": {"qustion": "q"}}, "fields names 'qustion' (did you mean 'question'?)"),
    ({"fields": {"question": "qestion"}}, "row 1 (id ก1), field question: no 'qestion' at 'qestion', found answerKey"),
    ({"fields": {"question": "question.stem"}}, "field question: no 'stem' at 'question.stem', found a str"),
    ({"fields": {"choices": "choices[].text"}}, "field choices: 'choices[].text' goes through a list, found"),
    ({"fields": {"choices": "question[].text"}}, "goes through a list, found"),
    ({"fields": {"choices": "choices.text.7"}}, "no '7' at 'choices.text.7', found a list"),
    ({"fields": {"answer": ""}}, "field answer: the field map has no 'answer'"),
    ({"values": {"answr": {"A": "B"}}}, "values names 'answr'"),
    ({"values": {"answer": {"1": "A"}}}, "field answer: found 'A'; the value map has 1"),
    ({"metric": "accuracy"}, "task arc: metric is 'accuracy'; a arc set has acc, acc_norm"),
    ({"subjects": ["anatomy"]}, "no row is left"),
])  # fmt: skip
def test_wrong_field_maps(tmp_path: Path, keys: dict[str, Any], part: str) -> None:
    refused(lambda: make(tmp_path, "arc", [ARC], **keys), part)


@pytest.mark.parametrize("template", [
    "{q.__class__}", "{q.__class__.__mro__}", "{q!r}", "{q:>1000000000}", "{q[__class__]}", "{}", "{q", "q}", "{a{{q}",
    "{ q }",     "{q[0][0]}", "{0}", "{nothing}", "{q[99999]}", "{gold[0]}", "{" * 51,
])  # fmt: skip
def test_odd_templates(tmp_path: Path, template: str) -> None:
    keys = {**OWN["multiple_choice"], "query": template}
    refused(lambda: make(tmp_path, "multiple_choice", [CHOICE], **keys), "template")


def test_braces_in_templates_and_values(tmp_path: Path) -> None:
    keys = {**OWN["multiple_choice"], "query": "{{{q}}} {q[0]}"}
    row = {**CHOICE, "q": "{a.__class__}"}
    assert make(tmp_path, "multiple_choice", [row], **keys).items[0].queries == ("{{a.__class__}} {",)


@pytest.mark.parametrize(("key", "value"), [("gold", "lable"), ("choices", "answers")])
def test_own_sets_name_fields_that_exist(tmp_path: Path, key: str, value: str) -> None:
    keys = {**OWN["multiple_choice"], key: value}
    refused(lambda: make(tmp_path, "multiple_choice", [CHOICE], **keys), f"the field map has no {value!r}")


@pytest.mark.parametrize("extra", [{"query": ""}, {"gold": ""}, {"choices": []}])
def test_own_sets_say_how_to_ask(tmp_path: Path, extra: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="kind multiple_choice needs the key"):
        params.TaskSpec.model_validate(spec_of("multiple_choice", **{**OWN["multiple_choice"], **extra}))


def test_half_a_character_is_refused_at_load(tmp_path: Path) -> None:
    row = '{"question": "ถาม \\ud800", "answer": "#### 1"}\n'
    (tmp_path / "test.jsonl").write_text(row, encoding="utf-8")
    with pytest.raises(ThaikitError, match=r"test\.jsonl, line 1: holds half a character"):
        build_in(tmp_path, spec_of("gsm8k"))


def test_a_folder_name_is_no_pattern(tmp_path: Path) -> None:
    task = make(tmp_path / "da[1]ta *", "gsm8k", [{"question": "ถาม", "answer": "#### 1"}])
    assert len(task.items) == 1


def test_a_limit_below_nothing_and_a_metric_without_rows_are_refused(tmp_path: Path) -> None:
    found = params.load("tasks", "thai-h6-samples", params.TaskSet)
    with pytest.raises(ThaikitError, match="limit is -1"):
        build_all(found, limit=-1)
    row = {"question": "ถาม", "mc2_targets": {"choices": ["ก", "ข"], "labels": [1, 0]}}
    keys: dict[str, Any] = {"metric": "mc1", "fields": {"mc1_choices": ""}}
    with pytest.raises(ThaikitError, match="metric is 'mc1'; a truthfulqa set has mc2, acc"):
        make(tmp_path, "truthfulqa", [row], **keys)
