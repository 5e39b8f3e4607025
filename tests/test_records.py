"""Rows survive kills, leaves close once and only with the inputs that they were begun with."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from thaikit import ThaikitError
from thaikit.records import (
    RowLog,
    Run,
    drop_torn_line,
    finite,
    input_hash,
    leaves,
    partial,
    read_leaf,
    read_rows,
    root,
    state_of,
    status,
    write_atomic,
)  # fmt: skip

ROW = {"task": "arc", "outcome": "ok", "score": 1.0}


def begin(folder: Path, **params: object) -> Run:
    return Run.open("toy", params={"model": "m", **params}, inputs={"file": "abc"}, out_dir=str(folder))


def test_a_torn_last_line_is_dropped_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "arc.jsonl"
    log = RowLog(path)
    for index in range(3):
        log.append({"id": f"i{index}", "index": index, **ROW, "question": "น้ำ\u2028ไทย"})
    whole = path.read_bytes()
    for cut in (1, 5, len(whole.split(b"\n")[2]) + 1):
        path.write_bytes(whole[:-cut])
        assert sorted(RowLog(path).ids) == ["i0", "i1"]
        assert path.read_bytes() == b"\n".join(whole.split(b"\n")[:2]) + b"\n"
    assert drop_torn_line(path) == 0
    path.write_bytes(b'{"id": "i')
    assert RowLog(path).ids == set()
    assert path.read_bytes() == b""


def test_a_broken_line_inside_is_named(tmp_path: Path) -> None:
    path = tmp_path / "arc.jsonl"
    path.write_bytes(b'{"id": "a"}\n{"id": \n{"id": "b"}\n')
    with pytest.raises(ThaikitError, match=r"arc.jsonl, line 2: not JSON"):
        read_rows(path)


def test_rows_come_in_item_order_and_ids_only_once(tmp_path: Path) -> None:
    log = RowLog(tmp_path / "rows" / "arc.jsonl")
    for index in (2, 0, 1):
        log.append({"id": f"i{index}", "index": index, **ROW})
    assert [row["id"] for row in log.rows()] == ["i0", "i1", "i2"]
    with pytest.raises(ThaikitError, match="id 'i0' is already there"):
        log.append({"id": "i0", "index": 0, **ROW})


def test_nan_becomes_null_at_any_depth(tmp_path: Path) -> None:
    log = RowLog(tmp_path / "arc.jsonl")
    log.append({"id": "a", "index": 0, "score": float("nan"), "ll": [float("-inf"), -1.5], "x": {"y": float("inf")}})
    row = log.rows()[0]
    assert (row["score"], row["ll"], row["x"]) == (None, [None, -1.5], {"y": None})
    assert finite((1, float("nan"))) == [1, None]


def test_a_killed_leaf_is_resumed_with_its_rows(tmp_path: Path) -> None:
    run = begin(tmp_path / "leaf")
    run.log("arc").append({"id": "a", "index": 0, **ROW})
    again = begin(tmp_path / "leaf")
    assert not again.closed and again.log("arc").ids == {"a"}


def test_other_inputs_are_refused_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "leaf"
    run = begin(folder, limit=4)
    run.log("arc").append({"id": "a", "index": 0, **ROW})
    with pytest.raises(ThaikitError, match=r"begun with other inputs \(limit=5 now, 4 then\); name another out_dir"):
        begin(folder, limit=5)
    run.finish(headline={})
    with pytest.raises(ThaikitError, match=r"closed with other inputs \(limit=5 now, 4 then\)"):
        begin(folder, limit=5)
    with pytest.raises(ThaikitError, match="input file has another content"):
        Run.open("toy", params={"model": "m", "limit": 4}, inputs={"file": "xyz"}, out_dir=str(folder))


def test_batch_size_is_recorded_but_decides_nothing(tmp_path: Path) -> None:
    run = begin(tmp_path / "leaf", batch_size=8)
    run.finish(headline={})
    again = begin(tmp_path / "leaf", batch_size=1)
    assert again.closed and again.record["params"]["batch_size"] == 8
    assert input_hash({"a": 1, "batch_size": 2, "out_dir": "x"}, {}) == input_hash({"a": 1}, {})
    assert input_hash({"a": 1}, {}) != input_hash({"a": 2}, {})


def test_a_closed_leaf_is_read_back_and_never_written(tmp_path: Path) -> None:
    folder = tmp_path / "leaf"
    run = begin(folder)
    for index in (1, 0):
        run.log("arc").append({"id": f"i{index}", "index": index, **ROW, "ll": [-1.0], "token_logprobs": [[-1.0]]})
    run.table(pd.DataFrame({"x": [1 / 3]}), "scores")
    record = run.finish(headline={"toy": {"arc": {"value": float("nan"), "n": 2}}}, tasks={"arc": {"n": 2}})
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    again = begin(folder)
    assert again.closed and again.record["input_hash"] == record["input_hash"]
    assert again.record["headline"]["toy"]["arc"]["value"] is None
    again.table(pd.DataFrame({"x": [0]}), "scores")
    assert again.finish(headline={}) == again.record
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert "0.3333333333333333" in (folder / "tables" / "scores.csv").read_text()
    assert not (folder / ".inputs.json").exists()
    leaf = read_leaf(folder)
    assert leaf.tasks() == ["arc"] and list(leaf.rows("arc")["id"]) == ["i0", "i1"]
    some = leaf.rows("arc", "ll", "no_such", "id")
    assert set(some) == {"ll", "id"} and list(some["id"]) == ["i0", "i1"], "those of the columns that are there"
    assert {"python", "thaikit", "numpy"} <= set(leaf.run["versions"])


def test_parquet_has_item_order_and_no_per_token_lists(tmp_path: Path) -> None:
    run = begin(tmp_path / "leaf")
    for index in (2, 0, 1):
        run.log("arc").append(
            {"id": f"i{index}", "index": index, **ROW, "ll": [-1.0, -2.0], "token_logprobs": [[-1.0]]}
        )
    run.finish(headline={})
    frame = pd.read_parquet(tmp_path / "leaf" / "rows" / "arc.parquet")
    assert list(frame["id"]) == ["i0", "i1", "i2"] and "token_logprobs" not in frame
    assert [list(ll) for ll in frame["ll"]] == [[-1.0, -2.0]] * 3
    kept = read_rows(tmp_path / "leaf" / "rows" / "arc.jsonl")
    assert [row["id"] for row in kept] == ["i0", "i1", "i2"] and kept[0]["token_logprobs"] == [[-1.0]]


def test_failed_rows_block_closing_and_are_tried_again(tmp_path: Path) -> None:
    run = begin(tmp_path / "leaf")
    run.log("arc").append({"id": "a", "index": 0, "task": "arc", "outcome": "failed", "score": None})
    run.log("arc").append({"id": "b", "index": 1, **ROW})
    with pytest.raises(ThaikitError, match=r"1 items failed \(arc a"):
        run.finish(headline={})
    again = begin(tmp_path / "leaf")
    assert again.log("arc").ids == {"b"}
    again.log("arc").append({"id": "a", "index": 0, **ROW})
    again.finish(headline={})
    assert [row["outcome"] for row in read_rows(tmp_path / "leaf" / "rows" / "arc.jsonl")] == ["ok", "ok"]


WRITER = """
import sys
from thaikit.records import Run
run = Run.open("toy", params={"model": "m"}, inputs={"file": "abc"}, out_dir=sys.argv[1])
log = run.log("arc")
print("ready", flush=True)
for index in range(400):
    if f"i{index}" not in log.ids:
        log.append({"id": f"i{index}", "index": index, "task": "arc", "outcome": "ok", "score": 1.0,
                    "question": "ก" * (7 * index % 900)})
        print(f"i{index}", flush=True)
run.finish(headline={"toy": {}})
"""


def test_sigkill_at_random_moments_loses_and_doubles_nothing(tmp_path: Path) -> None:
    folder, told, rng = tmp_path / "leaf", [], random.Random(7)
    for _ in range(10):
        command = [sys.executable, "-c", WRITER, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as child:
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.0, 0.03))
            child.send_signal(signal.SIGKILL)
            told += child.stdout.read().split()
        if (folder / "run.json").exists():
            break
        assert not state_of(folder).record
    done = subprocess.run([sys.executable, "-c", WRITER, str(folder)], capture_output=True, text=True, check=True)
    told += done.stdout.split()[1:]
    rows = read_rows(folder / "rows" / "arc.jsonl")
    assert [row["id"] for row in rows] == [f"i{index}" for index in range(400)]
    assert [len(row["question"]) for row in rows] == [7 * index % 900 for index in range(400)]
    assert len(told) == len(set(told))  # what a killed process had reported was never computed again


def test_states_of_leaves_on_disk(tmp_path: Path) -> None:
    suite = tmp_path / "demo"
    closed = begin(suite / "toy" / "a")
    closed.log("arc").append({"id": "x", "index": 0, **ROW})
    closed.finish(headline={})
    begin(partial(suite / "toy" / "v1.5x")).log("arc").append({"id": "x", "index": 0, **ROW})
    begin(suite / "report").finish(headline={})
    assert [(one.name, one.state, one.rows) for one in status(suite)] == [
        ("report", "closed", 0), ("toy/a", "closed", 1), ("toy/v1.5x", "partial", 1)
    ]  # fmt: skip
    assert [leaf.name for leaf in leaves(suite)] == ["report", "a"]
    assert [leaf.name for leaf in leaves(suite, stage="toy")] == ["a"]
    assert state_of(suite / "toy" / "a", digest="other").state == "stale"
    assert state_of(suite / "toy" / "a", digest=closed.record["input_hash"]).state == "closed"
    assert state_of(suite / "toy" / "b").state == "missing"
    with pytest.raises(ThaikitError, match="toy/b: no such folder; name a leaf"):
        read_leaf(suite / "toy" / "b")
    with pytest.raises(ThaikitError, match="no run.json, so this leaf is not done"):
        read_leaf(suite / "toy" / "v1.5x")


def test_a_judgement_counts_once_however_often_it_was_asked_for(tmp_path: Path) -> None:
    run = begin(partial(tmp_path / "judged"))
    for index in range(3):
        run.log("replies").append({"id": f"x#a{index}", "index": index, **ROW})
    assert state_of(tmp_path / "judged").rows == 3, "before the first judgement it is what shows that there is work"
    run.log("judgements").append({"id": "x", "index": 0, **ROW})
    run.log("gate").append({"id": "x@chosen", "index": 0, **ROW})
    assert state_of(tmp_path / "judged").rows == 2


def test_a_leaf_without_a_name_goes_to_scratch_of_the_kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("thaikit.records.root", lambda: tmp_path / "kit")
    first, second = (Run.open("toy", params={}) for _ in range(2))
    assert first.out_dir.parent == tmp_path / "kit" / "outputs" / "scratch" / "toy"
    assert first.out_dir != second.out_dir


def test_whole_files_only(tmp_path: Path) -> None:
    path = tmp_path / "a" / "x.json"
    write_atomic(path, "ก")
    write_atomic(path, "ข")
    assert path.read_text(encoding="utf-8") == "ข" and [p.name for p in path.parent.iterdir()] == ["x.json"]
    assert (root() / "environment.yml").exists()
