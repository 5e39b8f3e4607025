"""Prompts as conversations: turns, no delimiter, and the template's newlines on the context's side."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
from kit import make, tokenizer_of
from miniatures import MINIATURES, prompts, small

from thaikit import ThaikitError
from thaikit.asking import Local
from thaikit.models import LocalModel
from thaikit.tasks.items import messages
from thaikit.tasks.score import Settings, prepare

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n\n{% endif %}"
)


def chatty(model: LocalModel, template: str = TEMPLATE) -> Local:
    """The model with a chat template of its own."""
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.chat_template = template
    return Local(replace(model, tokenizer=tokenizer, chat=True, max_length=1 << 15))


def test_conversation_turns(tmp_path: Path) -> None:
    task = small(tmp_path, "mmlu")
    turns = messages(task.items[0], task.shots(0))
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user"]
    assert turns[0]["content"].endswith("about astronomy.") and turns[2]["content"] == "B"
    assert turns[3]["content"] == prompts(task)[0].rsplit("\n\n", 1)[1]


@pytest.mark.parametrize("kind", MINIATURES)
def test_chat_has_no_delimiter_and_keeps_template_newlines(tiny: LocalModel, tmp_path: Path, kind: str) -> None:
    task, model = small(tmp_path, kind), chatty(tiny)
    (one,) = prepare(task, model, Settings())
    assert one.prompt.endswith("<|assistant|>\n\n")
    tokens = model.loaded.tokenizer
    for choice, request in enumerate(one.requests):
        told = model.render(messages(task.items[0], task.shots(0), choice=choice))
        assert tokens.decode(request.context) == told and not request.boundary
        assert tokens.decode(request.continuation) == task.items[0].continuations[choice]
    if kind == "gsm8k":
        assert tokens.decode(one.prompt_ids) == one.prompt


def test_v1_knows_no_conversation(tiny: LocalModel, tmp_path: Path) -> None:
    task = small(tmp_path, "arc", shared={"profile": "v1"})
    (one,) = prepare(task, chatty(tiny), Settings())
    assert one.prompt == MINIATURES["arc"][0] and one.requests[0].context[0] != 1


def test_refused_system_turn_is_dropped(tiny: LocalModel, tmp_path: Path) -> None:
    fussy = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE
    (one,) = prepare(small(tmp_path, "mmlu"), chatty(tiny, fussy), Settings())
    assert one.prompt.startswith("<|user|>\nดาวเคราะห์ใดใหญ่ที่สุด") and "astronomy" not in one.prompt


def test_a_template_that_fails_is_one_sentence(tiny: LocalModel, tmp_path: Path) -> None:
    with pytest.raises(ThaikitError, match=r"task arc, item a: .*no\. luck"):
        prepare(small(tmp_path, "arc"), chatty(tiny, "{{ raise_exception('no. luck') }}"), Settings())


def test_a_task_without_turns_has_no_chat_form(tiny: LocalModel, tmp_path: Path) -> None:
    keys = {
        "fields": {"q": "q", "gold": "g"},
        "query": "{q}",
        "answer": "{gold}",
        "gold": "gold",
        "exemplar": "{q} {gold}",
    }
    rows = [{"id": f"{n}", "q": f"ถาม {n}", "g": n} for n in range(2)]
    task = make(tmp_path, "numeric", rows[:1], rows[1:], max_new_tokens=2, **keys)
    with pytest.raises(ThaikitError, match="task numeric, item 0: a turn of the conversation is empty"):
        prepare(task, chatty(tiny), Settings())


def test_smollm_template(tiny: LocalModel, tmp_path: Path) -> None:
    tokenizer = tokenizer_of("smollm2-135m-instruct")
    model = Local(replace(tiny, tokenizer=tokenizer, chat=True, max_length=1 << 15))
    (one,) = prepare(small(tmp_path, "arc"), model, Settings())
    assert one.prompt.endswith("<|im_start|>assistant\n") and one.prompt.count("<|im_start|>assistant\n") == 2
    assert tokenizer.decode(one.requests[0].context) == one.prompt
    assert [tokenizer.decode(r.continuation) for r in one.requests] == ["การระเหย", "การควบแน่น"]
