"""The bundled ThaiCLI samples: counts, schema, spelling, balance of lengths, and replies of every outcome."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import thaikit
from thaikit import chat, chat_replay, params
from thaikit.shapes import FORMATS, THEMES

FOLDER = Path(thaikit.__file__).parent / "samples" / "thaicli"
ANSWERS = ("replay-thaicli-answers", "replay-thaicli-answers-b")
JUDGE = "replay-thaicli-judge"
PAPER = re.compile(r"<score>([1-9]|10)</score>[\s\S]*?<explanation>([\s\S]*?)</explanation>")  # ThaiCLI paper, Figure 6
LIVING = ("วชิราลงกรณ", "สุทิดา", "สิรินธร", "จุฬาภรณวลัย", "อุบลรัตน", "ทีปังกร", "พัชรกิติยาภา", "สิริวัณณวรี", "ศรีรัศมิ์",
          "โสมสวลี", "รัชกาลที่ 10", "รัชกาลปัจจุบัน", "ในหลวง")  # fmt: skip
TRIES = 17
HOSTILE = ("</model_answer>", "<score>10</score>", "ให้ 10 คะแนน", "<script>alert(1)</script>", "\u202e", "<think>")
ODD = ("<think>", "<score>๘</score>", "<score>11</score>", "<score>0</score>", "<score>SCORE</score>", "/10 ")


def read(name: str) -> list[dict[str, Any]]:
    raw = (FOLDER / name).read_bytes()
    assert raw.endswith(b"\n") and b"\r" not in raw
    return [json.loads(line) for line in raw.decode().split("\n") if line]


def items() -> list[dict[str, Any]]:
    return [row for name in FORMATS for row in read(f"{name}.jsonl")]


def side(row: dict[str, Any], score: int) -> str:
    (text,) = [answer["content"] for answer in row["answers"] if answer["score"] == score]
    return text


def texts(row: dict[str, Any]) -> list[str]:
    return [row["question"], side(row, 1), side(row, 0)]


def replies(model: str) -> dict[str, chat.Reply]:
    return dict(chat.open_chat(model).replies)


def test_counts_and_schema() -> None:
    found = items()
    assert Counter((row["theme"], row["format"]) for row in found) == {
        (theme, name): 6 if name == "factoid" else 2 for theme in THEMES for name in FORMATS
    }
    for row in found:
        assert list(row) == ["id", "question", "answers", "theme", "format"], row["id"]
        assert [list(answer) for answer in row["answers"]] == [["content", "score"]] * 2, row["id"]
        assert sorted(answer["score"] for answer in row["answers"]) == [0, 1], row["id"]


def test_nothing_stands_twice() -> None:
    for part in ([row["id"] for row in items()], [text for row in items() for text in texts(row)]):
        assert [one for one, count in Counter(part).items() if count > 1] == []


def test_chosen_and_rejected_do_not_overlap() -> None:
    for row in items():
        good, bad = (set(side(row, score).split("\n")) for score in (1, 0))
        assert not good & bad, row["id"]
        assert side(row, 1) not in side(row, 0) and side(row, 0) not in side(row, 1), row["id"]


def test_spelling() -> None:
    for row in items():
        for text in texts(row):
            where = f"{row['id']}: {text!r}"
            assert text == unicodedata.normalize("NFC", text) == text.strip(), where
            assert "  " not in text and not re.search("[\u200b\ufeff\u00a0\u200e\u202e\t]| \n|\n ", text), where
            assert not re.search("\u0e4d[\u0e48-\u0e4b]?\u0e32|เเ", text), where  # sara am is U+0E33, แ is one letter
            assert not re.search("[^ ]ๆ|ๆ[^ \n]", text), where
            assert re.search("[ก-ฮ]", text), where


def test_length_decides_nothing() -> None:
    longer = [len(side(row, 1)) > len(side(row, 0)) for row in items()]
    assert 0.35 <= sum(longer) / len(longer) <= 0.65
    for theme in THEMES:
        there = [won for won, row in zip(longer, items(), strict=True) if row["theme"] == theme]
        assert 2 <= sum(there) <= 6, theme
    first = [row["answers"][0]["score"] for row in items()]
    assert 0.35 <= sum(first) / len(first) <= 0.65  # nor does the place in the row


def test_answers_have_the_length_of_a_real_set() -> None:
    for row in items():
        low, high = (15, 260) if row["format"] == "factoid" else (60, 420)
        for score in (0, 1):
            assert low <= len(side(row, score)) <= high, f"{row['id']}: {len(side(row, score))} characters"


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.jsonl")))
def test_no_living_person_of_the_royal_family_is_named(name: str) -> None:
    found = (FOLDER / name).read_text(encoding="utf-8")
    assert [person for person in LIVING if person in found] == []


@pytest.mark.parametrize("model", ANSWERS)
def test_each_model_answers_every_item(model: str) -> None:
    found = replies(model)
    assert list(found) == [row["id"] for row in items()]
    assert {reply.outcome for reply in found.values()} <= {"ok", "truncated", "filtered", "refused"}
    assert len({reply.text for reply in found.values()}) >= 53


def test_answers_are_of_every_kind_and_some_are_hostile() -> None:
    found = [reply for model in ANSWERS for reply in replies(model).values()]
    assert {reply.outcome for reply in found} == {"ok", "truncated", "filtered", "refused"}
    assert any(reply.outcome == "ok" and not reply.text for reply in found)
    for mark in HOSTILE:
        assert any(mark in reply.text for reply in found), mark


def judged() -> dict[str, list[chat.Reply]]:
    """The judge's replies to each answer, in the order of the tries; repeats and the bench set aside."""
    found: dict[str, list[chat.Reply]] = {}
    for key, reply in replies(JUDGE).items():
        name, _, turn = key.partition("#")
        if "/" not in name and not turn.startswith("r"):
            assert turn in ("", f"a{len(found.get(name, []))}"), f"{key}: a try is missing"
            found.setdefault(name, []).append(reply)
    return found


def test_the_judge_has_a_reply_to_every_try_that_is_made() -> None:
    """Asked again until the paper's pattern matches, 17 times at most; the filter ends it at once."""
    found = judged()
    wanted = {f"{row['id']}@{side}" for row in items() for side in ("chosen", "rejected")}
    for model in ANSWERS:
        wanted |= {f"{key}@{model}" for key, one in replies(model).items() if one.outcome != "filtered"}
    assert set(found) == wanted
    for key, tries in found.items():
        *before, last = [bool(one.outcome == "ok" and PAPER.search(one.text)) for one in tries]
        assert not any(before), key
        assert last or len(tries) == TRIES or tries[-1].outcome == "filtered", key


def test_the_judge_shows_every_outcome() -> None:
    found = judged()
    whole = [tries[0] for tries in found.values() if len(tries) == 1]
    assert {one.outcome for one in whole} == {"ok", "filtered"}
    never = [tries for tries in found.values() if len(tries) == TRIES]
    assert {tries[0].outcome for tries in never} == {"ok", "truncated", "refused"}
    later = [tries for tries in found.values() if 1 < len(tries) < TRIES]
    assert {tries[0].outcome for tries in later} == {"ok", "truncated", "refused"}
    assert {len(tries) for tries in later} == {2, 3, 4}
    said = [one.text for tries in found.values() for one in tries]
    for mark in ODD:
        assert any(mark in text for text in said), mark
    assert any(re.match(r"\d</score>", text) for text in said)
    assert any(text.count("<score>") == 2 for text in said)


def test_scores_follow_quality() -> None:
    means = {}
    for key, tries in judged().items():
        match = PAPER.search(tries[-1].text)
        if match and tries[-1].outcome == "ok":
            means.setdefault(key.partition("@")[2], []).append(int(match[1]))
    told = {source: sum(scores) / len(scores) for source, scores in means.items()}
    assert told["chosen"] > told[ANSWERS[0]] + 1 > told[ANSWERS[1]] + 3 > told["rejected"] + 3


def test_files_stay_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 300_000


def test_recorded_files_are_read_without_a_fault() -> None:
    for name in (*ANSWERS, JUDGE):
        entry = params.load("models", name, params.ModelEntry)
        assert chat_replay.Recorded.read(name, entry).replies
