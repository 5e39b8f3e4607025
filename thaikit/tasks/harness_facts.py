"""What an imported set comes to: its estimates, and what run.json says of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from thaikit import stats
from thaikit.records import sha256_file
from thaikit.stats import Estimate
from thaikit.tasks import summary
from thaikit.tasks.harness_tasks import Imported, Part

PROFILE, UNKNOWN = "harness-import", "not known"
PER_ITEM = ("acc", "exact_match", "mc1", "strict", "flexible")  # metrics that are right or wrong for each item


def estimates(found: Imported) -> dict[str, Estimate]:
    """The set's headline under its name and, where it has subjects, the micro mean beside the macro mean."""
    groups = grouped(found)
    if all(isinstance(values, list) for values in groups.values()):
        lists = {name: values for name, values in groups.items() if values}
        if len(groups) == 1 and found.kit.kind != "mmlu":
            return {found.kit.name: from_file(found, stats.mean_interval([v for one in lists.values() for v in one]))}
        micro = stats.mean_interval([value for one in lists.values() for value in one])
        pair = {found.kit.name: stats.macro_interval(lists), f"{found.kit.name}_micro": micro}
        return {name: from_file(found, one) for name, one in pair.items()}
    told = [(part.totals.get(found.metric, math.nan), part.n) for part in found.parts]
    n, why = sum(count for _, count in told), "none: no samples, and the score is no whole count of right items"
    value = sum(one for one, _ in told) / len(told)
    return {found.kit.name: Estimate(value, math.nan, math.nan, n, why)}


def from_file(found: Imported, one: Estimate) -> Estimate:
    """The estimate, its method saying so where counts came from the results file."""
    bare = sum(not part.samples for part in found.parts)
    told = f"{one.method}; counts of {bare} of {len(found.parts)} tasks from the results file" if bare else one.method
    return replace(one, method=told)


def grouped(found: Imported) -> dict[str, list[float] | None]:
    """Each subject's scores, from rows or, without samples, from k right of n; None where that cannot be known."""
    groups: dict[str, list[float] | None] = {}
    for row in found.rows:
        values = groups.setdefault(str(row["subject"]), [])
        if row["score"] is not None and values is not None:
            values.append(row["score"])
    for part in found.parts:
        if not part.samples and found.metric in part.totals:
            groups[part.member.subject] = counted(found.metric, part.totals[found.metric], part.n)
    return groups


def counted(metric: str, value: float, n: int) -> list[float] | None:
    """k ones and n - k zeros, where the metric is right or wrong for each item and value × n is whole; else None."""
    right = value * n
    whole = n > 0 and metric.startswith(PER_ITEM) and abs(right - round(right)) < 1e-6 * max(1, n) and 0 <= value <= 1
    return [1.0] * round(right) + [0.0] * (n - round(right)) if whole else None


def facts(found: Imported) -> dict[str, Any]:
    """What run.json says of a set: protocol as far as it is logged, counts, metrics, files, what did not agree."""
    rows, parts = found.rows, found.parts
    metrics = summary.every_metric(rows)
    return {
        "kind": found.kit.kind or ("numeric" if any("completion" in row for row in rows) else "multiple_choice"),
        "metric": found.metric, "profile": PROFILE, "labels": UNKNOWN, "signature": signature(found),
        "items": sum(part.n for part in parts) if found.kit.kind != "truthfulqa" else max(part.n for part in parts),
        "n": sum(row["score"] is not None for row in rows) or max((part.n for part in parts), default=0),
        "shots": parts[0].shots, "delimiter": parts[0].delimiter, "chat": any(part.chat for part in parts),
        "chance": chance(found), "outcomes": summary.count(row["outcome"] for row in rows), "metrics": metrics,
        "files": [
            {"file": part.samples.name, "sha256": sha256_file(part.samples), "rows": part.lines, "scored": part.n}
            for part in parts if part.samples
        ],
        "recomputed": found.again.told(),
        "harness": {part.member.task: of_part(part) for part in parts},
    }  # fmt: skip


def of_part(part: Part) -> dict[str, Any]:
    """A harness task as its results file tells it."""
    return {"version": part.version, "shots": part.shots, "n": part.n, "results": part.results.path.name,
            "date": part.results.date, "totals": part.totals, "stderr": part.stderrs}  # fmt: skip


def signature(found: Imported) -> str:
    """One line that pins what was computed, by the harness's own versions."""
    first = found.parts[0]
    versions = ", ".join(dict.fromkeys(part.version for part in found.parts))
    names = first.member.task if len(found.parts) == 1 else f"{first.member.task} and {len(found.parts) - 1} more"
    return (
        f"{found.metric}|{first.results.version}|task:{names}|task version:{versions}|"
        f"shots:{first.shots}|delimiter:{first.delimiter!r}"
    )


def chance(found: Imported) -> float:
    """What guessing scores: one in the number of choices, of mc2 the share of true answers, of a generated answer 0;
    NaN where the number of choices is not known."""
    if any("completion" in row for row in found.rows):
        return 0.0
    if not found.rows or len([part for part in found.parts if part.rows]) != len(found.parts):
        return math.nan
    if found.metric == "mc1":
        each = [1 / len(row["mc1_ll"]) for row in found.rows if row.get("mc1_ll")]
    elif found.metric == "mc2":
        each = [sum(row["labels"]) / len(row["labels"]) for row in found.rows if row.get("labels")]
    else:
        each = [1 / len(row["choices"]) for row in found.rows if len(row.get("choices") or ()) > 1]
    return sum(each) / len(each) if len(each) == len(found.rows) else math.nan
