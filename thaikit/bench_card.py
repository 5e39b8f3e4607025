"""A judge's bias card and spread, from the judgements of its bench."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from thaikit import bias, matched, shifts, stats
from thaikit.panels import LIFT, SEED
from thaikit.stats import Estimate, Paired
from thaikit.tasks.thaicli_summary import HIGHEST, LOWEST

MARGIN = 0.5  # points: a mean change within it counts as none
Rows = Sequence[Mapping[str, Any]]
Before = Mapping[tuple[str, str], Mapping[str, Any]]  # (source, item) → the row of the unchanged answer


def bias_card(rows: Rows, *, margin: float = MARGIN) -> pd.DataFrame:
    """A row for each change and each kind of base answer: what a fair judge does, and what this one did.

    `change` is the mean of score after - score before over the items that have both (n of `asked`), with its interval
    (`low_by_theme` and `high_by_theme`: items of a theme go together), how many rose and fell, p after Holm over the
    card, the smallest change the items could show, and a verdict of `bias.VERDICTS`. Replies without a score leave
    their pair out and are never a number.
    """
    before = {(row["source"], row["item"]): row for row in rows if row["kind"] == "base"}
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "shift":
            groups[row["shift"], row["source"]].append(row)
    order = {name: place for place, name in enumerate(shifts.SHIFTS)}
    keys = sorted(groups, key=lambda key: order[key[0]])
    rng = np.random.default_rng(SEED)
    made = {key: compared(groups[key], before, rng=rng) for key in keys}
    corrected = stats.holm([made[key]["paired"].p for key in keys])
    return pd.DataFrame([line(key, made[key], p, margin) for key, p in zip(keys, corrected, strict=True)])


def compared(
    after: Rows, before: Mapping[tuple[str, str], Mapping[str, Any]], *, rng: np.random.Generator
) -> dict[str, Any]:
    """The pairs of one change: base mean, paired difference, interval by theme, smallest detectable change."""
    pairs = []
    for row in after:
        base = before[row["source"], row["item"]]
        if row["outcome"] == base["outcome"] == "ok":
            pairs.append((float(row["score"]), float(base["score"]), row["theme"]))
    new, old = [a + LIFT for a, _, _ in pairs], [b + LIFT for _, b, _ in pairs]
    gaps, themes = [a - b for a, b, _ in pairs], [theme for _, _, theme in pairs]
    return {
        "asked": len(after),
        "base": float(np.mean([b for _, b, _ in pairs])) if pairs else float("nan"),
        "paired": stats.paired(new, old, rng=rng),
        "by_theme": by_theme(gaps, themes),
        "smallest": matched.smallest_difference(gaps),
    }


def by_theme(gaps: Sequence[float], themes: Sequence[str]) -> Estimate:
    """The mean change with the interval in which items of a theme go together; changes of 0 and 1 are no proportion."""
    far = 2 * HIGHEST
    found = stats.clustered_interval([gap + far for gap in gaps], themes)
    return Estimate(found.value - far, found.low - far, found.high - far, found.n, found.method)


def line(key: tuple[str, str], made: Mapping[str, Any], p: float, margin: float) -> dict[str, Any]:
    """The card's row of one change."""
    name, source = key
    paired: Paired = made["paired"]
    d, wide = paired.difference, made["by_theme"]
    one = shifts.SHIFTS[name]
    expected = one.expected.get(source, one.expected[""])
    found = bias.verdict(expected, paired, p=p, base=made["base"], scale=(LOWEST, HIGHEST), margin=margin)
    return {
        "shift": name, "source": source, "says": one.says, "expected": expected, "asked": made["asked"], "n": d.n,
        "base": made["base"], "change": d.value, "low": d.low, "high": d.high, "rose": paired.wins,
        "fell": paired.losses, "holm": p, "low_by_theme": wide.low, "high_by_theme": wide.high,
        "smallest_detectable": made["smallest"], "verdict": found, "method": d.method, "test": paired.test,
    }  # fmt: skip


def headline(one: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the card as an estimate with its verdict."""
    estimate = Estimate(one["change"], one["low"], one["high"], int(one["n"]), str(one["method"]))
    return estimate.as_dict() | {"holm": one["holm"], "expected": one["expected"], "verdict": one["verdict"]}


def verdicts(card: pd.DataFrame) -> pd.DataFrame:
    """How often each verdict stands on the card, and what it means."""
    counts = card["verdict"].value_counts()
    return pd.DataFrame([{"verdict": name, "rows": int(n), "means": bias.VERDICTS[name]} for name, n in counts.items()])


def spread(rows: Rows) -> dict[str, Any]:
    """How much a judge's scores of the same answer differ from one time to the next.

    `sd` is the standard deviation within an answer in points, pooled, as an estimate; `same` the share of answers that
    got one and the same score each time (Wilson); `widest` the largest gap between two scores of one answer;
    `same_text` how many answers got the same reply to the letter each time, which says little of a greedy judge.
    """
    again = {(row["source"], row["item"]) for row in rows if row["kind"] == "repeat"}
    scores: dict[str, list[float]] = defaultdict(list)
    texts: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row["kind"] in ("base", "repeat") and (row["source"], row["item"]) in again:
            name = f"{row['item']}@{row['source']}"
            texts[name].append(row["reply"])
            if row["outcome"] == "ok":
                scores[name].append(float(row["score"]))
    several = {name: values for name, values in scores.items() if len(values) > 1}
    return {
        "sd": bias.within_sd(several).as_dict(),
        "same": stats.wilson(sum(len(set(values)) == 1 for values in several.values()), len(several)).as_dict(),
        "widest": max((max(values) - min(values) for values in several.values()), default=None),
        "answers": len(again),
        "same_text": sum(len(set(said)) == 1 for said in texts.values()),
    }


def spread_table(rows: Rows) -> pd.DataFrame:
    """The spread as a table of one row."""
    told = spread(rows)
    sd, same = told["sd"], told["same"]
    return pd.DataFrame([{
        "answers": told["answers"], "sd_within": sd["value"], "low": sd["low"], "high": sd["high"],
        "method": sd["method"], "same_score_each_time": same["value"], "widest_gap": told["widest"],
        "same_reply_each_time": told["same_text"],
    }])  # fmt: skip
