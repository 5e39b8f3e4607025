"""GPT-4's replies, people's labels and other judges' verdicts among the public rows."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from thaikit import agreement
from thaikit.records import Run
from thaikit.rowlog import read_rows
from thaikit.tasks import annotations, judge_people, judge_tables, mrc_judging, mrc_verdicts
from thaikit.tasks.annotations import Label

DATA = os.environ.get("THAIKIT_REAL_DATA", "")
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not DATA, reason="THAIKIT_REAL_DATA is not set: name the folder of the public rows"),
]


@pytest.mark.parametrize("rule", ["numbered", "authors"])
def test_gpt_4s_fifty_replies(tmp_path: Path, rule: str) -> None:
    given = {"judgements": f"{DATA}/wangchanx_mrc_eval/gpt4_judged.jsonl", "reply_column": "model_gpt4", "rule": rule}
    run = Run.open("mrc_judge", params=given, out_dir=str(tmp_path / "leaf"))
    judging = mrc_judging.start(run, judge="replay-mrc-judge", **given)
    rows = judging.score()
    assert mrc_verdicts.outcomes(rows) == {"ok": 50}
    table = mrc_verdicts.verdict_table(rows)
    assert table["agree"].tolist() == [38, 18, 18, 15] and table["unreadable"].tolist() == [0] * 4
    line = mrc_verdicts.table_5(rows, beside_published=False).iloc[0]
    assert (round(line["q1"], 6), round(line["words"], 2), line["n"]) == (76.0, 28.06, 50)
    for row, own in zip(rows, read_rows(Path(given["judgements"])), strict=True):
        assert [str(row[f"q{n}"]) for n in range(1, 5)] == [own[f"model_q{n}"] for n in range(1, 5)]
    assert judging.finish(rows)["headline"]["mrc_judge"]["q1"]["value"] == 0.76


def test_eighteen_people_and_gpt_35_on_pairs() -> None:
    labels = annotations.load("wangchanglm-pref")
    assert len(labels.items) == 83 and len(labels.annotators) == 18
    written = [one.label for one in labels.people]
    assert [written.count(label) for label in labels.labels] == [817, 160, 517]
    found = agreement.coefficients(labels.of_people("label"), categories=labels.labels)
    assert round(found["fleiss_kappa"].value, 4) == 0.2304
    study = judge_people.load("wangchanglm-pref")
    assert study is not None
    counted = judge_tables.majority_table(study).iloc[0]
    assert counted[["A", "B", "tie", "ties"]].tolist() == [46, 6, 28, 3]
    judged = []
    for row in read_rows(Path(DATA, "wangchanglm_pref/gpt35_judge.jsonl")):
        scores = re.match(r"([\d.]+)[ ,]+([\d.]+)", row["eval_score"])
        if row["pair"] == "wangchang_sft_en_vs_openthaigpt" and scores:
            a, b = map(float, scores.groups())
            judged.append(Label(row["message_id"], "gpt-3.5", "label", "A" if a > b else "B" if b > a else "tie"))
    study = replace(study, labels=replace(labels, judges=judged))
    told = judge_tables.agreement_table(study).set_index(["raters", "coefficient"])
    judge = told.loc["gpt-3.5 with the majority"]
    assert judge.loc["agreement", "n"] == 80 and round(judge.loc["agreement", "value"], 4) == 0.4
    assert round(judge.loc["cohen_kappa", "value"], 4) == 0.0857


def test_llmbar_in_both_orders() -> None:
    table = judge_tables.order_table(judge_people.load("llmbar")).set_index("judge")
    assert table.loc["GPT-4"].tolist() == [100, 95, 96, 95]
    assert table.loc["ChatGPT"].tolist() == [100, 80, 83, 71]
    assert table.loc["Falcon"].tolist() == [100, 71, 77, 52]


def test_pandalm_has_three_annotators_and_two_judges() -> None:
    study = judge_people.load("pandalm")
    assert study is not None and len(study.labels.items) == 150 and len(study.labels.annotators) == 3
    given = {name: study.labels.of_judge(name, "label") for name in study.labels.judge_names}
    assert {name: 150 - said.count(None) for name, said in given.items()} == {"gpt-3.5-turbo": 147, "pandalm-7b": 150}
    told = judge_tables.alt_table(study, epsilon=0.15)
    assert told["n"].tolist() == [147, 150] and told["passed"].notna().all()


@pytest.mark.parametrize(("name", "items"), [("qa-eval-nq", 510), ("qa-eval-tq", 390)])
def test_qa_eval_loads_and_its_dummies_are_measured(name: str, items: int) -> None:
    study = judge_people.load(name)
    assert study is not None and len(study.labels.items) == items == len(study.words) and not study.labels.judge_names
    table = judge_tables.table_4(study)
    dummies = table[(table["kind"] == "dummy") & (table["question"] == "label")]
    assert len(dummies) == 3 and dummies["f1"].notna().all()
