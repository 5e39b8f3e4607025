"""ThaiCLI leaves → the report's section about them, as plain dictionaries of texts: nothing is asked or scored here."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thaikit import matched, report_mosaic, stats
from thaikit.figures_thaicli import FORMATS, THEMES, score_dots
from thaikit.reading import WITHOUT_VERDICT
from thaikit.records import Leaf, leaves, read_rows
from thaikit.report_items import cut, may_show
from thaikit.report_limits import MODELS, few
from thaikit.report_links import anchor, link
from thaikit.report_parts import DASH, SEED, cell, number, p_value, percent, told

STAGE, PREFERENCE, BENCH = "thaicli_judge", "thaicli_preference", "judge_bench"
SENSITIVE = "royal family"
ITEMS = 8  # shown for each model
SHIFT = 2.0  # keeps scores of 0 and 1 from being taken for wrong and right
JUDGED_ALIKE = ("model", "prompt_sha256", "rule", "variant", "tries", "sampling")


def found_leaves(suite: Path | str) -> list[Leaf]:
    """The closed leaves of judged ThaiCLI answers of a suite folder."""
    return leaves(suite, stage=STAGE)


def grouped(suite: Path | str) -> list[list[Leaf]]:
    """The leaves, parted by judge and data set, in order of first appearance."""
    parted: dict[str, list[Leaf]] = {}
    for leaf in found_leaves(suite):
        judge = leaf.run.get("judge") or {}
        key = [judge.get("name"), *(judge.get(name) for name in JUDGED_ALIKE), leaf.run.get("data_place")]
        parted.setdefault(json.dumps(key, ensure_ascii=False), []).append(leaf)
    return list(parted.values())


def sections(suite: Path | str, *, gallery: bool = False, sensitive: bool = False) -> list[dict[str, Any]]:
    """One part for each judge and data set: numbers of different ones are never put into one table."""
    others = {(leaf.run["params"].get("model"), leaf.run.get("data_place")): leaf
              for leaf in leaves(suite, stage=PREFERENCE)}  # fmt: skip
    return [section(group, others, gallery=gallery, sensitive=sensitive) for group in grouped(suite)]


def section(group: Sequence[Leaf], others: Mapping[Any, Leaf], *, gallery: bool, sensitive: bool) -> dict[str, Any]:
    """All that is shown of leaves under one judge."""
    judge = group[0].run.get("judge") or {}
    rows = {model_of(leaf): read_rows(leaf.path / "rows" / "judgements.jsonl") for leaf in group}
    gated = max(group, key=lambda leaf: sum(line.get("n") or 0 for line in leaf.run.get("gate") or []))
    shown = [leaf for leaf in group if may_show(leaf, gallery=gallery)]
    first, left_out = first_few(group)
    lines = comparisons(rows)
    kept, compared = few(lines, [model_of(leaf) for leaf in by_average(group)])
    items = [
        {"model": model_of(leaf), "cards": cards(rows[model_of(leaf)], sensitive=sensitive)}
        for leaf in shown
        if leaf in first
    ]
    return {
        "says": {"judge": judge.get("name"), "data": group[0].run.get("data_place")},
        "judge": judge, "sampling": told(judge.get("sampling")), "data": group[0].run.get("data_place"),
        "notices": notices(group), "rows": [board_row(leaf, others) for leaf in group],
        "themes": [theme_table(group, name) for name in FORMATS], "gate": gate_table(gated.run.get("gate") or []),
        "marked": gated.run.get("gate_marked") or [],
        "figures": [(model_of(leaf), score_dots(leaf.run["cells"], gate=leaf.run.get("gate") or [])) for leaf in first],
        "mosaics": report_mosaic.thaicli({model_of(leaf): rows[model_of(leaf)] for leaf in first}),
        "comparisons": kept, "compared": compared, "all": lines, "left_out": left_out,
        "counts": [count_row(leaf) for leaf in group],
        "items": items,
        "hidden": [model_of(leaf) for leaf in group if leaf not in shown],
    }  # fmt: skip


def by_average(group: Sequence[Leaf]) -> list[Leaf]:
    """The leaves by their ThaiCLI score, the highest first, those without one last."""
    values = [number((leaf.run["headline"]["thaicli"].get("average") or {}).get("value")) for leaf in group]
    order = sorted(range(len(group)), key=lambda i: math.inf if math.isnan(values[i]) else -values[i])
    return [group[i] for i in order]


def first_few(group: Sequence[Leaf]) -> tuple[list[Leaf], str]:
    """The models with figures and items in the page, and a sentence about the others."""
    if len(group) <= MODELS:
        return list(group), ""
    return by_average(group)[
        :MODELS
    ], f"Figures and items of the {MODELS} models with the highest ThaiCLI; the rows of all are below."


def model_of(leaf: Leaf) -> str:
    """Whose answers were judged: the leaf's name without the judge's, so that a variant stays apart."""
    given = leaf.run["params"]
    name = leaf.name.replace(f"--{given.get('judge')}", "")
    return str(given["model"]) if name == STAGE else name


def rehearses(leaf: Leaf) -> bool:
    """Whether the model or the judge is there to rehearse the machinery."""
    return any(bool((leaf.run.get(key) or {}).get("rehearsal")) for key in ("model", "judge_model"))


def notices(group: Sequence[Leaf]) -> list[str]:
    """What a reader must know before the numbers."""
    found = []
    rehearsing = [model_of(leaf) for leaf in group if rehearses(leaf)]
    if rehearsing:
        found.append(
            f"These ThaiCLI numbers rehearse the machinery: the judge, or the models ({', '.join(rehearsing)}), are "
            "there to show that it runs, and their scores say nothing about anybody's Thai."
        )
    if len({items_of(leaf) for leaf in group}) > 1:
        found.append("The models were judged on different numbers of items; comparisons are on the items both have.")
    for leaf in group:
        found += [f"{model_of(leaf)}, {one}" for one in leaf.run.get("told") or []]
        cells = leaf.run.get("size_mismatch") or []
        wrong = [f"{one['format']} {one['theme']} {one['items']} for {one['expected']}" for one in cells]
        found += [f"{model_of(leaf)}: the sizes differ from the expected ones ({'; '.join(wrong)})."] if wrong else []
    return found


def drift_notices(suite: Path | str) -> list[str]:
    """One sentence for each judge whose frozen panel has shifted."""
    drifts = [leaf.run.get("drift") or {} for leaf in leaves(suite, stage=BENCH)]
    return [str(drift["says"]) for drift in drifts if drift.get("shifted")]


def items_of(leaf: Leaf) -> int:
    """How many items a leaf was asked to judge."""
    return int((leaf.run["headline"].get("thaicli") or {}).get("asked") or 0)


def point(value: Any, digits: int = 2) -> str:
    """A score as it is shown; a dash for what is not there."""
    x = number(value)
    return DASH if math.isnan(x) else f"{x:.{digits}f}".replace("-", "−")


def score_cell(estimate: Mapping[str, Any] | None) -> dict[str, str]:
    """An estimate on the judge's scale as a table cell."""
    return cell(estimate, show=point)


def board_row(leaf: Leaf, others: Mapping[Any, Leaf]) -> dict[str, Any]:
    """A model's line: the three scores, over ok, coverage, bounds, percent of the way, preference, outcomes."""
    found = leaf.run["headline"]["thaicli"]
    way = next((line for line in leaf.run.get("way") or [] if line["format"] == "average"), {})
    other = others.get((leaf.run["params"]["model"], leaf.run.get("data_place")))
    liked = other.run["headline"]["thaicli_preference"]["average"] if other else {}
    return {
        "model": model_of(leaf), "rehearsal": rehearses(leaf),
        "cells": [
            score_cell(found.get(name)) | {"link": f"#{anchor(leaf, '' if name == 'average' else name)}"}
            for name in ("average", *FORMATS)
        ],
        "ok": point(found["average_ok"]["value"]), "coverage": f"{percent(found['coverage'], 1)} %",
        "counted": f"{found['ok']} of {found['asked']}",
        "bounds": f"{point(found['lowest'])} to {point(found['highest'])}", "way": point(way.get("percent"), 0),
        "way_why": way.get("why", ""), "preference": percent(liked.get("value"), 1),
        "preference_link": link(other, "preference") if other else "",
        "outcomes": told(leaf.run.get("outcomes")),
    }  # fmt: skip


def theme_table(group: Sequence[Leaf], name: str) -> dict[str, Any]:
    """A format's table: a row a model, a column a theme with its name in English and Thai."""
    themes = [theme for theme in THEMES if theme != "all"]
    rows = []
    for leaf in group:
        lines = {line["theme"]: line for line in leaf.run["cells"] if line["format"] == name}
        cells = [
            score_cell(lines.get(theme))
            | {"outcomes": odd_outcomes(lines.get(theme))}
            | {"link": f"#{anchor(leaf, f'{name}/{theme}')}" if theme in lines else ""}
            for theme in themes
        ]
        rows.append({"model": model_of(leaf), "cells": cells})
    heads = [{"key": theme, "name": THEMES[theme][0], "thai": THEMES[theme][1]} for theme in themes]
    return {"format": name, "heads": heads, "rows": rows}


def odd_outcomes(line: Mapping[str, Any] | None) -> str:
    """The outcomes of a cell other than ok."""
    there = {key: count for key, count in ((line or {}).get("outcomes") or {}).items() if key != "ok"}
    return told(there) if there else ""


def gate_table(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The judge gate, a line for each format and theme; those below the limit are marked."""
    return [
        {
            "format": line["format"], "theme": THEMES[line["theme"]][0], "n": line["n"], "marked": bool(line["marked"]),
            **{key: point(line[key]) for key in ("chosen", "rejected", "auc", "beats")},
            "interval": DASH if math.isnan(number(line["beats_low"])) else
            f"{point(line['beats_low'])} to {point(line['beats_high'])}",
            "unreadable": percent(line["unreadable"], 1),
        }
        for line in lines
    ]  # fmt: skip


def count_row(leaf: Leaf) -> dict[str, Any]:
    """What was counted and never mended."""
    counts = dict(leaf.run.get("counts") or {})
    return {"model": model_of(leaf), "answers": told(counts.pop("answer_outcomes", {})), "counts": counts}


# ------------------------------------------------------------------------------------------------- models compared


def counted(row: Mapping[str, Any]) -> float | None:
    """A row's share in the paper's mean; None where it is left out."""
    if row["outcome"] == "ok":
        return float(row["score"])
    return 0.0 if row["outcome"] in WITHOUT_VERDICT else None


def comparisons(models: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Every two models in each format on the items both have, with Holm over all lines; what was left out is told."""
    rng = np.random.default_rng(SEED)
    found = []
    for (a, b), name in itertools.product(itertools.combinations(models, 2), FORMATS):
        pair = matched.shared(keyed(models[a], name), keyed(models[b], name), on_shared=True)
        if pair.items:
            made = stats.paired([x + SHIFT for x in pair.a], [x + SHIFT for x in pair.b], rng=rng)
            found.append((a, b, name, pair, made))
    corrected = stats.holm([one[-1].p for one in found])
    return [comparison_row(*one, corrected=p) for one, p in zip(found, corrected, strict=True)]


def keyed(rows: Sequence[Mapping[str, Any]], name: str) -> dict[Any, float]:
    """A format's scores by the paper's rule, by item and its texts."""
    scored = {(row["item"], row["item_sha256"]): counted(row) for row in rows if row["format"] == name}
    return {key: value for key, value in scored.items() if value is not None}


def comparison_row(
    a: str, b: str, name: str, pair: matched.Shared, made: stats.Paired, *, corrected: float
) -> dict[str, Any]:
    """One comparison as text; it names a winner only where the corrected p is below 0.05."""
    cell = score_cell(made.difference.as_dict())
    smallest = matched.smallest_difference([x - y for x, y in zip(pair.a, pair.b, strict=True)])
    ahead = a if made.difference.value > 0 else b
    return {
        "a": a, "b": b, "format": name, "n": cell["n"], "difference": cell["value"], "interval": cell["interval"],
        "why": cell["why"], "won": f"{made.wins} : {made.losses}", "p": p_value(made.p), "holm": p_value(corrected),
        "numbers": {"a": a, "b": b, "format": name, **made.difference.as_dict(), "wins": made.wins,
                    "losses": made.losses, "p": made.p, "p_holm": corrected, "only_a": pair.only_a,
                    "only_b": pair.only_b, "test": made.test},
        "left": DASH if pair.same else f"{pair.only_a} : {pair.only_b}", "smallest": point(smallest), "test": made.test,
        "reading": f"{ahead} is higher" if corrected < 0.05 else "no difference shown",
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------- items


def cards(rows: Sequence[Mapping[str, Any]], *, sensitive: bool) -> list[dict[str, Any]]:
    """Items as they are shown, one of each outcome first; texts of the royal-family theme only where allowed."""
    seen: set[tuple[Any, ...]] = set()
    ranked = []
    for place, row in enumerate(rows):
        kind = (row["outcome"], row["tries"] > 1, row["answer_tags"] > 0, row["theme"])
        ranked.append((kind[:3] in {one[:3] for one in seen}, kind in seen, place))
        seen.add(kind)
    return [card(rows[place], sensitive=sensitive) for _, _, place in sorted(ranked)[:ITEMS]]


def card(row: Mapping[str, Any], *, sensitive: bool) -> dict[str, Any]:
    """One judged item: texts, the judge's raw reply, and what was read from it."""
    hide = row["theme"] == SENSITIVE and not sensitive
    keys = ("question", "answer", "chosen", "rejected", "reply", "explanation")
    return {
        "id": row["item"], "theme": row["theme"], "format": row["format"], "outcome": row["outcome"],
        "score": point(row["score"], 0), "tries": row["tries"], "asked": row["asked"], "hidden": hide,
        "answer_outcome": row["answer_outcome"], "tags": row["answer_tags"], "score_tags": row["score_tags"],
        **({} if hide else {key: cut(row[key]) for key in keys}),
    }  # fmt: skip
