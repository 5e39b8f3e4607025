"""The judge gate: whether a judge tells ThaiCLI's chosen answers from its rejected ones, and how far a model has come
on the way from these to those."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from thaikit import matched, stats
from thaikit.shapes import FORMATS, THEMES
from thaikit.tasks.thaicli_summary import ZERO, Rows, both, of, ok_score

SEPARATED = 0.8  # a theme in which the judge tells chosen from rejected less often is marked


def gate(rows: Rows) -> list[dict[str, Any]]:
    """How well the judge tells chosen from rejected answers that it is given as if a model had written them.

    `rows` are judgements with `source` chosen or rejected. One line for each format and theme, for each format and for
    each theme over both ("both"): means over `ok`, `auc` (a chosen answer beats a rejected one over all pairs, ties
    half), `beats` (its own rejected one), the share without a verdict, and `marked` where auc is below 0.8 or none.
    """
    places = [(name, theme) for name in FORMATS for theme in ("", *THEMES)] + [("", theme) for theme in THEMES]
    found = []
    for name, theme in places:
        part = [row for row in rows if name in ("", row["format"]) and theme in ("", row["theme"])]
        if part:
            found.append({"format": name or "both", "theme": theme or "all", **gate_line(part)})
    return found


def gate_line(part: Rows) -> dict[str, Any]:
    """The gate's numbers over some rows."""
    scores = {
        source: {row["item"]: ok_score(row) for row in part if row["source"] == source and row["outcome"] == "ok"}
        for source in ("chosen", "rejected")
    }
    chosen, rejected = scores["chosen"], scores["rejected"]
    own = [0.5 + 0.5 * float(np.sign(chosen[item] - rejected[item])) for item in chosen if item in rejected]
    separation = matched.auc(list(chosen.values()), list(rejected.values()))
    beats = stats.mean_interval(own)
    return {
        "n": len({row["item"] for row in part}),
        "chosen": average_of(chosen.values()), "rejected": average_of(rejected.values()), "auc": separation,
        "beats": beats.value, "beats_low": beats.low, "beats_high": beats.high, "pairs": len(own),
        "unreadable": sum(row["outcome"] in ZERO for row in part) / len(part),
        "marked": not separation >= SEPARATED,
    }  # fmt: skip


def average_of(values: Iterable[float | None]) -> float:
    """The plain mean, NaN for none."""
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else math.nan


def way(rows: Rows, gate_rows: Rows) -> list[dict[str, Any]]:
    """Where a model's answers stand from the rejected (0 %) to the chosen ones (100 %), by cell, format and in all.

    Means are over the items that have a score in all three; the average is that of the two formats' means. A value
    may lie outside 0 to 100. NaN with a reason where the judge scores chosen no higher than rejected.
    """
    scores = {"model": {row["item"]: ok_score(row) for row in rows if row["outcome"] == "ok"}}
    for source in ("chosen", "rejected"):
        scores[source] = {r["item"]: ok_score(r) for r in gate_rows if r["source"] == source and r["outcome"] == "ok"}
    lines = []
    for name in FORMATS:
        for theme in ("", *THEMES):
            part = of(rows, name, theme)
            if part:
                shared = [row["item"] for row in part if all(row["item"] in one for one in scores.values())]
                means = {source: average_of(one[item] for item in shared) for source, one in scores.items()}
                lines.append({"format": name, "theme": theme or "all", "n": len(shared), **means, **percent(means)})
    whole = [line for line in lines if line["theme"] == "all"]
    if len(whole) == len(FORMATS):
        means = {source: both(line[source] for line in whole) for source in scores}
        n = sum(line["n"] for line in whole)
        lines.insert(0, {"format": "average", "theme": "all", "n": n, **means, **percent(means)})
    return lines


def percent(means: Mapping[str, float]) -> dict[str, Any]:
    """Percent of the way from rejected to chosen, and why there is none."""
    room = means["chosen"] - means["rejected"]
    if math.isnan(room) or math.isnan(means["model"]):
        return {"percent": math.nan, "why": "no item has all three scores"}
    if room <= 0:
        return {"percent": math.nan, "why": "the judge scores chosen no higher than rejected"}
    return {"percent": 100 * (means["model"] - means["rejected"]) / room, "why": ""}
