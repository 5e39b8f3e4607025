"""The six tasks' prompts byte for byte, in both label languages and all three profiles."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from kit import make, samples
from miniatures import HELLASWAG_ROWS, MINIATURES, prompts, small

from thaikit import ThaikitError
from thaikit.tasks.items import context
from thaikit.tasks.labels import LABELS
from thaikit.tasks.score import stop_strings

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("kind", MINIATURES)
@pytest.mark.parametrize("profile", ["v1", "harness-0.4", "thai-h6"])
def test_miniature_prompts(tmp_path: Path, kind: str, profile: str) -> None:
    task = small(tmp_path, kind, shared={"profile": profile})
    wanted, continuations = MINIATURES[kind]
    assert prompts(task)[0] == wanted
    assert [task.spec.delimiter + text for text in task.items[0].continuations] == continuations
    if kind == "winogrande":
        assert prompts(task)[1] == wanted.removesuffix("แก้ว") + "โต๊ะ"
    else:
        assert set(prompts(task)) == {wanted}


@pytest.mark.parametrize("language", ["en", "th"])
@pytest.mark.parametrize("kind", MINIATURES)
def test_golden_files(kind: str, language: str) -> None:
    """Two bundled worked examples and the first item of each task, with every setting that decides a prompt."""
    golden = json.loads((GOLDEN / f"{kind}-{language}.json").read_text(encoding="utf-8"))
    assert golden == golden_record(kind, language)


def golden_record(kind: str, language: str) -> dict[str, Any]:
    """What a golden file holds (write it anew: python tests/test_h6.py, after reading what has changed)."""
    profiles = {}
    for profile in ("v1", "harness-0.4", "thai-h6"):
        (task,) = samples(only=[kind], profile=profile, labels=language)
        item = next(item for item in task.items if item.id == samples(only=[kind])[0].items[0].id)
        pool = task.pools.get(item.subject) or task.pools.get("", ())
        made = [context(item, pool[:2], delimiter=" ", choice=n) for n in range(max(1, len(item.continuations)))]
        told = {"contexts": list(dict.fromkeys(made)), "continuations": [" " + text for text in item.continuations]}
        told |= {"gold": item.gold, "metric": task.metric, "stops": stop_strings(task) if task.generates else []}
        profiles[profile] = told
    return profiles


def test_truthfulqa_preamble() -> None:
    preamble = LABELS["en"].preamble
    assert len(preamble) == 573
    digest = "5c0da5f346e8652c9a85061a6e3aca6bc82e10a8a7dad4596fe980a9c9bae543"
    assert hashlib.sha256(preamble.encode()).hexdigest() == digest


@pytest.mark.parametrize("language", ["en", "th"])
def test_k_shots_make_k_blank_lines(language: str) -> None:
    for task in samples(labels=language):
        extra = {"mmlu": 1, "truthfulqa": 6}.get(task.name, 0)
        for index in range(len(task.items)):
            for prompt in prompts(task, index):
                assert prompt.count("\n\n") == task.spec.shots + extra, (task.name, index)
                assert "\n\n\n" not in prompt and prompt == prompt.rstrip()


def test_winogrande_contexts_share_all_but_the_option(tmp_path: Path) -> None:
    row = {"sentence": "ครูสอนนักเรียน เพราะ _ อยากให้เก่ง ", "option1": "ครู", "option2": "นักเรียน", "answer": 2}
    task = make(tmp_path, "winogrande", [row])
    assert prompts(task) == ["ครูสอนนักเรียน เพราะ ครู", "ครูสอนนักเรียน เพราะ นักเรียน"]
    assert task.items[0].continuations == ("อยากให้เก่ง",) * 2 and task.items[0].gold == 1
    assert task.items[0].example_query == "ครูสอนนักเรียน เพราะ นักเรียน"


@pytest.mark.parametrize(("profile", "tail"), [("v1", "__ดี"), ("harness-0.4", "__ดี"), ("thai-h6", "ดี")])
def test_winogrande_blank_run(tmp_path: Path, profile: str, tail: str) -> None:
    row = {"sentence": "เขาว่า___ดี", "option1": "ก", "option2": "ข", "answer": "1"}
    task = make(tmp_path, "winogrande", [row], shared={"profile": profile})
    assert task.items[0].continuations == (tail, tail)


def test_winogrande_full_width_blank_and_empty_tail(tmp_path: Path) -> None:
    rows = [{"id": f"w{n}", "sentence": s, "option1": "ก", "option2": "ข", "answer": "1"}
            for n, s in enumerate(["เขาว่า＿ดี", "คนที่ดีคือ_"])]  # fmt: skip
    assert make(tmp_path / "a", "winogrande", rows[:1]).items[0].queries == ("เขาว่าก", "เขาว่าข")
    with pytest.raises(ThaikitError, match=r"test.jsonl, row 2 \(id w1\), field sentence: nothing follows the blank"):
        make(tmp_path / "b", "winogrande", rows)
    assert len(make(tmp_path / "c", "winogrande", rows, empty_tail="skip").items) == 1
    scored = make(tmp_path / "d", "winogrande", rows, empty_tail="sentence").items[1]
    assert (scored.queries, scored.continuations) == (("คนที่ดีคือ",), ("ก", "ข"))


def test_hellaswag_merged_context_is_taken_as_it_stands(tmp_path: Path) -> None:
    row = {
        "activity_label": "ทำครัว",
        "ctx": "เขาเปิด iPhone จากนั้น DIY",
        "endings": ["ก็กิน [step] ข้าว", "นอน"],
        "label": 0,
    }
    task = make(tmp_path, "hellaswag", [row], fields={"ctx": "ctx"}, shared={"profile": "v1"})
    assert prompts(task)[0] == "ทำครัว: เขาเปิด iPhone จากนั้น DIY"
    assert task.items[0].choices == ("ก็กิน ข้าว", "นอน")


@pytest.mark.parametrize(("profile", "told"), [("v1", "Diy กับ iphone"), ("thai-h6", "DIY กับ iPhone")])
def test_hellaswag_capitals_by_profile(tmp_path: Path, profile: str, told: str) -> None:
    row = {**HELLASWAG_ROWS[0], "ctx_b": "DIY กับ iPhone"}
    assert prompts(make(tmp_path, "hellaswag", [row], shared={"profile": profile}))[0].endswith(told)


def test_hellaswag_title_marks_are_a_parameter(tmp_path: Path) -> None:
    row = {**HELLASWAG_ROWS[0], "endings": ["หั่น [ชื่อ] ผัก", "นอน"]}
    plain = make(tmp_path / "a", "hellaswag", [row]).items[0].choices[0]
    marked = make(tmp_path / "b", "hellaswag", [row], title_marks=[" [title]", " [ชื่อ]"]).items[0].choices[0]
    assert (plain, marked) == ("หั่น ผัก", "หั่น. ผัก")


def test_arc_as_question_stem_and_odd_labels(tmp_path: Path) -> None:
    rows = [
        {
            "id": "3",
            "question": {
                "stem": "ถาม",
                "choices": [{"text": t, "label": x} for x, t in zip("123", "กขค", strict=True)],
            },
            "answerKey": "3",
        },
        {
            "id": "5",
            "question": {
                "stem": "ตอบ",
                "choices": [{"text": t, "label": x} for x, t in zip("ABCDE", "กขคงจ", strict=True)],
            },
            "answerKey": "E",
        },
    ]
    fields = {"question": "question.stem", "choices": "question.choices[].text", "labels": "question.choices[].label"}
    task = make(tmp_path, "arc", rows, fields=fields)
    assert [(item.id, item.gold, item.choices) for item in task.items] == [
        ("3", 2, tuple("กขค")),
        ("5", 4, tuple("กขคงจ")),
    ]


def test_mmlu_as_columns_and_letters(tmp_path: Path) -> None:
    rows = [
        {"question": " ถาม ", "subject": "us_foreign_policy", "A": "1", "B": "2", "C": " 3", "D": "4", "answer": "C"}
    ]
    task = make(tmp_path, "mmlu", rows, fields={"choices": ["A", "B", "C", "D"]})
    assert task.items[0].gold == 2
    header = "The following are multiple choice questions (with answers) about us foreign policy.\n\n"
    assert prompts(task)[0] == header + "ถาม\nA. 1\nB. 2\nC.  3\nD. 4\nAnswer:"
    thai = make(tmp_path, "mmlu", rows, fields={"choices": ["A", "B", "C", "D"]}, shared={"labels": "th"})
    assert prompts(thai)[0].startswith("ต่อไปนี้เป็นคำถามแบบปรนัย (พร้อมคำตอบ) เกี่ยวกับนโยบายต่างประเทศของสหรัฐอเมริกา\n\n")


def test_truthfulqa_dict_valued_targets_and_any_label_order(tmp_path: Path) -> None:
    row = {"question": "ถาม", "mc1_targets": {"จริง": 1, "ไม่จริง": 0}, "mc2_targets": {"เท็จ": 0, "จริง": 1, "มั่ว": 0}}
    parts = {"mc1_choices": "mc1_targets.@keys", "mc1_labels": "mc1_targets.@values",
             "mc2_choices": "mc2_targets.@keys", "mc2_labels": "mc2_targets.@values"}  # fmt: skip
    item = make(tmp_path, "truthfulqa", [row], fields=parts).items[0]
    assert (item.choices, item.first, item.labels) == (("จริง", "ไม่จริง", "เท็จ", "จริง", "มั่ว"), 2, (0, 1, 0))
    only_second = make(tmp_path, "truthfulqa", [row], fields={**parts, "mc1_choices": ""}).items[0]
    assert (only_second.choices, only_second.first) == (("เท็จ", "จริง", "มั่ว"), 0)


if __name__ == "__main__":
    for name in MINIATURES:
        for words in ("en", "th"):
            text = json.dumps(golden_record(name, words), ensure_ascii=False, indent=1) + "\n"
            (GOLDEN / f"{name}-{words}.json").write_text(text, encoding="utf-8")
