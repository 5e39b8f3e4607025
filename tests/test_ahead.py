"""Encoding beside the forward passes: the next task while the first one runs, and what is too long stops early."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from kit import make, numbered, roomy

from thaikit import ThaikitError
from thaikit.asking import Local
from thaikit.models import LocalModel
from thaikit.tasks.ahead import encoded, surely_fits
from thaikit.tasks.build import Task
from thaikit.tasks.score import Settings, prepare

WAIT = 20  # seconds, far above what is needed


@pytest.fixture
def two(tmp_path: Path) -> list[Task]:
    """A task of four short items and one of four longer ones."""
    long = [row | {"question": row["question"] + " ยาวไหม" * 6} for row in numbered(4)]
    return [make(tmp_path / "a", "arc", numbered(4)), make(tmp_path / "b", "arc", long)]


class Watched(Local):
    """A local model that tells when it has encoded all of `texts`, and cannot encode some."""

    texts: frozenset[str] = frozenset()
    refused: str = "\0"

    def __init__(self, loaded: LocalModel) -> None:
        super().__init__(loaded)
        self.left, self.reached, self.lock = set(self.texts), threading.Event(), threading.Lock()

    def encode_pair(self, prompt, continuation, **rules):  # type: ignore[no-untyped-def]
        if self.refused in prompt:
            raise ValueError("cannot be encoded")
        found = super().encode_pair(prompt, continuation, **rules)
        with self.lock:
            self.left.discard(prompt)
            if not self.left:
                self.reached.set()
        return found


def test_the_next_task_is_encoded_while_the_first_one_runs(tiny: LocalModel, two: list[Task]) -> None:
    class Later(Watched):
        texts = frozenset(item.query(0) for item in two[1].items)

    model = Later(roomy(tiny, 100_000))
    steps = encoded(two, model, Settings())
    task, ready = next(steps)
    assert task is two[0] and model.reached.wait(WAIT)  # the caller is still at the first task
    assert ready == prepare(two[0], model, Settings())
    assert [(task, ready == prepare(task, model, Settings())) for task, ready in steps] == [(two[1], True)]


def test_where_a_prompt_could_be_too_long_everything_is_measured_first(tiny: LocalModel, two: list[Task]) -> None:
    longest = max(one.longest for one in prepare(two[1], Local(roomy(tiny, 100_000)), Settings()))
    model = Local(roomy(tiny, longest))
    assert not surely_fits(two[1], model)
    assert [task for task, _ in encoded(two, model, Settings())] == two
    with pytest.raises(ThaikitError, match=r"task arc, item n\d: \d+ tokens, the window of tiny has"):
        next(encoded(two, Local(roomy(tiny, longest - 1)), Settings()))


def test_bytes_never_promise_too_much(tiny: LocalModel, two: list[Task]) -> None:
    for window in range(60, 4000, 40):
        model = Local(roomy(tiny, window))
        for task in two:
            if surely_fits(task, model):
                prepare(task, model, Settings())


def test_a_fault_of_a_later_task_is_told_before_that_task_runs(tiny: LocalModel, two: list[Task]) -> None:
    class Faulty(Watched):
        refused = "ยาวไหม"

    model = Faulty(roomy(tiny, 100_000))
    seen = []
    with pytest.raises(ThaikitError, match="item n0: cannot be encoded"):
        for task, _ in encoded(two, model, Settings()):
            seen.append(task)
    assert len(seen) <= 1


@pytest.mark.parametrize("fault", [KeyboardInterrupt, ThaikitError("no")])
def test_who_stops_in_the_midst_waits_for_no_other_task(tiny: LocalModel, tmp_path: Path, fault: Any) -> None:
    class Slow(Local):
        def encode_pair(self, prompt, continuation, **rules):  # type: ignore[no-untyped-def]
            time.sleep(0.05 if "ยาวไหม" in prompt else 0)
            return super().encode_pair(prompt, continuation, **rules)

    long = [row | {"question": row["question"] + " ยาวไหม"} for row in numbered(400)]
    tasks = [make(tmp_path / "a", "arc", numbered(4)), make(tmp_path / "b", "arc", long)]
    begun = time.monotonic()
    with pytest.raises(type(fault) if isinstance(fault, Exception) else fault):
        for task, _ in encoded(tasks, Slow(roomy(tiny, 100_000)), Settings()):
            assert task is tasks[0]
            raise fault
    assert time.monotonic() - begun < 5, "all 400 take 40 s on two threads"
