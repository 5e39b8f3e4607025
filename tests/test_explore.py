"""The explorer: rows matched and filtered, sentences for what is wrong, hostile texts, prompts and tokens as sent."""

from __future__ import annotations

import html
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kit import write_jsonl

from thaikit import (
    ThaikitError,
    embedded,
    encoding,
    explore,
    explore_card,
    explore_prompt,
    explore_rows,
    explore_view,
    inputs,
)
from thaikit.encoding import Encoded
from thaikit.records import Run
from thaikit.tasks import evaluate
from thaikit.tasks.score import Settings

HOSTILE = [
    "<script>alert(1)</script>", "</td></tr></table><h1>x", "</script><img src=x onerror=alert(1)>", "a" * 10_000,
    "\u202eabc\u202c\u200b\x07", "\n" * 500, None, math.nan, ["<b>", 1, None], "{{7*7}} <!-- http://evil.example/ -->",
    "&lt;b&gt; \u2028 ที่ <svg/onload=alert(1)>",
]  # fmt: skip
MARKUP = re.compile(r"<(script|img|svg|h1|b|/td|!--)", re.IGNORECASE)


def judged(n: int, text: Any = "คำตอบ", **keys: Any) -> dict[str, Any]:
    """A judged answer as 21 writes it."""
    return {
        "id": f"i{n}@m", "item": f"i{n}", "index": n, "format": "factoid", "theme": "culture", "question": f"ถาม {n}",
        "answer": text, "chosen": text, "rejected": text, "reply": text, "explanation": text, "outcome": "ok",
        "score": n % 10, "score_tags": 1, "asked": False, "rule": "paper", **keys,
    }  # fmt: skip


def leaf(folder: Path, rows: list[dict[str, Any]], *, file: str = "judgements", closed: bool = True) -> str:
    """A leaf of the bundled samples' texts with these rows."""
    write_jsonl(folder / "rows" / f"{file}.jsonl", rows)
    record = {"data_place": "samples:thaicli", "stage": "thaicli_judge", "params": {"model": "m"}}
    if closed:
        (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    return str(folder)


def test_two_leaves_are_matched_by_item_and_question(tmp_path: Path) -> None:
    a = leaf(tmp_path / "a", [judged(1), judged(2), judged(3), judged(4)])
    b = leaf(tmp_path / "b", [judged(2, score=9), judged(3), judged(4, question="อื่น"), judged(7)])
    view = explore_view.load(a, b)
    frame = view.frame()
    assert list(frame["id"]) == ["i2", "i3"] and list(frame["who"]) == ["b higher", "equal"]
    assert (list(frame["score_a"]), list(frame["score_b"])) == ([2, 3], [9, 3])
    assert "2 items are in both; 2 only in the first and 2 only in the second" in view.told[0]
    assert list(explore_view.load(a, b, disagree=True).frame()["id"]) == ["i2"]
    assert view.facts()["who"] == {"b higher": 1, "equal": 1}
    c = leaf(tmp_path / "c", [judged(8)])
    none = explore_view.load(a, c)
    assert none.frame().empty and none.told[0].startswith("The two leaves have no item in common (4 in the first, 1")
    assert "no card" in explore.card(none).text and "None" not in explore.rows(none).html


def test_an_outcome_without_a_verdict_is_no_disagreement(tmp_path: Path) -> None:
    a = leaf(tmp_path / "a", [judged(1), judged(2, score=None, outcome="unreadable")])
    b = leaf(tmp_path / "b", [judged(1, score=5), judged(2)])
    assert list(explore_view.load(a, b, disagree=True).frame()["id"]) == ["i1"]
    assert list(explore_view.load(a, outcome="unreadable").frame()["id"]) == ["i2"]


def test_bundled_models_side_by_side() -> None:
    view = explore_view.load(task="arc", right="wrong", disagree=True)
    assert len(view.pairs) == 7 and set(view.frame()["who"]) == {"only b"}
    assert view.facts()["who"] == {"neither": 145, "only a": 40, "both": 33, "only b": 30}


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"task": "arcc"}, "did you mean 'arc'?); allowed are arc, gsm8k, hellaswag"),
        ({"right": "yes"}, "right is 'yes'; allowed are right, wrong"),
        ({"outcome": "refused"}, "allowed are ok, truncated"),
        ({"leaf": "/nowhere"}, "no such folder (/nowhere"),
        ({"leaf": str(Path(__file__).parent)}, "has no folder rows/; name a leaf that holds rows"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(choice: dict[str, str], says: str) -> None:
    with pytest.raises(ThaikitError, match=re.escape(says)):
        explore_view.load(**choice)


def test_filters_that_one_leaf_cannot_have(tmp_path: Path) -> None:
    place = leaf(tmp_path, [judged(1)])
    with pytest.raises(ThaikitError, match="scored by degrees or not at all"):
        explore_view.load(place, right="right")
    with pytest.raises(ThaikitError, match="name a second one as `other`"):
        explore_view.load(place, disagree=True)
    with pytest.raises(ThaikitError, match=r"near are i1; *$|near are i1$"):
        explore_view.load(place).find("i11")


def test_an_empty_leaf_and_one_that_runs(tmp_path: Path) -> None:
    empty = explore_view.load(leaf(tmp_path / "empty", []))
    assert empty.told == ("empty holds no rows.",) and "0 of 0" in explore.rows(empty).html
    leaf(tmp_path / "open.partial", [judged(1), judged(2), judged(1, score=9)], closed=False)
    path = tmp_path / "open.partial" / "rows" / "judgements.jsonl"
    path.write_bytes(path.read_bytes() + b'{"id": "torn')
    before = path.read_bytes()
    view = explore_view.load(str(tmp_path / "open"))
    assert list(view.frame()["score"]) == [9, 2] and view.told[0].startswith("open is open: these are the 2 rows")
    assert path.read_bytes() == before and set(view.frame()["answer"]) == {"–"}  # nobody knows yet whose texts they are


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    rows = [judged(n, text, question=text, theme="culture" if n else HOSTILE[0]) for n, text in enumerate(HOSTILE)]
    place = leaf(tmp_path, [json.loads(json.dumps(row)) for row in rows])
    write_jsonl(tmp_path / "rows" / "replies.jsonl", [{"id": "r", "item": "i0@m", "text": HOSTILE[2], "attempt": 0}])
    view = explore.load(place)
    page = explore.rows(view).html
    data = re.search(r'"data_json": (".*")', page)
    assert data and "</script" not in data[1] and len(view.pairs) == len(HOSTILE)
    cells = [cell for line in json.loads(json.loads(data[1])) for cell in line if isinstance(cell, str)]
    for text in [*cells, *(explore.card(view, f"i{n}").html for n in range(len(HOSTILE)))]:
        bare = re.sub(r"(?s)^<style>.*?</style>|</?span[^<>]*>|</td>", "", text)
        assert not MARKUP.search(bare) and "\u202e" not in bare and "\x07" not in bare and "\u2028" not in bare
        assert "http://" not in text and "49" not in re.sub(r"#\w+", "", bare)
    assert "U+202E" in "".join(cells) and "alert(1)" in html.unescape("".join(cells))
    assert all(len(cell) < 3_000 for cell in cells)
    card = explore.card(view, "i0").html
    assert "raw reply 1 of 1" in card and "onerror" in card


def test_texts_of_the_royal_family_and_of_other_data_wait_to_be_asked_for(tmp_path: Path) -> None:
    place = leaf(tmp_path, [judged(1, "ลับหนึ่ง", theme="royal family"), judged(2, "ลับสอง")])
    assert list(explore_view.load(place).frame()["answer"]) == ["–", "ลับสอง"]
    assert "ลับหนึ่ง" not in explore.card(explore.load(place), "i1").html
    assert "ลับหนึ่ง" in explore.card(explore.load(place, show_sensitive=True), "i1").html
    record = {"data_place": "/my/rows", "params": {"model": "m"}}
    (tmp_path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert set(explore_view.load(place, show_sensitive=True).frame()["answer"]) == {"–"}
    assert set(explore_view.load(place, gallery=True).frame()["answer"]) == {"–", "ลับสอง"}
    assert "1 items are not shown, for they are no bundled samples" in " ".join(explore_view.load(place).told)


def test_the_inputs_are_the_leaves(tmp_path: Path) -> None:
    place = leaf(tmp_path / "x" / "a", [judged(1)])
    found = inputs.inputs_of("explore", {"leaf": place, "task": "factoid"})
    assert list(found) == ["x/a"] and len(inputs.inputs_of("explore", {})) == 2
    (tmp_path / "x" / "a" / "run.json").unlink()
    assert list(inputs.inputs_of("explore", {"leaf": place})) == ["a/judgements.jsonl"]


def test_the_prompt_is_the_one_that_was_sent_or_it_is_not_shown() -> None:
    view = explore_view.load(task="winogrande")
    row = dict(view.pairs[0][0]["row"])
    made = explore_prompt.asked(view.a, row)
    assert made.turns[0][0] == "" and row["question"].split("_")[0] in made.turns[0][1] and "first choice" in made.told
    assert explore_prompt.asked(view.a, row | {"prompt_sha256": "0" * 64}).turns == ()
    assert "another item at place" in explore_prompt.asked(view.a, row | {"id": "else"}).told
    other = explore_rows.Rows(view.a.path, {"params": {"tasks": "lm-evaluation-harness 0.4.13"}}, True)
    assert "the sample files that it wrote" in explore_prompt.asked(other, row).told
    moved = explore_rows.Rows(view.a.path, {"params": {"tasks": "no-such-file"}}, True)
    assert explore_prompt.asked(moved, row).told.startswith("It cannot be built again")


def test_tokens_add_up_to_the_row_and_spell_the_choice() -> None:
    view = explore_view.load(task="truthfulqa")
    row = view.pairs[0][0]["row"]
    told = explore_prompt.tokens(view.a, row)
    assert ["".join(text for text, _ in one).strip() for one in told.choices] == row["choices"]
    assert [sum(lp for _, lp in one) for one in told.choices] == pytest.approx(row["ll"], abs=1e-3)
    assert explore_prompt.tokens(view.a, {**row, "ll": [-1.0] * len(row["ll"])}).choices == ()
    assert "10_thai_h6 again with token_logprobs true" in explore_prompt.tokens(view.b, view.pairs[0][1]["row"]).told


def test_the_notebook_keeps_token_texts_when_asked(tmp_path: Path) -> None:
    given = {"model": "replay-gemma3-270m", "tasks": "thai-h6-samples", "only": ["arc"], "limit": 2}
    run = Run.open("thai_h6", params=given, out_dir=str(tmp_path / "leaf"))
    found = evaluate.load(run, **given, settings=Settings(token_logprobs=True))
    found.finish(found.score())
    view = explore_view.load(str(tmp_path / "leaf"))
    row = view.pairs[0][0]["row"]
    assert ["".join(one).strip() for one in row["token_texts"]] == row["choices"]
    assert "title=" in explore.card(view).html and "Tokens as recorded" not in explore.card(view).html


class Bytes:
    """A vocabulary of single bytes, as the worst ones split Thai."""

    def decode(self, ids: list[int], **_: Any) -> str:
        return bytes(ids).decode(errors="replace")


def test_a_letter_split_over_tokens_stands_at_the_last() -> None:
    text = "กำ🙂"
    found = encoding.pieces(Bytes(), Encoded(tuple("ถาม".encode()), tuple(text.encode())))
    assert found == ["", "", "ก", "", "", "ำ", "", "", "", "🙂"]
    assert encoding.pieces(Bytes(), Encoded(tuple("ถ".encode())[:2], (*"ถ".encode()[2:], 97)))[1] == "a"
    assert encoding.pieces(Bytes(), Encoded((97,), tuple("ก".encode())[:2])) == ["", "\ufffd"]


def test_a_real_vocabulary_spells_the_continuation() -> None:
    """Of SmolLM2, whose vocabulary has hardly any Thai letter whole; read without transformers, which takes long."""
    from tokenizers import Tokenizer

    file = embedded.folder("smollm2-135m-instruct") / "tokenizer.json"
    vocabulary = Tokenizer.from_file(str(file))
    plain = SimpleNamespace(decode=lambda ids, **_: vocabulary.decode(ids, skip_special_tokens=False))
    for text in (" น้ำที่ปู่ซื้อ 🙂", " ฏู ก็ได้", " A"):
        head, whole = vocabulary.encode("ถามว่า:").ids, vocabulary.encode("ถามว่า:" + text).ids
        assert whole[: len(head)] == head
        told = encoding.pieces(plain, Encoded(tuple(head), tuple(whole[len(head) :])))
        assert "".join(told) == text and len(told) == len(whole) - len(head) and ("" in told or text == " A")


def test_pieces_that_cannot_stand_alone_are_coloured_together() -> None:
    made = explore_card.tokens([("", -1.0), ("ก", -0.5), ("้อน", -2.0), (" x", -0.1), ("<b>", -9.0)])
    assert [one["text"] for one in made] == ["ก้อน", "␣x", "<b>"] and [one["step"] for one in made] == [3, 0, 5]
    assert made[0]["title"] == "3 tokens, log-probability −1.00 + −0.50 + −2.00 = −3.50, 3.02 %"
    assert [one["text"] for one in explore_card.tokens([("", -1.0), ("", -2.0)])] == ["−1.0", "−2.0"]
