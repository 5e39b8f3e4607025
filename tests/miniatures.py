"""One worked example and one item of each task (Thai content, English labels), and their prompts byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kit import make

from thaikit.tasks.build import Task
from thaikit.tasks.items import context
from thaikit.tasks.labels import LABELS

ARC_ROWS = [
    {
        "id": "x",
        "question": "ข้อใดเป็นพลังงานหมุนเวียน",
        "choices": {"text": ["ถ่านหิน", "แสงอาทิตย์"], "label": ["A", "B"]},
        "answerKey": "B",
    },
    {
        "id": "a",
        "question": "น้ำกลายเป็นไอเรียกว่าอะไร",
        "choices": {"text": ["การระเหย", "การควบแน่น"], "label": ["A", "B"]},
        "answerKey": "A",
    },
]
HELLASWAG_ROWS = [
    {
        "activity_label": "ทำอาหาร",
        "ctx_a": "ชายคนหนึ่งหั่นผัก",
        "ctx_b": "จากนั้นเขา",
        "endings": ["ใส่ผักลงในกระทะ", "เข้านอน"],
        "label": "0",
    },
    {
        "activity_label": "ล้างรถ",
        "ctx_a": "หญิงคนหนึ่งฉีดน้ำใส่รถ",
        "ctx_b": "จากนั้นเธอ",
        "endings": ["ใช้ฟองน้ำถูรถ", "กินข้าว"],
        "label": "0",
    },
]
MMLU_ROWS = [
    {
        "question": "ดาวเคราะห์ใดใหญ่ที่สุด",
        "subject": "astronomy",
        "choices": ["โลก", "ดาวพฤหัสบดี", "ดาวอังคาร", "ดาวศุกร์"],
        "answer": 1,
    },
    {
        "question": "ดาวเคราะห์ใดใกล้ดวงอาทิตย์ที่สุด",
        "subject": "astronomy",
        "choices": ["ดาวพุธ", "โลก", "ดาวเสาร์", "ดาวเนปจูน"],
        "answer": 0,
    },
]
TRUTH_TARGETS = {"choices": ["หมากฝรั่งผ่านระบบย่อยอาหารออกไป", "หมากฝรั่งติดอยู่ในท้องเจ็ดปี"], "labels": [1, 0]}
TRUTH_ROWS = [{"question": "กลืนหมากฝรั่งแล้วเกิดอะไรขึ้น", "mc1_targets": TRUTH_TARGETS, "mc2_targets": TRUTH_TARGETS}]
WINOGRANDE_ROWS = [
    {"sentence": "กล่องใส่กระเป๋าไม่ได้เพราะ_ใหญ่เกินไป", "option1": "กล่อง", "option2": "กระเป๋า", "answer": "1"},
    {"sentence": "แก้วตกใส่โต๊ะแล้ว_แตก", "option1": "แก้ว", "option2": "โต๊ะ", "answer": "1"},
]
GSM8K_ROWS = [
    {"question": "มะลิมีส้ม 3 ผล ซื้อเพิ่ม 4 ผล รวมกี่ผล", "answer": "รวม 3+4=<<3+4=7>>7 ผล\n#### 7"},
    {"question": "มีไข่ 12 ฟอง แตก 2 ฟอง เหลือกี่ฟอง", "answer": "เหลือ 12-2=<<12-2=10>>10 ฟอง\n#### 10"},
]
ROWS = {
    "arc": ARC_ROWS, "hellaswag": HELLASWAG_ROWS, "mmlu": MMLU_ROWS, "truthfulqa": TRUTH_ROWS,
    "winogrande": WINOGRANDE_ROWS, "gsm8k": GSM8K_ROWS,
}  # fmt: skip
MINIATURES = {
    "arc": (
        "Question: ข้อใดเป็นพลังงานหมุนเวียน\nAnswer: แสงอาทิตย์\n\nQuestion: น้ำกลายเป็นไอเรียกว่าอะไร\nAnswer:",
        [" การระเหย", " การควบแน่น"],
    ),
    "hellaswag": (
        "ทำอาหาร: ชายคนหนึ่งหั่นผัก จากนั้นเขา ใส่ผักลงในกระทะ\n\nล้างรถ: หญิงคนหนึ่งฉีดน้ำใส่รถ จากนั้นเธอ",
        [" ใช้ฟองน้ำถูรถ", " กินข้าว"],
    ),
    "mmlu": (
        "The following are multiple choice questions (with answers) about astronomy.\n\nดาวเคราะห์ใดใหญ่ที่สุด\n"
        "A. โลก\nB. ดาวพฤหัสบดี\nC. ดาวอังคาร\nD. ดาวศุกร์\nAnswer: B\n\nดาวเคราะห์ใดใกล้ดวงอาทิตย์ที่สุด\n"
        "A. ดาวพุธ\nB. โลก\nC. ดาวเสาร์\nD. ดาวเนปจูน\nAnswer:",
        [" A", " B", " C", " D"],
    ),
    "truthfulqa": (
        LABELS["en"].preamble + "\n\nQ: กลืนหมากฝรั่งแล้วเกิดอะไรขึ้น\nA:",
        [" หมากฝรั่งผ่านระบบย่อยอาหารออกไป", " หมากฝรั่งติดอยู่ในท้องเจ็ดปี"] * 2,
    ),
    "winogrande": ("กล่องใส่กระเป๋าไม่ได้เพราะกล่อง ใหญ่เกินไป\n\nแก้วตกใส่โต๊ะแล้วแก้ว", [" แตก", " แตก"]),
    "gsm8k": (
        "Question: มะลิมีส้ม 3 ผล ซื้อเพิ่ม 4 ผล รวมกี่ผล\nAnswer: รวม 3+4=<<3+4=7>>7 ผล\n#### 7\n\n"
        "Question: มีไข่ 12 ฟอง แตก 2 ฟอง เหลือกี่ฟอง\nAnswer:",
        [],
    ),
}


def small(folder: Path, kind: str, **given: Any) -> Task:
    """A task of the miniature rows: the last is asked, those before it are shown."""
    rows = ROWS[kind]
    return make(folder, kind, rows[-1:], rows[:-1], **given)


def prompts(task: Task, index: int = 0) -> list[str]:
    """An item's contexts, one a choice."""
    item, glue = task.items[index], task.spec.delimiter
    return [context(item, task.shots(index), delimiter=glue, choice=n) for n in range(max(1, len(item.continuations)))]
