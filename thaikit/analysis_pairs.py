"""Models made for a region against others of their size (ThaiCLI paper, section 5.2): matched pairs, task by task."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from thaikit import matched, published, ranks, stats
from thaikit.analysis import SEED, of
from thaikit.analysis_stats import newcombe
from thaikit.leaves import Leaf, read_leaf
from thaikit.published import FORMATS, H6_TASKS
from thaikit.stats import Estimate
from thaikit.tasks import thaicli_summary

NEAR = 2.0  # a partner of an own model has at most twice its size, and at least half
AS_OTHERS = "newcombe, as if the items differed"  # both answered the same ones; paired rows would narrow it
ALIKE = ("tasks", "data", "limit", "profile", "labels", "judge")  # parameters in which two own leaves must agree
COLUMNS = ("pair", "model", "partner", "source", "benchmark", "task", "a", "b", "value", "low", "high", "n", "method",
           "p", "note")  # fmt: skip


def pairs(frame: pd.DataFrame, folder: Path | None = None) -> pd.DataFrame:
    """Each specialised model less its partner without specialisation, on Thai-H6 and ThaiCLI: pair, model, partner,
    source, benchmark, task, a, b (their scores), value (a - b), low, high, n, method, p, note.

    Published pairs are the paper's. Their intervals are those of two proportions from whole counts where there are
    counts, else NaN with the reason; p is NaN, since items are not published. Own pairs are each specialised model of
    the suite and the one without that is nearest in size (within a factor of two), compared item by item.
    """
    lines = published_pairs(frame)
    if folder is not None:
        lines += own_pairs(frame, folder)
    return pd.DataFrame(lines, columns=list(COLUMNS))


def published_pairs(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The paper's three pairs, and Sailor 14B, which stands between two sizes, against the larger Llama too."""
    facts = published.models().set_index("model")
    chosen = [(model, str(partner)) for model, partner in facts["partner"].items() if partner]
    chosen.append(("Sailor-14B-Chat", "Meta-Llama-3.1-70B-Instruct"))
    kept = frame[frame["source"] == "published"].set_index(["benchmark", "model", "task"])
    lines = []
    for model, partner in chosen:
        for benchmark, task in tasks():
            a, b = (kept.loc[(benchmark, name, task)] for name in (model, partner))
            lines.append({
                **head(facts.loc[model, "short"], facts.loc[partner, "short"], model, partner, "published"),
                "benchmark": benchmark, "task": task, "a": a["value"], "b": b["value"],
                **published_difference(a, b).as_dict(), "p": math.nan, "note": facts.loc[model, "note"],
            })  # fmt: skip
    return lines


def tasks() -> list[tuple[str, str]]:
    """Thai-H6 with its tasks, then ThaiCLI with its formats."""
    h6 = [("Thai-H6", task) for task in ("average", *H6_TASKS)]
    return h6 + [("ThaiCLI", task) for task in ("average", *FORMATS)]


def head(short: str, other: str, model: str, partner: str, source: str) -> dict[str, str]:
    """How a pair is named."""
    return {"pair": f"{short} − {other}", "model": model, "partner": partner, "source": source}


def published_difference(a: pd.Series, b: pd.Series) -> Estimate:
    """The difference of two published numbers, in their unit; from counts where both have an interval."""
    if math.isnan(a["low"]) or math.isnan(b["low"]):
        bare = a if math.isnan(a["low"]) else b
        return Estimate(a["value"] - b["value"], math.nan, math.nan, int(a["n"]), str(bare["method"]))
    right = [round(one["value"] * one["n"] / 100) for one in (a, b)]
    found = newcombe(right[0], int(a["n"]), right[1], int(b["n"]))
    sizes = "" if a["method"] == "wilson" else f", n {int(a['n']):,} of the English set"
    # The printed difference is kept: on the English sets' sizes the counts are rounded.
    return Estimate(a["value"] - b["value"], 100 * found.low, 100 * found.high, int(a["n"]),
                    AS_OTHERS + sizes)  # fmt: skip


def own_pairs(frame: pd.DataFrame, folder: Path) -> list[dict[str, Any]]:
    """The suite's specialised models against their nearest neighbours without specialisation, by item rows."""
    rng, lines = np.random.default_rng(SEED), []
    for benchmark in ("Thai-H6", "ThaiCLI"):
        rows = of(frame, benchmark, "average")
        mine = rows[rows["source"] == "own"].set_index("model")
        for model, row in mine[mine["specialised"].astype(bool)].iterrows():
            partner = nearest(row, mine[~mine["specialised"].astype(bool)])
            if partner:
                both = [read_leaf(folder / mine.loc[name, "leaf"]) for name in (model, partner)]
                named = head(str(model), partner, str(model), partner, "own")
                if alike(*both):
                    lines += [{**named, **line} for line in item_lines(benchmark, *both, rng=rng)]
    return lines


def nearest(row: pd.Series, others: pd.DataFrame) -> str:
    """The model nearest in size within a factor of `NEAR`; "" for none."""
    distance = (others["parameters"] / row["parameters"]).map(lambda ratio: abs(math.log(ratio))).dropna()
    kept = distance[distance <= math.log(NEAR)]
    return str(kept.idxmin()) if len(kept) else ""


def alike(a: Leaf, b: Leaf) -> bool:
    """Whether two leaves asked and judged in the same way."""
    return all(a.run.get("params", {}).get(key) == b.run.get("params", {}).get(key) for key in ALIKE)


def item_lines(benchmark: str, a: Leaf, b: Leaf, *, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Two leaves compared on the items that both scored: their average where they share all of its tasks or formats,
    then each for itself."""
    both = {task: matched.shared(*scores, on_shared=True) for task, scores in item_scores(benchmark, a, b).items()}
    both = {task: shared for task, shared in both.items() if shared.items}
    groups = {task: subjects(a, task) if benchmark == "Thai-H6" else {} for task in both}
    scale = 100.0 if benchmark == "Thai-H6" else 1.0
    lines = []
    if set(both) == set(H6_TASKS if benchmark == "Thai-H6" else FORMATS):
        lines.append({"task": "average", **averaged(both, groups, scale, rng)})
    for task, shared in both.items():
        found = averaged({task: shared}, groups, scale, rng) if groups[task] else compared(shared, scale, rng)
        lines.append({"task": task, **found})
    return [{"benchmark": benchmark, **line} for line in lines]


def subjects(leaf: Leaf, task: str) -> dict[Any, str]:
    """Item → subject of a task whose score is the unweighted mean over subjects (MMLU); {} for others."""
    if f"{task}_micro" not in ((leaf.run.get("headline") or {}).get("thai_h6") or {}):
        return {}
    rows = leaf.rows(task, "id", "question", "subject")
    return {(row.id, row.question): str(row.subject) for row in rows.itertuples()}


def averaged(both: dict[str, matched.Shared], groups: dict[str, dict[Any, str]], scale: float,
             rng: np.random.Generator) -> dict[str, Any]:  # fmt: skip
    """The paired difference of two unweighted means over tasks, in a task over its subjects (`ranks.macro_gap`)."""
    sides: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for task, shared in both.items():
        mine = sides.setdefault(task, {})
        for item, one, other in zip(shared.items, shared.a, shared.b, strict=True):
            mine.setdefault(groups[task].get(item, ""), []).append((one, other))
    gap = ranks.macro_gap({task: {name: [x - y for x, y in pairs] for name, pairs in mine.items()}
                           for task, mine in sides.items()}, rng=rng)  # fmt: skip
    level = np.mean([np.mean([np.mean(pairs, axis=0) for pairs in mine.values()], axis=0) for mine in sides.values()],
                    axis=0)  # fmt: skip
    one, left = gap.difference, [sum(getattr(s, key) for s in both.values()) for key in ("only_a", "only_b")]
    up = thaicli_summary.SHIFT if scale == 1 else 0.0
    return {
        "a": scale * float(level[0]) - up, "b": scale * float(level[1]) - up, "value": scale * one.value,
        "low": scale * one.low, "high": scale * one.high, "n": one.n, "method": f"{one.method}, {gap.test}",
        "p": gap.p, "note": left_out(*left),
    }  # fmt: skip


def left_out(first: int, second: int) -> str:
    """How many items only one of two leaves scored; "" for none."""
    return f"{first} items only in the first, {second} only in the second" if first or second else ""


def item_scores(benchmark: str, a: Leaf, b: Leaf) -> dict[str, tuple[dict[Any, float], dict[Any, float]]]:
    """Task or format → both leaves' scores by item; ThaiCLI's by the paper's rule."""
    if benchmark == "Thai-H6":
        there = [task for task in a.tasks() if task in b.tasks()]
        return {task: (h6_scores(a, task), h6_scores(b, task)) for task in there}
    rows = [leaf.rows("judgements").to_dict("records") for leaf in (a, b)]
    return {name: (cli_scores(rows[0], name), cli_scores(rows[1], name)) for name in FORMATS}


def cli_scores(rows: list[dict[str, Any]], name: str) -> dict[Any, float]:
    """A format's scores by item, moved up so that scores of 0 and 1 are not taken for wrong and right."""
    return {key: value + thaicli_summary.SHIFT for key, value in thaicli_summary.keyed(rows, name).items()}


def h6_scores(leaf: Leaf, task: str) -> dict[Any, float]:
    """A task's scores by id and question, items without a score left out."""
    rows = leaf.rows(task, "id", "question", "score").dropna(subset=["score"])
    return {(row.id, row.question): float(row.score) for row in rows.itertuples()}


def compared(shared: matched.Shared, scale: float, rng: np.random.Generator) -> dict[str, Any]:
    """The paired difference over shared items."""
    found = stats.paired(shared.a, shared.b, rng=rng)
    up = thaicli_summary.SHIFT if scale == 1 else 0.0
    one = found.difference
    return {
        "a": scale * float(np.mean(shared.a)) - up, "b": scale * float(np.mean(shared.b)) - up,
        "value": scale * one.value,
        "low": scale * one.low, "high": scale * one.high, "n": one.n, "method": f"{one.method}, {found.test}",
        "p": found.p, "note": left_out(shared.only_a, shared.only_b),
    }  # fmt: skip


def pair_counts(made: pd.DataFrame) -> pd.DataFrame:
    """On how many tasks each pair's specialised model is higher, and where the interval leaves out 0: pair, source,
    benchmark, tasks, higher, lower, clearly_higher, clearly_lower, average (the difference of averages)."""
    lines = []
    for (pair, source, benchmark), rows in made.groupby(["pair", "source", "benchmark"], sort=False):
        each = rows[rows["task"] != "average"]
        whole = rows.loc[rows["task"] == "average", "value"]
        lines.append({
            "pair": pair, "source": source, "benchmark": benchmark, "tasks": len(each),
            "higher": int((each["value"] > 0).sum()), "lower": int((each["value"] < 0).sum()),
            "clearly_higher": int((each["low"] > 0).sum()), "clearly_lower": int((each["high"] < 0).sum()),
            "average": float(whole.iloc[0]) if len(whole) else math.nan,
        })  # fmt: skip
    return pd.DataFrame(lines)
