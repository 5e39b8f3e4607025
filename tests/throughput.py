"""How fast the wire is: python tests/throughput.py [items]. One-second replies, by default 1,890 of them.

Pinned at 64 at once, the total is within 15 % of items / 64 seconds; adaptive from 8, the server sees 64 at once within
10 seconds; the client's processor time is under 5 ms a call, with the bare official client's beside it; memory is flat.
One line a figure, then PASS or FAIL; the status says the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai

from thaikit.chat import Ask, Sampling
from thaikit.params import ModelEntry
from thaikit.rowlog import RowLog
from thaikit.server import Server
from thaikit.transport import body_of

AT_ONCE, SECONDS, BARE = 64, 1.0, 640
TURNS = ("You are fluent in the Thai language.", "ให้คะแนนคำตอบต่อไปนี้ " + "ข้อความภาษาไทย " * 60)


@contextmanager
def server(**plan: Any) -> Iterator[str]:
    """The fault server in a process of its own; its address."""
    command = [sys.executable, str(Path(__file__).with_name("fault_server.py")), json.dumps(plan)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def calls(url: str) -> list[dict[str, Any]]:
    """What the server saw."""
    with urllib.request.urlopen(f"{url}/calls", timeout=60) as response:
        return json.loads(response.read())


def resident() -> float:
    """This process's memory in MB."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def questions(number: int) -> Iterator[Ask]:
    for n in range(number):
        yield Ask(f"q{n}", ({"role": "system", "content": TURNS[0]}, {"role": "user", "content": f"{n} {TURNS[1]}"}))


def measured(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """(what it returned, its wall seconds, its processor seconds)."""
    wall, cpu = time.monotonic(), time.process_time()
    found = work()
    return found, time.monotonic() - wall, time.process_time() - cpu


def bare(url: str, number: int) -> float:
    """Milliseconds of processor a call of the official client alone, as it comes, in as many threads."""
    entry = ModelEntry(kind="openai", source="m", base_url=url)
    client = openai.OpenAI(api_key="none", base_url=url, max_retries=0)
    bodies = [body_of(entry, ask.prompt, Sampling()) for ask in questions(number)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        _, _, cpu = measured(lambda: list(pool.map(lambda body: client.chat.completions.create(**body), bodies)))
    return cpu / number * 1000


def kit(url: str, number: int, *, start: int) -> dict[str, float]:
    """The same through `ask`, ledger and log: seconds, milliseconds of processor a call, MB grown since a quarter."""
    entry = ModelEntry(kind="openai", source="m", base_url=url, concurrency_start=start, concurrency_max=AT_ONCE)
    sizes: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        chat, log = Server("m", entry, suite_dir=Path(folder)), RowLog(Path(folder) / "replies.jsonl")

        def work() -> int:
            done = 0
            for done, _ in enumerate(
                chat.ask(questions(number), sampling=Sampling(), log=log, tell=lambda _: None), 1
            ):  # fmt: skip
                if done in (number // 4, number):
                    sizes.append(resident())
            return done

        done, wall, cpu = measured(work)
        assert done == number == len(log.rows())
    return {"seconds": wall, "ms": cpu / number * 1000, "grown": sizes[-1] - sizes[0]}


def main(number: int) -> bool:
    """Measure and say; whether all holds."""
    with server(delay=SECONDS) as url:
        alone = bare(url, min(BARE, number))
    with server(delay=SECONDS) as url:
        pinned = kit(url, number, start=AT_ONCE)
    with server(delay=SECONDS) as url:
        adaptive = kit(url, number, start=8)
        seen = calls(url)
    reached = next((one["at"] - seen[0]["at"] for one in seen if one["busy"] >= AT_ONCE), float("inf"))
    ideal = number / AT_ONCE * SECONDS
    found = {
        f"pinned at {AT_ONCE}: {pinned['seconds']:.1f} s for {number:,} items, {ideal:.1f} s at best (at most +15 %)":
            pinned["seconds"] <= 1.15 * ideal,
        f"adaptive from 8: {AT_ONCE} at once after {reached:.1f} s (at most 10), {adaptive['seconds']:.1f} s in all":
            reached <= 10,
        f"processor: {pinned['ms']:.2f} ms a call (under 5), the bare client {alone:.2f} ms": pinned["ms"] < 5,
        f"memory: {pinned['grown']:+.1f} MB from a quarter of the items to the end (at most 20)": pinned["grown"] < 20,
    }  # fmt: skip
    for told, holds in found.items():
        print(f"{'PASS' if holds else 'FAIL'}  {told}", flush=True)
    return all(found.values())


if __name__ == "__main__":
    sys.exit(not main(int(sys.argv[1]) if len(sys.argv) > 1 else 1890))
