"""Judges against people as tables: Tables 3 and 4, agreement, dummy judges, the alternative-annotator test.

Without labels (`study` None) everything is worked out from the papers' counts, and what needs single labels is NaN with
its reason. Shares are in percent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from thaikit import agreement, prf, published, stats
from thaikit.prf import METRICS, POOLED, Counts
from thaikit.stats import Estimate
from thaikit.tasks import annotations
from thaikit.tasks.judge_people import Study

NO_LABELS = "none: needs labels of single answers; only counts are published"
THRESHOLD = 0.5
PUBLISHED_N = 300
SEED = 1234


def nothing(reason: str, n: int = 0) -> Estimate:
    """An estimate that cannot be made."""
    return Estimate(math.nan, math.nan, math.nan, n, reason)


def percent(estimate: Estimate) -> dict[str, float]:
    """Value and limits in percent."""
    return {"value": 100 * estimate.value, "low": 100 * estimate.low, "high": 100 * estimate.high}


def table_3(study: Study | None) -> pd.DataFrame:
    """Table 3's layout: model, question, agree (by majority), n, share in percent with interval, ties (no majority,
    left out), then the published rows; these alone without labels or without a positive one."""
    if study is None or not study.binary:
        return pd.DataFrame(published_3())
    lines = []
    for place, question in enumerate(study.questions):
        column, votes = study.truth()[:, place], study.votes[question]
        told = ~np.isnan(column)
        clusters = [name for name, keep in zip(study.clusters, told, strict=True) if keep]
        found = stats.clustered_interval(column[told], clusters) if told.any() else nothing("none: no majority")
        lines.append({"model": study.model or study.labels.name, "question": question, "agree": int(column[told].sum()),
                      "n": found.n, **percent(found), "ties": sum(vote.tie for vote in votes),
                      "method": found.method})  # fmt: skip
    return pd.DataFrame(lines + published_3())


def published_3() -> list[dict[str, Any]]:
    """The published rows of Table 3."""
    frame = published.mrc_questions("wangchan.3")
    frame = frame[frame["task"] != "tokens"]
    return [{"model": f"{row.model} (published)", "question": row.task, "agree": int(row.right), "n": row.n,
             "value": row.value, "low": row.low, "high": row.high, "method": row.method}
            for row in frame.itertuples()]  # fmt: skip


def judges_of(study: Study | None) -> list[str]:
    """The names of the judges; the published assessors without labels."""
    return list(published_counts()) if study is None else study.labels.judge_names


def majority_table(study: Study | None) -> pd.DataFrame:
    """One row a question: items, labels, how many items each label has by majority, ties (reported, not guessed);
    without labels one row that says so."""
    if study is None:
        return pd.DataFrame([{"question": "all", "items": 0, "labels": 0, "told": NO_LABELS}])
    lines = []
    for question in study.questions:
        votes = study.votes[question]
        line: dict[str, Any] = {"question": question, "items": len(votes), "labels": sum(vote.n for vote in votes)}
        line |= {label: sum(vote.label == label for vote in votes) for label in study.labels.labels}
        lines.append(line | {"ties": sum(vote.tie for vote in votes)})
    return pd.DataFrame(lines)


# ------------------------------------------------------------------------------------------------ Table 4


def table_4(study: Study | None, *, seed: int = SEED, threshold: float = THRESHOLD) -> pd.DataFrame:
    """Table 4's layout, long: assessor, kind (judge, people, dummy, published), question (and `pooled`), precision,
    recall and f1 in percent each with limits, n verdicts compared, method (that of f1).

    All are compared on the same verdicts: those for which there is a majority and every judge gave one.
    `people` is the human ceiling; dummies agree always, with the longest answers, and with answers whose F1 is above
    `threshold` (as many of the longest as the first judge agreed with, else as the majority did). Published assessors
    come from the counts behind Table 4.
    """
    lines = published_4()
    if study is None or not study.binary:
        return pd.DataFrame(lines)
    everybody = {name: study.labels.judge_array(name) for name in study.labels.judge_names}
    whole = study.truth()
    shared = ~np.isnan(np.stack([whole, *everybody.values()])).any(axis=0)
    truth, rng = np.where(shared, whole, np.nan), np.random.default_rng(seed)
    people = np.where(shared[:, None, :], study.labels.array(), np.nan)
    told: dict[tuple[str, str], Mapping[str, Mapping[str, Estimate]]] = {}

    def against_majority(verdicts: np.ndarray) -> dict[str, dict[str, Estimate]]:
        return prf.from_labels(truth, verdicts, questions=study.questions, rng=rng, clusters=study.clusters)

    for name, verdicts in everybody.items():
        told[name, "judge"] = against_majority(verdicts)
    told["people (each against the others)", "people"] = prf.human_ceiling(
        people, questions=study.questions, rng=rng, clusters=study.clusters
    )
    for name, verdicts in dummies(study, next(iter(everybody.values()), truth), threshold).items():
        told[name, "dummy"] = against_majority(verdicts)
    own = [line_of(name, kind, question, metrics) for (name, kind), found in told.items()
           for question, metrics in found.items()]  # fmt: skip
    return pd.DataFrame(own + lines)


def dummies(study: Study, judge: np.ndarray, threshold: float) -> dict[str, np.ndarray]:
    """The verdicts of judges that read nothing."""
    count = len(study.questions)
    return {
        "always agree": prf.always_agree(len(study.labels.items), count),
        "longest answers agree": prf.longest_agree(study.words, judge),
        f"F1 above {threshold:g} agrees": prf.above(study.scores, threshold, count),
    }


def line_of(name: str, kind: str, question: str, metrics: Mapping[str, Estimate]) -> dict[str, Any]:
    """One assessor's line for one question."""
    line: dict[str, Any] = {"assessor": name, "kind": kind, "question": question}
    for metric in METRICS:
        one = percent(metrics[metric])
        line |= {metric: one["value"], f"{metric}_low": one["low"], f"{metric}_high": one["high"]}
    return line | {"n": metrics["f1"].n, "method": metrics["f1"].method}


def published_counts() -> dict[str, dict[str, Counts]]:
    """Assessor → question → the counts behind Table 4, over 300 answers."""
    found: dict[str, dict[str, Counts]] = {}
    for row in published.agreement_counts().itertuples():
        if row.question != "pooled":
            found.setdefault(row.assessor, {})[row.question] = Counts(row.both, row.judge, row.human, PUBLISHED_N)
    return found


def published_4() -> list[dict[str, Any]]:
    """The published assessors, from counts: Wilson's intervals for single questions, none for the pooled ones."""
    lines = []
    for assessor, questions in published_counts().items():
        first, *rest = questions.values()
        pooled = sum(rest, first)
        told = {
            **{q: prf.from_counts(one) for q, one in questions.items()},
            POOLED: prf.from_counts(pooled, pooled=True),
        }
        lines += [line_of(f"{assessor} (published)", "published", q, metrics) for q, metrics in told.items()]
    return lines


def figure_rows(table: pd.DataFrame) -> pd.DataFrame:
    """What the figure shows of `table_4`: these judges, people and dummies; without labels the published assessors."""
    own = table[table["kind"] != "published"]
    shown = own if len(own) else table.assign(kind="judge")
    return shown[["assessor", "kind", "question", "f1", "n"]].assign(low=shown["f1_low"], high=shown["f1_high"])


def headline(study: Study | None, table: pd.DataFrame, agreed: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """F1 over all questions (0..1) of each judge and of people, as estimates (of the published assessors without
    labels); for a set without a positive label all that `agreement_table` holds."""
    if study is not None and not study.binary:
        return {"agreement": {f"{row.raters}, {row.coefficient}": estimate_of(row).as_dict()
                              for row in agreed.itertuples()}}  # fmt: skip
    rows = figure_rows(table)
    kept = rows[(rows["question"] == POOLED) & (rows["kind"] != "dummy")]
    full = kept.assign(value=kept["f1"] / 100, low=kept["low"] / 100, high=kept["high"] / 100,
                       n=table.loc[kept.index, "n"], method=table.loc[kept.index, "method"])  # fmt: skip
    return {"f1_against_people": {row.assessor: estimate_of(row).as_dict() for row in full.itertuples()}}


def estimate_of(row: Any) -> Estimate:
    """A table's row as an estimate."""
    return Estimate(float(row.value), float(row.low), float(row.high), int(row.n), str(row.method))


# ------------------------------------------------------------------------------------------------ agreement


def agreement_table(study: Study | None) -> pd.DataFrame:
    """One row for each question, pair of raters and coefficient: question, raters, coefficient, value, low, high, n,
    method. Raters are `people` among each other, and each judge with the majority: the share of agreement, Cohen's
    kappa and Gwet's AC1, since skewed verdicts make kappa small where raters agree."""
    lines = published_lines() if study is None else study_lines(study)
    return pd.DataFrame([
        {"question": q, "raters": who, "coefficient": name, "value": e.value, "low": e.low, "high": e.high, "n": e.n,
         "method": e.method} for q, who, name, e in lines
    ])  # fmt: skip


def published_lines() -> list[tuple[str, str, str, Estimate]]:
    """What counts tell of agreement: nothing of people among each other, all of a judge with the majority."""
    named = ("agreement", "fleiss_kappa", "alpha", "ac1")
    lines = [(q, "people", name, nothing(NO_LABELS)) for q in published.QUESTIONS for name in named]
    for judge, questions in published_counts().items():
        for q, one in questions.items():
            who = f"{judge} with the majority"
            lines += [(q, who, name, published_agreement(name, one)) for name in ("agreement", "cohen_kappa", "ac1")]
    return lines


def study_lines(study: Study) -> list[tuple[str, str, str, Estimate]]:
    """Agreement of people among each other and of each judge with their majority, question by question."""
    lines: list[tuple[str, str, str, Estimate]] = []
    options: dict[str, Any] = {"categories": study.labels.labels, "clusters": study.clusters}
    for question in study.questions:
        among = agreement.coefficients(study.labels.of_people(question), **options)
        lines += [(question, "people", name, one) for name, one in among.items()]
        for judge in study.labels.judge_names:
            found = with_majority(study, judge, question, options)
            lines += [(question, f"{judge} with the majority", name, one) for name, one in found.items()]
    return lines


def with_majority(study: Study, judge: str, question: str, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """A judge and the majority as two raters."""
    truth, said = study.majority(question), study.labels.of_judge(judge, question)
    found = agreement.coefficients(list(zip(truth, said, strict=True)), **options)
    kappa = agreement.cohen(truth, said, clusters=study.clusters)
    return {"agreement": found["agreement"], "cohen_kappa": kappa, "ac1": found["ac1"]}


def published_agreement(name: str, one: Counts) -> Estimate:
    """A coefficient of two raters from their counts, the answers taken as independent."""
    cells = {("agree", "agree"): one.both, ("agree", "disagree"): one.human - one.both,
             ("disagree", "agree"): one.judge - one.both,
             ("disagree", "disagree"): one.n - one.human - one.judge + one.both}  # fmt: skip
    pairs = [pair for pair, count in cells.items() for _ in range(count)]
    if name == "cohen_kappa":
        return agreement.cohen([a for a, _ in pairs], [b for _, b in pairs])
    return agreement.coefficients(pairs, categories=("agree", "disagree"))[name]


def order_table(study: Study | None) -> pd.DataFrame:
    """Judges that saw each pair in both orders: right in either order, same verdict in both; empty where none did."""
    columns = ["judge", "n", "right", "right_swapped", "same_verdict"]
    return pd.DataFrame(annotations.order_table(study.labels) if study else [], columns=columns)


def alt_table(study: Study | None, *, epsilon: float) -> pd.DataFrame:
    """The alternative-annotator test for each judge and question: winning_rate (0.5 passes), advantage, passed (None
    where it cannot be told), n items, epsilon, method (Calderon, Reichart and Dror 2025)."""
    lines = []
    if study is None:
        return pd.DataFrame([
            {"judge": judge, "question": q, "winning_rate": math.nan, "advantage": math.nan, "passed": None, "n": 0,
             "epsilon": epsilon, "method": NO_LABELS} for judge, each in published_counts().items() for q in each
        ])  # fmt: skip
    for judge in study.labels.judge_names:
        for question in study.questions:
            said, people = study.labels.of_judge(judge, question), study.labels.of_people(question)
            found = agreement.alt_test(said, people, epsilon=epsilon)
            lines.append({"judge": judge, "question": question, "winning_rate": found.winning_rate,
                          "advantage": found.advantage, "passed": found.passed, "n": found.n, "epsilon": found.epsilon,
                          "method": found.method})  # fmt: skip
    columns = ["judge", "question", "winning_rate", "advantage", "passed", "n", "epsilon", "method"]
    return pd.DataFrame(lines, columns=columns)
