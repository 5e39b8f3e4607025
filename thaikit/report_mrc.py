"""Leaves of scored and judged answers to passages → the report's section: nothing is asked or scored here."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from thaikit import report_mrc_items, report_pairs, stats
from thaikit.records import Leaf, leaves, read_rows, sha256_json
from thaikit.report_links import link
from thaikit.report_parts import DASH, cell, percent, told
from thaikit.report_thaicli import JUDGED_ALIKE, point
from thaikit.stats import Estimate

SCORED, JUDGED, ANSWERED = "mrc_f1", "mrc_judge", "mrc_answer"
HEADLINE = "wangchanx"  # the WangchanLion paper's rule
QUESTIONS = {"q1": ("Q1 correct", "ถูกต้อง"), "q2": ("Q2 helpful", "มีข้อมูลเสริม"), "q3": ("Q3 irrelevant", "ไม่เกี่ยวข้อง"),
             "q4": ("Q4 out of context", "นอกบทความ")}  # fmt: skip

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """One model's answers to one set after so many worked examples, as one leaf scored or judged them."""

    leaf: Leaf
    model: str
    tasks: str
    shots: int | None
    place: str
    rehearsal: bool
    rows: tuple[Row, ...]
    link: str = ""  # to its rows in the page


@dataclass(frozen=True)
class Group:
    """Parts whose numbers may share a table; `terms` says what they have in common."""

    terms: str
    rule: str
    parts: tuple[Part, ...]


def found_leaves(suite: Path | str) -> list[Leaf]:
    """The closed leaves of scored and of judged answers of a suite folder."""
    return leaves(suite, stage=SCORED) + leaves(suite, stage=JUDGED)


# ------------------------------------------------------------------------------------------------- parts and groups


def parts(suite: Path | str, stage: str) -> list[Part]:
    """The sets of answers that a stage's leaves hold, each with its rows."""
    rehearsing = rehearsals(suite)
    return [part for leaf in leaves(suite, stage=stage) for part in leaf_parts(leaf, stage, rehearsing)]


def rehearsals(suite: Path | str) -> dict[str, bool]:
    """Model → whether its answers rehearse the machinery, as the leaves of answers say."""
    found = leaves(suite, stage=ANSWERED)
    return {
        str(leaf.run["params"].get("model")): bool((leaf.run.get("model") or {}).get("rehearsal")) for leaf in found
    }


def leaf_parts(leaf: Leaf, stage: str, rehearsing: Mapping[str, bool]) -> list[Part]:
    """A leaf's sets of answers: one, or all of a suite."""
    name = "scores" if stage == SCORED else "judgements"
    path = leaf.path / "rows" / f"{name}.jsonl"
    rows = read_rows(path) if path.is_file() else []
    given = leaf.run.get("params") or {}
    bundled = not given.get("answers") and not given.get("suite")
    judge = bool((leaf.run.get("judge_model") or {}).get("rehearsal"))
    models = list(dict.fromkeys(str(row.get("model")) for row in rows))
    facts = leaf.run.get("answers") or [{"model": model, "tasks": "", "shots": None} for model in models]
    several, found = len(facts) > 1, []
    for one in facts:
        mine = [row for row in rows if not several or all(row.get(k, one.get(k)) == one.get(k)
                                                          for k in ("model", "tasks", "shots"))]  # fmt: skip
        flag = judge or bundled or rehearsing.get(str(one.get("model")), False)
        tasks, place = str(one.get("tasks") or ""), str(one.get("place") or "")
        to = link(leaf, f"{name}/{one.get('model')}")
        found.append(Part(leaf, str(one.get("model")), tasks, one.get("shots"), place, flag, tuple(mine), to))
    return found


def data_key(part: Part) -> list[Any]:
    """What says that two parts answered the same set in the same way. Answers from a file name no set: the questions
    with their references stand for it."""
    if part.tasks:
        return [part.tasks, part.place, part.shots]
    items = sorted(json.dumps([row.get("question"), row.get("references")], ensure_ascii=False) for row in part.rows)
    return ["", sha256_json(items), part.shots]


def data_terms(part: Part) -> str:
    """The set and the worked examples in words."""
    shots = "worked examples not recorded" if part.shots is None else f"{part.shots}-shot"
    return " · ".join([part.tasks or "answers from files", shots, *([f"data {part.place}"] if part.place else [])])


def f1_groups(suite: Path | str) -> list[Group]:
    """Scored answers, parted by data set, worked examples, normalisation and rule with its versions."""
    parted: dict[str, list[Part]] = {}
    for part in parts(suite, SCORED):
        run = part.leaf.run
        key = [data_key(part), run.get("normalise"), (run.get("signatures") or {}).get(HEADLINE)]
        parted.setdefault(json.dumps(key, ensure_ascii=False), []).append(part)
    found = []
    for group in parted.values():
        steps = ", ".join(group[0].leaf.run.get("normalise") or [])
        terms = data_terms(group[0]) + (f" · normalised by {steps}" if steps else "")
        found.append(Group(terms, HEADLINE, named(group)))
    return found


def judge_groups(suite: Path | str) -> list[Group]:
    """Judged answers, parted by data set, worked examples and judge."""
    parted: dict[str, list[Part]] = {}
    for part in parts(suite, JUDGED):
        judge = part.leaf.run.get("judge") or {}
        source = part.leaf.run.get("judgements") or ""
        key = [data_key(part), judge.get("name"), *(judge.get(name) for name in JUDGED_ALIKE), source and "file"]
        parted.setdefault(json.dumps(key, ensure_ascii=False), []).append(part)
    found = []
    for group in parted.values():
        run = group[0].leaf.run
        judge = run.get("judge") or {}
        by = "replies on file" if run.get("judgements") else f"judge {judge.get('name')}, model {judge.get('model')}"
        found.append(Group(f"{data_terms(group[0])} · {by} · rule {judge.get('rule')}", "", named(group)))
    return found


def named(group: Sequence[Part]) -> tuple[Part, ...]:
    """The parts under names of their own: the same answers told twice count once, other ones of one model are called
    by their leaf."""
    kept: list[Part] = []
    for part in group:
        twin = [one for one in kept if one.model == part.model and answers_of(one) == answers_of(part)]
        kept += [] if twin else [part]
    counts = Counter(part.model for part in kept)
    names = [part.leaf.name if counts[part.model] > 1 else part.model for part in kept]
    return tuple(replace(part, model=name) for part, name in zip(kept, names, strict=True))


def answers_of(part: Part) -> list[Any]:
    """What tells one part's rows from another's."""
    return [[row.get(key) for key in ("item", "question", "answer", "score", *QUESTIONS)] for row in part.rows]


# ------------------------------------------------------------------------------------------------- numbers


def item_key(row: Row) -> Hashable:
    """An item: its id, question and references."""
    return str(row.get("item")), str(row.get("question")), tuple(map(str, row.get("references") or ()))


def scored(part: Part, key: str) -> dict[Hashable, tuple[Hashable, float]]:
    """Item → passage and score, for the rows that have one."""
    return {item_key(row): (row.get("passage"), float(row[key])) for row in part.rows if row.get(key) is not None}


def mean_of(part: Part, key: str, *, most: float = math.inf) -> Estimate:
    """The mean over the rows that have the field, questions on one passage together; limits within 0 and `most`."""
    having = [row for row in part.rows if row.get(key) is not None]
    found = stats.clustered_interval([float(row[key]) for row in having], [row.get("passage") for row in having])
    if math.isnan(found.low):
        return found
    return Estimate(found.value, max(0.0, found.low), min(most, found.high), found.n, found.method)


def headline(part: Part) -> dict[str, dict[str, Any]]:
    """F1 (the headline rule), exact match, recall and words as estimates from the rows."""
    told = {"f1": mean_of(part, "score", most=1.0), "words": mean_of(part, "words")}
    told |= {key: mean_of(part, f"{HEADLINE}_{key}", most=1.0) for key in ("em", "recall")}
    return {key: one.as_dict() for key, one in told.items()}


def coverage(part: Part, *, key: str) -> dict[str, str]:
    """How many of the answers have the field."""
    asked, having = len(part.rows), sum(row.get(key) is not None for row in part.rows)
    return {"coverage": f"{percent(having / asked if asked else math.nan, 1)} %", "counted": f"{having} of {asked}"}


# ------------------------------------------------------------------------------------------------- what is shown


def sections(suite: Path | str, *, gallery: bool = False, sensitive: bool = False) -> dict[str, Any]:
    """The MRC part of the page: scored groups, judged groups, items; {} where there is neither."""
    scoring, judging = f1_groups(suite), judge_groups(suite)
    if not scoring and not judging:
        return {}
    items, hidden = report_mrc_items.galleries(suite, scoring, judging, gallery=gallery, sensitive=sensitive)
    rehearsing = list(dict.fromkeys(part.model for g in (*scoring, *judging) for part in g.parts if part.rehearsal))
    return {
        "scored": [scored_section(group) for group in scoring], "judged": [judged_section(group) for group in judging],
        "items": items, "hidden": hidden, "rehearsing": rehearsing, "headline": HEADLINE,
    }  # fmt: skip


def comparisons(section: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The comparisons of `sections`, as `all` lines below what `says` where they belong."""
    groups = [*section.get("scored", []), *section.get("judged", [])]
    return [{"says": group["says"], "all": group["comparisons"]["all"]} for group in groups]


def scored_section(group: Group) -> dict[str, Any]:
    """F1 and its company for one group."""
    rules = [rule for rule in group.parts[0].leaf.run.get("signatures") or {} if all(
        f"{rule}_f1" in row for part in group.parts for row in part.rows)]  # fmt: skip
    return {
        "terms": group.terms, "signature": (group.parts[0].leaf.run.get("signatures") or {}).get(group.rule, ""),
        "rows": [score_row(part) for part in group.parts], "rules": rule_lines(group, rules),
        "models": [part.model for part in group.parts],
        "says": {"part": "F1", "terms": group.terms},
        "comparisons": compared(group, {"F1": "score", "EM": f"{group.rule}_em"}, by="F1"),
    }  # fmt: skip


def compared(group: Group, measures: Mapping[str, str], *, by: str) -> dict[str, Any]:
    """Every two models on each measure (shown name → field of the rows)."""
    pairs = report_pairs.clustered(
        {part.model: {name: scored(part, key) for name, key in measures.items()} for part in group.parts}
    )
    means = {part.model: mean_of(part, measures[by]).value for part in group.parts}
    order = sorted(means, key=lambda model: -math.inf if math.isnan(means[model]) else means[model], reverse=True)
    return report_pairs.table(pairs, order, by=by)


def score_row(part: Part) -> dict[str, Any]:
    """A model's line: F1, EM, recall, words, coverage, outcomes of the answers."""
    found = headline(part)
    cells = [cell(found[key]) for key in ("f1", "em", "recall")] + [cell(found["words"], show=point)]
    cells = [one | {"link": part.link} for one in cells]
    outcomes = dict(Counter(str(row.get("answer_outcome")) for row in part.rows).most_common())
    empty = sum(not str(row.get("answer") or "").strip() for row in part.rows)
    return {"model": part.model, "rehearsal": part.rehearsal, "cells": cells, "empty": empty,
            "outcomes": told(outcomes), **coverage(part, key="score")}  # fmt: skip


def rule_lines(group: Group, rules: Sequence[str]) -> list[dict[str, Any]]:
    """A line a rule: every model's F1 and EM."""
    return [
        {"rule": rule, "headline": rule == group.rule, "cells": [
            cell(mean_of(part, f"{rule}_{key}", most=1.0).as_dict()) for part in group.parts for key in ("f1", "em")]}
        for rule in rules
    ]  # fmt: skip


def judged_section(group: Group) -> dict[str, Any]:
    """The four questions for one group."""
    return {
        "terms": group.terms, "heads": [{"name": name, "thai": thai} for name, thai in QUESTIONS.values()],
        "rows": [verdict_row(part) for part in group.parts],
        "says": {"part": "four questions", "terms": group.terms},
        "comparisons": compared(group, {name: q for q, (name, _) in QUESTIONS.items()}, by="Q1 correct"),
    }  # fmt: skip


def verdict_row(part: Part) -> dict[str, Any]:
    """A model's line: for each question the share of agreement and its count, then what has no verdict, and words."""
    cells = []
    for question in QUESTIONS:
        made = cell(mean_of(part, question, most=1.0).as_dict())
        agree = sum(row.get(question) == 1 for row in part.rows)
        n = sum(row.get(question) is not None for row in part.rows)
        cells.append(made | {"link": part.link, "n": "", "count": f"{agree} of {n}" if n else DASH})
    outcomes = Counter(str(row.get("outcome")) for row in part.rows)
    unreadable = outcomes.pop("unreadable", 0)
    outcomes.pop("ok", 0)
    return {
        "model": part.model, "rehearsal": part.rehearsal, "cells": cells, "unreadable": unreadable,
        "others": told(dict(outcomes.most_common())), "words": cell(mean_of(part, "words").as_dict(), show=point),
        **coverage(part, key="q1"),
    }  # fmt: skip
