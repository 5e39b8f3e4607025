"""Labels and votes from files of any layout, judges beside people, and the tables of 45 and 46."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from thaikit import ThaikitError, counts, published
from thaikit.shapes import LabelSet
from thaikit.tasks import annotations, judge_corrections, judge_people, judge_tables, votes

QUESTIONS = ("q1", "q2", "q3", "q4")


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


LONG = "item,annotator,question,label\n1,a,Q1,Agree\n1,b,Q1,เห็นด้วย\n2,a,Q1,0\n2,b,Q1,\n1,a,Q2,no\n1,b,Q2,Disagree\n"
BY_PERSON = "item,annotator,Q1,Q2\n1,a,1,0\n1,b,TRUE,FALSE\n2,a,ไม่เห็นด้วย,\n2,b,,\n"
WIDE = "item,note,a Q1,b Q1,a Q2,b Q2\n1,x,yes,yes,no,no\n2,y,no,,,\n"


@pytest.mark.parametrize("text", [LONG, BY_PERSON, WIDE])
def test_three_layouts_say_the_same(tmp_path: Path, text: str) -> None:
    found = annotations.load(write(tmp_path / "labels.csv", text))
    assert found.items == ["1", "2"] and found.questions == ["q1", "q2"] and found.annotators == ["a", "b"]
    assert found.of_people("q1") == [["agree", "agree"], ["disagree", None]]
    assert found.of_people("q2") == [["disagree", "disagree"], [None, None]]
    array = found.array()
    assert array.shape == (2, 2, 2) and array[0, 0].tolist() == [1.0, 0.0] and math.isnan(array[1, 1, 0])


def test_json_lines_and_one_nameless_question(tmp_path: Path) -> None:
    rows = [{"id": "1", "annotator_1": True, "annotator_2": None}, {"id": "2", "annotator_1": False, "annotator_2": 1}]
    path = write(tmp_path / "labels.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = annotations.load(path)
    assert found.of_people("label") == [["agree", None], ["disagree", "agree"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,annotator,label\n1,a,maybe\n", r"labels.csv, row 1, field label: label 'maybe'; known are 'agree'"),
        ("item,annotator,label\n1,a,yes\n1,a,no\n", "'agree' and 'disagree' stand there"),
        ("thing,who,said\n1,a,yes\n", "tell no layout"),
        ("item,annotator\n1,a\n", "tell no layout"),
        ("item,annotator,label\n1,a,yes\n1 ,a ,no\n", "'agree' and 'disagree' stand there"),
        ("item,annotator,label\n1, ,yes\n", "each row names who labelled"),
        ("item,annotator,label\n,a,yes\n", "found no item; each row names one"),
        ("item,a Q1,b Q1\n1,,\n2,, \n", "every label is blank"),
    ],
)
def test_faults_of_a_label_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ThaikitError, match=message):
        annotations.load(write(tmp_path / "labels.csv", text))


def test_an_annotator_that_the_first_row_lacks_is_not_dropped(tmp_path: Path) -> None:
    rows = [{"item": "1", "annotator_1": "yes"}, {"item": "2", "annotator_1": "yes", "annotator_2": "no"}]
    path = write(tmp_path / "labels.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ThaikitError, match="row 2: column 'annotator_2' is not in the first row"):
        annotations.load(path)


def test_a_label_file_that_is_not_there() -> None:
    with pytest.raises(ThaikitError, match="no such file"):
        annotations.load("nowhere.csv")
    with pytest.raises(ThaikitError, match="did you mean 'pandalm'"):
        annotations.load("pandalmm")


def test_a_parameter_file_names_columns_values_and_stacked_answers(tmp_path: Path) -> None:
    spec = LabelSet.model_validate({
        "name": "t", "data": str(tmp_path), "source": {"files": "rows.jsonl", "where": {"bad": False}}, "item": "q",
        "stack": ["x", "y"], "annotators": {"people": "judge_{stack}"},
        "values": {"true": "agree", "false": "disagree"},
        "answer": "answer_{stack}", "references": "gold", "split_references": "/",
        "judges": {"names": {"j": "by.0.{stack}"}},
    })  # fmt: skip
    row: dict[str, Any] = {"q": "ถาม", "judge_x": True, "judge_y": None, "answer_x": "ก", "answer_y": None,
                           "gold": "ก/ ข", "bad": False, "by": [{"x": False, "y": True}]}  # fmt: skip
    rows = [annotations.Row("rows.jsonl", 1, row)]
    found = annotations.read_rows(spec, rows, name="t")
    assert found.items == ["ถาม/x"] and found.references["ถาม/x"] == ["ก", "ข"] and found.answers["ถาม/y"] == ""
    assert found.of_judge("j", "label") == ["disagree"]
    with pytest.raises(ThaikitError, match="no 'y'"):
        annotations.read_rows(spec, [annotations.Row("f", 1, {**row, "by": [{"x": True}]})], name="t")


# ------------------------------------------------------------------------------------------------ the bundled study


@pytest.fixture(scope="module")
def study() -> judge_people.Study:
    found = judge_people.load(
        "samples:mrc/annotations.csv", judgements="samples:mrc/judge_replies.jsonl", model="replay-mrc-answers"
    )
    assert found is not None
    return found


def test_the_wide_sample_is_the_long_one() -> None:
    long, wide = (annotations.load(f"samples:mrc/annotations{end}.csv") for end in ("", "_wide"))
    assert all(long.of_people(q) == wide.of_people(q) for q in QUESTIONS)


def test_ties_are_reported_and_left_out(study: judge_people.Study) -> None:
    table = judge_tables.majority_table(study).set_index("question")
    assert (table["agree"] + table["disagree"] + table["ties"] == table["items"]).all()
    three = judge_tables.table_3(study)
    mine = three[three["model"] == "replay-mrc-answers"].set_index("question")
    assert (mine["n"] == table["items"] - table["ties"]).all() and table["ties"].sum() > 0


def test_all_rows_of_table_4_are_compared_on_the_same_verdicts(study: judge_people.Study) -> None:
    table = judge_tables.table_4(study)
    kinds = table[table["kind"].isin(["judge", "dummy"])].groupby("question")["n"].nunique()
    assert (kinds == 1).all() and set(kinds.index) == {*QUESTIONS, "pooled"}
    always = table[(table["assessor"] == "always agree")].set_index("question")
    assert (always["recall"] == 100).all()
    assert judge_tables.headline(study, table, table)["f1_against_people"].keys() == {
        "judge_replies", "people (each against the others)"
    }  # fmt: skip


def test_answers_without_labels_are_corrected(study: judge_people.Study) -> None:
    table = judge_corrections.corrected_table(study)
    other = table[table["model"] == "replay-mrc-answers-long"]
    assert len(other) == 8 and other[other["method"] == "rogan-gladen"]["value"].notna().all()
    powered = other[other["method"] == "prediction-powered"]
    assert powered["value"].isna().all() and powered["how"].str.contains("has a label").all()
    half = table[table["model"].str.contains("hidden")]
    assert half["people"].notna().all() and half[half["method"] == "prediction-powered"]["value"].notna().all()


def test_whose_answers_were_labelled_must_be_clear() -> None:
    place = {"judgements": "samples:mrc/judge_replies.jsonl"}
    with pytest.raises(ThaikitError, match="say in model whose answers"):
        judge_people.load("samples:mrc/annotations.csv", **place)
    with pytest.raises(ThaikitError, match="judges saw answers of"):
        judge_people.load("samples:mrc/annotations.csv", model="x", **place)


def test_labels_of_other_items_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "labels.csv", "item,annotator,label\nzzz,a,yes\n")
    with pytest.raises(ThaikitError, match="the ids must agree"):
        judge_people.load(path, judgements="samples:mrc/judge_replies.jsonl", model="replay-mrc-answers")


def test_a_judge_may_come_as_labels(tmp_path: Path) -> None:
    people = write(tmp_path / "p.csv", LONG)
    judge = write(tmp_path / "j.csv", "item,annotator,question,label\n1,gpt,Q1,Agree\n2,gpt,Q1,Agree\n1,gpt,Q2,Agree\n")
    found = judge_people.load(people, judgements=judge)
    assert found is not None and found.labels.of_judge("gpt", "q1") == ["agree", "agree"]
    table = judge_tables.table_4(found)
    line = table[(table["assessor"] == "gpt") & (table["question"] == "q1")].iloc[0]
    assert (line["precision"], line["recall"], line["n"]) == (50.0, 100.0, 2)


# ------------------------------------------------------------------------------------------------ the papers' counts


def test_tables_3_to_5_without_labels() -> None:
    assert judge_people.load("") is None
    book, table = published.book(), judge_tables.table_4(None)
    named = {"precision": "p", "recall": "r", "f1": "f1"}
    for row in table.to_dict("records"):
        assessor = row["assessor"].removesuffix(" (published)")
        question = "overall" if row["question"] == "pooled" else row["question"]
        for metric, short in named.items():
            printed = book.printed[published.Cell("wangchan.4", assessor, f"{question} {short}")]
            assert counts.rounds_to(printed, row[metric]), (assessor, question, metric)
    assert len(table) == 15
    three = judge_tables.table_3(None)
    for row in three.to_dict("records"):
        model = row["model"].removesuffix(" (published)")
        assert row["agree"] == book.value("wangchan.3", model, row["question"]) == row["value"]
    corrected = judge_corrections.corrected_table(None)
    rogan = corrected[corrected["method"] == "rogan-gladen"]
    values = [f"{value:.1f}" for value in rogan["value"]]
    assert values == ["61.8", "51.5", "40.8", "55.1", "77.0", "31.8", "-2.4", "-5.9", "80.2", "55.9", "14.0", "30.7"]
    assert (rogan["shown"] >= 0).all() and rogan["how"].str.contains("at the bound").sum() == 2
    for frame in (corrected[corrected["method"] != "rogan-gladen"], judge_tables.alt_table(None, epsilon=0.15)):
        column = "value" if "value" in frame else "winning_rate"
        assert frame[column].isna().all()


def test_agreement_from_counts_needs_no_labels_for_a_judge_and_the_majority() -> None:
    table = judge_tables.agreement_table(None)
    people = table[table["raters"] == "people"]
    assert people["value"].isna().all() and people["method"].str.contains("labels of single answers").all()
    gpt_4 = table[(table["raters"] == "GPT-4 with the majority") & (table["question"] == "q1")]
    # 195 both agree, 12 and 2 split, 91 neither, of 300.
    share, chance = 286 / 300, (207 * 197 + 93 * 103) / 300**2
    told = gpt_4.set_index("coefficient")["value"]
    assert told["agreement"] == pytest.approx(share)
    assert told["cohen_kappa"] == pytest.approx((share - chance) / (1 - chance))


# ------------------------------------------------------------------------------------------------ votes


VOTES = "item,annotator,vote,shown_as_a,words_short,words_long\n"


def test_votes_in_every_wording(tmp_path: Path) -> None:
    text = VOTES + "1,a,A,long,2,8\n1,b,B ดีกว่า,long,2,8\n1,c,ดี/แย่พอๆกัน,long,2,8\n1,d,long,long,2,8\n2,a,A,short,3,\n"
    found = votes.load(write(tmp_path / "v.csv", text))
    assert list(found[0].votes.values()) == ["long", "short", "tie", "long"] and found[0].majority == "long"
    assert found[0].margin == 0.25 and found[0].ratio == 4.0
    assert found[1].majority == "short" and math.isnan(found[1].ratio)
    wide = "id,shown_as_a,voter_1,voter_2,short,long\n1,short,B,,ก,แมวกินปลา\n2,long,B,A,ก,ข\n"
    found = votes.load(write(tmp_path / "w.csv", wide))
    assert [pair.majority for pair in found] == ["long", "split"] and found[0].words_long == 3
    assert votes.tally(found).n == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (VOTES + "1,a,C,long,2,8\n", "vote 'C'; known are"),
        (VOTES + "1,a,A,,2,8\n", "needs the column shown_as_a"),
        (VOTES + "1,a,A,left,2,8\n", "it is long or short"),
        (VOTES + "1,a,A,long,two,8\n", "no number of words"),
        (VOTES + "1,a,A,long,nan,8\n", "'nan' is no number of words"),
        (VOTES + "1,a,A,long,2,-8\n", "'-8' is no number of words"),
        (VOTES + "1,a,A,long,2,8\n1 ,a ,B,long,2,8\n", "already"),
        (VOTES + "1,a,A,long,2,8\n1,a,B,long,2,8\n", "already"),
        ("item,vote\n1,A\n", "no votes; columns"),
    ],
)
def test_faults_of_a_vote_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ThaikitError, match=message):
        votes.load(write(tmp_path / "v.csv", text))


def test_items_and_voters_may_be_zero(tmp_path: Path) -> None:
    rows = [{"item": 0, "annotator": n, "vote": vote} for n, vote in enumerate(["long", "long", "short"])]
    path = write(tmp_path / "v.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert [(pair.item, pair.majority, len(pair.votes)) for pair in votes.load(path)] == [("0", "long", 3)]


def test_bundled_votes_and_the_published_counts_beside() -> None:
    long, wide = (votes.load(f"samples:mrc/votes{end}.csv") for end in ("", "_wide"))
    assert [(pair.item, pair.votes) for pair in long] == [(pair.item, pair.votes) for pair in wide]
    table = votes.counts_table(long).set_index("source")
    assert table.loc["published", ["long", "short", "tie", "items"]].tolist() == [31, 12, 7, 50]
    assert table.loc["these votes", ["long", "short", "tie", "split"]].sum() == table.loc["these votes", "items"] == 20
    told = votes.findings(long)
    assert told["value"].notna().all() and votes.findings(long).equals(told)


def test_without_votes_the_published_counts_stand_alone() -> None:
    table, told = votes.counts_table([]), votes.findings([])
    assert table["source"].tolist() == ["published"] and round(float(table["p"][0]), 4) == 0.0054
    assert told["value"].isna().all() and told["method"].str.contains("single votes").all()
    assert set(votes.headline([])["long_wins"]) == {"published"}
