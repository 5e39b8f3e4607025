"""The tree kernel against the plain path on the bundled samples, item by item: python tests/exact.py [--items 2]

fp32, both embedded models, the six tasks, and the same tasks with an exemplar choice of its own for each item (the
harness's random stream). Prints a line a task and exits with 1 where a log-probability differs by more than 1e-4 a
token, or a prediction or a text at all. On two cores about two minutes an item of every task and model.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kit import PER_TOKEN, ask, per_token, samples

from thaikit import asking
from thaikit.tasks.build import Task

MODELS = ("gemma3-270m", "smollm2-135m-instruct")
PROFILES = ("thai-h6", "harness-0.4")  # fixed exemplars; random ones for each item


def compare(task: Task, model: Any) -> tuple[float, int]:
    """The largest difference per token, and how many items differ in prediction or text."""
    with tempfile.TemporaryDirectory() as folder:
        plain, tree = (
            ask(task, model, Path(folder) / f"{kernel}.jsonl", kernel=kernel, token_logprobs=True)
            for kernel in ("plain", "tree")
        )
    told = [(row.get("prediction"), row.get("completion"), row.get("greedy")) for row in tree]
    other = [(row.get("prediction"), row.get("completion"), row.get("greedy")) for row in plain]
    assert [row["id"] for row in tree] == [row["id"] for row in plain] and tree
    worst = max((difference(a, b) for a, b in zip(tree, plain, strict=True)), default=0.0)
    return worst, sum(a != b for a, b in zip(told, other, strict=True))


def difference(row: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest difference of two rows' log-probabilities, token by token."""
    pairs = zip(row.get("token_logprobs") or [], other.get("token_logprobs") or [], strict=True)
    single = [abs(x - y) for a, b in pairs for x, y in zip(a, b, strict=True)]
    return max([*single, per_token(row, other)], default=0.0)


def main(given: Sequence[str] | None = None) -> int:
    """Exit status 0 where everything agrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=2, help="items a task")
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--only", nargs="*", default=[], help="some tasks")
    chosen, bad = parser.parse_args(given), 0
    for name in chosen.models:
        model = asking.open_model(name)
        for profile in PROFILES:
            for task in samples(limit=chosen.items, only=chosen.only, profile=profile):
                worst, differ = compare(task, model)
                bad += differ or worst > PER_TOKEN
                used = f"{model.kernel['used']}, {model.kernel.get('generation', '-')}"
                print(f"{name} {profile} {task.name}: {chosen.items} items, largest difference {worst:.2e} a token, "
                      f"{differ} predictions or texts differ ({used})", flush=True)  # fmt: skip
    print("equal" if not bad else f"{bad} differences")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
