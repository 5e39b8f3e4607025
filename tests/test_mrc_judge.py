"""The four questions: prompts to the byte, replies read by criterion, regenerations, outcomes, replies on file."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from thaikit import ThaikitError, params, verdicts
from thaikit.chat import Ask, Kept, Reply
from thaikit.records import Run, read_rows
from thaikit.rowlog import RowLog
from thaikit.shapes import PromptEntry
from thaikit.tasks import mrc_judge, mrc_judging, mrc_verdicts
from thaikit.tasks.mrc_judge import Answered, MrcJudge, judge_all, read_replies

CRITERIA = (
    "The Answer is Correct concerning the Reference Answer.",
    "The Answer Includes Relevant, Additional Information from the Context.",
    "The Answer Includes Additional, Irrelevant Information from the Context.",
    "The Answer Includes Information Not Found in the Context.",
)
GOOD = "1. Agree\n2. Disagree\n3. Disagree\n4. Agree"
REST = "\n2. Disagree\n3. Disagree\n4. Agree"
FOUR = (True, False, False, True)


def reply_of(*verdict: str) -> str:
    asked = "Do you agree or disagree?"
    return "\n".join(f"{n}. {c} {asked}\n{v}" for n, (c, v) in enumerate(zip(CRITERIA, verdict, strict=True), 1))


@pytest.mark.parametrize(
    ("name", "system", "user"),
    [
        ("mrc-judge-d1", "acd5515b2c64c88bcd7f1ff634dfa6dfbf8e934beb7140a9ea125bd445ae191b",
         "70b3342d0198569750ec1bf405b8a1c5058017000dcf53a3d2a06fb882851566"),
        ("mrc-judge-d1-public-code", "018f912e2d54fd0b6910583c07226d016e42a1e276c228a25c9c4bd8f47367c8",
         "70b3342d0198569750ec1bf405b8a1c5058017000dcf53a3d2a06fb882851566"),
        ("mrc-judge-d2", "", "4c3ac59b6ac34b6428e004e0dd1b7928fd892f05c3d9d3e16160db33da0edf26"),
    ],
)  # fmt: skip
def test_prompts_to_the_byte(name: str, system: str, user: str) -> None:
    prompt = params.load("prompts", name, PromptEntry)
    assert hashlib.sha256(prompt.user.encode()).hexdigest() == user
    assert (hashlib.sha256(prompt.system.encode()).hexdigest() if prompt.system else "") == system


@pytest.mark.parametrize(
    ("name", "temperature", "top_p", "tokens", "prompt"),
    [
        ("mrc-gpt-4", 0.2, 1.0, 1024, "mrc-judge-d1"),
        ("mrc-gpt-3.5", 0.2, 1.0, 1024, "mrc-judge-d1"),
        ("mrc-gemini-pro", 0.9, 1.0, 2048, "mrc-judge-d2"),
    ],
)
def test_configurations_of_appendix_c(name: str, temperature: float, top_p: float, tokens: int, prompt: str) -> None:
    judge = MrcJudge.read(name)
    drawn = judge.sampling
    assert (drawn.temperature, drawn.top_p, drawn.max_tokens) == (temperature, top_p, tokens)
    assert judge.entry.prompt == prompt and judge.entry.tries == 17


def test_all_places_are_filled_at_once() -> None:
    answer = '{context} {reference_answer} "\nReference Answer: "x'
    case = Answered("1", "m", "บริบท {question}", "คำถาม", ("อ้างอิง", "ที่สอง"), answer)
    for name in ("mrc-gpt-4", "mrc-gemini-pro"):
        text = MrcJudge.read(name).messages(case)[-1]["content"]
        expected = (
            f'Passage: บริบท {{question}}\nQuestion: คำถาม\nReference Answer: "อ้างอิง"\nPrediction Answer: "{answer}"\n'
        )
        assert text.endswith(expected)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        reply_of("Agree", "Disagree", "Disagree", "Agree"),
        reply_of("Agree. It fits.", "Disagree. Nothing agrees with that.", "Disagree\n", "Agree, with a date."),
        "1: Agree, 2: Disagree, 3: Disagree, 4: Agree",
        "**1.** **Agree**\n**2.** *Disagree*\n\n### 3) DISAGREE\n- 4. Agree.",
        "Q1: agree\nQ2: disagree\nQ3: disagree\nQ4: agree",
        '{"1": "Agree",\n "2": "Disagree",\n "3": "Disagree",\n "4": "Agree"}',
        "| 1 | Agree |\n| 2 | Disagree |\n| 3 | Disagree |\n| 4 | Agree |",
        "<think>1. Disagree 2. Agree</think>\n" + GOOD,
        "1. Agree\nIt costs 3.5 baht, 2. percent\n2. Disagree\n3. Disagree\n4. Agree\n5. Agree",
        '1. "Agree"\n2. Verdict: “Disagree, beside the point”\n3. Helpful - "Disagree"\n4. Agree; it says "a "b" c".',
        '1. Agree. The answer "12" does not agree with "13".\n2. Disagree\n3. Disagree, 5" wide.\n4. Agree',
        "1. first\n2. second\n3. third\n4. fourth\n\n" + GOOD,
    ],
)
def test_verdicts_by_criterion(text: str) -> None:
    assert verdicts.read(text).verdicts == FOUR, verdicts.read(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no criterion 1"),
        ("Agree\nDisagree\nDisagree\nAgree", "no criterion 1"),
        ("1. Agree\n2. Disagree\n3. Disagree", "no criterion 4"),
        (reply_of("Agree", "Disagree", "", "Agree"), "criterion 3 has no verdict"),
        ("1. Agree Disagree\n2. Agree\n3. Agree\n4. Agree", "criterion 1 has no single verdict"),
        (GOOD + "\n\n4. Disagree", "criterion 4 has no single verdict"),
        ("1. I do not Agree\n2. Agree\n3. Agree\n4. Agree", "criterion 1 has no single verdict"),
        ("1. Partially agree\n2. Agree\n3. Agree\n4. Agree", "criterion 1 has no single verdict"),
        ("1. Neither Agree nor Disagree\n2. Agree\n3. Agree\n4. Agree", "criterion 1 has no single verdict"),
        ("1. Agree/Disagree\n2. Agree\n3. Agree\n4. Agree", "criterion 1 has no verdict"),
        ("<think>" + GOOD, "a thought block that never ends"),
        ("1. I don't Agree" + REST, "criterion 1 has no single verdict"),
        ("1. I don’t agree" + REST, "criterion 1 has no single verdict"),
        ("1. I cannot Agree" + REST, "criterion 1 has no single verdict"),
        ("1. I do **not** Agree" + REST, "criterion 1 has no single verdict"),
        ("1. I do not\nAgree" + REST, "criterion 1 has no single verdict"),
        ("1. Disagree or Agree?" + REST, "criterion 1 has no verdict"),
        ("1. Agree? No." + REST, "criterion 1 has no verdict"),
        ('1. The answer says "Agree".' + REST, "criterion 1 has no verdict"),
        ("1. The answer says “no.\nAgree”." + REST, "criterion 1 has no verdict"),
        ('1. Prediction Answer: "Agree"' + REST, "criterion 1 has no verdict"),
        ('1. Disagree. The answer says "Agree".' + REST, "criterion 1 has no single verdict"),
    ],
)
def test_a_reply_without_four_clear_verdicts_is_unreadable(text: str, fault: str) -> None:
    assert verdicts.read(text) == verdicts.Reading(None, fault)


def test_the_authors_rule_is_theirs() -> None:
    assert verdicts.read("Agree Disagree Disagree Agree", rule="authors").verdicts == FOUR
    assert verdicts.read("1. I do not Agree\n2. Agree\n3. Agree\n4. Agree", rule="authors").verdicts == (True,) * 4
    assert verdicts.read(GOOD.lower(), rule="authors").verdicts is None
    assert "5 times" in verdicts.read(GOOD + " Agree", rule="authors").fault
    with pytest.raises(ValueError, match="numbered or authors"):
        verdicts.read(GOOD, rule="first")


LONG = ["!" * 200_000, "1. " + "agree or " * 30_000, "gree" + " " * 200_000, "1." * 100_000, "\n" * 100_000,
        "<think>" * 30_000, "\n1. Agree" * 30_000, "1. Agree" + "“" * 200_000,
        "1. Agree" + '\n"Agree"' * 50_000]  # fmt: skip


@pytest.mark.parametrize("text", LONG)
def test_hostile_replies_are_read_in_no_time(text: str) -> None:
    begun = time.perf_counter()
    verdicts.read(text)
    assert time.perf_counter() - begun < 2


class Scripted:
    """A judge's model that says what the test wrote, in turn for each item."""

    name = "scripted"

    def __init__(self, script: dict[str, list[Reply]]) -> None:
        self.script, self.asked = script, []  # type: ignore[var-annotated]

    def facts(self) -> dict[str, Any]:
        return {"name": self.name}

    def ask(self, asks: Any, *, sampling: Any, log: RowLog, tell: Any, then: Any = None) -> Iterator[tuple[Ask, Reply]]:
        kept = Kept.read(log)
        for first in asks:
            ask = first
            while ask is not None:
                reply = kept.known.get(ask.key)
                if reply is None:
                    self.asked.append(ask.key)
                    reply = self.script[ask.id][min(ask.attempt, len(self.script[ask.id]) - 1)]
                    kept.keep(ask, reply)
                yield ask, reply
                ask = then(ask, reply)


def judged(folder: Path, cases: Sequence[Answered], model: Scripted, *, tries: int = 3) -> list[dict[str, Any]]:
    judge = MrcJudge.read("replay-mrc-judge")
    judge = MrcJudge(judge.name, judge.entry.model_copy(update={"tries": tries}), judge.prompt)
    replies, log = RowLog(folder / "replies.jsonl"), RowLog(folder / "judgements.jsonl")
    judge_all(judge, cases, model, replies=replies, log=log, tell=lambda _: None)
    return log.rows()


def test_regenerations_outcomes_and_what_is_not_judged(tmp_path: Path) -> None:
    names = ("ok", "late", "never", "refused", "filtered", "cut", "empty")
    cases = [Answered(name, "m", answer="" if name == "empty" else "x") for name in names]
    cases += [Answered("lost", "m", outcome="filtered")]
    script = {
        "ok@m": [Reply(GOOD)], "late@m": [Reply("hm"), Reply(GOOD)], "never@m": [Reply("1. Agree")],
        "refused@m": [Reply(outcome="refused", refusal="no")], "filtered@m": [Reply(outcome="filtered")],
        "cut@m": [Reply("1. Agree\n2.", finish="length", outcome="truncated")], "empty@m": [Reply(GOOD)],
    }  # fmt: skip
    model = Scripted(script)
    rows = {row["item"]: row for row in judged(tmp_path, cases, model)}
    outcomes = {name: row["outcome"] for name, row in rows.items()}
    assert outcomes == {"ok": "ok", "late": "ok", "never": "unreadable", "refused": "refused", "filtered": "filtered",
                        "cut": "truncated", "empty": "ok", "lost": "filtered"}  # fmt: skip
    assert [rows[name]["tries"] for name in names] == [1, 2, 3, 3, 1, 3, 1]
    assert rows["never"]["identical"] == 2 and rows["never"]["q1"] is None and rows["ok"]["q1"] == 1
    assert rows["lost"]["asked"] is False and rows["lost"]["tries"] == 0
    asked = len(model.asked)
    again = judged(tmp_path, cases, model)
    assert len(model.asked) == asked and len(again) == len(cases)  # all replies are on file
    table = mrc_verdicts.verdict_table(list(rows.values()))
    assert table["n"].tolist() == [3] * 4 and table["agree"].tolist() == [3, 0, 0, 3]
    assert table["unreadable"].tolist() == [1] * 4 and set(table["asked"]) == {8}
    assert (table["most"] - table["least"]).tolist() == pytest.approx([5 / 8] * 4)


def test_a_failed_reply_is_asked_for_again_on_resume(tmp_path: Path) -> None:
    cases = [Answered("a", "m")]
    first = judged(tmp_path, cases, Scripted({"a@m": [Reply(outcome="failed", error="timeout")]}))
    assert first[0]["outcome"] == "failed" and first[0]["q1"] is None
    second = judged(tmp_path, cases, Scripted({"a@m": [Reply(GOOD)]}))
    assert [row["outcome"] for row in second] == ["ok"]


def test_an_item_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ThaikitError, match="twice"):
        judged(tmp_path, [Answered("a", "m"), Answered("a", "m")], Scripted({}))


def read(rows: Sequence[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    given: dict[str, Any] = {"column": "text", "rule": "numbered", "judge": "j", "where": "f.jsonl", **options}
    return read_replies(rows, given.pop("cases", {}), **given)


def test_replies_on_file_end_as_the_loop_would_end_them() -> None:
    rows = [
        {"id": "a", "text": GOOD},
        {"id": "b@m", "text": "?"}, {"id": "b@m#a1", "text": GOOD},
        {"id": "c@m", "text": "", "refusal": "no"},
        {"id": "d@m", "text": "1. Agree", "finish": "length"},
        {"id": "e@m", "text": "", "finish": "content_filter"},
        {"id": "f@m", "text": None, "outcome": "failed"},
    ]  # fmt: skip
    mine = Answered("b", "m", answer="คำตอบ", words=1.0)
    found = read(rows, cases={"b@m": mine, "c": Answered("c", "other", answer="not hers")})
    assert [row["outcome"] for row in found] == ["ok", "ok", "refused", "truncated", "filtered", "failed"]
    assert found[1]["tries"] == 2 and found[1]["words"] == 1.0 and found[2]["answer"] == ""
    assert [row["model"] for row in found] == ["answers", "m", "m", "m", "m", "m"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "a", "reply": GOOD}], "no column 'text'"),
        ([{"id": "a", "text": 4}], "the raw reply is a text"),
        ([{"id": "a", "text": GOOD}, {"id": "a", "text": GOOD}], "stands there twice"),
    ],
)
def test_faults_of_a_file_of_replies(rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ThaikitError, match=message):
        read(rows)


def test_a_number_sign_in_an_id_is_part_of_it() -> None:
    rows = [{"id": "doc#1", "text": GOOD}, {"id": "doc#2", "text": GOOD}, {"id": "doc#2#a1", "text": GOOD}]
    assert [(row["item"], row["tries"]) for row in read(rows)] == [("doc#1", 1), ("doc#2", 2)]


def test_answers_without_a_reply_lower_coverage_and_replies_without_an_answer_are_refused(tmp_path: Path) -> None:
    answers, replies = tmp_path / "mine.jsonl", tmp_path / "replies.jsonl"
    rows = [{"id": name, "references": "ข", "predictions": "ข"} for name in ("a", "b", "c")]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    given = {"judgements": str(replies), "answers": str(answers)}
    for name, judged in (("one", ["b"]), ("other", ["b", "z"])):
        replies.write_text("".join(json.dumps({"id": x, "text": GOOD}) + "\n" for x in judged), encoding="utf-8")
        judging = mrc_judging.start(
            Run.open("mrc_judge", params=given, out_dir=str(tmp_path / name)),
            judge="mrc-gpt-4",
            judgements=str(replies),
        )
        if name == "other":
            with pytest.raises(ThaikitError, match="replies.jsonl, id z@answers: none of the answers has this id"):
                judging.score()
            continue
        rows = judging.score()
        assert [(row["item"], row["outcome"], row["asked"]) for row in rows] == [
            ("b", "ok", True), ("a", "failed", False), ("c", "failed", False)
        ]  # fmt: skip
        table = mrc_verdicts.verdict_table(rows)
        assert table["n"].tolist() == [1] * 4 and table["asked"].tolist() == [3] * 4
        assert judging.finish(rows)["headline"]["mrc_judge"]["coverage"] == pytest.approx(1 / 3)


def test_judge_files_of_another_kind_are_refused() -> None:
    with pytest.raises(ThaikitError, match="rule is 'paper'; allowed are numbered, authors"):
        MrcJudge.read("gpt-4o-2024-05-13")
    with pytest.raises(ThaikitError, match="did you mean 'numbered'"):
        mrc_judge.check_rule("numberd", where="judge x")


def test_costs_by_the_prices_of_the_model_file() -> None:
    judge = MrcJudge.read("mrc-gpt-4")
    row = {"tries": 1, "identical": 0, "seconds": 2.0, "prompt_tokens": 1000, "completion_tokens": 100}
    told = mrc_verdicts.cost([row, row], judge)
    assert told["usd"] is None and "no prices" in told["why"] and told["prompt_tokens"] == 2000
    assert mrc_verdicts.cost([{**row, "prompt_tokens": None}], judge)["why"] == "the replies tell no token counts"


def test_the_bundled_replies_hold_every_outcome() -> None:
    rows = read(read_rows(params.expand("samples:mrc/judge_replies.jsonl", base=Path())))
    assert {"ok", "unreadable", "refused", "filtered", "truncated"} <= {row["outcome"] for row in rows}
    assert len(rows) > 60 and max(row["tries"] for row in rows) == 17


def test_texts_of_other_data_stay_out_of_the_page(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    row = {"id": "1", "references": "ก", "context": "บริบทลับ ก", "question": "ถามลับ", "predictions": "ตอบลับ"}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    run = Run.open("mrc_judge", params={"answers": str(path)}, out_dir=str(tmp_path / "leaf"))
    judging = mrc_judging.start(run, judge="mrc-gpt-4")
    assert "ลับ" not in judging.conversation() and "ลับ" in judging.conversation(gallery=True)
    assert "{prediction_answer}" in judging.conversation()
    made = [mrc_judge.judgement(case, [Reply(GOOD)], index=0, rule="numbered", judge="j") for case in judging.answers]
    assert "reply" not in mrc_verdicts.item_table(made) and "reply" in mrc_verdicts.item_table(made, texts=True)
