"""SIGKILL at random moments of a small run, and the rows of an undisturbed one after it is started again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kit import ask, make, same

from thaikit.models import LocalModel
from thaikit.rowlog import RowLog
from thaikit.tasks.build import Task

WORKER = """
import os, sys
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)  # no thread pool, so that a fork can compute
from kit import roomy
from test_kill import run_all
from thaikit.models import load
from thaikit.params import ModelEntry
model = roomy(load(ModelEntry(source=sys.argv[2], device="cpu"), name="tiny"))
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        run_all(model, line.strip())
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""
KILLS = 10


def kill_tasks(folder: Path) -> list[Task]:
    """A small run: multiple choice and generation, some thirty forward passes."""
    choices = {"text": ["ใช่", "ไม่ใช่", "ไม่รู้"], "label": ["A", "B", "C"]}
    arc = [
        {"id": f"a{n}", "question": f"ข้อ {n} " + "ก" * n, "choices": choices, "answerKey": "ABC"[n % 3]}
        for n in range(24)
    ]
    sums = [{"id": f"g{n}", "question": f"{n}+1 ได้เท่าไร", "answer": f"#### {n + 1}"} for n in range(8)]
    return [make(folder / "arc", "arc", arc), make(folder / "gsm8k", "gsm8k", sums, max_new_tokens=6)]


def run_all(model: LocalModel, folder: str | Path) -> dict[str, list[dict[str, Any]]]:
    """The small run's rows, resumed where it was begun."""
    place = Path(folder)
    return {task.name: ask(task, model, place / f"{task.name}.jsonl", batch_size=2, kernel="plain")
            for task in kill_tasks(place / "data")}  # fmt: skip


def told(worker: subprocess.Popen[str]) -> int:
    assert worker.stdout
    return int(worker.stdout.readline())


def begin(worker: subprocess.Popen[str], folder: Path) -> int:
    """Start the run in a fork of the worker; its process id."""
    folder.mkdir(exist_ok=True)
    assert worker.stdin
    worker.stdin.write(f"{folder}\n")
    worker.stdin.flush()
    return told(worker)


def whole_lines(folder: Path) -> list[str]:
    """The rows on disk, torn ones left out."""
    return [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").split("\n")[:-1]]


@pytest.fixture(scope="module")
def worker(tiny_folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(Path(__file__).parent), str(tiny_folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.stdin and process.stdout and process.stdout.readline() == "ready\n"
    yield process
    process.stdin.close()
    process.wait(30)


def test_killed_at_random_moments(worker: subprocess.Popen[str], tmp_path: Path) -> None:
    """SIGKILL, then start again: the rows of an undisturbed run, and what was on disk is not computed again."""
    begin(worker, tmp_path / "whole")
    assert told(worker) == 0
    whole = {path.name: RowLog(path).rows() for path in (tmp_path / "whole").glob("*.jsonl")}
    assert {name: len(rows) for name, rows in whole.items()} == {"arc.jsonl": 24, "gsm8k.jsonl": 8}
    rng, caught = random.Random(7), 0
    for number in range(KILLS):
        folder, moment = tmp_path / f"kill{number}", rng.randint(0, 30)
        child = begin(worker, folder)
        deadline = time.monotonic() + 60
        while len(whole_lines(folder)) < moment and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(rng.random() * 0.01)
        os.kill(child, signal.SIGKILL)
        caught += os.WIFSIGNALED(told(worker))
        before = whole_lines(folder)
        if number % 3 == 0 and (folder / "arc.jsonl").exists():  # what a kill inside a write would leave
            with (folder / "arc.jsonl").open("a", encoding="utf-8") as stream:
                stream.write('{"id": "a1", "outcome": "o')
        begin(worker, folder)
        assert told(worker) == 0
        after = whole_lines(folder)
        assert len(after) == 32 and set(before) <= set(after), (number, len(before))
        for name, rows in whole.items():
            same(rows, RowLog(folder / name).rows())
    assert caught >= KILLS - 2, f"only {caught} of {KILLS} runs were still at work when they were killed"
