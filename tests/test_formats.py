"""Odd input that is right: hidden marks, long texts, markup, and the same rows in every format."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
from hostile import ARC, GSM8K, OWN, WINOGRANDE, changed, refused
from kit import ask, build_in, make, roomy, spec_of, write_jsonl

from thaikit.models import LocalModel
from thaikit.tasks.load import Row, pick, shorten


def test_marks_in_text_are_kept_and_counted(tmp_path: Path) -> None:
    row = changed("arc", question="\u200bน้ํา\ufeffเดือด\u00a0", choices__text=["ใช่\u200b", " ไม่"])
    task = make(tmp_path, "arc", [row])
    assert task.items[0].queries[0] == "Question: \u200bน้ํา\ufeffเดือด\u00a0\nAnswer:"
    assert task.items[0].choices == ("ใช่\u200b", " ไม่")
    assert {key: task.audit.get(key) for key in ("zero_width_space", "bom", "no_break_space", "leading_space")} == {
        "zero_width_space": 2,
        "bom": 1,
        "no_break_space": 1,
        "leading_space": 1,
    }


def test_bom_at_the_start_of_every_format(tmp_path: Path) -> None:
    row = WINOGRANDE
    texts = {
        "a.jsonl": json.dumps(row, ensure_ascii=False), "a.json": json.dumps([row], ensure_ascii=False),
        "a.csv": ",".join(row) + "\r\n" + ",".join(row.values()) + "\r\n",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text("\ufeff" + text, encoding="utf-8")
        task = build_in(tmp_path, spec_of("winogrande", source={"files": name}))
        assert (task.items[0].id, task.items[0].question) == ("w1", row["sentence"]), name


def test_line_separators_inside_a_row(tmp_path: Path) -> None:
    """U+2028, U+0085 and CRLF: only LF ends a row."""
    answer = "ก\u2028ข\u0085ค\r\n#### 2"
    lines = [json.dumps({**GSM8K, "answer": answer}, ensure_ascii=False), "", json.dumps({**GSM8K, "id": "g2"})]
    (tmp_path / "test.jsonl").write_text("\r\n".join(lines), encoding="utf-8", newline="")
    task = build_in(tmp_path, spec_of("gsm8k"))
    assert [item.id for item in task.items] == ["g1", "g2"] and task.items[0].answer == answer


def test_very_long_question(tmp_path: Path, tiny: LocalModel) -> None:
    row = changed("arc", question="ยาว" * 33_334)
    task = make(tmp_path, "arc", [ARC, {**row, "id": "long"}])
    refused(lambda: ask(task, tiny, tmp_path / "x.jsonl"), "task arc, item long", "1 of 2 items are too long")
    rows = ask(task, tiny, tmp_path / "rows.jsonl", overlength="skip")
    assert [(row["id"], row["outcome"]) for row in rows] == [("ก1", "ok"), ("long", "truncated")]
    assert len(rows[1]["question"]) == 2000
    refused(lambda: make(tmp_path, "arc", [changed("arc", answerKey="x" * 100_000)]), "gold is 'xxx")


def test_markup_is_plain_text(tmp_path: Path, tiny: LocalModel) -> None:
    odd = "<script>alert('ก')</script>"
    task = make(tmp_path, "arc", [changed("arc", choices__text=[odd, "</s>"])])
    (row,) = ask(task, roomy(tiny), tmp_path / "rows.jsonl")
    assert row["choices"] == [odd, "</s>"] and row["outcome"] == "ok"


def test_special_tokens_in_text_do_not_break_the_bos_check(tmp_path: Path, tiny: LocalModel) -> None:
    task = make(tmp_path, "arc", [changed("arc", question="<s><s> ถาม </s>", choices__text=["<s>ก", "ข</s>"])])
    (row,) = ask(task, roomy(tiny), tmp_path / "rows.jsonl")
    assert row["outcome"] == "ok" and all(value < 0 for value in row["ll"])


TABLE = [
    {"id": "01", "q": 'คำ "ถาม",\nบรรทัดสอง', "a": "NA", "b": "null", "gold": "NA"},
    {"id": "1e5", "q": "007", "a": "1.0", "b": "nan", "gold": "nan"},
    {"id": "2024-01-02", "q": " เว้นวรรค ", "a": "None", "b": "ไม่", "gold": "ไม่"},
    {"id": "True", "q": "ก\u2028ข", "a": "ใช่", "b": "<NA>", "gold": "ใช่"},
]


def test_every_format_gives_the_same_items(tmp_path: Path) -> None:
    """Numbers as text, quoted newlines and NA strings are what they are, in each format and in folders."""
    frame = pd.DataFrame(TABLE)
    (tmp_path / "p").mkdir()
    frame.iloc[:2].to_parquet(tmp_path / "p" / "0.parquet")
    frame.iloc[2:].to_parquet(tmp_path / "p" / "1.parquet")
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "t.json").write_text(json.dumps(TABLE), encoding="utf-8")
    (tmp_path / "d.json").write_text(json.dumps({"version": 1, "data": TABLE}), encoding="utf-8")
    write_jsonl(tmp_path / "t.jsonl", TABLE)
    found = {}
    for name in ("t.jsonl", "t.json", "d.json", "t.csv", "t.parquet", "p"):
        spec = spec_of("multiple_choice", source={"files": name}, **OWN["multiple_choice"])
        found[name] = build_in(tmp_path, spec).items
    assert [item.id for item in found["t.jsonl"]] == [row["id"] for row in TABLE]
    assert [item.choices[item.gold] for item in found["t.jsonl"]] == [row["gold"] for row in TABLE]
    for name, items in found.items():
        assert items == found["t.jsonl"], name


def test_csv_gold_as_text_counts_for_the_six(tmp_path: Path) -> None:
    pd.DataFrame([WINOGRANDE]).to_csv(tmp_path / "test.csv", index=False)
    assert build_in(tmp_path, spec_of("winogrande", source={"files": "*.csv"})).items[0].gold == 0
    mmlu = {"question": "ถาม", "subject": "anatomy", "A": "1", "B": "2", "C": "3", "D": "4", "answer": "2"}
    pd.DataFrame([mmlu]).to_csv(tmp_path / "m.csv", index=False)
    spec = spec_of("mmlu", source={"files": "m.csv"}, fields={"choices": ["A", "B", "C", "D"]})
    assert build_in(tmp_path, spec).items[0].gold == 2


def test_nested_parquet_keeps_lists_and_structs(tmp_path: Path) -> None:
    pd.DataFrame([ARC, {**ARC, "id": "ก2", "question": "สอง"}]).to_parquet(tmp_path / "test.parquet")
    write_jsonl(tmp_path / "test.jsonl", [ARC, {**ARC, "id": "ก2", "question": "สอง"}])
    found = [
        build_in(tmp_path, spec_of("arc", source={"files": name})).items for name in ("test.parquet", "test.jsonl")
    ]
    assert found[0] == found[1]


def test_ids_without_a_field_come_from_the_file(tmp_path: Path) -> None:
    rows = [{key: value for key, value in changed("arc", question=f"ข้อ {n}").items() if key != "id"} for n in range(2)]
    write_jsonl(tmp_path / "a" / "x.jsonl", rows)
    write_jsonl(tmp_path / "a" / "y.jsonl", rows[:1])
    with_same = spec_of("arc", source={"files": "a/*.jsonl"})
    assert [item.id for item in build_in(tmp_path, with_same).items] == ["x-00001", "x-00002", "y-00001"]


def test_paths_reach_lists_and_keys() -> None:
    row = Row("f", 1, {"id": 0, "a": {"b": [{"c": 1}, {"c": 2}]}, "m": {"ก": 1}})
    assert pick(row, "a.b[].c", "x") == [1, 2] and pick(row, "a.b.1.c", "x") == 2 and pick(row, "m.@keys", "x") == ["ก"]
    assert pick(row, ["id", "m.ก"], "x") == [0, 1]
    refused(lambda: pick(row, "a.b[].d", "x"), "f, row 1 (id 0), field x: no 'd' at 'a.b[].d', found c")
    assert len(shorten("ก" * 10_000)) < 200
