"""Greedy generation: the library's own tokens, stopped where the text says so, whatever the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from conftest import TEXT
from kit import samples

from thaikit import extract
from thaikit.generation import Generated, generate
from thaikit.models import LocalModel
from thaikit.tasks.score import number_scores, stop_strings

PROMPTS = [TEXT[0], TEXT[1][:12], TEXT[3] + "\n\n" + TEXT[2], "ก", TEXT[2][:30]]
NEW = 12


def prompts_of(model: LocalModel, texts: Sequence[str] = PROMPTS) -> list[list[int]]:
    return [model.tokenizer(text)["input_ids"] for text in texts]


def run(model: Any, prompts: Sequence[Sequence[int]], decode: Callable[[list[int]], str], **given: Any) -> list[Any]:
    options = {"stops": [], "eos_ids": [], "max_new_tokens": NEW, **given}
    found = dict(generate(model, prompts, decode=decode, **options))
    assert sorted(found) == list(range(len(prompts)))
    return [found[n] for n in range(len(prompts))]


def text_of(model: LocalModel) -> Callable[[list[int]], str]:
    return lambda ids: model.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def own(model: LocalModel, prompt: Sequence[int], count: int = NEW) -> list[int]:
    """The library's greedy tokens of one unpadded prompt, never stopped."""
    options = {"do_sample": False, "max_new_tokens": count, "min_new_tokens": count, "eos_token_id": None}
    with torch.inference_mode():
        out = model.model.generate(torch.tensor([list(prompt)]), **options)
    return out[0, len(prompt) :].tolist()


@pytest.mark.parametrize("batch_size", [1, 4])
def test_equals_the_library(tiny: LocalModel, batch_size: int) -> None:
    prompts = prompts_of(tiny)
    found = run(tiny.model, prompts, text_of(tiny), batch_size=batch_size)
    assert [list(made.ids) for made in found] == [own(tiny, prompt) for prompt in prompts]
    assert {made.finish for made in found} == {"length"}
    assert [made.text for made in found] == [text_of(tiny)(list(made.ids)) for made in found]


def test_the_end_token_ends_and_is_not_kept(tiny: LocalModel) -> None:
    prompts = prompts_of(tiny)
    full = [own(tiny, prompt) for prompt in prompts]
    end = full[0][3]
    for batch_size in (1, 4):
        found = run(tiny.model, prompts, text_of(tiny), eos_ids=[end], batch_size=batch_size)
        for made, ids in zip(found, full, strict=True):
            cut = ids.index(end) if end in ids else NEW
            assert list(made.ids) == ids[:cut] and made.finish == ("eos" if end in ids else "length")


class Script:
    """A model that writes given ids, one list a prompt (told apart by the prompt's first id)."""

    def __init__(self, lines: dict[int, list[int]], size: int = 400) -> None:
        self.lines, self.size, self.widths = lines, size, []
        self.config = type("Config", (), {})()

    def get_input_embeddings(self) -> Any:
        return type("Embedding", (), {"weight": torch.zeros(1)})()

    def get_output_embeddings(self) -> Any:
        head = torch.nn.Linear(self.size, self.size, bias=False)
        head.weight.data = torch.eye(self.size)
        return head

    def get_decoder(self) -> Any:
        return self

    def forward(self, *, input_ids: torch.Tensor, past_key_values: Any = None, **_: Any) -> None:
        """Only its parameters' names are read."""

    def __call__(self, *, input_ids: torch.Tensor, past_key_values: Any = None, **_: Any) -> Any:
        cache = past_key_values or Rows([self.lines[int(row[row != 0][0])] for row in input_ids])
        self.widths.append(len(cache.rows))
        hidden = torch.zeros(len(cache.rows), input_ids.shape[1], self.size)
        for line, ids in enumerate(cache.rows):
            hidden[line, -1, ids[min(cache.at, len(ids) - 1)]] = 1.0
        cache.at += 1
        return {0: hidden, "past_key_values": cache}


class Rows:
    """A cache that holds what is still to be written."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows, self.at = rows, 0

    def batch_select_indices(self, keep: torch.Tensor) -> None:
        self.rows = [self.rows[k] for k in keep.tolist()]


def spell(ids: list[int]) -> str:
    """Ids as bytes, as byte-level tokenizers have them."""
    return bytes(ids).decode("utf-8", errors="replace")


def script(*texts: str, **given: Any) -> tuple[list[Generated], Script]:
    model = Script({n + 1: list(text.encode()) for n, text in enumerate(texts)})
    prompts = [[n + 1] * (n + 1) for n in range(len(texts))]
    return run(model, prompts, spell, **{"max_new_tokens": 60, "batch_size": 8, **given}), model


@pytest.mark.parametrize("stop", ["คำถาม:", "\n\nคำถาม:", "Question:", "โจทย์:"])
def test_stops_are_seen_in_the_text_byte_by_byte(stop: str) -> None:
    """Each token here is a third of a Thai letter: no look-back window over tokens would find the stop."""
    (made,), _ = script("7 ผล" + stop + " ต่อ", stops=[stop])
    assert made.finish == "stop" and made.text == "7 ผล" + stop
    assert extract.cut_at_stops(made.text, [stop]) == "7 ผล"


def test_stops_in_any_tokenisation() -> None:
    """The stop arrives inside longer pieces than it was ever encoded as."""
    pieces = {1: "#### 7", 2: "\n\nQues", 3: "tion: ", 4: "x"}
    model = Script({9: [1, 2, 3, 4]})
    (made,) = run(model, [[9]], lambda ids: "".join(pieces[i] for i in ids), stops=["Question:"])
    assert (made.text, made.finish, made.ids) == ("#### 7\n\nQuestion: ", "stop", (1, 2, 3))


def test_finished_rows_leave_and_the_others_go_on() -> None:
    found, model = script("ab!", "abcdef!", "abcdefghij!", stops=["!"])
    assert [made.text for made in found] == ["ab!", "abcdef!", "abcdefghij!"]
    assert model.widths == [3] * 3 + [2] * 4 + [1] * 4


def test_half_a_letter_is_no_stop() -> None:
    (made,), _ = script("กขค", stops=["ข"])
    assert made.text == "กข" and made.finish == "stop"
    (made,), _ = script("กขค", stops=["\ufffd!"], max_new_tokens=9)
    assert made.finish == "length"


def test_limit_and_empty_stops() -> None:
    (made,), _ = script("abcdef", stops=[""], max_new_tokens=4)
    assert (made.text, made.finish, len(made.ids)) == ("abcd", "length", 4)
    (made,), _ = script("abcd!", stops=["!"], max_new_tokens=5)
    assert made.finish == "stop"


def test_a_stop_list_given_as_a_string_is_refused(tiny: LocalModel) -> None:
    with pytest.raises(ValueError, match="must be a list of strings"):
        list(generate(tiny.model, [[1]], decode=spell, stops="Question:", eos_ids=[], max_new_tokens=2))


def test_batches_are_told_and_prompts_sorted() -> None:
    told: list[int] = []
    found, _ = script("a", "b", "c", "d", "e", batch_size=2, max_new_tokens=1, on_batch=told.append)
    assert told == [9, 5, 1] and [made.text for made in found] == list("abcde")


@pytest.mark.parametrize("shared", [{}, {"labels": "th"}, {"profile": "harness-0.4"}])
def test_gold_text_scores_everything(shared: dict[str, str]) -> None:
    (task,) = samples(only=["gsm8k"], **shared)
    assert len(task.items) == 30
    for item in task.items:
        completion = extract.cut_at_stops(" " + item.answer + "\n\nQuestion: x #### 5", stop_strings(task))
        row = number_scores(task, item, completion, False)
        told = (item.id, row["answers"])
        assert (row["strict"], row["flexible"], row["em_thai"], row["score"], row["outcome"]) == (1, 1, 1, 1, "ok"), (
            told
        )


def test_v1_stops_at_any_colon_and_is_its_own_metric() -> None:
    (task,) = samples(only=["gsm8k"], profile="v1")
    assert task.metric == "v1" and stop_strings(task) == [":", "Question:", "Question"]
    cut = extract.cut_at_stops("ดังนั้น: #### 72", stop_strings(task))
    assert number_scores(task, task.items[0], cut, False)["outcome"] == "unreadable"
    plain = [item for item in task.items if ":" not in item.answer]
    assert all(number_scores(task, item, " " + item.answer, False)["score"] == 1 for item in plain)


def test_stops_hold_the_label_in_use() -> None:
    for language, label in (("en", "Question:"), ("th", "คำถาม:")):
        (task,) = samples(only=["gsm8k"], labels=language)
        assert {label, f"\n\n{label}", "Question:", "</s>", "<|im_end|>"} == set(stop_strings(task))
    (parity,) = samples(only=["gsm8k"], profile="harness-0.4")
    assert stop_strings(parity) == ["Question:", "</s>", "<|im_end|>"]


@pytest.mark.slow
def test_equals_the_library_with_sliding_windows(gemma: LocalModel) -> None:
    texts = [" ".join(TEXT * 8), TEXT[3]]
    prompts = [gemma.tokenizer(text)["input_ids"] for text in texts]
    assert len(prompts[0]) > gemma.model.config.sliding_window
    found = run(gemma.model, prompts, text_of(gemma), max_new_tokens=3, batch_size=2)
    assert [list(made.ids) for made in found] == [own(gemma, prompt, 3) for prompt in prompts]
