"""`model.thai` of a suite's leaves → the report's section "Thai in tokens", as plain dictionaries of texts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from thaikit import published
from thaikit.records import Leaf
from thaikit.report_parts import DASH, cell, number, percent, whole

RATES = ("per_word", "per_character", "tax")
NOT_COUNTED = "none: this run did not count its tokenizer"


def section(found: Sequence[Leaf]) -> dict[str, Any] | None:
    """The section's rows, what is drawn, sentences, and models without counts with the reason; None where no leaf has
    counts. One row for each model and tokenizer, however many leaves they have."""
    told = {key: model for model in models(found) for key in [identity(model)]}
    counted = [model for model in told.values() if "tax" in thai_of(model)]
    if not counted:
        return None
    rows = [row_of(model) for model in counted]
    drawn = [row["drawn"] for row in rows if not math.isnan(row["drawn"]["value"])]
    bare = [(str(model.get("name")), reason(model)) for model in told.values() if "tax" not in thai_of(model)]
    return {
        "rows": rows, "drawn": drawn, "costs": costs(counted), "bare": bare, "sea_lion": sea_lion(),
        "texts": sorted({text_of(thai_of(model)) for model in counted}),
    }  # fmt: skip


def models(found: Iterable[Leaf]) -> list[Mapping[str, Any]]:
    """What the leaves record of the models that answered."""
    recorded = (leaf.run.get("model") for leaf in found)
    return [model for model in recorded if isinstance(model, Mapping) and model.get("name")]


def thai_of(model: Mapping[str, Any]) -> Mapping[str, Any]:
    """A model's counts; empty where its run made none."""
    told = model.get("thai")
    return told if isinstance(told, Mapping) else {}


def identity(model: Mapping[str, Any]) -> str:
    """What makes two leaves' rows the same row."""
    return json.dumps([model["name"], model.get("tokenizer_sha256"), thai_of(model)], sort_keys=True, default=str)


def reason(model: Mapping[str, Any]) -> str:
    """Why a model has no counts, without the leading "none: "."""
    return str(thai_of(model).get("why") or NOT_COUNTED).removeprefix("none: ")


def row_of(model: Mapping[str, Any]) -> dict[str, Any]:
    """One model's line."""
    told = thai_of(model)
    entries, size = number(told.get("thai_entries")), number(told.get("vocabulary"))
    share = ("< 0.01" if 0 < entries < size / 20_000 else percent(entries / size)) if size > 0 else DASH
    tax = told["tax"] or {}
    return {
        "model": str(model["name"]), "rehearsal": bool(model.get("rehearsal")), "vocabulary": whole(size),
        "entries": whole(entries), "share": f"{share} %", "pieces": whole(number(told.get("thai_pieces"))),
        "cells": [cell(told.get(name), show=times) | {"n": ""} for name in RATES],
        "window": whole(number(model.get("max_length"))), "words": whole(number(told.get("window_words"))),
        "drawn": {"model": str(model["name"]), **{key: number(tax.get(key)) for key in ("value", "low", "high")}},
    }  # fmt: skip


def times(value: Any, digits: int = 2) -> str:
    """A ratio with two decimals, whatever is asked: an interval of tokens is narrower than one of percents."""
    x = number(value)
    return DASH if math.isnan(x) else f"{x:.{max(digits, 2)}f}"


def costs(counted: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the tax costs in money and in context: a sentence for the cheapest and, where there is another, the dearest
    model."""
    priced = sorted((tax_of(model), place) for place, model in enumerate(counted) if tax_of(model) == tax_of(model))
    ends = dict.fromkeys(place for _, place in (priced[:1] + priced[-1:]))
    return [cost(counted[place]) for place in ends]


def tax_of(model: Mapping[str, Any]) -> float:
    """A model's Thai tax."""
    return number((thai_of(model).get("tax") or {}).get("value"))


def cost(model: Mapping[str, Any]) -> str:
    """One model's sentence."""
    told = thai_of(model)
    tokens = told.get("tokens") or {}
    said = (
        f"{model['name']} takes {whole(number(tokens.get('thai')))} tokens for the Thai text and "
        f"{whole(number(tokens.get('english')))} for the same in English. Where tokens are paid for, Thai costs "
        f"{times(tax_of(model))} times as much"
    )
    words, window = number(told.get("window_words")), number(model.get("max_length"))
    if math.isnan(words) or math.isnan(window):
        return said + "."
    return f"{said}, and its window of {whole(window)} tokens holds about {whole(words)} Thai words."


def text_of(told: Mapping[str, Any]) -> str:
    """Which text was counted, and by which rule its words."""
    sentences = (told.get("tax") or {}).get("n", DASH)
    counts = ", ".join(f"{whole(number(told.get(f'thai_{unit}')))} {unit}" for unit in ("words", "characters"))
    return f"{told.get('text', DASH)}, {sentences} sentences, {counts}, {told.get('words', DASH)}"


def sea_lion() -> str:
    """The published count of SEA-LION's Thai entries."""
    return whole(published.book().value("wangchan.text", "entries of the SEA-LION vocabulary with Thai", "value"))
