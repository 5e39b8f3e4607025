"""Reading comprehension: rows in every layout, faults in one sentence, prompts to the byte, answers, their scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from thaikit import ThaikitError, f1, inputs, params, stats
from thaikit.chat import Reply
from thaikit.records import Run, write_atomic
from thaikit.shapes import PromptEntry
from thaikit.tasks import mrc, mrc_answer, mrc_read, mrc_score
from thaikit.tasks.mrc import Exemplar, MrcItem

CONTEXT = "\ufeffแพนเธอร์สทำ 308 แต้ม น\u0e4d\u0e49\u0e32ท่วม NaN ครั้ง"
ITEM = MrcItem("1", "", "บริบท {question}", "คำถาม {context}", ("คำตอบ",))
SHOT = Exemplar("ตัวอย่าง", "ถาม {context}", "ตอบ")


def at(text: str, context: str = CONTEXT) -> dict[str, Any]:
    return {"text": text, "answer_start": context.index(text)}


def flat(**changes: Any) -> dict[str, Any]:
    return {"id": "q1", "context": CONTEXT, "question": "กี่แต้ม", "answers": [at("308")], **changes}


def load(folder: Path, rows: Any, *, name: str = "rows.jsonl", **keys: Any) -> mrc.MrcData:
    """The set of rows written as JSONL, or as the text that they are."""
    body = rows if isinstance(rows, str) else "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / name).write_text(body, encoding="utf-8")
    told = {"benchmark": "mrc", "name": "t", "data": str(folder), "source": {"files": name}, **keys}
    (folder / "t.yaml").write_text(json.dumps(told), encoding="utf-8")
    return mrc.load(str(folder / "t.yaml"))


# ---------------------------------------------------------------------------------------------- rows


def test_every_layout_gives_the_same_items(tmp_path: Path) -> None:
    qa = {key: value for key, value in flat().items() if key != "context"}
    paragraph = {"context": CONTEXT, "qas": [qa]}
    nested = json.dumps({"version": "1.1", "data": [{"title": "ก", "paragraphs": [paragraph]}]}, ensure_ascii=False)
    lists = {"text": ["308"], "answer_start": [CONTEXT.index("308")], "answer_end": [CONTEXT.index("308") + 3]}
    iapp = {**flat(answers=lists), "question_id": "q1"}
    del iapp["id"]
    found = [
        load(tmp_path, [flat(title="ก")]).items,
        load(tmp_path, [{"title": "ก", **paragraph}]).items,
        load(tmp_path, nested, name="x.json").items,
        load(tmp_path, [{**iapp, "title": "ก"}]).items,
        load(tmp_path, 'id,title,context,question,references\nq1,ก,"' + CONTEXT + '",กี่แต้ม,308\n', name="x.csv").items,
    ]
    assert len(set(found)) == 1 and found[0][0].references == ("308",) and found[0][0].context == CONTEXT
    pd.DataFrame([flat(answers=lists, title="ก")]).to_parquet(tmp_path / "y.parquet")
    (tmp_path / "t.yaml").write_text(
        f"benchmark: mrc\nname: t\ndata: {tmp_path}\nsource: {{files: y.parquet}}\n", encoding="utf-8"
    )
    assert mrc.load(str(tmp_path / "t.yaml")).items == found[0]


def test_odd_texts_are_kept_and_counted(tmp_path: Path) -> None:
    data = load(tmp_path, [flat(answers=[at("308"), at("NaN"), at("308"), at("น\u0e4d\u0e49\u0e32")])])
    assert data.items[0].references == ("308", "NaN", "น\u0e4d\u0e49\u0e32")
    assert data.audit["bom"] == 1 and data.audit["sara_am_decomposed"] == 2 and data.audit["several_references"] == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"answers": [{"text": 308, "answer_start": 13}]}, r"field answers: found 308 \(int\); only text is allowed"),
        ({"answers": {"text": [float("nan")], "answer_start": [1]}}, r"field answers: found nan \(float\)"),
        ({"answers": [{"text": None}]}, r"found None \(NoneType\); only text"),
        ({"answers": [at(" ")]}, "found ' '; a text that is not empty is needed"),
        ({"answers": []}, "field answers: found none; a question needs at least one reference"),
        ({"answers": [{"text": "308", "answer_start": 12}]}, r"' 30' stands at 12, .*has it at 13.*U\+FEFF too"),
        ({"answers": [{"text": "309", "answer_start": 13}]}, "'308' stands at 13, .*the passage does not hold it"),
        ({"answers": [{"text": "308", "answer_start": "13"}]}, "answer_start: found '13'; a whole number from 0"),
        ({"answers": [{"text": "308", "answer_start": True}]}, "answer_start: found True"),
        ({"answers": [{"text": "308", "answer_start": -3}]}, "answer_start: found -3"),
        ({"answers": [{"text": "308", "answer_start": 13, "answer_end": 17}]}, "answer_end: found 17; 16 is its end"),
        ({"answers": {"text": ["308"], "answer_start": []}}, "text and answer_start are lists of one length"),
        ({"question": ""}, "field question: found ''; a text that is not empty"),
        ({"context": 5}, r"field context: found 5 \(int\)"),
        ({"id": ""}, "field id: found ''"),
    ],
)
def test_each_fault_is_one_sentence_with_file_row_and_id(tmp_path: Path, changes: Any, sentence: str) -> None:
    with pytest.raises(ThaikitError, match=sentence) as caught:
        load(tmp_path, [flat(id="q0"), flat(**changes)])
    assert str(caught.value).startswith("rows.jsonl, row 2") and "\n" not in str(caught.value)


def test_faults_of_a_set(tmp_path: Path) -> None:
    with pytest.raises(ThaikitError, match="row 2: id 'q1' is there twice"):
        load(tmp_path, [flat(), flat()])
    with pytest.raises(ThaikitError, match="1 questions in .*, 3 are expected"):
        load(tmp_path, [flat()], expected_rows=3)
    assert load(tmp_path, [flat()], expected_rows=3, allow_size_mismatch=True).found == 1
    shot = {"context": CONTEXT.strip("\ufeff"), "question": "x", "reference": "308"}
    (tmp_path / "e.json").write_text(json.dumps(shot), encoding="utf-8")
    with pytest.raises(ThaikitError, match="the worked example's passage is one of the evaluated ones"):
        load(tmp_path, [flat()], exemplar=str(tmp_path / "e.json"))
    with pytest.raises(ThaikitError, match="no reading-comprehension set"):
        mrc.load("thai-h6-samples")
    assert len(mrc.load(limit=5).items) == 5
    with pytest.raises(ThaikitError, match="limit is -1"):
        mrc.load(limit=-1)


# ---------------------------------------------------------------------------------------------- prompts

SYSTEM = "You are a helpful assistant. Read the context and answer the question."
ALPACA = "Below is an instruction that describes a task. Write a response that appropriately completes the request."
C, Q = ITEM.context, ITEM.question
SEALLM = (
    f"<|im_start|>system {SYSTEM}</s><|im_start|>user\nContext ( บริบท):\n{C}\nQuestion ( คำถาม):\n{Q}</s><|im_start|>"
)
BYTES = {
    "mrc-wangchanlion": f"{SYSTEM}\nพื้นหลัง:\n{C}\nคำถาม:\n{Q}\nตอบ:",
    "mrc-openthaigpt": f"{ALPACA} Read the context and answer the question.\n### Instruction:\n"
    f"Context ( บริบท): {C}\nQuestion ( คำถาม): {Q}\n### Response:",
    "mrc-seallm": SEALLM + "assistant\n",
    "mrc-seallm-paper": SEALLM + "user",
    "mrc-polylm": f"{SYSTEM}\n<|user|>\nContext: {C}\nQuestion: {Q}\n<|assistant|>",
    "mrc-typhoon": f"{ALPACA}\n### Instruction:\nRead the context and answer the question\n### Context:\n{C}\n"
    f"### Question:\n{Q}",
}


@pytest.mark.parametrize("name", BYTES)
def test_the_prompts_of_appendix_a_to_the_byte(name: str) -> None:
    entry = params.load("prompts", name, PromptEntry)
    assert (entry.form, entry.layout) == ("raw", "inferred") and "appendix A." in entry.source
    plain = mrc_answer.render(entry, ITEM)
    assert plain == BYTES[name]
    worked = mrc_answer.render(entry, ITEM, SHOT)
    assert isinstance(worked, str) and isinstance(plain, str)
    tail = plain.removeprefix(entry.system)
    assert worked.startswith(entry.system) and worked.endswith(tail)
    middle = worked[len(entry.system) : -len(tail)]
    assert [middle.count(part) for part in ("ตัวอย่าง", "ถาม {context}", "ตอบ\n")] in ([1, 1, 1], [1, 1, 0])


def test_the_chat_form_and_its_worked_example() -> None:
    entry = params.load("prompts", "mrc-chat", PromptEntry)
    system, user = {"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Context : {C}\nQuestion: {Q}"}
    assert mrc_answer.render(entry, ITEM) == (system, user)
    before = {"role": "user", "content": "Context : ตัวอย่าง\nQuestion: ถาม {context}"}
    assert mrc_answer.render(entry, ITEM, SHOT) == (system, before, {"role": "assistant", "content": "ตอบ"}, user)


@pytest.mark.parametrize(
    ("model", "prompt"),
    [
        ("openthaigpt-7b", "mrc-openthaigpt"),
        ("openthaigpt-13b", "mrc-openthaigpt"),
        ("seallm-7b-v2", "mrc-seallm"),
        ("wangchanlion-7b", "mrc-wangchanlion"),
        ("sea-lion-7b", "mrc-wangchanlion"),
        ("polylm-chat-13b", "mrc-polylm"),
        ("typhoon-instruct-0130", "mrc-typhoon"),
        ("gpt-4o-mini", "mrc-chat"),
        ("replay-mrc-answers", "mrc-chat"),
        ("gemma3-270m", "mrc-wangchanlion"),
    ],
)
def test_each_model_has_its_prompt(model: str, prompt: str) -> None:
    assert mrc_answer.choose_prompt(model)[0] == prompt
    assert mrc_answer.choose_prompt(model, "mrc-seallm-paper")[0] == "mrc-seallm-paper"


def test_a_prompt_of_another_kind_is_refused() -> None:
    with pytest.raises(ThaikitError, match="prompt thaicli-judge: .*no place {context}"):
        mrc_answer.choose_prompt("gemma3-270m", "thaicli-judge")


# ---------------------------------------------------------------------------------------------- asked


def run_30(folder: Path, **changes: Any) -> tuple[Run, list[dict[str, Any]]]:
    given = {"model": "replay-mrc-answers", "tasks": "mrc-samples", "shots": 1, **changes}
    run = Run.open("mrc_answer", params=given, inputs=inputs.inputs_of("mrc_answer", given), out_dir=str(folder))
    found = mrc_answer.prepare(run, model=given["model"], data=mrc.load(given["tasks"]), shots=given["shots"])
    rows = found.answer()
    found.finish(rows)
    return run, rows


def test_a_leaf_of_answers_is_closed_read_back_and_scored(tmp_path: Path) -> None:
    run, rows = run_30(tmp_path / "leaf")
    assert len(rows) == 36 and {"ok", "truncated"} == {row["outcome"] for row in rows}
    assert run.record["exemplar"]["reference"] == "ห้าบาท" and run.record["prompt"]["name"] == "mrc-chat"
    assert len({row["prompt_sha256"] for row in rows}) == 36 and {row["shots"] for row in rows} == {1}
    assert run_30(tmp_path / "leaf")[1] == rows
    read = mrc_read.from_leaf(tmp_path / "leaf")
    assert (read.model, read.tasks, read.shots, read.shipped) == ("replay-mrc-answers", "mrc-samples", 1, True)
    assert [row["answer"] for row in read.rows] == [row["answer"] for row in mrc_read.bundled().rows]
    assert "prompts/mrc-chat" in run.inputs


@pytest.mark.parametrize(
    ("shots", "tokens", "sentence"),
    [(2, 5, "shots is 2; 0 and 1 are allowed"), (0, 0, "max_new_tokens is 0; at least 1 is needed")],
)
def test_settings_that_cannot_be(tmp_path: Path, shots: int, tokens: int, sentence: str) -> None:
    run = Run.open("mrc_answer", params={}, out_dir=str(tmp_path))
    with pytest.raises(ThaikitError, match=sentence):
        mrc_answer.prepare(run, model="replay-mrc-answers", data=mrc.load(), shots=shots, max_new_tokens=tokens)


def test_texts_of_other_data_are_shown_on_request_only(tmp_path: Path) -> None:
    data = load(tmp_path, [flat()])
    run = Run.open("mrc_answer", params={}, out_dir=str(tmp_path / "leaf"))
    asking = mrc_answer.prepare(run, model="replay-mrc-answers", data=data)
    row = asking.row(data.items[0], Reply("แพนเธอร์ส"), index=0, prompt="p")
    for gallery in (False, True):
        shown = mrc.table_of(data, gallery=gallery).to_string() + asking.example(gallery=gallery)
        shown += mrc_answer.answer_table([row], data, gallery=gallery).to_string()
        assert ("แพนเธอร์ส" in shown) is gallery and ("กี่แต้ม" in shown) is gallery and "q1" in shown
    assert "แม่น้ำ" in mrc.table_of(mrc.load()).to_string()


def test_an_answer_is_what_follows_the_thoughts(tmp_path: Path) -> None:
    run = Run.open("mrc_answer", params={}, out_dir=str(tmp_path))
    found = mrc_answer.prepare(run, model="replay-mrc-answers", data=mrc.load())
    for reply, answer in (
        (Reply("<think>ก</think>\n 308 \n"), "308"),
        (Reply("<think>ก", finish="length", outcome="truncated"), ""),
        (Reply("", refusal="ตอบไม่ได้", outcome="refused"), "ตอบไม่ได้"),
        (Reply("</answer>{context}"), "</answer>{context}"),
    ):
        assert found.row(ITEM, reply, index=0, prompt="p")["answer"] == answer


# ---------------------------------------------------------------------------------------------- read back and scored


def csv(folder: Path, body: str) -> Path:
    path = folder / "answers.csv"
    path.write_text(body, encoding="utf-8")
    return path


def test_columns_of_wangchanx_eval_are_read_as_text(tmp_path: Path) -> None:
    body = "references,context,question,predictions,model_q1\n308,ก,ข,308,1\nNaN,ก,ข,nan,0\n1.50,ค,ง,,\n"
    read = mrc_read.from_file(csv(tmp_path, body))
    assert [(row["references"], row["answer"]) for row in read.rows] == [
        (["308"], "308"), (["NaN"], "nan"), (["1.50"], ""),
    ]  # fmt: skip
    assert [row["id"] for row in read.rows] == ["row-1", "row-2", "row-3"]
    rows = mrc_score.score_rows(read)
    assert [row["wangchanx_f1"] for row in rows] == [1.0, 1.0, 0.0] and [row["words"] for row in rows] == [1, 1, 0]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"references": 308, "predictions": "308"}, r"field answers: found 308 \(int\); only text is allowed"),
        (
            {"references": "308", "predictions": 308},
            r"field predictions: found 308 \(int\); only text is allowed, empty",
        ),
        ({"references": "308", "predictions": None}, r"field predictions: found None"),
        ({"references": "308", "predictions": float("nan")}, "field predictions: found nan"),
        ({"references": "", "predictions": "x"}, "found ''; a text that is not empty is needed"),
        ({"references": [], "predictions": "x"}, "found none; a question needs at least one reference"),
        ({"references": "['x', 'y']", "predictions": "x"}, "field answers: .* is a list written as text"),
        ({"references": '{"text": ["x"]}', "predictions": "x"}, "field answers: .* is a list written as text"),
        ({"references": "x"}, "no column predictions or prediction or answer, there are"),
        ({"predictions": "x"}, "no column references, there are"),
        ({"references": "x", "predictions": "x", "outcome": "fine"}, "field outcome: found 'fine'; allowed are ok"),
    ],
)
def test_faults_of_an_answers_file(tmp_path: Path, row: dict[str, Any], sentence: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(ThaikitError, match=sentence) as caught:
        mrc_read.from_file(path)
    assert str(caught.value).startswith("a.jsonl, row 1") and "\n" not in str(caught.value)


def scored(
    folder: Path, body: str, *, normalise: tuple[str, ...] = ()
) -> tuple[mrc_score.Scoring, list[dict[str, Any]]]:
    given = {"answers": str(csv(folder, body)), "normalise": list(normalise)}
    run = Run.open("mrc_f1", params=given, inputs=inputs.inputs_of("mrc_f1", given), out_dir=str(folder / "leaf"))
    scoring = mrc_score.load(run, given, normalise=normalise)
    return scoring, scoring.score()


def test_tables_coverage_and_bounds(tmp_path: Path) -> None:
    body = "id,references,predictions,outcome\na,แมว,แมว,ok\nb,แมว,หมา,truncated\nc,แมว,,filtered\nd,แมว,,ok\n"
    scoring, rows = scored(tmp_path, body)
    assert [row["score"] for row in rows] == [1.0, 0.0, None, 0.0]
    table = scoring.f1_table(rows)
    assert list(table.columns) == ["rule", "n", "em", "f1", "recall", "words", "signature"]
    assert list(table["rule"]) == list(f1.RULES) and set(table["n"]) == {3}
    assert table.set_index("rule").loc["wangchanx", "f1"] == pytest.approx(100 / 3)
    card = scoring.card(rows).set_index("rule").loc["wangchanx"]
    assert (card["coverage"], card["lowest"], card["highest"], card["zeros"]) == (75.0, 25.0, 50.0, 2)
    scoring.run.table(table, "f1")
    scoring.run.table(scoring.effects(), "normalise")
    record = scoring.finish(rows)
    assert record["headline"]["mrc_f1"]["coverage"] == 0.75 and record["signatures"]["helm"].startswith("f1|rule:helm")
    again, rows_again = scored(tmp_path, body)
    assert again.run.closed and rows_again == rows
    pd.testing.assert_frame_equal(again.f1_table(rows), table, check_dtype=False)


def test_normalisation_is_a_named_variant(tmp_path: Path) -> None:
    body = "id,references,predictions\na,น\u0e49\u0e33,น\u0e4d\u0e49\u0e32\nb,308,๓๐๘\n"
    (tmp_path / "p").mkdir()
    plain, rows = scored(tmp_path / "p", body)
    assert [row["score"] for row in rows] == [0.0, 0.0]
    (tmp_path / "v").mkdir()
    variant, rows = scored(tmp_path / "v", body, normalise=("digits", "sara_am"))
    assert [row["score"] for row in rows] == [1.0, 1.0] and variant.steps == ("sara_am", "digits")
    assert "normalise:sara_am,digits" in variant.f1_table(rows)["signature"][0]
    effects = plain.effects().set_index("step")
    assert effects.loc["sara_am", "f1_alone"] == 50.0 and effects.loc["digits", "f1_so_far"] == 100.0
    with pytest.raises(ThaikitError, match=r"no step 'digit' \(did you mean 'digits'\?\)"):
        mrc_score.load(plain.run, {}, normalise=["digit"])


def test_table_2_of_a_suite(tmp_path: Path) -> None:
    for shots in (0, 1):
        for model in ("replay-mrc-answers", "replay-mrc-answers-long"):
            run_30(tmp_path / "mrc_answer" / f"{model}--mrc-samples-{shots}shot", model=model, shots=shots)
    given = {"suite": str(tmp_path), "model": "", "tasks": "", "shots": 0}
    hashed = inputs.inputs_of("mrc_f1", given)
    assert len([name for name in hashed if name.startswith("answers/")]) == 4
    scoring = mrc_score.load(Run.open("mrc_f1", params=given, out_dir=str(tmp_path / "leaf")), given)
    table = scoring.table_2(scoring.score())
    assert list(table.columns) == ["model", "mrc-samples 0-shot", "mrc-samples 1-shot"] and len(table) == 2
    one = {**given, "model": "replay-mrc-answers-long", "tasks": "mrc-samples", "shots": 1}
    assert list(inputs.inputs_of("mrc_f1", one))[0] == "answers"
    (found,) = mrc_read.find("mrc_f1", one)
    assert (found.model, found.shots) == ("replay-mrc-answers-long", 1)
    assert mrc_score.published_table_2().iloc[2].tolist()[1:] == [45.8763, 49.9145, 58.9051, 62.9776]


def test_the_clustered_interval_is_the_cluster_robust_one() -> None:
    values, clusters = [1.0, 0.5, 0.0, 0.25, 0.5, 0.75], ["a", "a", "b", "b", "c", "c"]
    found = stats.clustered_interval(values, clusters)
    half = 4.302652729911275 * (3 / 2 * (0.5**2 + 0.75**2 + 0.25**2)) ** 0.5 / 6  # t with 2 df, by hand
    assert (found.value, found.n) == (0.5, 6) and found.high - 0.5 == pytest.approx(half)
    assert stats.clustered_interval(values, range(6)) == stats.mean_interval(values)
    assert "all 2 items are of one cluster" in stats.clustered_interval([0, 1], ["a", "a"]).method
    assert stats.clustered_interval([0, 1], ["a", "a"]).low != stats.clustered_interval([0, 1], ["a", "a"]).low
    with pytest.raises(ValueError, match="2 values and 1 clusters"):
        stats.clustered_interval([0, 1], ["a"])


def test_a_hundred_thousand_rows_are_written_in_one_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []
    monkeypatch.setattr(mrc_score, "write_atomic", lambda path, text: (written.append(path), write_atomic(path, text)))
    _, rows = scored(tmp_path, "references,predictions\n" + "ก,ข\n" * 200)
    assert len(rows) == 200 and len(written) == 1
