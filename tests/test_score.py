"""Rows of the tasks: what they hold, that they survive a kill, and that no batch, order or NaN changes a score."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kit import ask, make, roomy, same, samples

from thaikit import params
from thaikit.encoding import Encoded
from thaikit.models import LocalModel
from thaikit.records import Run
from thaikit.rowlog import RowLog
from thaikit.tasks import evaluate
from thaikit.tasks.build import Task
from thaikit.tasks.score import Settings, prepare, score
from thaikit.tasks.summary import facts, headline
from thaikit.trie import distinct

BASE = {
    "id",
    "task",
    "subject",
    "index",
    "metric",
    "question",
    "prompt_sha256",
    "shots",
    "context_tokens",
    "cut_tokens",
    "outcome",
    "score",
}
CHOICE = BASE | {"choices", "gold", "ll", "tokens", "greedy", "boundary", "prediction", "acc"}
FOUR = CHOICE | {"acc_norm", "acc_bytes", "acc_tokens"}
WANTED = {
    "arc": FOUR,
    "hellaswag": FOUR,
    "mmlu": FOUR | {"shown"},
    "winogrande": FOUR,
    "truthfulqa": CHOICE | {"mc1", "mc2", "labels", "mc1_choices", "mc1_ll", "mc1_greedy"},
    "gsm8k": BASE
    | {"reference", "completion", "finish", "new_tokens", "answers", "strict", "flexible", "em_thai", "v1"},
}


class Echo:
    """A model of the four calls that needs no weights: log-probabilities from the ids, or as told."""

    name, chat, bos, max_length = "echo", False, "", 1 << 20

    def __init__(self, told: Any = None, text: str = "ได้ 72\n#### 72") -> None:
        self.told, self.text, self.asked = told, text, 0

    def encode_prompt(self, prompt: str, **_: Any) -> list[int]:
        return list(prompt.encode())

    def encode_pair(self, prompt: str, continuation: str, **_: Any) -> Encoded:
        return Encoded(tuple(prompt.encode()), tuple(continuation.encode()))

    def score(self, requests: Any, **_: Any) -> Any:
        order = list(range(len(requests)))
        random.Random(0).shuffle(order)
        for index in order:
            self.asked += 1
            ids = requests[index].continuation
            values = np.asarray(
                [-(n % 7) / 3 - 0.1 for n in ids] if self.told is None else [self.told(index)], np.float32
            )
            yield index, SimpleNamespace(logprobs=values, greedy=False, ll=float(values.sum(dtype=np.float64)))

    def generate(self, prompts: Any, **_: Any) -> Any:
        for index in reversed(range(len(prompts))):
            self.asked += 1
            yield index, SimpleNamespace(text=self.text, ids=range(5), finish="stop")


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return samples(limit=6)


@pytest.mark.parametrize("place", range(6))
def test_rows_hold_their_fields_as_plain_json(tasks: list[Task], tmp_path: Path, place: int) -> None:
    task = tasks[place]
    rows = ask(task, Echo(), tmp_path / "rows.jsonl", token_logprobs=True)
    assert [row["index"] for row in rows] == list(range(6)) and [row["id"] for row in rows] == [
        i.id for i in task.items
    ]
    kept = {"token_logprobs", "mc1_token_logprobs", "prediction_norm", "prediction_bytes", "prediction_tokens"}
    extra = set() if task.generates else kept
    for row, item in zip(rows, task.items, strict=True):
        assert WANTED[task.name] <= set(row) <= WANTED[task.name] | extra
        assert row == json.loads(json.dumps(row, allow_nan=False)) and row["score"] == row[row["metric"]]
        assert len(row["prompt_sha256"]) == 64 and row["shots"] == task.spec.shots
        if not task.generates:
            assert len(row["ll"]) == len(row["tokens"]) == len(row["greedy"]) == len(row["choices"])
            for tokens, sums in (("token_logprobs", "ll"), ("mc1_token_logprobs", "mc1_ll")):
                assert [sum(values) for values in row.get(tokens, [])] == pytest.approx(row.get(sums, []), abs=1e-5)
            assert row["prediction"] == max(range(len(row["ll"])), key=lambda n: row["ll"][n])
            assert item.gold == row["gold"] or task.name == "truthfulqa"


def test_plain_rows_hold_no_token_lists(tasks: list[Task], tmp_path: Path) -> None:
    assert "token_logprobs" not in ask(tasks[0], Echo(), tmp_path / "rows.jsonl")[0]


def test_winogrande_lengths_are_the_shared_tail(tmp_path: Path) -> None:
    row = {"sentence": "ก_ข", "option1": "ยาวมากจริง ๆ", "option2": "สั้น", "answer": "1"}
    (found,) = ask(make(tmp_path, "winogrande", [row]), Echo(lambda n: [-2.0, -2.5][n]), tmp_path / "rows.jsonl")
    assert [found[key] for key in ("acc", "acc_norm", "acc_bytes", "acc_tokens")] == [1.0] * 4


def test_lengths_leave_out_the_delimiter(tmp_path: Path) -> None:
    row = {"question": "ถาม", "choices": {"text": ["ก", "กขคงจ"], "label": ["A", "B"]}, "answerKey": "B"}
    (found,) = ask(make(tmp_path, "arc", [row]), Echo(lambda n: [-1.0, -4.0][n]), tmp_path / "rows.jsonl")
    assert (found["acc"], found["acc_norm"], found["acc_tokens"]) == (0.0, 1.0, 0.0)


def test_truthfulqa_splits_mc1_from_mc2(tmp_path: Path) -> None:
    row = {"question": "ถาม", "mc1_targets": {"choices": ["ก", "ข"], "labels": [1, 0]},
           "mc2_targets": {"choices": ["ค", "ก", "ง"], "labels": [0, 1, 1]}}  # fmt: skip
    values = [-1.0, -2.0, -800.0, -801.0, -800.5]
    (found,) = ask(make(tmp_path, "truthfulqa", [row]), Echo(lambda n: values[n]), tmp_path / "rows.jsonl")
    mass = [math.exp(x + 800) for x in values[2:]]
    assert found["mc1"] == 1.0 and found["mc2"] == pytest.approx(sum(mass[1:]) / sum(mass))
    assert found["mc1_ll"] == values[:2] and found["ll"] == values[2:] and found["choices"] == ["ค", "ก", "ง"]
    assert (found["prediction"], found["acc"], found["gold"]) == (0, 0.0, 1)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", range(5))
def test_numbers_that_are_none_never_become_scores(tasks: list[Task], tmp_path: Path, bad: float, place: int) -> None:
    model = Echo(lambda n: bad if n == 1 else -1.0)
    rows = ask(tasks[place], model, tmp_path / "rows.jsonl")
    assert [row["outcome"] for row in rows] == ["failed"] + ["ok"] * 5
    assert (
        rows[0]["score"] is None
        and "not finite" in rows[0]["error"]
        and None in [*rows[0]["ll"], *rows[0].get("mc1_ll", [None])]
    )
    assert not {"acc", "acc_norm", "mc2"} & set(rows[0])
    asked = ask(tasks[place], Echo(), tmp_path / "rows.jsonl")
    assert {row["outcome"] for row in asked} == {"ok"} and len(asked) == 6


def test_nan_weights_fail_every_item(tiny_folder: Path, tmp_path: Path) -> None:
    import torch

    from thaikit import ThaikitError
    from thaikit.models import load
    from thaikit.params import ModelEntry

    broken = load(ModelEntry(source=str(tiny_folder), device="cpu"), name="broken")
    broken.model.lm_head.weight.data[5] = torch.nan
    (task,) = samples(only=["winogrande"], limit=2)
    try:
        rows = ask(task, roomy(broken), tmp_path / "rows.jsonl")
    except ThaikitError as error:
        assert "model broken" in str(error)
    else:
        assert {row["outcome"] for row in rows} == {"failed"} and {row["score"] for row in rows} == {None}


def test_outcomes_of_generation(tmp_path: Path) -> None:
    row = {"question": "ถาม", "answer": "#### 72"}
    for text, outcome, value in (("#### 72", "ok", 1.0), ("ไม่รู้", "unreadable", 0.0), ("#### 7", "ok", 0.0)):
        (found,) = ask(make(tmp_path, "gsm8k", [row]), Echo(text=text), tmp_path / f"{outcome}{value}.jsonl")
        assert (found["outcome"], found["score"], found["completion"]) == (outcome, value, text)


def test_profiles_name_their_own_metric(tmp_path: Path) -> None:
    row = {"question": "ถาม", "answer": "#### 72"}
    task = make(tmp_path, "gsm8k", [row], shared={"profile": "v1"})
    (found,) = ask(task, Echo(text="#### 72."), tmp_path / "rows.jsonl")
    assert (found["metric"], found["score"], found["strict"]) == ("v1", 0.0, 1.0)
    told = facts(task, Echo(), prepare(task, Echo(), Settings()), [found])
    assert told["metric"] == "v1" and "profile:v1" in told["signature"]


def test_finished_items_are_not_asked_again(tasks: list[Task], tmp_path: Path) -> None:
    for task in tasks:
        log, model = RowLog(tmp_path / f"{task.name}.jsonl"), Echo()
        ready = prepare(task, model, Settings())
        part = [one for one in ready if one.index in (1, 4)]
        score(task, model, log, ready=part, settings=Settings(), tell=lambda _: None)
        before = model.asked
        score(task, model, RowLog(log.path), ready=ready, settings=Settings(), tell=lambda _: None)
        assert model.asked - before == sum(max(1, len(one.requests)) for one in ready if one.index not in (1, 4))
        assert [row["index"] for row in RowLog(log.path).rows()] == list(range(6))


def test_distinct_tokens_count_the_trie() -> None:
    assert distinct([(1, 2, 3), (1, 2, 4), (1, 2), (5,), (1, 2, 3)]) == 5
    assert distinct([]) == 0


def test_headline_is_macro_with_micro_beside_it(tasks: list[Task], tmp_path: Path) -> None:
    rows = {task.name: ask(task, Echo(), tmp_path / f"{task.name}.jsonl") for task in tasks}
    found = headline(tasks, rows, average=True)
    assert list(found) == ["arc", "hellaswag", "mmlu", "truthfulqa", "winogrande", "gsm8k", "average", "mmlu_micro"]
    six = [found[name]["value"] for name in list(found)[:6]]
    assert found["average"]["value"] == pytest.approx(sum(six) / 6)
    for task in tasks:
        told = facts(task, Echo(), prepare(task, Echo(), Settings()), rows[task.name])
        assert told["n"] == told["items"] == 6 and told["distinct_tokens"] <= told["total_tokens"]
        json.dumps(told)


@pytest.mark.parametrize("kernel", ["plain", "tree"])
def test_batch_size_changes_nothing(tiny: LocalModel, tmp_path: Path, kernel: str) -> None:
    for task in samples(limit=3, only=["arc", "mmlu", "truthfulqa", "winogrande"]):
        found = [
            ask(task, roomy(tiny), tmp_path / f"{task.name}{size}.jsonl", batch_size=size, kernel=kernel)
            for size in (1, 8)
        ]
        same(*found)


def test_generation_batches_change_nothing(tiny: LocalModel, tmp_path: Path) -> None:
    (task,) = samples(limit=3, only=["gsm8k"])
    spec = params.changed(task.spec, {"max_new_tokens": 6, "shots": 1}, where="test")
    task = task.__class__(**{**vars(task), "spec": spec, "draws": ((0,),) * 3})
    same(*[ask(task, roomy(tiny), tmp_path / f"{size}.jsonl", batch_size=size) for size in (1, 8)])


def test_facts_say_by_which_rules(tmp_path: Path) -> None:
    row = {"sentence": "ก_ข", "option1": "หนึ่ง", "option2": "สอง", "answer": "1"}
    task, echo = make(tmp_path, "winogrande", [row], shared={"profile": "v1"}), Echo()
    echo.chat = True
    told = facts(task, echo, prepare(task, echo, Settings()), ask(task, echo, tmp_path / "rows.jsonl"))
    assert told["signature"].startswith("acc|argmax:ll(tail)|") and told["chat"] is False
    assert told["rules"]["blank"] == "first" and told["rules"]["boundary"] == "naive"
    assert told["rules"]["title_marks"] == [" [title]"]


def test_rates_of_generation_leave_out_what_was_not_asked(tmp_path: Path) -> None:
    rows = [{"question": "ถาม " * n, "answer": "#### 72"} for n in (1, 40)]
    task, echo = make(tmp_path, "gsm8k", rows, max_new_tokens=8), Echo()
    echo.max_length = 200
    found = ask(task, echo, tmp_path / "rows.jsonl", overlength="skip")
    told = facts(task, echo, prepare(task, echo, Settings(overlength="skip")), found)
    assert [row["outcome"] for row in found] == ["ok", "truncated"] and told["skipped"] == 1
    assert (told["invalid"], told["limit_hit"], told["several_marks"]) == (0.0, 0.0, 0.0)
    assert told["total_tokens"] == found[0]["context_tokens"]


def test_a_mean_over_part_of_the_tasks_is_no_thai_h6(tmp_path: Path) -> None:
    for only, there in ((["arc", "winogrande"], False), ([], True)):
        given = {"model": "replay-gemma3-270m", "tasks": "thai-h6-samples", "only": only, "limit": 1}
        run = Run.open("thai_h6", params=given, out_dir=str(tmp_path / f"leaf{there}"))
        found = evaluate.load(run, **given)
        assert ("average" in found.headline(found.score())) is there
