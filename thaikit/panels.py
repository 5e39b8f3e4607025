"""A frozen panel: items that a judge scores anew in each run, so that a judge that changed behind its name is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator
from scipy import stats as sps

from thaikit import ThaikitError, matched, stats
from thaikit.judge import Case
from thaikit.params import Strict, load
from thaikit.stats import Estimate
from thaikit.tasks import thaicli
from thaikit.tasks.thaicli import CliItem

LEVEL = 1 - stats.CONFIDENCE
LIFT = 2.0  # on both sides of a difference, so that scores of 0 and 1 are not taken for wrong and right
SEED = 1234  # of the sign-flip draws; they are no part of any score


class PanelItem(Strict):
    """One answer of the panel: the item's id, which of its two answers, and the hash of the item's texts."""

    id: str
    side: Literal["chosen", "rejected"]
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class PanelEntry(Strict):
    """One panel of params/panels/: the task file that its items come from, the items, and each judge's frozen scores
    in the order of the items (null where the judge gave none)."""

    name: str
    tasks: str
    items: list[PanelItem] = Field(min_length=1)
    scores: dict[str, list[int | None]] = {}
    note: str = ""

    @model_validator(mode="after")
    def scores_fit_the_items(self) -> PanelEntry:
        """Each answer once; a score or null for each, from 1 to 10."""
        twice = [key for key, count in Counter((one.id, one.side) for one in self.items).items() if count > 1]
        if twice:
            raise ValueError(f"items: {'@'.join(twice[0])} stands twice; each answer belongs there once")
        for judge, given in self.scores.items():
            if len(given) != len(self.items):
                raise ValueError(f"scores.{judge}: {len(given)} scores for {len(self.items)} items; give each its own")
            wrong = [score for score in given if score is not None and not 1 <= score <= 10]
            if wrong:
                raise ValueError(f"scores.{judge}: found {wrong[0]}; scores go from 1 to 10, or null")
        return self


def read(name: str) -> PanelEntry:
    """The panel of params/panels/<name>.yaml."""
    return load("panels", name, PanelEntry)


def cases(panel: PanelEntry, *, run: str) -> list[Case]:
    """The panel's answers to be judged, with `run` in each request so that no cache answers for an earlier run.

    ThaikitError for an item that is not in the panel's task file or whose texts are no longer those that were frozen.
    """
    items = {item.id: item for item in thaicli.load(panel.tasks).items}
    found = []
    for one in panel.items:
        item = items.get(one.id)
        if item is None or item.sha256() != one.sha256:
            told = "is not there" if item is None else f"now has the hash {item.sha256()}"
            raise ThaikitError(
                f"panel {panel.name}, item {one.id}: it {told} in tasks {panel.tasks}; a frozen panel keeps its items, "
                "so make a new panel under another name"
            )
        name, answer = f"{one.id}@{one.side}/panel", getattr(item, one.side)
        about = told_of(item, source=one.side, kind="panel")
        found.append(Case(name, answer, item.question, item.chosen, item.rejected, about, run=run))
    return found


def told_of(item: CliItem, *, source: str, kind: str, shift: str = "") -> dict[str, Any]:
    """What the row of a judgement on the bench says beside the texts: the item, whose answer it is (`source`), whether
    it is a base, shift, repeat or panel judgement (`kind`), and the `shift`."""
    place = {"item": item.id, "format": item.format, "theme": item.theme, "item_sha256": item.sha256()}
    return place | {"source": source, "kind": kind, "shift": shift}


def table(panel: PanelEntry, judge: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A line for each answer of the panel: frozen score, score now (None where there is none), what it moved by."""
    now = {(row["item"], row["source"]): row for row in rows if row["kind"] == "panel"}
    frozen = panel.scores.get(judge) or [None] * len(panel.items)
    lines = []
    for one, before in zip(panel.items, frozen, strict=True):
        row = now.get((one.id, one.side), {})
        score = row.get("score") if row.get("outcome") == "ok" else None
        moved = None if score is None or before is None else score - before
        lines.append({"item": one.id, "side": one.side, "frozen": before, "now": score, "moved": moved,
                      "outcome": row.get("outcome", "not judged")})  # fmt: skip
    return lines


def drift(panel: PanelEntry, judge: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What run.json says of the panel: mean of now - frozen as an estimate with p (sign flip), how many answers moved,
    the smallest mean shift that the panel could show, whether the judge `shifted`, and a sentence.

    A judge that moves up here and down there keeps its mean: `p_moved` (Fisher, one-sided) asks whether more answers
    moved than differ between two askings in one run; NaN where nothing was asked twice. Both are held together (Holm).
    NaN with the reason where the judge has no frozen scores, or fewer than two answers have both.
    """
    lines = table(panel, judge, rows)
    both = [line for line in lines if line["moved"] is not None]
    told = {"panel": panel.name, "judge": judge, "asked": len(lines), "n": len(both)}
    if judge not in panel.scores or len(both) < 2:
        why = "no frozen scores of this judge" if judge not in panel.scores else f"{len(both)} answers have both scores"
        none = Estimate(float("nan"), float("nan"), float("nan"), len(both), f"none: {why}")
        says = f"Drift of {judge} on panel {panel.name} is not known: {why}."
        return told | {"moved": None, "difference": none.as_dict(), "p": None, "shifted": None, "says": says}
    now, before = ([line[key] + LIFT for line in both] for key in ("now", "frozen"))
    made = stats.paired(now, before, rng=np.random.default_rng(SEED))
    moved, d = sum(line["moved"] != 0 for line in both), made.difference
    p_moved = oftener(moved, len(both), *unsteady(rows))
    shifted = min(value for value in stats.holm([made.p, p_moved]) if value == value) < LEVEL
    smallest = matched.smallest_difference([line["moved"] for line in both])
    says = f"Panel {panel.name}: {judge} moved on {moved} of {len(both)} answers, by {d.value:+.2f} points in the mean"
    says += f" (p {made.p:.3f}; of so many moves {p_moved:.3f}); " if p_moved == p_moved else f" (p {made.p:.3f}); "
    says += "THE JUDGE HAS SHIFTED." if shifted else "no shift is shown."
    return told | {
        "moved": moved, "difference": d.as_dict(), "p": made.p, "p_moved": p_moved, "smallest_detectable": smallest,
        "shifted": bool(shifted), "says": says,
    }  # fmt: skip


def unsteady(rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """(how many answers got another score when asked again in this run, how many were asked twice). Each counts once,
    by its first repeat."""
    scores: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["kind"] in ("base", "repeat") and row["outcome"] == "ok":
            scores.setdefault((row["source"], row["item"]), []).append(row["score"])
    pairs = [found[:2] for found in scores.values() if len(found) > 1]
    return sum(a != b for a, b in pairs), len(pairs)


def oftener(moved: int, of: int, differ: int, asked: int) -> float:
    """One-sided p (Fisher's exact test) that answers move more often than repeats differ; NaN without repeats."""
    if not asked:
        return float("nan")
    return float(sps.fisher_exact([[moved, of - moved], [differ, asked - differ]], alternative="greater").pvalue)
