"""An item's card as plain parts for its template: texts, choices, coloured tokens, judgements, raw replies."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thaikit import explore_prompt, explore_rows
from thaikit.explore_rows import Rows, number, text_of
from thaikit.report_items import choice_part, completion_part

SHOWN = 20_000  # characters of a text on a card
# The least probability of each colour: one hue that darkens, so that lightness alone tells them apart.
STEPS = (0.5, 0.2, 0.05, 0.01, 0.001, 0.0)
LEGEND = ("≥ 50 %", "20–50 %", "5–20 %", "1–5 %", "0.1–1 %", "< 0.1 %")
FACTS = ("metric", "shots", "context_tokens", "prompt_tokens", "new_tokens", "finish", "tries", "identical", "fault",
         "rule", "judge", "judge_model", "answer_outcome", "answer_tags", "score_tags", "margin_sum", "margin_per_char",
         "refusal", "error")  # fmt: skip


def css() -> str:
    """The card's styles."""
    return (Path(__file__).parent / "templates" / "explore.css").read_text(encoding="utf-8")


def side(rows: Rows, line: Mapping[str, Any]) -> dict[str, Any]:
    """One leaf's part of a card; where texts are not to be shown only numbers and words of the kit's own."""
    row, what = line["row"], explore_rows.kind(line["row"])
    found: dict[str, Any] = {
        "name": rows.name, "kind": what, "hidden": line["hidden"], "right": line["right"], "outcome": line["outcome"],
        "score": shown_number(line["score"]), "facts": facts(row), "verdicts": four(row),
    }  # fmt: skip
    if line["hidden"]:
        return found
    asked = explore_prompt.asked(rows, row)
    return found | {
        "prompt": [(role, cut(text)) for role, text in asked.turns], "prompt_told": asked.told,
        "question": cut(row.get("question")), "context": cut(row.get("context")), "texts": texts(row, what),
        "replies": [
            {key: cut(one.get(key)) for key in ("text", "outcome", "finish", "read", "refusal", "error")}
            for one in explore_prompt.replies(rows, row)
        ],
        **scored(rows, row, what),
    }  # fmt: skip


def scored(rows: Rows, row: Mapping[str, Any], what: str) -> dict[str, Any]:
    """What only some kinds of rows have: choices with tokens, a completion under every rule, F1 under every rule."""
    if what == "choices":
        told = explore_prompt.tokens(rows, row)
        parts = [tokens(one) for one in told.choices]
        choices = [dict(one, tokens=parts[n] if n < len(parts) else []) for n, one in enumerate(choice_part(row))]
        return {"choices": choices, "tokens_told": told.told, "coloured": bool(told.choices)}
    if what == "number":
        return {"number": completion_part(row) | {"completion": cut(row.get("completion"))}}
    if what == "preference":
        keys = (("ll", "log-probability"), ("chars", "characters"), ("tokens", "tokens"))
        lines = [
            (name, [shown_number(row.get(f"{key}_{one}")) for one in ("chosen", "rejected")]) for key, name in keys
        ]
        return {"compared": lines}
    if what == "f1":
        names = [key.removesuffix("_f1") for key in row if key.endswith("_f1")]
        keys = ("f1", "em", "recall")
        return {"rules": [(name, [shown_number(row.get(f"{name}_{key}")) for key in keys]) for name in names]}
    return {}


def texts(row: Mapping[str, Any], what: str) -> list[tuple[str, str]]:
    """The named texts of a row: the answer, what would have been right, ThaiCLI's two, a judge's explanation."""
    keys = ("answer", "references", "chosen", "rejected", "explanation")
    return [] if what in ("choices", "number") else [(key, cut(row[key])) for key in keys if key in row]


def facts(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Short facts of a row that hold something."""
    told = [(key.replace("_", " "), value_of(row[key])) for key in FACTS if key in row]
    return [(key, value) for key, value in told if value not in ("", "0")]


def value_of(value: Any) -> str:
    """A fact as it is shown."""
    return shown_number(value) if isinstance(value, float) else cut(value, most=300)


def four(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The four verdicts in words."""
    words = {1.0: "agree", 0.0: "disagree"}
    return [(key.upper(), words.get(number(row[key]), "no verdict")) for key in explore_rows.QUESTIONS if key in row]


def cut(value: Any, *, most: int = SHOWN) -> str:
    """A text's first characters, and how many more there are."""
    text = text_of(value)
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"


def shown_number(value: Any) -> str:
    """A number with up to three decimals; "" for what is not there."""
    x = number(value)
    return "" if math.isnan(x) else f"{x:,.3f}".rstrip("0").rstrip(".").replace("-", "−")


# ------------------------------------------------------------------------------------------------- tokens


def tokens(pieces: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
    """Tokens as coloured pieces: text, step of the colour (0 likely, 5 unlikely), and the numbers.

    Tokens inside one character, and those that begin with a mark that stands above or below the letter before, are one
    piece with the sum of their log-probabilities: a mark alone cannot be coloured, or not be seen.
    """
    groups: list[list[tuple[str, float]]] = []
    open_ = False  # whether the last group waits for the rest of a character
    for text, lp in pieces:
        joins = bool(groups) and (open_ or (text != "" and unicodedata.category(text[0]) in ("Mn", "Me")))
        groups = groups if joins else [*groups, []]
        groups[-1].append((text, lp))
        open_ = text == "" and any(told for told, _ in pieces)
    return [piece(group) for group in groups]


def piece(group: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """One coloured piece of one or more tokens."""
    text, total = "".join(told for told, _ in group), math.fsum(lp for _, lp in group)
    chance = math.exp(min(total, 0.0)) if total == total else 0.0
    each = " + ".join(f"{lp:.2f}" for _, lp in group).replace("-", "−")
    several = f" = {total:.2f}".replace("-", "−") if len(group) > 1 else ""
    count = f"{len(group)} tokens, " if len(group) > 1 else ""
    step = next(n for n, least in enumerate(STEPS) if chance >= least)
    return {"text": text.replace(" ", "␣").replace("\n", "⏎") or f"{total:.1f}".replace("-", "−"), "step": step,
            "title": f"{count}log-probability {each}{several}, {100 * chance:.3g} %"}  # fmt: skip
