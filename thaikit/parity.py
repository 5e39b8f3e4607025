"""Parity with lm-evaluation-harness 0.4.13: same files, same model object, fp32, profile `harness-0.4`, first-n shots.

`python -m thaikit.parity` (make parity) runs both on the shipped Thai samples and, where THAIKIT_REAL_DATA names their
folder, on English rows. PARITY_ITEMS sets the items a task (0: all). The exit status is 1 where a limit is passed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thaikit import ThaikitError, params, peer
from thaikit.asking import Local, open_model
from thaikit.params import TaskSet
from thaikit.parity_items import LIMIT, MARGIN, Finding, compare_item, compare_totals, kit_answers
from thaikit.records import root
from thaikit.tasks import build
from thaikit.tasks.build import Task

MODEL = "gemma3-270m"
SETS = {"thai": "thai-h6-samples", "english": "h6-english-rows"}
# Items a task: together about half an hour on two idle cores, most of it the peer's, which works out every logit.
ITEMS = {"arc": 8, "hellaswag": 8, "mmlu": 16, "truthfulqa": 10, "winogrande": 20, "gsm8k": 8}
NEW_TOKENS = 64  # a generation's limit on both sides
COLUMNS = (
    "set", "task", "items", "lls", "largest_per_token", "largest_metric", "prompts_differ", "greedy_differ",
    "lls_beyond", "metrics_differ", "predictions_differ", "texts_differ", "near_ties", "kit_seconds", "peer_seconds",
    "agrees",
)  # fmt: skip


def task_set(name: str) -> TaskSet:
    """A task file under the settings of parity: profile harness-0.4, English labels, the first exemplars for all."""
    found = params.load("tasks", name, TaskSet)
    tasks = {
        key: spec.model_copy(update={"max_new_tokens": NEW_TOKENS}) if spec.kind == "gsm8k" else spec
        for key, spec in found.tasks.items()
    }
    return found.model_copy(
        update={"profile": "harness-0.4", "labels": "en", "sampler": "first_n", "average": False, "tasks": tasks}
    )


def check(task: Task, tasks: TaskSet, local: Local, *, cache: Path | None = None) -> Finding:
    """Ask one task's items of the kit and of the harness and compare all that both report."""
    theirs = peer.ask(task, tasks, local, cache=cache, new_tokens=task.spec.max_new_tokens)
    begin = time.perf_counter()
    ours = kit_answers(task, local)
    found = Finding(task.name, kit_seconds=time.perf_counter() - begin, peer_seconds=theirs["seconds"])
    for place, (mine, other) in enumerate(zip(ours, theirs["items"], strict=True)):
        compare_item(found, task, place, mine, other, local)
    compare_totals(found, ours, theirs["totals"])
    return found


def wanted() -> int | None:
    """PARITY_ITEMS: items a task (0: all), or None where it is not set."""
    given = os.environ.get("PARITY_ITEMS", "").strip()
    if given and not given.isdecimal():
        raise ThaikitError(f"PARITY_ITEMS is {given!r}; a whole number is needed (0: all items)")
    return int(given) if given else None


def sets_here() -> dict[str, str]:
    """The task files that can be run on this machine."""
    return {key: name for key, name in SETS.items() if key == "thai" or os.environ.get("THAIKIT_REAL_DATA")}


def run(local: Local, names: Mapping[str, str], *, items: int | None, folder: Path) -> list[tuple[str, Finding]]:
    """Check every task of every set, telling each as it is done; the table is written anew after each."""
    found = []
    for key, name in names.items():
        tasks = task_set(name)
        for task_name, spec in tasks.tasks.items():
            limit = ITEMS[spec.kind] if items is None else items
            (task,) = build.build_all(tasks, only=[task_name], limit=limit)
            print(f"parity: {key} {task_name}, {len(task.items)} items", flush=True)
            found.append((key, check(task, tasks, local, cache=folder / "peer")))
            print(f"parity: {key} {task_name}: {told(found[-1][1])}", flush=True)
            table(found).to_csv(written(folder), index=False)
    return found


def told(found: Finding) -> str:
    """One line on a task."""
    verdict = "agrees" if found.agrees else "DIFFERS"
    return (
        f"{verdict}, largest difference {found.largest:.1e} per token, "
        f"kit {found.kit_seconds:.0f} s, peer {found.peer_seconds:.0f} s"
    )


def written(folder: Path) -> Path:
    """The table's place; its folder is made."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "parity.csv"


def table(found: Sequence[tuple[str, Finding]]) -> Any:
    """One line a task and set, as a data frame; `listed` holds what was set aside or differs, in words."""
    import pandas

    lines = [{"set": key, **one.counts(), "listed": "; ".join(one.listed)} for key, one in found]
    return pandas.DataFrame(lines, columns=[*COLUMNS, "listed"])


def summary(found: Sequence[tuple[str, Finding]], *, skipped: str = "") -> str:
    """The last line."""
    agree = sum(one.agrees for _, one in found)
    items, lls = (sum(getattr(one, name) for _, one in found) for name in ("items", "lls"))
    ties = sum(one.near_ties for _, one in found)
    largest = max((one.largest for _, one in found), default=0.0)
    return (
        f"parity: {agree} of {len(found)} task sets agree, {items} items, {lls} log-likelihoods, "
        f"largest difference {largest:.2e} per token (limit {LIMIT:.0e}), {ties} near-ties set aside{skipped}"
    )


def main() -> int:
    """Run parity, print the table and write outputs/parity/parity.csv; 0 where everything agrees."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    folder = root() / "outputs" / "parity"
    try:
        names, items = sets_here(), wanted()
        found = run(open_model(MODEL), names, items=items, folder=folder)
    except ThaikitError as error:
        print(f"parity: {error}", file=sys.stderr)
        return 2
    frame = table(found)
    print(frame.drop(columns="listed").to_string(index=False, float_format=lambda x: f"{x:.3g}"))
    for key, one in found:
        for line in one.listed:
            print(f"{key} {one.task}: {line}")
    print(f"Table: {written(folder)} (near-ties of generations: the two best logits within {MARGIN:.0e})")
    skipped = "" if "english" in names else "; English rows skipped, THAIKIT_REAL_DATA is not set"
    print(summary(found, skipped=skipped))
    return 0 if all(one.agrees for _, one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
