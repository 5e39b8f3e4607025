"""One good row of each kind, and what a refusal must look like."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from thaikit import ThaikitError

ARC = {
    "id": "ก1",
    "question": "น้ำเดือดที่เท่าไร",
    "choices": {"text": ["100", "50"], "label": ["A", "B"]},
    "answerKey": "A",
}
HELLASWAG = {
    "ind": 4,
    "activity_label": "ทำครัว",
    "ctx_a": "เขาหั่นผัก",
    "ctx_b": "แล้ว",
    "endings": ["ผัด", "นอน"],
    "label": "1",
}
MMLU = {"id": "m1", "question": "ถาม", "subject": "anatomy", "choices": ["ก", "ข", "ค", "ง"], "answer": 3}
TRUTH = {"id": "t1", "question": "จริงไหม", "mc1_targets": {"choices": ["ไม่", "จริง"], "labels": [1, 0]},
         "mc2_targets": {"choices": ["ไม่", "จริง", "มั้ง"], "labels": [1, 0, 0]}}  # fmt: skip
WINOGRANDE = {"qID": "w1", "sentence": "แมวไล่หนูเพราะ_หิว", "option1": "แมว", "option2": "หนู", "answer": "1"}
GSM8K = {"id": "g1", "question": "1+1 ได้เท่าไร", "answer": "1+1=<<1+1=2>>2\n#### 2"}
GOOD = {"arc": ARC, "hellaswag": HELLASWAG, "mmlu": MMLU, "truthfulqa": TRUTH, "winogrande": WINOGRANDE, "gsm8k": GSM8K}
OWN = {
    "multiple_choice": {"fields": {"id": "id", "q": "q", "a": "a", "b": "b", "gold": "gold"}, "query": "{q}",
                        "choices": ["{a}", "{b}"], "gold": "gold"},
    "numeric": {"fields": {"id": "id", "q": "q", "gold": "gold"}, "query": "{q}", "answer": "{gold}", "gold": "gold"},
}  # fmt: skip
CHOICE = {"id": "c1", "q": "ถาม", "a": "ใช่", "b": "ไม่", "gold": 0}


def changed(kind: str, **given: Any) -> dict[str, Any]:
    """A good row with some fields changed (`choices__text` reaches inside); None takes a field away."""
    row = json.loads(json.dumps(GOOD.get(kind, CHOICE)))
    for path, value in given.items():
        target, *rest = path.split("__")
        place = row if not rest else row[target]
        key = rest[0] if rest else target
        if value is None:
            del place[key]
        else:
            place[key] = value
    return row


def refused(call: Callable[[], Any], *parts: str) -> str:
    """The message of the refusal: one line, not too long, holding every part."""
    with pytest.raises(ThaikitError) as error:
        call()
    told = str(error.value)
    assert "\n" not in told and len(told) < 700, told
    for part in parts:
        assert part in told, f"{part!r} is not in: {told}"
    return told
