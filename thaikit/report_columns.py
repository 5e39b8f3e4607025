"""What the report's tables of rows show of a row: columns for each kind of row, every text on one line and cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thaikit.report_items import choice_part, listed
from thaikit.report_parts import DASH, number, percent

TEXT, NAME = 70, 60  # characters of a text and of an id
CHOICES = 8  # log-probabilities of a row at most
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of a table of rows: its head, what it shows of a row, whether it is set as text (to the left, wrapped),
    and whether it holds texts of an item or a model, which are not shown everywhere."""

    name: str
    of: Callable[[Row], Any]
    text: bool = False
    guarded: bool = False

    @property
    def kind(self) -> str:
        """The class of its cells."""
        extra = "wide" if self.guarded else "name" if self.name in ("Id", "Item") else ""
        return f"text {extra}".strip() if self.text else ""


def choice_columns(rows: Sequence[Row]) -> list[Column]:
    """Columns of rows answered by log-probability: what was chosen, what is right, and the log-probabilities."""
    return [
        *common_columns(rows),
        Column("Chosen", lambda row: chosen(row, "chosen"), text=True, guarded=True),
        Column("Right", lambda row: chosen(row, "gold"), text=True, guarded=True),
        Column("Log-probabilities", log_probabilities, text=True),
        Column("Question", lambda row: brief(row.get("question")), text=True, guarded=True),
    ]


def generated_columns(rows: Sequence[Row]) -> list[Column]:
    """Columns of rows answered by generation: the answer read by the task's own rule, the reference, the completion."""
    return [
        *common_columns(rows),
        Column("Answer", answer, text=True, guarded=True),
        Column("Reference", lambda row: brief(row.get("reference")), text=True, guarded=True),
        Column("Completion", lambda row: brief(row.get("completion")), text=True, guarded=True),
        Column("Question", lambda row: brief(row.get("question")), text=True, guarded=True),
    ]


def common_columns(rows: Sequence[Row]) -> list[Column]:
    """Id, subject where there is one, outcome, score in percent."""
    subject = [Column("Subject", lambda row: brief(row.get("subject"), NAME), text=True)]
    return [
        Column("Id", lambda row: brief(row.get("id"), NAME), text=True),
        *(subject if any(row.get("subject") for row in rows) else []),
        Column("Outcome", lambda row: brief(row.get("outcome"), NAME), text=True),
        Column("Score, %", lambda row: percent(row.get("score"), 0 if number(row.get("score")) in (0, 1) else 2)),
    ]


def judged_columns() -> list[Column]:
    """Columns of judged ThaiCLI answers."""
    return [
        Column("Item", lambda row: brief(row["item"], NAME), text=True),
        Column("Outcome", lambda row: row["outcome"], text=True),
        Column("Score", lambda row: whole(row["score"])),
        Column("Answer", lambda row: brief(row["answer"]) or f"({row['answer_outcome']})", text=True, guarded=True),
        Column("Chosen", lambda row: brief(row["chosen"]), text=True, guarded=True),
        Column("Judge's reply", lambda row: brief(row["reply"]) or "(none)", text=True, guarded=True),
        Column("Question", lambda row: brief(row["question"]), text=True, guarded=True),
    ]


def preference_columns() -> list[Column]:
    """Columns of chosen against rejected answers."""
    return [
        Column("Item", lambda row: brief(row["id"], NAME), text=True),
        Column("Theme", lambda row: row["theme"], text=True),
        Column("Format", lambda row: row["format"], text=True),
        Column("Outcome", lambda row: row["outcome"], text=True),
        Column("Prefers chosen", lambda row: whole(row["score"])),
        Column("log P chosen", lambda row: two(row["ll_chosen"])),
        Column("log P rejected", lambda row: two(row["ll_rejected"])),
        Column("Question", lambda row: brief(row["question"]), text=True, guarded=True),
    ]


def f1_columns() -> list[Column]:
    """Columns of scored MRC answers."""
    return [
        Column("Id", lambda row: brief(row["id"], NAME), text=True),
        Column("Outcome", lambda row: row["answer_outcome"], text=True),
        Column("F1, %", lambda row: percent(row["score"])),
        Column("Words", lambda row: whole(row["words"])),
        *answer_columns(),
    ]


def question_columns() -> list[Column]:
    """Columns of MRC answers judged by four questions."""
    return [
        Column("Id", lambda row: brief(row["item"], NAME), text=True),
        Column("Outcome", lambda row: row["outcome"], text=True),
        Column("Q1 Q2 Q3 Q4", lambda row: " ".join(whole(row[key]) for key in ("q1", "q2", "q3", "q4"))),
        *answer_columns(),
        Column("Judge's reply", lambda row: brief(row["reply"]) or "(none)", text=True, guarded=True),
    ]


def answer_columns() -> list[Column]:
    """Answer, references and question of an MRC row."""
    return [
        Column("Answer", lambda row: brief(row["answer"]) or "(empty)", text=True, guarded=True),
        Column("References", lambda row: brief(" | ".join(row["references"])), text=True, guarded=True),
        Column("Question", lambda row: brief(row["question"]), text=True, guarded=True),
    ]


def chosen(row: Row, which: str) -> str:
    """The texts of the choices that are `chosen` or `gold`."""
    return brief(" | ".join(one["text"] for one in choice_part(row) if one[which])) or DASH


def log_probabilities(row: Row) -> str:
    """The choices' log-probabilities in their order."""
    told = [two(value) for value in listed(row.get("ll"))]
    return "  ".join(told[:CHOICES]) + (" …" if len(told) > CHOICES else "")


def answer(row: Row) -> str:
    """The answer that the task's own rule read, [invalid] where it read none."""
    read = (row.get("answers") or {}).get(row.get("metric"))
    return "[invalid]" if read is None else brief(read)


def two(value: Any) -> str:
    """A log-probability with two decimals."""
    return DASH if number(value) != number(value) else f"{number(value):.2f}".replace("-", "−")


def whole(value: Any) -> str:
    """A judge's score, a count, a verdict."""
    return DASH if number(value) != number(value) else f"{number(value):g}"


def brief(value: Any, most: int = TEXT) -> str:
    """A value on one line, cut to `most` characters."""
    text = re.sub(r"[ \n\t\r]+", " ", "" if value is None else str(value)[: 4 * most]).strip()
    return text if len(text) <= most else f"{text[:most]} …"
