"""Sets of another kind, described by a task file alone: templates over mapped fields, one value map a field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from thaikit import ThaikitError
from thaikit.tasks.h6 import Reader, blank, number_of, subject_of
from thaikit.tasks.load import Row, shorten

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
    for name in FIELD.findall(template):
        if name in fields and (fields[name] is None or fields[name] != fields[name]):
            raise ThaikitError(f"{row.where(name)}: found {fields[name]}, template {template!r} needs a value there")
    try:
        return template.format(**fields)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ThaikitError(
            f"{row.where()}: template {template!r} cannot be filled ({error}); the field map has {', '.join(fields)}"
        ) from error


def query_of(reader: Reader, row: Row, fields: Mapping[str, Any]) -> str:
    """The query, which must show something."""
    query = fill(reader.spec.query, fields, row)
    if blank(query):
        raise ThaikitError(f"{row.where('query')}: template {reader.spec.query!r} gives an empty query; mend the row")
    return query


def multiple_choice(reader: Reader, row: Row) -> dict[str, Any]:
    """A multiple-choice item: query and choices by templates (or a list field), gold as an index or a choice's text."""
    spec, fields = reader.spec, values(reader, row)
    if isinstance(spec.choices, str):
        choices = reader.texts(row, spec.choices)
    else:
        choices = tuple(fill(template, fields, row) for template in spec.choices)
    if any(map(blank, choices)) or len(choices) < 2:
        told = f"found {shorten(list(choices))}; at least two choices, none empty, are needed"
        raise ThaikitError(f"{row.where('choices')}: {told}")
    gold = gold_index(reader, row, choices)
    query = query_of(reader, row, fields)
    answer = fill(spec.answer, fields, row) if spec.answer else choices[gold]
    return {"question": query, "query": query, "choices": choices, "gold": gold, "answer": answer,
            "subject": subject_of(reader, row), "description": spec.description}  # fmt: skip


def gold_index(reader: Reader, row: Row, choices: tuple[str, ...]) -> int:
    """The right choice's index: a whole number in range, or one choice's exact text."""
    value = reader.get(row, reader.spec.gold)
    if isinstance(value, str) and choices.count(value) == 1:
        return choices.index(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(choices):
        return value
    allowed = f"0 to {len(choices) - 1}, or the text of one choice"
    told = f"gold is {shorten(value)}; allowed are {allowed} (a value map can turn letters)"
    raise ThaikitError(f"{row.where(reader.spec.gold)}: {told}")


def numeric(reader: Reader, row: Row) -> dict[str, Any]:
    """A numeric-answer item: query by template, gold under `gold_pattern` (a bare number unless it says otherwise)."""
    spec, fields = reader.spec, values(reader, row)
    gold = str(reader.get(row, spec.gold))
    number = number_of(reader, row, spec.gold, gold, BARE_NUMBER)
    query = query_of(reader, row, fields)
    return {"question": query, "query": query, "reference": number, "answer": fill(spec.answer, fields, row),
            "subject": subject_of(reader, row), "description": spec.description}  # fmt: skip


def exemplar(reader: Reader, row: Row) -> dict[str, Any]:
    """A worked example that one template holds whole (`exemplar`), question and answer."""
    query = fill(reader.spec.exemplar, values(reader, row), row)
    return {"question": query, "query": query, "answer": ""}
