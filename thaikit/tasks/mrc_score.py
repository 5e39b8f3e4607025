"""Answers → exact match, F1 and recall under every rule, words per answer, and the tables that show them.

The headline is the WangchanLion paper's number (Table 2): newmm words, then SQuAD's F1. In rows scores lie in 0..1, in
tables they are percent. Intervals let the items of one passage go together.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from thaikit import ThaikitError, f1, params, published, records, text
from thaikit.records import Run, finite, write_atomic
from thaikit.stats import Estimate, clustered_interval
from thaikit.tasks import mrc_read
from thaikit.tasks.h6 import blank
from thaikit.tasks.mrc import DASH
from thaikit.tasks.mrc_read import Answers

MEASURES = ("em", "f1", "recall")
TOLD = {"xquad-th": "XQuAD", "iapp-wiki-qa-squad": "iapp_wiki_qa_squad"}  # task file → the paper's name for the set


@dataclass
class Scoring:
    """The answers that a leaf scores, and their rows: one an answer, with every rule's em, f1 and recall."""

    run: Run
    sets: list[Answers]
    steps: tuple[str, ...] = ()
    segment: f1.Segmenter = field(default_factory=f1.Segmenter)

    @property
    def several(self) -> bool:
        """Whether answers of more than one model, set or number of shots are scored."""
        return len(self.sets) > 1

    @property
    def shipped(self) -> bool:
        """Whether all answers are to the bundled samples, whose texts may always be shown."""
        return all(one.shipped for one in self.sets)

    def overview(self) -> pd.DataFrame:
        """A row for each set of answers: whose, where from, how many, how many of each outcome, empty ones."""
        lines = []
        for one in self.sets:
            each = dict(Counter(row["outcome"] for row in one.rows))
            empty = sum(blank(row["answer"]) for row in one.rows)
            lines.append({"model": one.model, "tasks": one.tasks, "shots": one.shots, "place": one.place,
                          "answers": len(one.rows), **each, "empty": empty})  # fmt: skip
        return pd.DataFrame(lines)

    def score(self) -> list[dict[str, Any]]:
        """Every answer's row. One that never came (filtered, failed) is a row without scores."""
        if self.run.closed:
            return records.read_rows(self.run.out_dir / "rows" / "scores.jsonl")
        rows = [
            row
            for one in self.sets
            for row in score_rows(one, steps=self.steps, segment=self.segment, several=self.several)
        ]
        log = self.run.log("scores")  # scores cost nothing to make again: written in one go, not row by row
        lines = (json.dumps(finite({**row, "index": index}), ensure_ascii=False) for index, row in enumerate(rows))
        write_atomic(log.path, "".join(line + "\n" for line in lines))
        return log.rows()

    def f1_table(self, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
        """Columns rule, n, em, f1, recall, words, signature; for several sets of answers after model, tasks, shots."""
        if self.run.closed:
            return pd.read_csv(self.run.out_dir / "tables" / "f1.csv")
        lines = []
        for one, mine in self.parts(rows):
            lead = {"model": one.model, "tasks": one.tasks, "shots": one.shots} if self.several else {}
            lines += [lead | rule_line(mine, rule, self.steps) for rule in f1.RULES]
        return pd.DataFrame(lines)

    def card(self, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
        """The metric card: for each rule the F1 with its interval and how it was made, the number of answers at exactly
        0, coverage and the bounds that F1 has if every answer that never came scored 0 or 100, and who uses the rule.
        """
        lines = []
        for one, mine in self.parts(rows):
            lead = {"model": one.model, "tasks": one.tasks, "shots": one.shots} if self.several else {}
            lines += [lead | card_line(mine, rule) for rule in f1.RULES]
        return pd.DataFrame(lines)

    def parts(self, rows: Sequence[Mapping[str, Any]]) -> list[tuple[Answers, list[Mapping[str, Any]]]]:
        """Each set of answers with its rows."""
        place, found = 0, []
        for one in self.sets:
            found.append((one, list(rows[place : place + len(one.rows)])))
            place += len(one.rows)
        return found

    def effects(self) -> pd.DataFrame:
        """What each step of the normalisation does to the headline rule, scores in percent (`f1.step_effects`)."""
        if self.run.closed:
            return pd.read_csv(self.run.out_dir / "tables" / "normalise.csv")
        scored = [row for one in self.sets for row in one.scored]
        lines = f1.step_effects(*pairs(scored), segment=self.segment)
        told = pd.DataFrame(lines)
        numbers = ["f1_alone", "f1_so_far", "em_so_far"]
        told[numbers] = 100 * told[numbers]
        return told.assign(taken=[line["step"] in self.steps for line in lines])

    def table_2(self, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
        """The layout of the WangchanLion paper's Table 2: models by data set and shots, headline F1 in percent."""
        found: dict[str, dict[str, float]] = {}
        for one, mine in self.parts(rows):
            shots = "" if one.shots is None else f" {one.shots}-shot"
            column = f"{TOLD.get(one.tasks, one.tasks) or one.place}{shots}"
            line = found.setdefault(one.model, {"model": one.model})  # type: ignore[dict-item]
            if column in line:
                raise ThaikitError(f"table 2: two leaves hold {one.model}, {column}; give each model and set one leaf")
            line[column] = 100 * mean_of(mine, f"{f1.HEADLINE}_f1").value
        return pd.DataFrame(found.values())

    def finish(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Close the leaf: headline estimates in 0..1 (words per answer in words), the signatures of every rule."""
        if self.run.closed:
            return self.run.record
        headlines = [headline(mine) for _, mine in self.parts(rows)]
        names = [f"{one.model} {one.tasks} {one.shots}-shot" for one in self.sets]
        told = dict(zip(names, headlines, strict=True)) if self.several else {"mrc_f1": headlines[0]}
        return self.run.finish(
            headline=told,
            answers=[one.facts() for one in self.sets],
            normalise=list(self.steps),
            signatures={rule: f1.signature(rule, engine=self.segment.engine, steps=self.steps) for rule in f1.RULES},
        )  # fmt: skip


def load(run: Run, given: Mapping[str, Any], *, normalise: Sequence[str] = ()) -> Scoring:
    """The answers that the parameters name, read and checked; ThaikitError for an unknown step of `normalise`."""
    unknown = [step for step in normalise if step not in text.NORMALISE]
    if unknown:
        hint = params.nearest(unknown[0], list(text.NORMALISE))
        raise ThaikitError(f"normalise: no step {unknown[0]!r}{hint}; there are {', '.join(text.NORMALISE)}")
    steps = tuple(step for step in text.NORMALISE if step in normalise)
    return Scoring(run, mrc_read.find("mrc_f1", given), steps)


def pairs(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Answers and their references."""
    return [row["answer"] for row in rows], [list(row["references"]) for row in rows]


def score_rows(
    answers: Answers, *, steps: Sequence[str] = (), segment: f1.Segmenter | None = None, several: bool = False
) -> list[dict[str, Any]]:
    """A row an answer: id, passage, answer, its outcome, words, then RULE_em, RULE_f1, RULE_recall, RULE_bare in 0..1,
    and `score`, the headline F1; None for an answer that never came."""
    cut = segment or f1.Segmenter()
    scored = answers.scored
    try:
        found = f1.score_all(*pairs(scored), segment=cut, steps=steps)
        counted = f1.word_counts([row["answer"] for row in scored], segment=cut)
    except ValueError as error:
        raise ThaikitError(f"{answers.place}: {error}") from error
    place = {row["id"]: n for n, row in enumerate(scored)}
    lines = []
    for row, passage in zip(answers.rows, mrc_read.passages(answers.rows), strict=True):
        n = place.get(row["id"])
        name = f"{answers.model}|{answers.tasks}|{answers.shots}|{row['id']}" if several else row["id"]
        lead = {"id": name, "item": row["id"], "model": answers.model, "tasks": answers.tasks, "shots": answers.shots,
                "passage": passage, "question": row["question"], "references": list(row["references"]),
                "answer": row["answer"], "answer_outcome": row["outcome"], "finish": row["finish"]}  # fmt: skip
        each = {
            f"{rule}_{key}": None if n is None else getattr(found[rule][n], key)
            for rule in f1.RULES
            for key in (*MEASURES, "bare")
        }
        lines.append({**lead, "words": None if n is None else counted[n], **each, "score": each[f"{f1.HEADLINE}_f1"]})
    return lines


def mean_of(rows: Sequence[Mapping[str, Any]], key: str, *, most: float = math.inf) -> Estimate:
    """The mean of a field over the rows that have it, items of one passage together; limits within 0 and `most`."""
    having = [row for row in rows if row[key] is not None]
    found = clustered_interval([float(row[key]) for row in having], [row["passage"] for row in having])
    if math.isnan(found.low):
        return found
    return Estimate(found.value, max(0.0, found.low), min(most, found.high), found.n, found.method)


def headline(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """F1, exact match and recall of the headline rule, and words per answer, as estimates; coverage as a share."""
    told = {key: mean_of(rows, f"{f1.HEADLINE}_{key}", most=1.0).as_dict() for key in ("f1", "em", "recall")}
    asked = len(rows)
    scored = sum(row["score"] is not None for row in rows)
    return {**told, "words": mean_of(rows, "words").as_dict(), "coverage": scored / asked if asked else math.nan}


def rule_line(rows: Sequence[Mapping[str, Any]], rule: str, steps: Sequence[str]) -> dict[str, Any]:
    """A rule's line of tables/f1.csv: plain means in percent, words per answer."""
    scored = [row for row in rows if row["score"] is not None]
    means = {key: 100 * mean_of(rows, f"{rule}_{key}").value for key in MEASURES}
    words = mean_of(rows, "words").value
    return {"rule": rule, "n": len(scored), **means, "words": words, "signature": f1.signature(rule, steps=steps)}


def card_line(rows: Sequence[Mapping[str, Any]], rule: str) -> dict[str, Any]:
    """A rule's line of the metric card."""
    scored = [row for row in rows if row["score"] is not None]
    found, asked = mean_of(rows, f"{rule}_f1", most=1.0), len(rows)
    total = math.fsum(row[f"{rule}_f1"] for row in scored)
    return {
        "rule": rule, "f1": 100 * found.value, "low": 100 * found.low, "high": 100 * found.high, "n": found.n,
        "interval": found.method, "zeros": sum(row[f"{rule}_f1"] == 0 for row in scored),
        "references_without_tokens": sum(row[f"{rule}_bare"] for row in scored),
        "coverage": 100 * len(scored) / asked if asked else math.nan,
        "lowest": 100 * total / asked if asked else math.nan,
        "highest": 100 * (total + asked - len(scored)) / asked if asked else math.nan,
        "used_by": f1.RULES[rule].used_by,
    }  # fmt: skip


def published_table_2() -> pd.DataFrame:
    """Table 2 as printed in the WangchanLion paper, in its layout; the paper gives no intervals."""
    found = published.read("wangchan.2")
    columns = list(dict.fromkeys(found["column"]))
    wide = found.pivot(index="row", columns="column", values="value").loc[list(dict.fromkeys(found["row"])), columns]
    return wide.rename_axis(columns=None).rename_axis("model").reset_index()


def item_table(rows: Sequence[Mapping[str, Any]], *, texts: bool, first: int = 8) -> pd.DataFrame:
    """The first answers with, under every rule, their F1 in percent; `texts` shows references and answers too."""
    lines = []
    for row in list(rows)[:first]:
        each = {rule: math.nan if row["score"] is None else 100 * row[f"{rule}_f1"] for rule in f1.RULES}
        told = {"references": " / ".join(row["references"]), "answer": row["answer"][:160]}
        shown = told if texts else dict.fromkeys(told, DASH)
        lines.append({"id": row["id"], **shown, "outcome": row["answer_outcome"], **each})
    return pd.DataFrame(lines)
