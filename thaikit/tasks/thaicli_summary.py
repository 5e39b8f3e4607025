"""Judgements → the ThaiCLI score with coverage and bounds, each cell, and models against each other.

ThaiCLI is the mean of the two formats' means (ThaiCLI paper, section 4.4), so 100 instruction items weigh as much as
1,790 factoid ones. By the paper's rule a reply that came and holds no verdict counts as zero in the mean; its row keeps
no score. Filtered and failed items are left out and lower the coverage.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from thaikit import ThaikitError, matched, stats
from thaikit.judging import AGAIN
from thaikit.shapes import FORMATS, THEMES
from thaikit.stats import Estimate
from thaikit.tasks.answers import why_failed
from thaikit.tasks.h6 import blank

LOWEST, HIGHEST = 1.0, 10.0  # of the judge's scale
WORTH_TELLING = 0.05  # between the paper's mean and the mean over ok
SEED = 1234  # of the sign-flip draws; they are no part of any score
FAR = 2 * HIGHEST  # put on differences for the same reason as SHIFT on scores
SHIFT = 2.0  # put on every score and taken off the mean, so that scores of 0 and 1 are not taken for wrong and right
ZERO = AGAIN  # outcomes that count as zero in the paper's mean
Rows = Sequence[Mapping[str, Any]]


def paper_score(row: Mapping[str, Any]) -> float | None:
    """A row's share in the paper's mean: its score, zero where a reply came without a verdict, None where it is left
    out."""
    if row["outcome"] == "ok":
        return float(row["score"])
    return 0.0 if row["outcome"] in ZERO else None


def ok_score(row: Mapping[str, Any]) -> float | None:
    """A row's score, None where it has none."""
    return float(row["score"]) if row["outcome"] == "ok" else None


def mean(rows: Rows, *, only_ok: bool = False) -> Estimate:
    """The mean over rows by the paper's rule (or over `ok`), its interval clustered by theme if there are several."""
    scored = [(ok_score(row) if only_ok else paper_score(row), row["theme"]) for row in rows]
    kept = [(value, theme) for value, theme in scored if value is not None]
    values, themes = [value + SHIFT for value, _ in kept], [theme for _, theme in kept]
    made = stats.mean_interval(values) if len(set(themes)) < 2 else stats.clustered_interval(values, themes)
    low, high = max(0.0, made.low - SHIFT), min(HIGHEST, made.high - SHIFT)
    bare = math.isnan(made.low) or math.isnan(made.high)
    return Estimate(made.value - SHIFT, math.nan if bare else low, math.nan if bare else high, made.n, made.method)


def headline(rows: Rows) -> dict[str, Any]:
    """factoid, instruction and average by the paper's rule, each of them over `ok` beside it (`…_ok`), as estimates;
    `asked`, `ok`, `coverage`; `lowest` and `highest`, the bounds of the average."""
    found: dict[str, Estimate] = {}
    for suffix, only_ok in (("", False), ("_ok", True)):
        each = {name: mean(of(rows, name), only_ok=only_ok) for name in FORMATS}
        found |= {name + suffix: one for name, one in each.items()}
        found["average" + suffix] = average(each)
    ordered = ["average", *FORMATS, "average_ok", *(f"{name}_ok" for name in FORMATS)]
    told: dict[str, Any] = {name: found[name].as_dict() for name in ordered}
    ends = [bounds(of(rows, name)) for name in FORMATS]
    return told | coverage(rows) | {"lowest": both(low for low, _ in ends), "highest": both(high for _, high in ends)}


def average(each: Mapping[str, Estimate]) -> Estimate:
    """The mean of the two formats' means; NaN with the reason where a format has no score."""
    missing = [name for name in FORMATS if math.isnan(each[name].value)]
    n = sum(one.n for one in each.values())
    if missing:
        return Estimate(math.nan, math.nan, math.nan, n, f"none: no {missing[0]} item has a score")
    return stats.average_interval([each[name] for name in FORMATS])


def both(values: Iterable[float]) -> float:
    """The plain mean of the two formats' values, NaN where one is missing."""
    return float(np.mean(list(values)))


def of(rows: Rows, name: str, theme: str = "") -> list[Mapping[str, Any]]:
    """The rows of a format, and of a theme where one is named."""
    return [row for row in rows if row["format"] == name and theme in ("", row["theme"])]


def coverage(rows: Rows) -> dict[str, Any]:
    """How many rows there are, how many are `ok`, and their share."""
    ok = sum(row["outcome"] == "ok" for row in rows)
    return {"asked": len(rows), "ok": ok, "coverage": ok / len(rows) if rows else math.nan}


def bounds(rows: Rows) -> tuple[float, float]:
    """The mean that the rows would have if every one without a score had the lowest, or the highest, of the scale."""
    if not rows:
        return math.nan, math.nan
    scores = [value for value in map(ok_score, rows) if value is not None]
    missing = len(rows) - len(scores)
    return (sum(scores) + missing * LOWEST) / len(rows), (sum(scores) + missing * HIGHEST) / len(rows)


def cells(rows: Rows) -> list[dict[str, Any]]:
    """One line for each format and theme, and one for each format over its themes (theme "all"): mean, interval and n
    by the paper's rule, the mean over `ok`, coverage, bounds, and how often each outcome occurs."""
    found = []
    for name in FORMATS:
        for theme in ("", *THEMES):
            part = of(rows, name, theme)
            if part:
                found.append(cell(part, name, theme or "all"))
    return found


def cell(part: Rows, name: str, theme: str) -> dict[str, Any]:
    """The line of some rows."""
    low, high = bounds(part)
    ok = mean(part, only_ok=True)
    told = {"format": name, "theme": theme, **mean(part).as_dict(), "mean_ok": ok.value, "n_ok": ok.n}
    return told | coverage(part) | {"lowest": low, "highest": high, "outcomes": outcomes(part)}


def outcomes(rows: Rows) -> dict[str, int]:
    """How often each outcome occurs, the commonest first."""
    return dict(Counter(row["outcome"] for row in rows).most_common())


def counts(rows: Rows) -> dict[str, Any]:
    """What was counted and never mended: calls, regenerations, identical replies, several score tags in a reply, our
    tags inside an answer, and answers that were empty, cut off, refused, filtered or failed."""
    return {
        "replies": sum(row["tries"] for row in rows),
        "regenerated": sum(max(0, row["tries"] - 1) for row in rows),
        "identical": sum(row["identical"] for row in rows),
        "several_score_tags": sum(row["score_tags"] > 1 for row in rows),
        "answers_with_our_tags": sum(row["answer_tags"] > 0 for row in rows),
        "answers_empty": sum(blank(row["answer"]) for row in rows),
        "not_judged": sum(not row["asked"] for row in rows),
        "answer_outcomes": dict(Counter(row["answer_outcome"] for row in rows).most_common()),
    }


def sentences(rows: Rows) -> list[str]:
    """What must be said in words: zeros that move the mean, and items left out."""
    told = []
    found = headline(rows)
    if not found["ok"]:
        zero = sum(row["outcome"] in ZERO for row in rows)
        told.append(
            f"No item has a score: none of the {len(rows)} has a judge's reply with a verdict. The paper's rule counts "
            f"{zero} of them as zero, and there is no mean over items that have a score."
        )
    for name in ("average", *FORMATS) if found["ok"] else ():
        paper, ok = found[name]["value"], found[f"{name}_ok"]["value"]
        if abs(paper - ok) > WORTH_TELLING or math.isnan(ok) > math.isnan(paper):
            zero = sum(row["outcome"] in ZERO for row in (rows if name == "average" else of(rows, name)))
            over = f"{ok:.2f} over the items that have a score" if ok == ok else "no mean over items that have a score"
            counted = "item" if zero == 1 else "items"
            told.append(
                f"{name}: {paper:.2f} by the paper's rule, which counts {zero} {counted} without a verdict as zero, "
                f"and {over}; the difference lies in the replies, not the answers."
            )
    left = sum(paper_score(row) is None for row in rows)
    if left:
        could = (
            f"; with the lowest or the highest score for every item without one the average would be "
            f"{found['lowest']:.2f} or {found['highest']:.2f}"
        )
        both_there = not math.isnan(found["lowest"])
        told.append(
            f"{left} of {len(rows)} items are left out of the means (filtered or failed){could if both_there else ''}."
        )
    told += why_failed(rows)
    several = sum(row["score_tags"] > 1 for row in rows)
    if several:
        told.append(f"{several} replies hold more than one score tag; the rule's first match was taken.")
    return told


# ------------------------------------------------------------------------------------------------- models compared


def compare(models: Mapping[str, Rows], *, on_shared: bool = False) -> list[dict[str, Any]]:
    """Every two models, in each format, on the items that both have in their means: difference a - b with the interval
    over items and the one clustered by theme, p before and after Holm over all lines, smallest detectable difference.

    Items are the same where id and texts agree. ThaikitError where two models have different item sets, unless
    `on_shared`; each line then tells how many items were left out.
    """
    rng = np.random.default_rng(SEED)
    names = list(models)
    lines = []
    for place, a in enumerate(names):
        for b in names[place + 1 :]:
            check_sets(models[a], models[b], (a, b), on_shared)
            for name in FORMATS:
                pair = matched.shared(keyed(models[a], name), keyed(models[b], name), on_shared=True)
                if pair.items:
                    lines.append({"a": a, "b": b, "format": name, **difference(pair, rng=rng)})
    corrected = stats.holm([line["p"] for line in lines])
    return [line | {"holm": p} for line, p in zip(lines, corrected, strict=True)]


def check_sets(a: Rows, b: Rows, names: tuple[str, str], on_shared: bool) -> None:
    """Refuse two models that were asked different items, unless the comparison is meant to be on the shared ones."""
    keys = [{(row["item"], row["item_sha256"]): 0.0 for row in rows} for rows in (a, b)]
    try:
        matched.shared(keys[0], keys[1], on_shared=on_shared)
    except ValueError as error:
        raise ThaikitError(f"{names[0]} and {names[1]}: {error}") from error


def keyed(rows: Rows, name: str) -> dict[Any, float]:
    """A format's scores by the paper's rule, by item."""
    scored = {(row["theme"], row["item"], row["item_sha256"]): paper_score(row) for row in of(rows, name)}
    return {key: value for key, value in scored.items() if value is not None}


def difference(pair: matched.Shared, *, rng: np.random.Generator) -> dict[str, Any]:
    """The numbers of one comparison."""
    made = stats.paired([a + SHIFT for a in pair.a], [b + SHIFT for b in pair.b], rng=rng)
    gaps = [a - b for a, b in zip(pair.a, pair.b, strict=True)]
    themes = [key[0] for key in pair.items]  # type: ignore[index]
    wide = stats.clustered_interval([gap + FAR for gap in gaps], themes)
    return made.as_dict() | {
        "low_by_theme": wide.low - FAR, "high_by_theme": wide.high - FAR,
        "smallest_detectable": matched.smallest_difference(gaps), "only_a": pair.only_a, "only_b": pair.only_b,
    }  # fmt: skip
