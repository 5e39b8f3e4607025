"""Prompts that do not fit: nothing is run, or what the policy says is done and counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit import ask, make, numbered, roomy
from miniatures import GSM8K_ROWS

from thaikit import ThaikitError
from thaikit.asking import Local
from thaikit.models import LocalModel
from thaikit.tasks.build import Task
from thaikit.tasks.items import context
from thaikit.tasks.score import Settings, prepare
from thaikit.tasks.summary import facts


def lengths(task: Task, model: LocalModel) -> list[int]:
    return [one.longest for one in prepare(task, Local(model), Settings())]


@pytest.fixture(scope="module")
def long_task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """Four items; the second is longer than the others, by less than the worked examples hold."""
    rows = numbered(4)
    rows[1]["question"] = "ยาวไหม " * 8
    return make(tmp_path_factory.mktemp("long"), "arc", rows, numbered(3, 100))


def test_too_long_stops_before_the_first_forward_pass(tiny: LocalModel, long_task: Task, tmp_path: Path) -> None:
    window = sorted(lengths(long_task, roomy(tiny)))[2]
    runs: list[int] = []
    handle = tiny.model.register_forward_hook(lambda *_: runs.append(1))
    with pytest.raises(ThaikitError, match=r"task arc, item n1: \d+ tokens, the window of tiny has \d+; 1 of 4 items"):
        ask(long_task, roomy(tiny, window), tmp_path / "never.jsonl")
    handle.remove()
    assert runs == [] and not (tmp_path / "never.jsonl").exists()


@pytest.mark.parametrize("policy", ["drop_shots", "left", "skip"])
def test_policies_are_counted(tiny: LocalModel, long_task: Task, tmp_path: Path, policy: str) -> None:
    window = sorted(lengths(long_task, roomy(tiny)))[2]
    narrow, settings = roomy(tiny, window), Settings(overlength=policy)
    rows = ask(long_task, narrow, tmp_path / "rows.jsonl", overlength=policy)
    ready = prepare(long_task, Local(narrow), settings)
    told = facts(long_task, Local(narrow), ready, rows)
    odd = rows[1]
    assert [row["id"] for row in rows] == ["n0", "n1", "n2", "n3"]
    assert all(one.longest <= window for one in ready if not one.skipped)
    counts = {key: told[key] for key in ("truncated", "fewer_shots", "skipped", "n")}
    if policy == "drop_shots":
        assert odd["shots"] < 3 and odd["cut_tokens"] == 0 and ready[1].requests[0].context[0] == 1
        assert counts == {"truncated": 0, "fewer_shots": 1, "skipped": 0, "n": 4}
        assert ready[1].prompt == context(long_task.items[1], long_task.shots(1)[3 - odd["shots"] :], delimiter=" ")
    elif policy == "left":
        assert odd["cut_tokens"] > 0 and odd["outcome"] == "ok" and ready[1].longest == window
        assert counts == {"truncated": 1, "fewer_shots": 0, "skipped": 0, "n": 4}
    else:
        assert (odd["outcome"], odd["score"]) == ("truncated", None)
        assert counts == {"truncated": 0, "fewer_shots": 0, "skipped": 1, "n": 3}


def test_dropping_all_shots_may_not_be_enough(tiny: LocalModel, long_task: Task) -> None:
    with pytest.raises(ThaikitError, match="1 of 4 items are too long"):
        prepare(long_task, Local(roomy(tiny, 40)), Settings(overlength="drop_shots"))


def test_left_never_cuts_into_the_continuation(tiny: LocalModel, long_task: Task) -> None:
    with pytest.raises(ThaikitError, match=r"item n0: the continuation has \d+ tokens, the model's window is 3"):
        prepare(long_task, Local(roomy(tiny, 3)), Settings(overlength="left"))


def test_generation_keeps_room_for_the_answer(tiny: LocalModel, tmp_path: Path) -> None:
    task = make(tmp_path, "gsm8k", GSM8K_ROWS[1:], GSM8K_ROWS[:1], max_new_tokens=8)
    size = lengths(task, roomy(tiny))[0]
    assert prepare(task, Local(roomy(tiny, size + 8)), Settings())[0].cut == 0
    with pytest.raises(ThaikitError, match=r"\(8 of it kept for the answer\)"):
        prepare(task, Local(roomy(tiny, size + 7)), Settings())
    cut = prepare(task, Local(roomy(tiny, size + 7)), Settings(overlength="left"))[0]
    assert cut.cut == 1 and len(cut.prompt_ids) == size - 1
    with pytest.raises(ThaikitError, match="nothing is left for the prompt"):
        prepare(task, Local(roomy(tiny, 8)), Settings(overlength="left"))


def test_unknown_policy_is_refused() -> None:
    with pytest.raises(ThaikitError, match="overlength is 'cut'; allowed are error, drop_shots, left, skip"):
        Settings(overlength="cut")
