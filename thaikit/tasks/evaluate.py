"""One model on the tasks of a task file, inside a leaf: load, check, score, summarise; a closed leaf is read back."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from thaikit import asking, fewshot, params, records
from thaikit.records import Run
from thaikit.tasks import summary
from thaikit.tasks.ahead import encoded
from thaikit.tasks.build import Task, build_all
from thaikit.tasks.items import context
from thaikit.tasks.labels import PROFILES
from thaikit.tasks.load import place_of
from thaikit.tasks.score import Settings, score

SEEDS = {"random-42": fewshot.OLD_SEED, "random-1234": fewshot.NEW_SEED}


@dataclass
class Evaluation:
    """A leaf's tasks and model. The model is loaded when it is first needed, so never for a closed leaf."""

    run: Run
    model_name: str
    task_set: params.TaskSet
    tasks: list[Task]
    settings: Settings
    data_place: str
    facts: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def model(self) -> Any:
        """The model, loaded."""
        return asking.open_model(self.model_name)

    @property
    def sampler(self) -> str:
        """How exemplars are chosen: the first of the pool, or one of the harness's random streams."""
        return self.task_set.sampler or PROFILES[self.task_set.profile].sampler

    def files(self) -> pd.DataFrame:
        """What was read: a row for each file with its rows, those scored, and the difference where one is expected."""
        lines = [{"task": task.name, **line} for task in self.tasks for line in task.files]
        return pd.DataFrame(lines).assign(sha256=lambda frame: frame["sha256"].str[:12])

    def prompt(self, task: str, *, item: int = 0) -> str:
        """An item's whole prompt before its first choice, as plain text."""
        chosen = next(one for one in self.tasks if one.name == task)
        return context(chosen.items[item], chosen.shots(item), delimiter=chosen.spec.delimiter)

    def score(self) -> dict[str, list[dict[str, Any]]]:
        """Every task's rows, in item order; a prompt that is too long is told before any is run."""
        if self.run.closed:
            return {name: records.read_rows(path) for name, path in self.paths().items()}
        rows = {}
        for task, ready in encoded(self.tasks, self.model, self.settings):
            log, tell = self.run.log(task.name), records.ticker(f"{self.model_name} {task.name}")
            begun, before = time.monotonic(), getattr(self.model, "ran", 0)
            score(task, self.model, log, ready=ready, settings=self.settings, tell=tell)
            rows[task.name] = log.rows()
            told = summary.facts(task, self.model, ready, rows[task.name])
            self.facts[task.name] = told | {
                "seconds": round(time.monotonic() - begun, 1),
                "run_tokens": getattr(self.model, "ran", 0) - before,  # of prompts, in this execution
            }
        return rows

    def paths(self) -> dict[str, Any]:
        """Each task's JSONL in the leaf."""
        return {task.name: self.run.out_dir / "rows" / f"{task.name}.jsonl" for task in self.tasks}

    def scores(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
        """The headline as a table in percent: task, value, interval, n, chance, metric."""
        if self.run.closed:
            return score_table(self.run.record["headline"]["thai_h6"], self.run.record["tasks"])
        return score_table(self.headline(rows), self.facts)

    def headline(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        """Each task's estimate, and their mean where no task of the file was left out."""
        whole = len(self.tasks) == len(self.task_set.tasks)
        return summary.headline(self.tasks, rows, average=self.task_set.average and whole)

    def finish(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        """Close the leaf with the Thai-H6 headline and all that a reader must know of it; returns run.json."""
        if self.run.closed:
            return self.run.record
        return self.run.finish(
            headline={"thai_h6": self.headline(rows)},
            model=self.model.facts(),
            tasks=self.facts,
            task_set=self.task_set.name,
            profile=self.task_set.profile,
            labels=self.task_set.labels,
            sampler=self.sampler,
            seeds={"exemplars": SEEDS.get(self.sampler)},
            allow_size_mismatch=self.task_set.allow_size_mismatch,
            data_place=self.data_place,
            machine=machine(),
        )


def load(
    run: Run,
    *,
    model: str,
    tasks: str,
    data: str = "",
    only: Sequence[str] = (),
    limit: int = 0,
    profile: str = "",
    labels: str = "",
    allow_size_mismatch: bool = False,
    settings: Settings | None = None,
) -> Evaluation:
    """The tasks of a task file read and checked, with what a notebook sets against the file, and the model's name."""
    found = params.load("tasks", tasks, params.TaskSet)
    changes: dict[str, Any] = {"profile": profile, "labels": labels, "allow_size_mismatch": allow_size_mismatch}
    found = params.changed(found, {key: value for key, value in changes.items() if value}, where=f"tasks {tasks}")
    built = build_all(found, data=data, only=only, limit=limit)
    sources = (one for spec in found.tasks.values() for one in (spec.source, spec.exemplars))
    return Evaluation(run, model, found, built, settings or Settings(), place_of(data or found.data, sources))


def machine() -> dict[str, Any]:
    """What the numbers were computed on, as far as it can change them: cores, threads, GPU."""
    import os
    import platform
    import sys

    found: dict[str, Any] = {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()}
    if "torch" in sys.modules:
        import torch

        gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
        found |= {"threads": torch.get_num_threads(), "gpus": gpus}
    return found


def score_table(headline: Mapping[str, Any], tasks: Mapping[str, Any]) -> pd.DataFrame:
    """Estimates as a table in percent, with what guessing gives beside each task."""
    lines = []
    for name, estimate in headline.items():
        task = tasks.get(name, {})
        percent = {key: 100 * estimate[key] if estimate[key] is not None else None for key in ("value", "low", "high")}
        chance = 100 * task["chance"] if task else None
        lines.append({"task": name, **percent, "n": estimate["n"], "chance": chance, "metric": task.get("metric", "")})
    return pd.DataFrame(lines)


def item_table(rows: Sequence[Mapping[str, Any]], *, first: int = 8) -> pd.DataFrame:
    """A task's first rows, as a person reads them: question, right and chosen answer, score."""
    lines = []
    for row in list(rows)[:first]:
        shown = list(row.get("shown") or row.get("choices") or [])
        labels = row.get("labels")
        right = (
            [c for c, true in zip(shown, labels, strict=True) if true] if labels else shown[row.get("gold", 0) :][:1]
        )
        chosen = shown[row["prediction"]] if shown and row.get("prediction") is not None else row.get("completion", "")
        told = " / ".join(right) if shown else row.get("reference", "")
        question = row["question"][-120:]
        lines.append({"id": row["id"], "question": question, "right": told, "answered": chosen, "score": row["score"]})
    return pd.DataFrame(lines)
