"""Sets of another kind, described by a task file alone: templates over mapped fields, one value map a field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from thaikit import ThaikitError
from thaikit.tasks.h6 import Reader, number_of
from thaikit.tasks.load import Row

BARE_NUMBER = r"^\s*(-?[0-9][0-9,]*(?:\.[0-9]+)?)\s*$"
FIELD = re.compile(r"\{(\w+)(?:\[\d+\])?\}")


def values(reader: Reader, row: Row) -> dict[str, Any]:
    """Every mapped field of a row, through its value map."""
    return {field: reader.get(row, field) for field in reader.fields if reader.fields[field]}


def fill(template: str, fields: Mapping[str, Any], row: Row) -> str:
    """A template with its fields put in; only `{name}` and `{name[0]}` are allowed, nothing of Python is reached."""
    bare = FIELD.sub("", template.replace("{{", "").replace("}}", ""))
    if "{" in bare or "}" in bare:
        raise ThaikitError(f"template {template!r}: only {{field}} and {{field[0]}} are allowed, and {{{{ for a brace")
    try:
        return template.format(**fields)
    except (KeyError, IndexError) as error:
        raise ThaikitError(
            f"{row.where()}: template {template!r} asks for {error}; the field map has {', '.join(fields)}"
        ) from error


def multiple_choice(reader: Reader, row: Row) -> dict[str, Any]:
    """A multiple-choice item: query and choices by templates (or a list field), gold as an index or a choice's text."""
    spec, fields = reader.spec, values(reader, row)
    if isinstance(spec.choices, str):
        choices = reader.texts(row, spec.choices)
    else:
        choices = tuple(fill(template, fields, row) for template in spec.choices)
    empty = [place + 1 for place, choice in enumerate(choices) if not choice.strip()]
    if empty or len(choices) < 2:
        raise ThaikitError(f"{row.where('choices')}: found {list(choices)}; at least two choices, none empty, are needed")
    gold = gold_index(reader, row, choices)
    query = fill(spec.query, fields, row)
    answer = fill(spec.answer, fields, row) if spec.answer else choices[gold]
    return {"question": query, "query": query, "choices": choices, "gold": gold, "answer": answer,
            "subject": str(fields.get("subject", row.subject)), "description": spec.description}  # fmt: skip


def gold_index(reader: Reader, row: Row, choices: tuple[str, ...]) -> int:
    """The right choice's index: a whole number in range, or one choice's exact text."""
    value = reader.get(row, reader.spec.gold)
    if isinstance(value, str) and choices.count(value) == 1:
        return choices.index(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(choices):
        return value
    allowed = f"0 to {len(choices) - 1}, or the text of one choice"
    raise ThaikitError(f"{row.where(reader.spec.gold)}: gold is {value!r}; allowed are {allowed} (a value map can turn letters)")


def numeric(reader: Reader, row: Row) -> dict[str, Any]:
    """A numeric-answer item: query by template, gold under `gold_pattern` (a bare number unless it says otherwise)."""
    spec, fields = reader.spec, values(reader, row)
    gold = str(reader.get(row, spec.gold))
    number = number_of(reader, row, spec.gold, gold, BARE_NUMBER)
    query = fill(spec.query, fields, row)
    return {"question": query, "query": query, "reference": number, "answer": fill(spec.answer, fields, row),
            "subject": str(fields.get("subject", row.subject)), "description": spec.description}  # fmt: skip


def exemplar(reader: Reader, row: Row) -> dict[str, Any]:
    """A worked example that one template holds whole (`exemplar`), question and answer."""
    query = fill(reader.spec.exemplar, values(reader, row), row)
    return {"question": query, "query": query, "answer": ""}
