"""A results folder written by lm-evaluation-harness itself: a tiny random model on a few of the kit's sample rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from conftest import write_tiny

from thaikit import parity, peer_tasks
from thaikit.tasks import build

LIMITS = {"arc": 3, "mmlu": 2, "truthfulqa": 2, "winogrande": 3, "gsm8k": 2}
NAMES = {"arc_challenge": "arc_th", "default": "winogrande"}  # one with its Thai mark, as labs call it


def task_files(folder: Path) -> list[str]:
    """The harness's own task files over sample rows, MMLU as its group, and a set of another kind; the names to ask."""
    tasks = parity.task_set("thai-h6-samples")
    short = tasks.tasks["gsm8k"].model_copy(update={"max_new_tokens": 8})
    tasks = tasks.model_copy(update={"tasks": {**tasks.tasks, "gsm8k": short}})
    wanted, subjects = ["xcopa_th"], []
    for name, limit in LIMITS.items():
        (task,) = build.build_all(tasks, only=[name], limit=limit)
        for made in peer_tasks.write(task, peer_tasks.source_rows(task, tasks), folder, new_tokens=8):
            path = folder / f"{made.name}.yaml"
            config, plain = yaml.safe_load(path.read_text(encoding="utf-8")), made.name.removeprefix("parity_")
            config |= {"task": NAMES.get(plain, plain), "num_fewshot": min(1, config["num_fewshot"])}
            path.unlink()
            (subjects if name == "mmlu" else wanted).append(config["task"])
            (folder / f"{config['task']}.yaml").write_text(yaml.safe_dump(config, allow_unicode=True))
    group: dict[str, Any] = {"group": "mmlu", "task": subjects}
    group |= {"aggregate_metric_list": [{"metric": "acc", "weight_by_size": True}], "metadata": {"version": 2}}
    (folder / "mmlu.yaml").write_text(yaml.safe_dump(group))
    other = yaml.safe_load((folder / "arc_th.yaml").read_text()) | {"task": "xcopa_th", "num_fewshot": 0}
    (folder / "xcopa_th.yaml").write_text(yaml.safe_dump(other, allow_unicode=True))
    return [*wanted, "mmlu"]


def make(folder: Path) -> Path:
    """Run it as `lm_eval --output_path <folder>/results --log_samples` does; returns the results folder."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    model, rows = write_tiny(folder / "tiny-thai", max_position_embeddings=4096), folder / "yaml"
    rows.mkdir()
    names, tracker = task_files(rows), EvaluationTracker(output_path=str(folder / "results"))
    how: dict[str, Any] = {
        "model_args": {"pretrained": str(model), "dtype": "float32"},
        "device": "cpu",
        "batch_size": 1,
    }
    manager = TaskManager(include_path=str(rows), include_defaults=False)
    # What it tells of the machine lists all packages, which takes seconds and is not read here.
    with mock.patch("torch.utils.collect_env.get_pretty_env_info", lambda: "OS: a test"):
        found = simple_evaluate(
            model="hf", tasks=names, task_manager=manager, bootstrap_iters=100, log_samples=True,
            evaluation_tracker=tracker, **how,
        )  # fmt: skip
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    for name in found["configs"]:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    return folder / "results"
