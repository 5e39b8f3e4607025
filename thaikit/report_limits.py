"""What a report of many models leaves out of the page, what its leaves lost, and the sentences that say so."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from thaikit.records import Leaf
from thaikit.records import leaves as leaves_of
from thaikit.report_parts import Group, number, scores

MODELS = 8  # in a figure, and whose items are shown
NOTICES = 10  # of one kind that stand unfolded
LEAVES = 12  # whose provenance stands unfolded
LINES = 60  # of comparisons in a table


def ranked(leaves: Sequence[Leaf]) -> list[Leaf]:
    """The leaves by their average, the highest first; those without one last, in their own order."""
    averages = {id(leaf): number(scores(leaf).get("average", {}).get("value")) for leaf in leaves}
    return sorted(leaves, key=lambda leaf: math.inf if math.isnan(averages[id(leaf)]) else -averages[id(leaf)])


def leading(leaves: Sequence[Leaf], most: int = MODELS) -> list[Leaf]:
    """The `most` leaves with the highest average, in their own order; all of them where there are no more."""
    if len(leaves) <= most:
        return list(leaves)
    best = {id(leaf) for leaf in ranked(leaves)[:most]}
    return [leaf for leaf in leaves if id(leaf) in best]


def drawn(some: Sequence[Leaf], leaves: Sequence[Leaf]) -> str:
    """A sentence where a figure has some models only."""
    return f"Drawn are the {len(some)} models with the highest averages." if len(some) < len(leaves) else ""


def left_out(first: Sequence[Leaf], shown: Sequence[Leaf]) -> str:
    """A sentence where the page has the items of some models only."""
    if len(first) == len(shown):
        return ""
    return f"Items of the {len(first)} models with the highest averages; the rows of all are below, under Rows."


def best(group: Group) -> Group:
    """The group with its leading models only, for a figure."""
    return replace(group, leaves=tuple(leading(group.leaves)))


def few(
    lines: Sequence[Mapping[str, Any]], order: Sequence[str], *, by: str = "average"
) -> tuple[list[Mapping[str, Any]], str]:
    """The comparisons that the page shows and a sentence about the others: all of up to LINES lines, of more those of
    the first model of `order` with the next ones (each line has its models' names under `a` and `b`). `by` says what
    the order is by."""
    if len(lines) <= LINES or not order:
        return list(lines), ""
    best, kept = order[0], []
    others = 0
    for name in order[1:]:
        more = [line for line in lines if {line["a"], line["b"]} == {best, name}]
        if kept and len(kept) + len(more) > LINES:
            break
        kept, others = kept + more, others + 1
    return kept, (
        f"{len(kept)} of {len(lines):,} comparisons: {best}, which has the highest {by}, with each of the next "
        f"{others}; all of them are in tables/ beside this page. p is corrected over all {len(lines):,}."
    )


def lost(suite: Path) -> list[str]:
    """One sentence for each leaf of the suite that was closed with failed rows."""
    told = []
    for leaf in leaves_of(suite):
        found = leaf.run.get("failures") or {}
        reasons = "; ".join(f"{count} × {why}" for why, count in (found.get("reasons") or {}).items())
        by_hand = "; it was closed by hand with what was there" if found.get("given_up") else ""
        if found.get("count"):
            told.append(
                f"{leaf.path.relative_to(suite)}: {found['count']} rows FAILED and are in no score, so coverage is "
                f"lower{by_hand} ({reasons})."
            )
    return told
