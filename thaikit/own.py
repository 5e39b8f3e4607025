"""A suite's closed leaves as results in the form of the published tables, so that both go through the same code."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from thaikit import ThaikitError, params
from thaikit.leaves import Leaf, leaves

FACTS = ("short", "parameters", "access", "region", "base", "release", "partner", "specialised")
COLUMNS = ("benchmark", "model", "task", "value", "low", "high", "right", "n", "method", "source", "table", *FACTS,
           "ranked", "leaf")  # fmt: skip
THAI_H6 = ("arc", "hellaswag", "mmlu", "truthfulqa", "winogrande", "gsm8k", "average")
Line = tuple[str, str, str, Mapping[str, Any], float]  # benchmark, model, task, estimate, scale


def own_results(folder: Path | None) -> pd.DataFrame:
    """The estimates of a suite's leaves: benchmark, model, task, value, low, high, right, n, method, source ("own"),
    table ("") and the model's facts; Thai-H6, F1 and shares of agreement in percent, ThaiCLI in points of 10.

    `ranked` is false for models that rehearse, and for runs on the bundled samples or on part of the items: they are
    shown beside the published ones and enter no statistic over models. `leaf` is the leaf's path below the suite. No
    rows for None.
    """
    lines: list[dict[str, Any]] = []
    if folder is not None:
        for stage, read in READERS.items():
            found = leaves(folder, stage=stage)
            plain = Counter(leaf_model(leaf) for leaf in found)
            for leaf in found:
                label = leaf_model(leaf) if plain[leaf_model(leaf)] == 1 else leaf.name
                lines += [told(line, leaf, folder) for line in read(leaf, label)]
    return pd.DataFrame(lines, columns=list(COLUMNS))


def told(line: Line, leaf: Leaf, folder: Path) -> dict[str, Any]:
    """One result with the facts of its model."""
    benchmark, model, task, estimate, scale = line
    numbers = {key: scale * number(estimate.get(key)) for key in ("value", "low", "high")}
    facts = model_facts(leaf, model)
    return {
        "benchmark": benchmark, "model": model, "task": task, **numbers, "right": None,
        "n": int(number(estimate.get("n", 0)) or 0), "method": str(estimate.get("method", "")), "source": "own",
        "table": "", **facts, "ranked": is_ranked(leaf), "leaf": leaf.path.relative_to(folder).as_posix(),
    }  # fmt: skip


def number(value: Any) -> float:
    """A number, or NaN (run.json writes a missing one as null)."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def leaf_model(leaf: Leaf) -> str:
    """The model of a leaf: its parameter file, else what run.json says of it, else the leaf's name."""
    described = leaf.run.get("model") or {}
    return str(leaf.run.get("params", {}).get("model") or described.get("name") or leaf.name)


def is_ranked(leaf: Leaf) -> bool:
    """Whether a leaf's numbers may stand beside published ones in a statistic over models."""
    given = leaf.run.get("params", {})
    described = [leaf.run.get(key) or {} for key in ("model", "judge_model")] + [entry_of(leaf_model(leaf))]
    part = given.get("limit") or leaf.run.get("unanswered")
    answers = leaf.run.get("answers")
    places = [one.get("place") for one in answers if isinstance(one, Mapping)] if isinstance(answers, list) else []
    samples = "samples" in f"{given.get('tasks', '')} {given.get('data', '')}"
    samples |= any(str(place).startswith("samples:") for place in (leaf.run.get("data_place"), *places))
    shown_only = leaf.run.get("ranked", True) is False  # an import whose items may not be Thai
    return not (any(one.get("rehearsal") for one in described) or part or samples or shown_only)


def entry_of(model: str) -> dict[str, Any]:
    """A model's parameter file; {} where there is none of that name."""
    try:
        return params.load("models", model, params.ModelEntry).model_dump()
    except ThaikitError:
        return {}


def model_facts(leaf: Leaf, label: str) -> dict[str, Any]:
    """Size in billions of parameters (NaN where nobody says), open or closed, region. A model is taken for closed where
    it is asked over a server and its file names no size."""
    name = leaf_model(leaf)
    entry, described = entry_of(name), leaf.run.get("model") or {}
    counted = number(described.get("parameters"))
    size = counted / 1e9 if counted > 1e6 else number(entry.get("parameters")) or counted
    region = str(entry.get("region") or described.get("region") or "global")
    kind = str(entry.get("kind") or described.get("kind") or "local")
    return {
        "short": label, "parameters": size if size > 0 else math.nan,
        "access": "closed" if kind == "openai" and not size > 0 else "open", "region": region, "base": "",
        "release": "", "partner": "", "specialised": region != "global",
    }  # fmt: skip


def h6_lines(leaf: Leaf, label: str) -> Iterator[Line]:
    """Thai-H6 of one leaf, in percent."""
    headline = (leaf.run.get("headline") or {}).get("thai_h6") or {}
    for task in THAI_H6:
        if task in headline:
            yield "Thai-H6", label, task, headline[task], 100.0


def cli_lines(leaf: Leaf, label: str) -> Iterator[Line]:
    """ThaiCLI of one leaf, in points."""
    headline = (leaf.run.get("headline") or {}).get("thaicli") or {}
    for task in ("average", "factoid", "instruction"):
        if task in headline:
            yield "ThaiCLI", label, task, headline[task], 1.0


def f1_lines(leaf: Leaf, label: str) -> Iterator[Line]:
    """Extractive F1 of one leaf, each of its models and sets, in percent; words an answer beside it."""
    headline = leaf.run.get("headline") or {}
    for answers in leaf.run.get("answers") or []:
        setting = f"{answers['tasks']} {answers['shots']}-shot"
        one = headline.get("mrc_f1") or headline.get(f"{answers['model']} {setting}") or {}
        if "f1" in one:
            yield "MRC F1", str(answers["model"]), paper_name(setting), one["f1"], 100.0
        if "words" in one:
            yield "MRC F1", str(answers["model"]), "tokens", one["words"], 1.0


def paper_name(setting: str) -> str:
    """A set and its shots as the columns of Table 2 are called here: `xquad 0-shot`."""
    name, shots = setting.rsplit(" ", 1)
    return f"{next((short for short in ('xquad', 'iapp') if short in name), name)} {shots}"


def judge_lines(leaf: Leaf, label: str) -> Iterator[Line]:
    """The four questions of one leaf, in percent, and words an answer."""
    headline = (leaf.run.get("headline") or {}).get("mrc_judge") or {}
    models = leaf.run.get("models") or [label]
    for model in models:
        lead = f"{model} " if len(models) > 1 else ""
        for task in ("q1", "q2", "q3", "q4", "words"):
            if f"{lead}{task}" in headline:
                name, scale = ("tokens", 1.0) if task == "words" else (task, 100.0)
                yield "MRC, judge", str(model), name, headline[f"{lead}{task}"], scale


READERS = {"thai_h6": h6_lines, "thaicli_judge": cli_lines, "mrc_f1": f1_lines, "mrc_judge": judge_lines}
