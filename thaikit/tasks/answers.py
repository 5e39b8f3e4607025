"""What is told of any model's answers before somebody judges or scores them: outcomes, limit hits, empty ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from thaikit.chat import OUTCOMES
from thaikit.leaves import LIMIT_HIT_ALLOWED
from thaikit.tasks.h6 import blank

Rows = Sequence[Mapping[str, Any]]


def counts(rows: Rows) -> dict[str, Any]:
    """Counts over answers: outcomes, those that hit the token limit and their share, those with nothing to see."""
    hit = sum(row["finish"] == "length" for row in rows)
    return {
        "answers": len(rows), "outcomes": dict(Counter(row["outcome"] for row in rows).most_common()),
        "limit_hits": hit, "limit_hit": hit / len(rows) if rows else float("nan"),
        "empty": sum(blank(row["answer"]) for row in rows),
    }  # fmt: skip


def outcome_line(rows: Rows) -> dict[str, Any]:
    """A table's line: answers, how many of each outcome, limit-hit rate in percent, empty answers."""
    found = counts(rows)
    each = {outcome: found["outcomes"].get(outcome, 0) for outcome in OUTCOMES}
    return {"answers": len(rows), **each, "limit_hit_percent": 100 * found["limit_hit"], "empty": found["empty"]}


def cut_off(rows: Rows, *, max_new_tokens: int, done: str) -> Iterator[str]:
    """A sentence where too many answers were cut off by the limit; `done` is what happens to them, such as judged."""
    found = counts(rows)
    if found["limit_hit"] > LIMIT_HIT_ALLOWED:
        yield (
            f"{found['limit_hits']} of {len(rows)} answers hit the limit of {max_new_tokens} new tokens and are {done} "
            "as they stand; raise max_new_tokens."
        )


def lost(rows: Rows, *, done: str) -> Iterator[str]:
    """Sentences where answers never came, and why the failed ones did not."""
    never = {name: counts(rows)["outcomes"].get(name, 0) for name in ("filtered", "failed")}
    if any(never.values()):
        yield f"Not {done}, since no answer came: {never['filtered']} filtered, {never['failed']} failed."
    yield from why_failed(rows)


def why_failed(rows: Rows) -> Iterator[str]:
    """A sentence where rows failed, with what the server or the network said; none for those that were not asked."""
    failed = [row for row in rows if row["outcome"] == "failed" and row.get("error")]
    if failed:
        reasons = Counter(str(row["error"]) for row in failed).most_common(3)
        open_ones = sum(not row.get("for_good") for row in failed)
        told = f"; {open_ones} of them will be asked again" if open_ones else ", for good, and are in no score"
        yield f"{len(failed)} of {len(rows)} FAILED{told}: " + "; ".join(f"{n} × {why}" for why, n in reasons) + "."
