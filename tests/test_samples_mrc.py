"""The bundled reading-comprehension samples keep their schemas, offsets, counts and the cases they were written for."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import thaikit
from thaikit import chat_replay, params, verdicts

FOLDER = Path(thaikit.__file__).parent / "samples" / "mrc"
ANSWERS = {"replay-mrc-answers": "answers.jsonl", "replay-mrc-answers-long": "answers_long.jsonl"}
QUESTIONS = ["Q1", "Q2", "Q3", "Q4"]
TRIES = 17  # one generation and sixteen regenerations
THAI = {"เห็นด้วย": "Agree", "ไม่เห็นด้วย": "Disagree"}
CHOICES = {"A ดีกว่า": "A", "B ดีกว่า": "B", "ดี/แย่พอๆกัน": "tie"}


def table(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def passages() -> list[dict[str, Any]]:
    return json.loads((FOLDER / "passages.json").read_text(encoding="utf-8"))["data"]


def asked() -> dict[str, dict[str, Any]]:
    """Question id → its row, with the context."""
    found = [
        {**qa, "context": paragraph["context"]}
        for passage in passages()
        for paragraph in passage["paragraphs"]
        for qa in paragraph["qas"]
    ]
    return {row["id"]: row for row in found} if len({row["id"] for row in found}) == len(found) else {}


def test_passages_are_squad_with_right_offsets() -> None:
    told = json.loads((FOLDER / "passages.json").read_text(encoding="utf-8"))
    assert list(told) == ["version", "data"] and told["version"] == "1.1"
    assert [[len(p["qas"]) for p in one["paragraphs"]] for one in told["data"]] == [[3]] * 12
    questions = asked()
    assert len(questions) == 36 and len({row["question"] for row in questions.values()}) == 36
    for row in questions.values():
        assert list(row) == ["id", "question", "answers", "context"] and 550 <= len(row["context"]) <= 750
        for answer in row["answers"]:
            start = answer["answer_start"]
            assert row["context"][start : start + len(answer["text"])] == answer["text"] != ""
        texts = [answer["text"] for answer in row["answers"]]
        assert len(set(texts)) == len(texts) <= 2
    assert sum(len(row["answers"]) == 2 for row in questions.values()) == 17
    assert sum(any(c.isdigit() for c in row["answers"][0]["text"]) for row in questions.values()) >= 8


def test_the_exemplar_is_none_of_the_rows() -> None:
    told = json.loads((FOLDER / "exemplar.json").read_text(encoding="utf-8"))
    assert set(told) == {"context", "question", "reference"} and told["context"].count(told["reference"]) == 1
    rows = asked().values()
    assert told["context"] not in {row["context"] for row in rows}
    assert told["question"] not in {row["question"] for row in rows}


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_text_is_nfc_without_hidden_marks(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert unicodedata.is_normalized("NFC", text) and "\u0e4d\u0e32" not in text and "\u0e40\u0e40" not in text
    assert not [c for c in text if unicodedata.category(c) in ("Cf", "Co", "Cs") or c in "\r\ufffd\u00a0"]


def test_the_folder_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 400_000


@pytest.mark.parametrize(("model", "file"), ANSWERS.items())
def test_answers_cover_every_question(model: str, file: str) -> None:
    rows = {row["id"]: row for row in lines(file)}
    assert list(rows) == list(asked()) and len(lines(file)) == 36
    entry = params.load("models", model, params.ModelEntry)
    replies = dict(chat_replay.read_recorded(FOLDER / file))
    assert entry.kind == "replay" and entry.source == f"samples:mrc/{file}" and set(replies) == set(rows)
    told = [row["text"] for row in rows.values() if row["text"]]
    assert len(set(told)) == len(told)


def test_first_answers_hold_the_hard_cases() -> None:
    found = {row["id"]: row for row in lines("answers.jsonl")}
    questions = asked()
    texts = {name: row["text"] for name, row in found.items()}
    spans = [name for name, text in texts.items() if text in {a["text"] for a in questions[name]["answers"]}]
    assert len(spans) == 7 and sum(len(text) > 60 for text in texts.values()) >= 8
    assert list(texts.values()).count("") == 1
    assert [row["finish"] for row in found.values()].count("length") == 1
    for trap in ("<script>", "Agree Agree Agree Agree", "Do you agree or disagree?", "{reference_answer}"):
        assert any(trap in text for text in texts.values()), trap
    long = [row["text"] for row in lines("answers_long.jsonl")]
    assert sorted(map(len, long))[1] > 80 and [row["finish"] for row in lines("answers_long.jsonl")][-1] != "stop"


def test_the_judge_has_a_reply_to_every_answer_and_every_case() -> None:
    replies = dict(chat_replay.read_recorded(FOLDER / "judge_replies.jsonl"))
    heard: dict[str, list[Any]] = defaultdict(list)
    for key, reply in replies.items():
        name, _, attempt = key.partition("#a")
        assert attempt == (str(len(heard[name])) if heard[name] else "")
        heard[name].append(reply)
    judged = [f"{row['id']}@{model}" for model, file in ANSWERS.items() for row in lines(file)]
    assert list(heard) == [name for name in judged if not name.startswith("library-3@replay-mrc-answers-long")]
    ends = Counter(end_of(said) for said in heard.values())
    assert ends == {"ok": 67, "unreadable": 1, "refused": 1, "truncated": 1, "filtered": 1}
    assert sum(len(said) == 2 and end_of(said) == "ok" for said in heard.values()) == 3
    assert all(len(said) == TRIES for said in heard.values() if end_of(said) in ("unreadable", "refused", "truncated"))


def end_of(said: list[Any]) -> str:
    """The outcome of the last reply; those before it hold no verdict."""
    assert not any(reply.outcome == "ok" and verdicts.read(reply.text).verdicts for reply in said[:-1])
    last = said[-1]
    if last.outcome != "ok":
        return last.outcome
    return "ok" if verdicts.read(last.text).verdicts else "unreadable"


def test_the_authors_rule_and_ours_agree_where_both_read() -> None:
    for key, reply in chat_replay.read_recorded(FOLDER / "judge_replies.jsonl"):
        ours, theirs = verdicts.read(reply.text), verdicts.read(reply.text, rule="authors")
        assert None in (ours.verdicts, theirs.verdicts) or ours.verdicts == theirs.verdicts, key


def test_annotations_in_both_layouts() -> None:
    rows = table("annotations.csv")
    labels = {(row["item"], row["annotator"], row["question"]): row["label"] for row in rows}
    assert len(labels) == len(rows) and set(labels.values()) == {"Agree", "Disagree"}
    people = {f"annotator_{n}" for n in range(1, 6)}
    absent = {(item, who) for item in asked() for who in people if (item, who, "Q1") not in labels}
    assert len(absent) == 2 and {who for _, who in absent} == {"annotator_4"}
    assert set(labels) == {(i, w, q) for i in asked() for w in people for q in QUESTIONS if (i, w) not in absent}
    wide = table("annotations_wide.csv")
    assert {(row["item"], row["annotator"], q): THAI[row[q]] for row in wide for q in QUESTIONS} == labels
    split = [
        (item, q)
        for item, _ in sorted(absent)
        for q in QUESTIONS
        if Counter(labels[item, who, q] for who in people - {"annotator_4"}).most_common(1)[0][1] == 2
    ]
    assert split == [("banana-3", "Q2"), ("skytrain-1", "Q1")]


def test_training_and_screening() -> None:
    training, screening = table("training.csv"), table("screening.csv")
    assert (len(training), len(screening)) == (15, 10)
    for row in training + screening:
        assert list(row) == ["item", "context", "question", "references", "ans_model", "q1", "q2", "q3", "q4"]
        assert row["references"] in row["context"]
        assert {row[f"q{n}"] for n in range(1, 5)} <= {"yes", "no"}
    expected = {(row["item"], f"Q{n}"): row[f"q{n}"] == "yes" for row in screening for n in range(1, 5)}
    right: Counter[str] = Counter()
    labels = table("screening_labels.csv")
    for row in labels:
        right[row["annotator"]] += (row["label"] == "Agree") == expected[row["item"], row["question"]]
    assert len(labels) == 7 * 40 and sum(found > 0.8 * 40 for found in right.values()) == 5


def test_votes_are_balanced_and_the_same_in_both_layouts() -> None:
    rows, wide = table("votes.csv"), table("votes_wide.csv")
    votes = {(row["item"], row["annotator"]): row["vote"] for row in rows}
    assert len(votes) == len(rows) == 200 and set(votes.values()) == {"A", "B", "tie"}
    assert Counter(row["shown_as_a"] for row in wide) == {"short": 10, "long": 10}
    people = [name for name in wide[0] if name.startswith("voter_")]
    assert len(people) == 10
    assert {(row["item"], who): CHOICES[row[who]] for row in wide for who in people} == votes
    shown = {row["item"]: (row["shown_as_a"], row["words_short"], row["words_long"]) for row in wide}
    assert all(shown[row["item"]] == (row["shown_as_a"], row["words_short"], row["words_long"]) for row in rows)
    long = {row["id"]: row["text"] for row in lines("answers_long.jsonl")}
    for row in wide:
        short = asked()[row["item"]]["answers"][0]["text"]
        pair = (row["answer_a"], row["answer_b"])
        assert (pair if row["shown_as_a"] == "short" else pair[::-1]) == (short, long[row["item"]])
        assert row["question"] == asked()[row["item"]]["question"]
        assert 0 < int(row["words_short"]) < int(row["words_long"])
