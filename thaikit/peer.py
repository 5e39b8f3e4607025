"""lm-evaluation-harness 0.4.13 on the rows and the loaded model that the kit scores: its prompts, scores and metrics.

The only module that imports `lm_eval`, inside the functions that need it. Results are cached as JSON, because a peer
that computes every logit of every prompt is slow, and does not change.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from thaikit.model_facts import tokenizer_sha256
from thaikit.params import TaskSet
from thaikit.peer_tasks import PeerTask, Rows, source_rows, write
from thaikit.records import sha256_json, write_atomic
from thaikit.tasks.build import Task

FORMAT = 1  # raised when what is kept changes, so that older caches are not read
# The harness's filter → the kit's name of that exact match; metrics of TruthfulQA's two tasks are all called acc there.
FILTERS = {"strict-match": "strict", "flexible-extract": "flexible"}
TRUTH = {"parity_truthfulqa_mc1": "mc1", "parity_truthfulqa_mc2": "mc2"}
METRICS = ("acc", "acc_norm", "acc_bytes", "exact_match")


def ask(task: Task, tasks: TaskSet, local: Any, *, cache: Path | None = None, new_tokens: int = 0) -> dict[str, Any]:
    """What the harness makes of a task's items with the model of a `Local`, its exemplars fixed by `first_n`.

    `items`, in the task's order, each: `prompts` as (context, continuation) pairs (mc1's before mc2's) or the one
    prompt, `ll` and `greedy` a pair, `text` of a generation cut at the stop strings, `metrics` by the kit's names.
    `totals`: the harness's own aggregates, each with its metric and the places of its items. `seconds`: its time.
    """
    rows = source_rows(task, tasks)
    key = sha256_json(identity(task, rows, local, new_tokens))
    path = cache / f"{key}.json" if cache else None
    if path and path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="thaikit-peer-") as folder:
        made = write(task, rows, Path(folder), new_tokens=new_tokens)
        begin = time.perf_counter()
        results = evaluate(local, Path(folder), [one.name for one in made])
        found = collect(task, made, results) | {"seconds": time.perf_counter() - begin}
    if path:
        write_atomic(path, json.dumps(found, ensure_ascii=False))
    return found


def identity(task: Task, rows: Rows, local: Any, new_tokens: int) -> dict[str, Any]:
    """All that decides the peer's answers."""
    loaded = local.loaded
    return {
        "format": FORMAT, "kind": task.spec.kind, "shots": task.spec.shots, "rows": dataclasses.asdict(rows),
        "new_tokens": new_tokens, "source": loaded.entry.source, "revision": loaded.revision,
        "tokenizer": tokenizer_sha256(loaded.tokenizer), "dtype": str(loaded.model.dtype),
        "max_length": loaded.max_length,
        "versions": {name: metadata.version(name) for name in ("lm_eval", "transformers", "torch")},
    }  # fmt: skip


def evaluate(local: Any, folder: Path, names: Sequence[str]) -> Mapping[str, Any]:
    """Run the harness on the task files of a folder: batches of one, everything else its default."""
    from lm_eval import evaluator
    from lm_eval.tasks import TaskManager

    peer = wrapped(local, 1)
    loaded = TaskManager(include_path=str(folder), include_defaults=False).load(list(names))
    return evaluator.evaluate(peer, loaded, bootstrap_iters=0, log_samples=True)


def wrapped(local: Any, batch_size: int) -> Any:
    """The loaded model as the harness drives it, in batches of a size."""
    from lm_eval.models.huggingface import HFLM

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    tokenizer = copy.deepcopy(local.loaded.tokenizer)  # the harness may give it a padding token
    return HFLM(
        pretrained=local.loaded.model, tokenizer=tokenizer, batch_size=batch_size, max_length=local.max_length
    )


def time_scores(
    local: Any, requests: Sequence[tuple[Sequence[int], Sequence[int]]], *, batch_size: int
) -> tuple[float, list[float]]:
    """Seconds that the harness takes for log-likelihood requests given as ids, and their sums, in input order."""
    peer = wrapped(local, batch_size)
    given = [((str(place), ""), list(context), list(tail)) for place, (context, tail) in enumerate(requests)]
    begin = time.perf_counter()
    found = peer._loglikelihood_tokens(given, disable_tqdm=True)
    return time.perf_counter() - begin, [float(ll) for ll, _ in found]


def time_texts(
    local: Any, prompts: Sequence[str], *, stops: Sequence[str], max_new_tokens: int, batch_size: int
) -> tuple[float, list[str]]:
    """Seconds that the harness takes to continue prompts greedily, and the texts, in input order."""
    from lm_eval.api.instance import Instance

    peer = wrapped(local, batch_size)
    rules = {"until": list(stops), "max_gen_toks": max_new_tokens, "do_sample": False}
    given = [Instance("generate_until", {}, (prompt, dict(rules)), place) for place, prompt in enumerate(prompts)]
    begin = time.perf_counter()
    texts = peer.generate_until(given, disable_tqdm=True)
    return time.perf_counter() - begin, list(texts)


def collect(task: Task, made: Sequence[PeerTask], results: Mapping[str, Any]) -> dict[str, Any]:
    """The harness's samples as items in the kit's order, and its aggregates."""
    items: list[dict[str, Any]] = [{"prompts": [], "ll": [], "greedy": [], "metrics": {}} for _ in task.items]
    totals = []
    for one in made:
        for sample in results["samples"][one.name]:
            add_sample(items[one.places[sample["doc_id"]]], sample, one.name)
        for key, value in results["results"][one.name].items():
            metric, _, chosen = key.partition(",")
            if metric in METRICS:
                totals.append({"metric": named(one.name, metric, chosen), "value": float(value), "places": one.places})
    return {"items": items, "totals": totals}


def named(task_name: str, metric: str, chosen: str) -> str:
    """The kit's name of a harness metric."""
    return FILTERS.get(chosen) or TRUTH.get(task_name) or metric


def add_sample(item: dict[str, Any], sample: Mapping[str, Any], task_name: str) -> None:
    """One of the harness's samples (one an item, filter and task) added to its item."""
    for metric in sample["metrics"]:
        item["metrics"][named(task_name, metric, sample["filter"])] = float(sample[metric])
    if sample["filter"] in FILTERS:
        item |= {"prompts": [sample["arguments"][0][0]], "text": sample["resps"][0][0]}
        return
    for (context, continuation), ((ll, greedy),) in zip(sample["arguments"], sample["resps"], strict=True):
        item["prompts"].append([context, continuation])
        item["ll"].append(float(ll))
        item["greedy"].append(bool(greedy))
