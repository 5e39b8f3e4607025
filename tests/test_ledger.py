"""The ledger: each request asked by one, paid once, its money reserved before it is sent, kills accounted for."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer, Plan

from thaikit import ThaikitError, ledger
from thaikit.ledger import Ledger
from thaikit.transport import name_of

TESTS = Path(__file__).parent
WORKER = """
import sys, random, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from thaikit.ledger import Ledger
book, rng = Ledger(Path(sys.argv[2])), random.Random(int(sys.argv[3]))
keys, limit = [str(n) for n in range(int(sys.argv[4]))], float(sys.argv[5])
rng.shuffle(keys)
print("ready", flush=True); sys.stdin.readline()
todo = list(keys)
while todo:
    key = todo.pop(0)
    turn = book.begin(key, model="m", item=key, bound=1.0, max_cost=limit, seconds=20)
    if turn.state == "go":
        sums = book.totals()
        assert sums.spent + sums.reserved + sums.unsettled <= limit + 1e-9, sums
        time.sleep(rng.random() * 0.004)
        broken = rng.random() < 0.2
        book.settle(key, spent=0 if broken else rng.random(), reply=None if broken else {"by": sys.argv[3]})
        if broken: todo.append(key)
    elif turn.state == "wait":
        todo.append(key); time.sleep(0.001)
    elif turn.state == "full":
        print("full", flush=True); break
print("end", flush=True)
"""
ASKER = """
import sys
from pathlib import Path
from thaikit.chat import Ask, Sampling
from thaikit.params import ModelEntry
from thaikit.rowlog import RowLog
from thaikit.server import Server
entry = ModelEntry(kind="openai", source="m", base_url=sys.argv[1], timeout=10)
chat = Server("m", entry, suite_dir=Path(sys.argv[2]))
print("ready", flush=True); sys.stdin.readline()
asks = [Ask(str(n), f"ข้อ {n}") for n in range(int(sys.argv[4]))]
log = RowLog(Path(sys.argv[3]) / "replies.jsonl")
for ask, reply in chat.ask(asks, sampling=Sampling(max_tokens=9), log=log, tell=lambda _: None):
    print(ask.id, flush=True)
"""


def take(book: Ledger, key: str = "k", **more: Any) -> ledger.Turn:
    return book.begin(key, **{"model": "m", "item": key, "bound": 0.0, "max_cost": 0.0, "seconds": 60.0, **more})


def start(code: str, *words: Any) -> subprocess.Popen[str]:
    """A process that has said ready and waits for a line."""
    command = [sys.executable, "-c", code, *map(str, words)]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdout and worker.stdout.readline() == "ready\n"
    return worker


def go(*workers: subprocess.Popen[str]) -> list[str]:
    """Let them run at once; what each said."""
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("\n")
        worker.stdin.flush()
    return [worker.communicate(timeout=60)[0] for worker in workers]


def test_a_request_is_taken_once_and_its_reply_kept(tmp_path: Path) -> None:
    one, two = Ledger(tmp_path / "l.sqlite"), Ledger(tmp_path / "l.sqlite")
    assert take(one).state == "go" and take(two).state == take(one).state == "wait"
    one.settle("k", spent=0.25, reply={"text": "ก\u2028'\ud83d"}, told="\ud83d")
    assert take(two) == ledger.Turn("known", {"text": "ก\u2028'\ud83d"})
    assert take(two, "other").state == "go"
    two.settle("other", unsettled=0.5, reply=None, told="broken")
    assert take(one, "other").state == "go", "a fault lets go of the request"
    sums = Ledger(tmp_path / "l.sqlite").totals()
    assert (sums.replies, sums.sent, sums.lost, sums.repeats) == (1, 3, 0, 0)
    assert (sums.spent, sums.unsettled) == (0.25, 0.5)
    assert take(two, usable=lambda reply: False).state == "go", "a reply of no use is asked for anew"


def test_money_is_reserved_and_the_limit_never_passed(tmp_path: Path) -> None:
    book = Ledger(tmp_path / "l.sqlite")
    assert [take(book, key, bound=0.4, max_cost=1.0).state for key in "abc"] == ["go", "go", "wait"]
    book.settle("a", spent=0.1, reply={"text": ""})
    assert take(book, "c", bound=0.4, max_cost=1.0).state == "go"
    book.settle("b", spent=0.3, reply={"text": ""})
    book.settle("c", unsettled=0.4, reply=None)
    assert take(book, "d", bound=0.4, max_cost=1.0).state == "full"
    assert take(book, "a", bound=0.4, max_cost=1.0).state == "known", "what is paid for stays readable"
    assert take(book, "d", bound=0.4, max_cost=2.0).state == "go", "a higher limit goes on"


def test_a_dead_process_leaves_a_journalled_repeat_and_its_money_counts(tmp_path: Path) -> None:
    code = (
        "import sys, os, signal; from pathlib import Path; from thaikit.ledger import Ledger;"
        "b = Ledger(Path(sys.argv[1])); b.begin('k', model='m', item='q1', bound=0.5, max_cost=1, seconds=900);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "l.sqlite")], check=False)
    assert done.returncode == -signal.SIGKILL
    book = Ledger(tmp_path / "l.sqlite")
    assert [(row["event"], row["item"], row["usd"]) for row in book.journal("lost")] == [("lost", "q1", 0.5)]
    assert book.totals().unsettled == 0.5 and book.totals().reserved == 0
    turn = take(book, "k", item="q1", bound=0.5, max_cost=1.0)
    assert turn == ledger.Turn("go", repeat=True)
    book.settle("k", spent=0.1, reply={"text": "x"})
    assert book.totals().repeats == 1 and take(book).state == "known"


def test_a_lease_ends_by_time_and_a_late_reply_only_pays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book, there = Ledger(tmp_path / "l.sqlite"), ledger.me
    monkeypatch.setattr(ledger, "me", lambda: "another-host:1:1")
    assert take(book, seconds=0.05).state == "go"
    monkeypatch.setattr(ledger, "me", there)
    assert take(book).state == "wait", "a process of another host is believed"
    time.sleep(0.06)
    assert take(book).repeat
    monkeypatch.setattr(ledger, "me", lambda: "another-host:1:1")
    book.settle("k", spent=0.5, reply={"text": "late"})
    monkeypatch.setattr(ledger, "me", there)
    assert book.totals().spent == 0.5
    book.settle("k", reply={"text": "mine"})
    assert take(book).reply == {"text": "mine"}


def test_process_ids_that_are_used_again_are_told_apart() -> None:
    host, process, begun = ledger.me().rsplit(":", 2)
    assert ledger.alive(ledger.me()) and not ledger.alive(f"{host}:{process}:{begun}1")
    assert not ledger.alive(f"{host}:{2**22 + 1}:1") and ledger.alive("elsewhere:1:1")


def test_processes_race_for_requests_and_money(tmp_path: Path) -> None:
    """Three processes, 60 requests, a limit that some of them hit: each reply is written by one, the sum holds."""
    path = tmp_path / "l.sqlite"
    said = go(*[start(WORKER, TESTS, path, seed, 60, 12.0) for seed in range(3)])
    assert all(told.endswith("end\n") for told in said) and any("full" in told for told in said)
    book = Ledger(path)
    sums = book.totals()
    assert sums.spent + sums.unsettled <= 12.0 and sums.reserved == 0 and 0 < sums.replies < 60
    said = go(*[start(WORKER, TESTS, path, seed, 60, 1e6) for seed in range(3)])
    assert book.totals().replies == 60
    replies = Counter(row["key"] for row in book.journal("reply"))
    assert len(replies) == 60 and set(replies.values()) == {1}, "nobody pays twice"


def test_many_may_make_the_file_at_once(tmp_path: Path) -> None:
    """SQLite's own waiting leaves out the lock of the switch to WAL."""
    for turn in range(8):
        start = threading.Barrier(8)

        def opened(_: int, turn: int = turn, start: threading.Barrier = start) -> int:
            start.wait()
            ledger = Ledger(tmp_path / f"{turn}" / "ledger.sqlite")
            ledger.close()
            return 1

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(opened, range(8))) == 8


def test_two_processes_on_one_suite_and_a_kill(tmp_path: Path) -> None:
    """The second waits for what the first asks; killed, its requests under way are asked once more and journalled."""
    with FaultServer(Plan(delay=0.05)) as server:
        workers = [start(ASKER, server.url, tmp_path / "suite", tmp_path / str(n), 40) for n in range(2)]
        said = go(*workers)
        assert [len(told.split()) for told in said] == [40, 40] and len(server.calls) == 40
    with FaultServer(Plan(delay=0.1)) as server:
        worker = start(ASKER, server.url, tmp_path / "killed", tmp_path / "leaf", 40)
        assert worker.stdin and worker.stdout
        worker.stdin.write("\n")
        worker.stdin.flush()
        for _ in range(random.Random(5).randint(1, 20)):
            worker.stdout.readline()
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        before = Ledger(tmp_path / "killed" / ledger.NAME)
        there, lost = before.known(), {row["key"] for row in before.journal("lost")}
        [told] = go(start(ASKER, server.url, tmp_path / "killed", tmp_path / "leaf", 40))
        assert len(told.split()) == 40
        calls = Counter(seen.request for seen in server.calls)
        assert len(calls) == 40 and not [key for key in there if calls[key] != 1]
        twice = {key for key, count in calls.items() if count > 1}
        assert twice <= lost and max(calls.values()) <= 2
        assert {row["key"] for row in before.journal("repeat")} >= twice


def test_the_name_of_a_request_holds_all_that_can_change_its_reply() -> None:
    from dataclasses import replace

    from thaikit.chat import Ask, Sampling
    from thaikit.params import ModelEntry, changed
    from thaikit.transport import body_of

    base = ModelEntry(kind="openai", source="m", base_url="http://a/v1")
    ask, drawn = Ask("q", ({"role": "user", "content": "ก"},)), Sampling()

    def name(entry: ModelEntry = base, ask: Ask = ask, drawn: Sampling = drawn) -> str:
        return name_of(entry, ask, body_of(entry, ask.prompt, drawn))

    moved: list[Callable[[], str]] = [
        lambda key=key, value=value: name(changed(base, {key: value}, where=""))
        for key, value in {"base_url": "http://b/v1", "source": "n", "extra": {"top_k": 1}, "omit": ["top_p"],
                           "max_tokens_key": "max_completion_tokens"}.items()
    ]  # fmt: skip
    asked = {"attempt": 1, "repeat": 1, "run": "r", "prompt": "ก"}
    moved += [lambda key=key, value=value: name(ask=replace(ask, **{key: value})) for key, value in asked.items()]
    sampled = {"temperature": 0.1, "top_p": 0.9, "max_tokens": 5, "seed": 0, "stops": ("x",)}
    moved += [lambda key=key, value=value: name(drawn=replace(drawn, **{key: value})) for key, value in sampled.items()]
    moved.append(lambda: name(ask=replace(ask, prompt=({"role": "system", "content": "ก"},))))
    names = [make() for make in moved]
    assert len({*names, name()}) == len(names) + 1
    assert name(ask=replace(ask, id="other")) == name(changed(base, {"price_input": 1.0, "timeout": 9.0}, where=""))


def test_a_file_that_is_no_ledger_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "l.sqlite").write_bytes(b"not a database, but long enough to be looked at " * 40)
    with pytest.raises(ThaikitError, match="move it"):
        Ledger(tmp_path / "l.sqlite")
    (tmp_path / "file").touch()
    with pytest.raises(ThaikitError, match="folder cannot be made"):
        Ledger(tmp_path / "file" / "l.sqlite")
    with sqlite3.connect(tmp_path / "n.sqlite") as other:
        other.execute("PRAGMA user_version = 9")
    with pytest.raises(ThaikitError, match="version 9"):
        Ledger(tmp_path / "n.sqlite")
