"""lm-evaluation-harness on the same rows and model: a small random model on several items, Gemma on one a task."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import write_tiny

from thaikit import ThaikitError, parity, parity_items, peer, peer_tasks
from thaikit.asking import Local
from thaikit.models import LocalModel, load
from thaikit.params import ModelEntry, TaskSet
from thaikit.tasks import build

TASKS = ("arc", "hellaswag", "mmlu", "truthfulqa", "winogrande", "gsm8k")
TINY_ITEMS = {"arc": 3, "hellaswag": 4, "mmlu": 8, "truthfulqa": 4, "winogrande": 8, "gsm8k": 4}
real = pytest.mark.skipif(not os.environ.get("THAIKIT_REAL_DATA"), reason="THAIKIT_REAL_DATA is not set")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Local:
    folder = write_tiny(tmp_path_factory.mktemp("small"), max_position_embeddings=16384)
    return Local(load(ModelEntry(source=str(folder), device="cpu"), name="small"))


@pytest.fixture(autouse=True)
def one_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    """A random model this small gains nothing from threads, and loses much where other work shares the cores."""
    import torch

    before = torch.get_num_threads()
    if "gemma" not in request.fixturenames:
        torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def short_answers(tasks: TaskSet) -> TaskSet:
    """The same set with generations of 12 tokens."""
    named = {**tasks.tasks, "gsm8k": tasks.tasks["gsm8k"].model_copy(update={"max_new_tokens": 12})}
    return tasks.model_copy(update={"tasks": named})


def one_task(tasks: TaskSet, name: str, limit: int) -> build.Task:
    (task,) = build.build_all(tasks, only=[name], limit=limit)
    return task


def agrees(found: parity_items.Finding, items: int) -> None:
    assert found.agrees, found.listed
    assert found.items == items
    assert found.near_ties == 0, found.listed


@pytest.mark.parametrize("name", TASKS)
def test_the_samples_with_a_random_model(name: str, small: Local) -> None:
    tasks = short_answers(parity.task_set("thai-h6-samples"))
    found = parity.check(one_task(tasks, name, TINY_ITEMS[name]), tasks, small)
    agrees(found, TINY_ITEMS[name])
    assert (found.lls > 0) == (name != "gsm8k")
    assert found.largest < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_the_samples_with_gemma(name: str, gemma: LocalModel) -> None:
    """With two shots at most, for the peer works out every logit; all shots are `make parity`'s business."""
    tasks = short_answers(parity.task_set("thai-h6-samples"))
    spec = tasks.tasks[name]
    fewer = spec.model_copy(update={"shots": min(spec.shots, 2)})
    tasks = tasks.model_copy(update={"tasks": {name: fewer}})
    agrees(parity.check(one_task(tasks, name, 1), tasks, Local(gemma)), 1)


@real
@pytest.mark.real
@pytest.mark.parametrize("name", TASKS)
def test_english_rows_with_a_random_model(name: str, small: Local) -> None:
    tasks = short_answers(parity.task_set("h6-english-rows"))
    agrees(parity.check(one_task(tasks, name, 1), tasks, small), 1)


@real
@pytest.mark.real
def test_odd_labels(small: Local) -> None:
    """Digits as labels, three and five choices."""
    tasks = parity.task_set("h6-english-rows")
    spec = tasks.tasks["arc"]
    source = spec.source.model_copy(update={"files": "arc_challenge_en/test_odd_labels.jsonl"})
    odd = spec.model_copy(update={"source": source, "shots": 1})
    tasks = tasks.model_copy(update={"tasks": {"arc": odd}})
    task = one_task(tasks, "arc", 16)
    assert {len(item.choices) for item in task.items} == {3, 4, 5}
    agrees(parity.check(task, tasks, small), 16)


# ---------------------------------------------------------------------------------------------- what parity notices


@pytest.fixture(scope="module")
def asked(small: Local) -> tuple[build.Task, list[parity_items.Answer], dict[str, Any]]:
    tasks = parity.task_set("thai-h6-samples")
    task = one_task(tasks, "winogrande", 2)
    return task, parity_items.kit_answers(task, small), peer.ask(task, tasks, small)


def compared(asked: Any, small: Local, other: dict[str, Any]) -> parity_items.Finding:
    task, ours, _ = asked
    found = parity_items.Finding(task.name)
    for place, (mine, item) in enumerate(zip(ours, other["items"], strict=True)):
        parity_items.compare_item(found, task, place, mine, item, small)
    parity_items.compare_totals(found, ours, other["totals"])
    return found


def test_a_prompt_that_differs_by_one_character(asked: Any, small: Local) -> None:
    other = copy.deepcopy(asked[2])
    other["items"][0]["prompts"][1][0] += " "
    found = compared(asked, small, other)
    assert not found.agrees
    assert found.prompts_differ == 1
    assert "part at character" in found.listed[0]


def test_a_log_likelihood_beyond_the_limit(asked: Any, small: Local) -> None:
    other = copy.deepcopy(asked[2])
    tokens = asked[1][1].tokens[0]
    other["items"][1]["ll"][0] -= 0.9e-4 * tokens
    assert compared(asked, small, other).agrees
    other["items"][1]["ll"][0] -= 0.2e-4 * tokens
    found = compared(asked, small, other)
    assert (found.agrees, found.lls_beyond) == (False, 1)
    assert found.largest == pytest.approx(1.1e-4, rel=0.05)


def test_greedy_flags_metrics_and_totals(asked: Any, small: Local) -> None:
    other = copy.deepcopy(asked[2])
    other["items"][0]["greedy"][0] = not other["items"][0]["greedy"][0]
    other["items"][0]["metrics"]["acc"] = 1.0 - other["items"][0]["metrics"]["acc"]
    other["totals"][0]["value"] += 0.25
    found = compared(asked, small, other)
    assert (found.greedy_differ, found.metrics_differ) == (1, 2)


def test_predictions_may_differ_only_where_the_two_best_are_close(asked: Any, small: Local) -> None:
    task, ours, theirs = asked
    ll, metrics = list(ours[0].ll), theirs["items"][0]["metrics"]
    best = ours[0].row["prediction"]
    for gap, ties, differ in ((1e-5, 1, 0), (5.0, 0, 1)):
        other = copy.deepcopy(theirs)
        swapped = list(ll)
        swapped[1 - best] = swapped[best] + gap
        other["items"][0] |= {"ll": swapped, "metrics": {"acc": 1.0 - metrics["acc"]}}
        found = compared(asked, small, other)
        assert (found.near_ties, found.predictions_differ) == (ties, differ)
        assert f"item {task.items[0].id}: acc picks" in " ".join(found.listed)


def test_an_underflow_of_the_peer_is_set_aside(asked: Any, small: Local) -> None:
    other = copy.deepcopy(asked[2])
    other["items"][0]["metrics"]["acc"] = math.nan
    found = compared(asked, small, other)
    assert found.agrees
    assert "underflow" in found.listed[0]


@pytest.fixture(scope="module")
def written(small: Local) -> tuple[build.Task, list[parity_items.Answer]]:
    task = one_task(short_answers(parity.task_set("thai-h6-samples")), "gsm8k", 1)
    return task, parity_items.kit_answers(task, small)


def test_margins_belong_to_the_steps(written: Any, small: Local) -> None:
    import torch

    (mine,) = written[1]
    gaps = parity_items.margins(small, mine.prompt_ids, mine.ids)
    assert len(gaps) == len(mine.ids) + 1
    with torch.inference_mode():
        out = small.loaded.model(torch.tensor([[*mine.prompt_ids, *mine.ids[:3]]])).logits[0, -1].topk(2)
    assert out.indices[0] == mine.ids[3]
    assert gaps[3] == pytest.approx(float(out.values[0] - out.values[1]), abs=1e-5)


@pytest.mark.parametrize(("close", "ties", "differ"), [(2, 1, 0), (None, 0, 1), (9, 0, 1)])
def test_texts_may_part_only_after_a_close_step(
    close: int | None, ties: int, differ: int, written: Any, small: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, (mine,) = written
    gaps = [0.5] * (len(mine.ids) + 1)
    if close is not None:
        gaps[close] = 1e-4
    monkeypatch.setattr(parity_items, "margins", lambda *_: gaps)
    kept = small.loaded.tokenizer.decode(mine.ids[:4]).rstrip("\ufffd")
    found = parity_items.Finding("gsm8k")
    parity_items.compare_text(found, 0, task.items[0], mine, kept + "Z", small)
    assert (found.near_ties, found.texts_differ) == (ties, differ)


# ---------------------------------------------------------------------------------------------- around it

SHORT = """
name: short
tasks:
  winogrande:
    kind: winogrande
    shots: 2
    source: {files: winogrande/validation.jsonl}
    exemplars: {files: winogrande/train.jsonl}
  gsm8k:
    kind: gsm8k
    shots: 1
    source: {files: gsm8k/test.jsonl}
    exemplars: {files: gsm8k/train.jsonl}
"""


def test_a_run_writes_its_table_and_takes_the_peer_from_the_cache(
    small: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pandas

    (tmp_path / "short.yaml").write_text(SHORT, encoding="utf-8")
    names = {"thai": str(tmp_path / "short.yaml")}
    first = parity.run(small, names, items=2, folder=tmp_path / "out")
    assert "parity: 2 of 2 task sets agree, 4 items, 4 log-likelihoods" in parity.summary(first)
    frame = pandas.read_csv(tmp_path / "out" / "parity.csv")
    assert frame["agrees"].all()
    assert frame["task"].tolist() == ["winogrande", "gsm8k"]
    monkeypatch.setattr(peer, "evaluate", lambda *_: pytest.fail("the cache was not read"))
    again = parity.run(small, names, items=2, folder=tmp_path / "out")
    assert [one.agrees for _, one in again] == [True, True]
    assert len(list((tmp_path / "out" / "peer").glob("*.json"))) == 2


def test_items_and_sets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, items in (("", None), ("0", 0), (" 12 ", 12)):
        monkeypatch.setenv("PARITY_ITEMS", given)
        assert parity.wanted() == items
    monkeypatch.setenv("PARITY_ITEMS", "many")
    with pytest.raises(ThaikitError, match="whole number"):
        parity.wanted()
    monkeypatch.delenv("THAIKIT_REAL_DATA", raising=False)
    assert list(parity.sets_here()) == ["thai"]
    monkeypatch.setenv("THAIKIT_REAL_DATA", "/somewhere")
    assert list(parity.sets_here()) == ["thai", "english"]


def test_no_finding_does_not_agree() -> None:
    assert not parity_items.Finding("arc").agrees


def test_a_task_without_a_peer_is_refused(small: Local) -> None:
    tasks = parity.task_set("thai-h6-samples")
    task = one_task(tasks, "winogrande", 1)
    other = task.spec.model_copy(update={"kind": "numeric"})
    with pytest.raises(ThaikitError, match="has no peer"):
        peer_tasks.source_rows(build.replace(task, spec=other), tasks)
