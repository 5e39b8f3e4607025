"""Time and peak memory when the items double: python tests/doubling.py [--items 500] [--model gemma3-270m]

Sample sentences of Winogrande, repeated with changed numbers, through reading, encoding, scoring and rows on disk; each
size in a process of its own, so that each has its own peak. Exits with 1 where twice the items take more than 2.3 times
as long, or the peak grows by more than a tenth.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from kit import ask, spec_of, write_jsonl

from thaikit import asking, params
from thaikit.tasks.build import build


def rows(count: int) -> list[dict]:
    """Winogrande rows that repeat the bundled ones, each with a number of its own."""
    path = params.expand("samples:thai_h6/winogrande/validation.jsonl", base=Path())
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    field = "th_sentence" if "th_sentence" in found[0] else "sentence"

    def changed(n: int) -> dict:
        row = found[n % len(found)]
        return {
            **row,
            "qID": f"{row.get('qID', '')}-{n}",
            field: f"(ข้อ {n + 1}) " + re.sub(r"\d", str(n % 10), row[field]),
        }

    return [changed(n) for n in range(count)]


def once(model: str, items: int) -> None:
    """Score so many items; print seconds without loading, and the process's peak in MiB."""
    asked = asking.open_model(model)
    asked.choose("tree")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pool = params.expand("samples:thai_h6/winogrande/train.jsonl", base=Path())
        write_jsonl(folder / "test.jsonl", rows(items))
        (folder / "train.jsonl").write_text(pool.read_text(encoding="utf-8"), encoding="utf-8")
        found = params.TaskSet.model_validate({"name": "doubling", "tasks": {"winogrande": spec_of("winogrande", 5)}})
        begun, busy = time.monotonic(), time.process_time()
        told = ask(build("winogrande", found, folder), asked, folder / "rows.jsonl")
        seconds, cpu = time.monotonic() - begun, time.process_time() - busy
    assert len(told) == items
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "mib": peak}))


def told(one: dict[str, float]) -> str:
    """A measurement as text; the processor's own seconds show what other work on the machine hides."""
    return f"{one['seconds']:.1f} s ({one['cpu']:.1f} s of the processor), peak {one['mib']:,.0f} MiB"


def main(given: Sequence[str] | None = None) -> int:
    """Exit status 0 where both ratios hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--model", default="gemma3-270m")
    parser.add_argument("--once", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args(given)
    if chosen.once:
        once(chosen.model, chosen.once)
        return 0
    measured = []
    for items in (chosen.items, 2 * chosen.items):
        command = [sys.executable, __file__, "--model", chosen.model, "--once", str(items)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        measured.append(json.loads(done.stdout.splitlines()[-1]))
        print(f"{items} items: {told(measured[-1])}", flush=True)
    slower, busier, larger = (measured[1][key] / measured[0][key] for key in ("seconds", "cpu", "mib"))
    print(
        f"twice the items: {slower:.2f} times as long (at most 2.3), {busier:.2f} times the processor's seconds, "
        f"{larger:.2f} times the peak (at most 1.1)"
    )
    return 0 if slower <= 2.3 and larger <= 1.1 else 1


if __name__ == "__main__":
    sys.exit(main())
