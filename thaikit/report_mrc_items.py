"""Answers to passages as cards: question, passage, references, answer, scores, and each judge's raw reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thaikit.records import leaves, read_rows
from thaikit.report_items import cut
from thaikit.report_parts import DASH, percent
from thaikit.report_thaicli import point

ITEMS = 8  # shown for each model and group
ANSWERED = "mrc_answer"
QUESTIONS = ("q1", "q2", "q3", "q4")
WORDS = {1: "agree", 0: "disagree"}

Row = Mapping[str, Any]


def galleries(
    suite: Path | str, scoring: Sequence[Any], judging: Sequence[Any], *, gallery: bool, sensitive: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """(a model's cards for each set of answers, the models whose texts may not be shown): of the shipped samples
    always, of other data with `gallery`; rows marked `sensitive` only with `sensitive`."""
    passages, found, hidden = contexts(suite), [], []
    scores = {answer_key(row): row for group in scoring for part in group.parts for row in part.rows}
    judged = {answer_key(row) for group in judging for part in group.parts for row in part.rows}
    for group in (*judging, *scoring):
        for part in group.parts:
            rows = [row for row in part.rows if sensitive or row.get("sensitive") is not True]
            if group in scoring:  # what was judged is shown there, with its scores
                rows = [row for row in rows if answer_key(row) not in judged]
            if rows and not (gallery or part.place.startswith("samples:")):
                hidden.append(part.model)
            elif rows:
                cards = [card(row, scores.get(answer_key(row)), passages) for row in chosen(rows)]
                found.append({"model": part.model, "terms": group.terms, "cards": cards})
    return found, list(dict.fromkeys(hidden))


def contexts(suite: Path | str) -> dict[tuple[str, str], str]:
    """(item, question) → passage, from the suite's leaves of answers; rows of scores do not hold it."""
    found: dict[tuple[str, str], str] = {}
    for leaf in leaves(suite, stage=ANSWERED):
        path = leaf.path / "rows" / "answers.jsonl"
        for row in read_rows(path) if path.is_file() else []:
            found[str(row.get("id")), str(row.get("question"))] = str(row.get("context") or "")
    return found


def answer_key(row: Row) -> tuple[str, ...]:
    """One model's answer to one question."""
    return tuple(str(row.get(key)) for key in ("model", "item", "question", "answer"))


def chosen(rows: Sequence[Row]) -> list[Row]:
    """The rows that are shown: one of each outcome and set of verdicts first, then in order."""
    seen: set[tuple[Any, ...]] = set()
    ranked = []
    for place, row in enumerate(rows):
        outcome = (row.get("outcome"), row.get("answer_outcome"))
        kind = (*outcome, *(row.get(q) for q in QUESTIONS), row.get("score") in (None, 0.0, 1.0))
        ranked.append((outcome in {one[:2] for one in seen}, kind in seen, place))
        seen.add(kind)
    return [rows[place] for _, _, place in sorted(ranked)[:ITEMS]]


def card(row: Row, score: Row | None, passages: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """One answer as it is shown."""
    judged = "reply" in row
    measured = (score or {}) if judged else row
    told = [("F1", "score"), ("EM", "wangchanx_em"), ("recall", "wangchanx_recall")]
    return {
        "id": row.get("item"), "question": cut(row.get("question")),
        "passage": cut(passages.get((str(row.get("item")), str(row.get("question"))), "")),
        "references": [cut(one) for one in row.get("references") or []], "answer": cut(row.get("answer")),
        "answer_outcome": row.get("answer_outcome"), "words": point(row.get("words"), 0),
        "scores": ", ".join(f"{name} {percent(measured[key], 1)}" for name, key in told if key in measured) or DASH,
        "judged": judged, "outcome": row.get("outcome", ""), "fault": row.get("fault") or "",
        "tries": row.get("tries", ""), "reply": cut(row.get("reply")), "asked": bool(row.get("asked")),
        "verdicts": [{"question": q.upper(), "verdict": WORDS.get(row.get(q), "no verdict")} for q in QUESTIONS],
    }  # fmt: skip
