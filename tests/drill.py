"""Faults, kills and money, through the notebook that judges: make drill, or python tests/drill.py (KILLS=50: longer).

A real server on this machine fails as told while notebook 21 puts 500 answers to it. Prints PASS or FAIL for each thing
that must hold, then one summary line; the status says the same. Some ten minutes on two cores.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from throughput import calls, server

from thaikit.ledger import NAME
from thaikit.records import read_rows, root

ITEMS, KEY, MARKER = 500, "DRILL_KEY", "sk-marker-7f3a9c51e0d24b68"
FAULTS = {"429": 0.06, "429-after": 0.04, "500": 0.05, "hang": 0.02, "reset": 0.04, "cut": 0.04, "empty": 0.03,
          "slow": 0.02}  # fmt: skip
PRICE = {"price_input": 10.0, "price_output": 30.0, "price_date": "2026-01-01", "thb_rate": 35.0}
LOOSE = ("seconds", "retries", "cached", "prompt_tokens", "completion_tokens", "usd", "asked")
THEMES = ("royal family", "religion", "culture", "economy", "humanity", "lifestyle", "politics")
results: list[tuple[bool, str]] = []


def holds(fact: bool, told: str) -> None:
    """Note and print one thing that must hold."""
    results.append((bool(fact), told))
    print(f"{'PASS' if fact else 'FAIL'}  {told}", flush=True)


def workspace(
    folder: Path, url: str, *, items: int = ITEMS, mark: str = "", every: int = 1, rule: str = "paper", **entry: Any
) -> Path:
    """Items, answers, a judge and its server as files; `mark` is a fault that every request, or that about each
    `every`-th item, asks for by name."""
    folder.mkdir(parents=True)
    marks = [mark if n % every == 0 else "" for n in range(items)]
    rows = [{"id": f"q{n}", "question": f"คำถามข้อ {n} {marks[n]}", "chosen": f"คำตอบดี {n}", "rejected": f"คำตอบด้อย {n}",
             "theme": THEMES[n % 7]} for n in range(items)]  # fmt: skip
    answers = [{"id": row["id"], "text": f"คำตอบของข้อ {n}", "finish": "stop"} for n, row in enumerate(rows)]
    for name, lines in (("items.jsonl", rows), ("answers.jsonl", answers)):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / name).write_text(text, encoding="utf-8")
    model = {"kind": "openai", "source": "judge-1", "base_url": url, "api_key_env": KEY, "timeout": 2.0, "attempts": 12,
             "backoff": 0.05, "concurrency_start": 8, "concurrency_max": 16, **entry}  # fmt: skip
    judge = {"model": str(folder / "server.yaml"), "prompt": "thaicli-judge", "rule": rule, "tries": 2,
             "sampling": {"temperature": 0.0, "max_tokens": 64}}  # fmt: skip
    tasks = {"benchmark": "thaicli", "name": "drill", "data": str(folder),
             "formats": {"factoid": {"source": {"files": "items.jsonl"}}}}  # fmt: skip
    for name, content in (("server", model), ("judge", judge), ("tasks", tasks)):
        (folder / f"{name}.yaml").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return folder


def begin(folder: Path, leaf: str, *, max_cost: float = 0.0) -> subprocess.Popen[bytes]:
    """Start notebook 21 on a workspace; its output goes to a log beside the leaf."""
    given = {"model": "replay-thaicli-answers", "judge": folder / "judge.yaml", "tasks": folder / "tasks.yaml",
             "answers": folder / "answers.jsonl", "gate": False, "suite": folder, "max_cost": max_cost,
             "out_dir": folder / leaf}  # fmt: skip
    notebook = str(root() / "notebooks" / "21_thaicli_judge.ipynb")
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", notebook, str(folder / f"{leaf}.ipynb")]
    for name, value in given.items():
        command += ["-p", name, str(value)]
    env = {**os.environ, KEY: MARKER, "OMP_NUM_THREADS": "1"}
    with (folder / f"{leaf}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=env)


def judged(folder: Path, leaf: str, **options: Any) -> int:
    """Run notebook 21 to its end; its status."""
    return begin(folder, leaf, **options).wait(timeout=900)


def final(folder: Path, leaf: str) -> dict[str, dict[str, Any]]:
    """A leaf's judgements by id, without what may differ between two runs."""
    rows = read_rows(folder / leaf / "rows" / "judgements.jsonl")
    assert len(rows) == len({row["id"] for row in rows}), "a row stands twice"
    return {row["id"]: {key: strip(value) for key, value in row.items() if key not in LOOSE} for row in rows}


def strip(value: Any) -> Any:
    """A value without what may differ between two runs, in the replies that a row keeps too."""
    if isinstance(value, dict):
        return {key: strip(inner) for key, inner in value.items() if key not in LOOSE}
    return [strip(inner) for inner in value] if isinstance(value, list) else value


def ledger(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """A look into a workspace's ledger."""
    if not (folder / NAME).exists():
        return []
    with sqlite3.connect(folder / NAME, timeout=60) as sql:
        return sql.execute(query).fetchall()


def drill_faults(base: Path) -> dict[str, dict[str, Any]]:
    """Passing faults change no row; the rest end as they should. Returns the rows of the run without faults."""
    with server(echo_key=True) as url:
        clean = workspace(base / "clean", url)
        holds(judged(clean, "leaf") == 0, f"{ITEMS} items without faults: the leaf closes")
    wanted = final(clean, "leaf")
    holds(
        len(wanted) == ITEMS and all(row["outcome"] == "ok" for row in wanted.values()), "each has one row with a score"
    )
    with server(seed=3, rates=FAULTS, hang=4.0, echo_key=True) as url:
        torn = workspace(base / "torn", url)
        status, seen = judged(torn, "leaf"), calls(url)
    met = Counter(one["met"] for one in seen)
    share = 1 - met["ok"] / len(seen)
    holds(status == 0 and final(torn, "leaf") == wanted, f"{share:.0%} faults ({dict(met)}): the same {ITEMS} rows")
    return wanted


def drill_endings(base: Path) -> None:
    """What is no passing fault ends in its stated outcome."""
    # The last is the score that is read: none, that of the thought (1), or one of the reply's own (0).
    endings = (("filter", "paper", "filtered", None), ("think", "paper", "ok", 1), ("think", "after-thought", "ok", 0),
               ("open-think", "paper", "truncated", None))  # fmt: skip
    for mark, rule, outcome, score in endings:
        with server() as url:
            folder = workspace(base / f"{mark}-{rule}", url, items=21, mark=f"[[{mark}]]", rule=rule)
            status, seen = judged(folder, "leaf"), calls(url)
        rows = list(final(folder, "leaf").values())
        once = len(seen) == len(rows) * (2 if mark == "open-think" else 1)
        scores = {row["score"] for row in rows}
        read = {None: scores == {None}, 1: scores == {1}, 0: None not in scores and len(scores) > 1}[score]
        same = status == 0 and len(rows) == 21 and {row["outcome"] for row in rows} == {outcome}
        holds(same and once and read, f"{mark} under {rule}: {outcome}, {len(seen)} calls for {len(rows)} items")
    with server(delay=0.2, echo_key=True) as url:
        folder = workspace(base / "rejected", url, items=60, mark="[[bad-request]]", every=20)
        process, deadline = begin(folder, "leaf"), time.monotonic() + 60
        while len(calls(url)) < 12 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        kill(process)
        status, seen = judged(folder, "leaf"), calls(url)
    rows = list(final(folder, "leaf").values())
    lost = [row["id"].split("@")[0] for row in rows if row["outcome"] == "failed" and row["score"] is None]
    told = json.loads((folder / "leaf" / "run.json").read_text(encoding="utf-8"))
    once = max(Counter(one["request"] for one in seen if one["met"] == "bad-request").values()) <= 3
    ends = told["headline"]["thaicli"]["coverage"] == 0.95 and "context length" in str(told["failures"]["reasons"])
    holds(
        status == 0 and lost == ["q0", "q20", "q40"] and once and ends,
        "3 of 60 rejected with 400, a kill between: the leaf closes with coverage 0.95 and the server's sentence",
    )
    with server() as url:
        folder = workspace(base / "wrong", url, items=21, mark="[[wrong-model]]")
        status, log = judged(folder, "leaf"), folder / "leaf.log"
    told = "another-model" in log.read_text(encoding="utf-8")
    kept = folder / "leaf" / "rows" / "judgements.jsonl"
    scored = [row for row in (read_rows(kept) if kept.exists() else []) if row.get("score") is not None]
    holds(status != 0 and told and not scored, "wrong model id: the run stops, says so, and scores nothing")


def drill_kills(base: Path, wanted: dict[str, dict[str, Any]], kills: int) -> None:
    """SIGKILL of notebook and kernel at random moments: nothing lost, nothing paid twice, each repeat logged."""
    rng, snapshots, flying, survived = random.Random(7), [], 0, 0
    with server(delay=0.25, echo_key=True) as url:
        folder = workspace(base / "killed", url, concurrency_start=4, concurrency_max=4)
        for n in range(kills):
            process, before = begin(folder, "leaf"), len(calls(url))
            deadline = time.monotonic() + 60
            while n % 5 and len(calls(url)) == before and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
            time.sleep(rng.uniform(0.0, 0.6 * ITEMS * 0.25 / 4 / kills * 2 if n % 5 else 8.0))
            survived += process.poll() is not None
            kill(process)
            done = {key for (key,) in ledger(folder, "SELECT key FROM requests WHERE state = 'done'")}
            flying += ledger(folder, "SELECT COUNT(*) FROM requests WHERE state = 'flying'")[0][0] if done else 0
            snapshots.append((len(calls(url)), done))
        status, seen = judged(folder, "leaf"), calls(url)
    holds(
        status == 0 and final(folder, "leaf") == wanted, f"{kills} kills ({survived} came after the end): the same rows"
    )
    again = sum(one["request"] in done for place, done in snapshots for one in seen[place:])
    holds(again == 0, f"no reply that reached the disk was asked for again ({len(seen)} calls in all)")
    repeats = len(seen) - len({one["request"] for one in seen})
    logged = Counter(key for (key,) in ledger(folder, "SELECT key FROM journal WHERE event = 'repeat'"))
    each = all(count - 1 <= logged[key] for key, count in Counter(one["request"] for one in seen).items())
    holds(
        each and logged.total() <= flying,
        f"repeats: {repeats} seen by the server, {logged.total()} logged, {flying} in flight at kills",
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a notebook's process and its kernel with SIGKILL, at once."""
    try:
        family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    except psutil.NoSuchProcess:
        return
    for one in family:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


def cost(call: dict[str, Any]) -> float:
    """US dollars that the server would bill for a call."""
    tokens = PRICE["price_input"] * call["prompt_tokens"] + PRICE["price_output"] * call["completion_tokens"]
    return 1e-6 * tokens


def drill_money(base: Path) -> None:
    """Two processes on one suite never pay twice and never pass the limit; a higher one goes on."""
    with server(delay=0.05) as url:
        folder = workspace(base / "money", url, **PRICE)
        limit = 0.6
        pair = [begin(folder, name, max_cost=limit) for name in ("one", "two")]
        statuses = [process.wait(timeout=900) for process in pair]
        first = calls(url)
        billed = sum(cost(one) for one in first)
        holds(all(statuses) and 0 < len(first) < ITEMS, f"both stop at max_cost {limit} after {len(first)} calls")
        told = (folder / "one.log").read_text(encoding="utf-8") + (folder / "two.log").read_text(encoding="utf-8")
        holds(billed <= limit and "max_cost" in told, f"the server billed {billed:.4f} of {limit} US dollars")
        pair = [begin(folder, name, max_cost=100.0) for name in ("one", "two")]
        statuses, seen = [process.wait(timeout=900) for process in pair], calls(url)
    same = final(folder, "one") == final(folder, "two")
    holds(not any(statuses) and same and len(final(folder, "one")) == ITEMS, "with a higher limit both go on and close")
    distinct = len({one["request"] for one in seen})
    holds(len(seen) == distinct == ITEMS, f"{len(seen)} calls for {distinct} requests of two processes")


def drill_secrets(base: Path) -> None:
    """The key is in no file: leaves, notebooks, logs, ledgers."""
    files = [path for path in base.rglob("*") if path.is_file()]
    found = [str(path.relative_to(base)) for path in files if MARKER.encode() in path.read_bytes()]
    holds(not found, f"the key stands in none of {len(files)} files {found[:3] or ''}")


def main(given: Sequence[str] = ()) -> int:
    """Exit status 0 where everything holds."""
    kills, begun = int(os.environ.get("KILLS") or 20), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="thaikit-drill-") as name:
        base = Path(name)
        wanted = drill_faults(base)
        drill_endings(base)
        drill_kills(base, wanted, kills)
        drill_money(base)
        drill_secrets(base)
    bad = [told for fact, told in results if not fact]
    minutes = (time.monotonic() - begun) / 60
    print(f"drill: {len(results) - len(bad)} of {len(results)} hold, {kills} kills, {minutes:.1f} minutes"
          + (f"; first that does not: {bad[0]}" if bad else ""))  # fmt: skip
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
