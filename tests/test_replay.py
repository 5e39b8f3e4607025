"""Recorded answers: what was said is said again, what was not asked is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from kit import ask, roomy, samples

from thaikit import ThaikitError, params, replay
from thaikit.asking import Local
from thaikit.models import LocalModel
from thaikit.params import ModelEntry
from thaikit.replay import Replay
from thaikit.tasks.build import Task

SAME = (
    "id",
    "task",
    "index",
    "outcome",
    "metric",
    "question",
    "choices",
    "gold",
    "prediction",
    "tokens",
    "greedy",
    "acc",
    "acc_norm",
    "completion",
    "finish",
    "new_tokens",
    "answers",
    "reference",
    "prompt_sha256",
    "shots",
)


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    found = samples(limit=2)
    return [task if task.name != "gsm8k" else short(task) for task in found]


def short(task: Task) -> Task:
    spec = params.changed(task.spec, {"max_new_tokens": 4}, where="test")
    return task.__class__(**{**vars(task), "spec": spec})


@pytest.fixture(scope="module")
def recorded(
    tiny: LocalModel, tasks: list[Task], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("recorded")
    recorder = replay.record(Local(roomy(tiny)))
    rows = {task.name: ask(task, recorder, folder / f"{task.name}.jsonl") for task in tasks}
    replay.save(recorder, folder / "answers.json.gz")
    return folder / "answers.json.gz", rows


def reading(path: Path) -> Replay:
    return Replay.read("again", ModelEntry(kind="replay", source=str(path), rehearsal=True, note="recorded"))


def test_replay_gives_the_same_rows(recorded: tuple[Path, dict[str, Any]], tasks: list[Task], tmp_path: Path) -> None:
    path, rows = recorded
    model = reading(path)
    for task in tasks:
        again = ask(task, model, tmp_path / f"{task.name}.jsonl")
        for old, new in zip(rows[task.name], again, strict=True):
            assert {key: old.get(key) for key in SAME} == {key: new.get(key) for key in SAME}
            assert new.get("ll", []) == pytest.approx(old.get("ll", []), abs=1e-4)
            assert new["score"] == pytest.approx(old["score"], abs=1e-4)


def test_what_was_not_recorded_is_one_sentence(recorded: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    model = reading(recorded[0])
    for name in ("arc", "gsm8k"):
        (task,) = samples(only=[name], limit=3)
        with pytest.raises(ThaikitError, match=r"model again: a request is not among its \d+ recorded") as error:
            ask(task, model, tmp_path / f"{name}.jsonl")
        assert "\n" not in str(error.value)
    (thai,) = samples(only=["arc"], limit=2, labels="th")
    with pytest.raises(ThaikitError, match="choose a real model"):
        ask(thai, model, tmp_path / "thai.jsonl")


def test_other_stops_or_limits_are_other_requests() -> None:
    keys = {replay.prompt_key(b"a", stops, n) for stops in (["x"], ["y"], ["x", "y"]) for n in (3, 4)}
    assert len(keys) == 6 and replay.pair_key(b"a", b"bc") != replay.pair_key(b"ab", b"c")


def test_equal_ids_of_different_texts_are_both_kept(tiny: LocalModel) -> None:
    """A space before or after the join gives the same ids: both texts find their record."""
    recorder = replay.record(Local(roomy(tiny)))
    rules = {"bos": "auto", "boundary": "offsets", "prefix": ""}
    pairs = [("ถาม ", "ตอบ"), ("ถาม", " ตอบ")]
    requests = [recorder.encode_pair(*pair, **rules) for pair in pairs]
    assert requests[0] == requests[1]
    list(recorder.score(requests, batch_size=2, tell=lambda _: None))
    assert {replay.pair_key(a.encode(), b.encode()) for a, b in pairs} == set(recorder.records["scores"])


def test_file_is_reproducible_and_missing_one_is_named(recorded: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, _ = recorded
    data = path.read_bytes()
    assert data == gzip.compress(gzip.decompress(data), mtime=0)
    with pytest.raises(ThaikitError, match="no recorded answers at"):
        reading(tmp_path / "nothing.json.gz")
    assert reading(path).facts()["kind"] == "replay" and reading(path).facts()["name"] == "again"
