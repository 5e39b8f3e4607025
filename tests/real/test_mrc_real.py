"""F1 on public rows: the authors' own number, every rule against a second implementation, SQuAD's score on English."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import string
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pythainlp.tokenize import word_tokenize

from thaikit import ThaikitError, f1
from thaikit.tasks import mrc, mrc_read, mrc_score

DATA = os.environ.get("THAIKIT_REAL_DATA", "")
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not DATA, reason="THAIKIT_REAL_DATA is not set: name the folder of the public rows"),
]
F1 = {
    "whitespace": 20.8154, "wangchanx": 21.9131, "newmm-seahelm": 21.8739, "helm": 20.5364, "lighteval": 22.6847,
    "inspect": 20.8344, "characters": 25.4544,
}  # fmt: skip


def rows_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (Path(DATA) / name).read_text(encoding="utf-8").split("\n") if line]


def load_set(folder: Path, name: str) -> mrc.MrcData:
    path = folder / "set.yaml"
    place = json.dumps({"benchmark": "mrc", "name": "real", "data": DATA, "source": {"files": name}})
    path.write_text(place, encoding="utf-8")
    return mrc.load(str(path))


def test_the_authors_numbers_on_their_rows() -> None:
    read = mrc_read.from_file(Path(DATA) / "wangchanx_mrc_eval" / "gpt4_judged.jsonl")
    rows = mrc_score.score_rows(read)
    means = {rule: 2 * sum(row[f"{rule}_f1"] for row in rows) for rule in f1.RULES}
    assert {rule: round(means[rule], 4) for rule in F1} == F1
    assert 2 * sum(row["wangchanx_em"] for row in rows) == 4.0
    assert sum(row["words"] for row in rows) / 50 == 28.06
    assert len({row["passage"] for row in rows}) == 11
    line = mrc_score.rule_line(rows, "wangchanx", ())
    assert (round(line["f1"], 4), line["em"], line["n"]) == (21.9131, 4.0, 50) and line["words"] == pytest.approx(28.06)


def test_the_sets_load_with_every_offset(tmp_path: Path) -> None:
    sizes = {"xquad_th/first100.jsonl": 100, "xquad_th/paragraphs.jsonl": 501, "xquad_en/first100.jsonl": 100,
             "iapp_wiki_qa_squad/test.jsonl": 370, "iapp_wiki_qa_squad/validation.jsonl": 122}  # fmt: skip
    found = {name: load_set(tmp_path, name) for name in sizes}
    assert {name: len(data.items) for name, data in found.items()} == sizes
    first = found["xquad_th/first100.jsonl"]
    assert first.audit["bom"] > 0 and first.items[0].references == ("308",)
    with pytest.raises(ThaikitError, match="370 questions in .*, 739 are expected"):
        mrc.load("iapp-wiki-qa-squad", data=str(Path(DATA) / "iapp_wiki_qa_squad"))


# ---------------------------------------------------------------------------------------------- a second implementation


def cut(s: str) -> list[str]:
    return word_tokenize(s, engine="newmm")


def plain(s: str) -> str:
    return "".join(c for c in s if c not in string.punctuation)


def no_articles(s: str) -> str:
    return re.sub(r"(?<!\w)(?:the|an|a)(?!\w)", " ", s)


def inspect_tokens(s: str) -> list[str]:
    found = []
    for part in s.replace("-", " ").split(" "):
        part = part.casefold()
        for shown in (part, plain(part)):
            try:
                part = repr(float(shown))
                break
            except ValueError:
                part = plain(shown)
        found += no_articles(part).split()
    return found


def unicode_plain(s: str) -> str:
    return "".join(c for c in s if unicodedata.category(c)[0] != "P")


SECOND: dict[str, tuple[Callable[[str], list[str]], bool, float]] = {  # tokens, as sets, F1 of two bare texts
    "whitespace": (lambda s: no_articles(plain(s.lower())).split(), False, 1),
    "whitespace-articles": (lambda s: plain(s.lower()).split(), False, 1),
    "wangchanx": (lambda s: no_articles(plain(" ".join(cut(s)).lower())).split(), False, 0),
    "newmm-seahelm": (lambda s: plain(" ".join(cut(s)).lower()).split(), False, 0),
    "helm": (lambda s: cut(plain(s.lower())), False, 0),
    "lighteval": (lambda s: " ".join(cut(unicode_plain(s).lower())).split(), True, 0),
    "inspect": (inspect_tokens, True, 1),
    "characters": (lambda s: list(re.sub(r"\s", "", plain(s.lower()))), False, 1),
}


def second(rule: str, answer: str, reference: str) -> tuple[float, float]:
    """Exact match and F1 by crossing common tokens out, one by one."""
    tokens, sets, bare = SECOND[rule]
    mine, other = tokens(answer), tokens(reference)
    same = set(mine) == set(other) if rule == "inspect" else mine == other
    mine, left = (sorted(set(mine)), sorted(set(other))) if sets else (mine, list(other))
    size, wanted, shared = len(mine), len(left), 0
    for token in mine:
        if token in left:
            left.remove(token)
            shared += 1
    if not size and not wanted:
        return float(same), float(bare)
    if not shared:
        return float(same), 0.0
    precision, recall = shared / size, shared / wanted
    return float(same), 2 * precision * recall / (precision + recall)


def perturbed(item: mrc.MrcItem, rng: random.Random) -> list[str]:
    """The reference, and answers that models give: longer, cut, typed otherwise, or beside the point."""
    gold = item.references[0]
    start = item.context.index(gold)
    around = item.context[max(0, start - rng.randrange(60)) : start + len(gold) + rng.randrange(60)]
    return [
        gold, around, gold[: len(gold) // 2], f"คำตอบคือ {gold} ครับ", f"The answer is “{gold}”, a fact.", gold.upper(),
        f" \n{gold}\u200b ", gold.replace("ำ", "\u0e4d\u0e32").translate(str.maketrans("0123456789", "๐๑๒๓๔๕๖๗๘๙")),
        item.question, "", "...", " ".join(gold), f"1,234.50 {gold} 3-4 an {gold}",
    ]  # fmt: skip


def test_every_rule_agrees_with_a_second_implementation(tmp_path: Path) -> None:
    items, rng = load_set(tmp_path, "iapp_wiki_qa_squad/test.jsonl").items, random.Random(5)
    assert len(items) == 370
    pairs = [(answer, item.references[0]) for item in items for answer in perturbed(item, rng)]
    found = f1.score_all([answer for answer, _ in pairs], [[reference] for _, reference in pairs])
    assert list(SECOND) == list(f1.RULES)
    for rule, scores in found.items():
        for (answer, reference), score in zip(pairs, scores, strict=True):
            expected = second(rule, answer, reference)
            assert (score.em, score.f1) == pytest.approx(expected, abs=1e-12), (rule, answer, reference)
        assert len({round(score.f1, 3) for score in scores}) > 50, rule


def test_several_references_take_the_best(tmp_path: Path) -> None:
    items = load_set(tmp_path, "iapp_wiki_qa_squad/validation.jsonl").items
    segment = f1.Segmenter()
    for one, other in itertools.pairwise(items[:40]):
        both = [one.references[0], other.references[0]]
        answer = one.context[:200]
        found = f1.score(answer, both, segment=segment).f1
        assert found == pytest.approx(max(second("wangchanx", answer, each)[1] for each in both))


def test_the_squad_score_of_torchmetrics_on_english_rows(tmp_path: Path) -> None:
    squad = pytest.importorskip("torchmetrics.functional.text").squad
    items, rng = load_set(tmp_path, "xquad_en/first100.jsonl").items, random.Random(6)
    answers = [rng.choice(perturbed(item, rng)) for item in items]
    references = [[*item.references, item.references[0] + " and more"] for item in items]
    preds = [{"prediction_text": answer, "id": item.id} for answer, item in zip(answers, items, strict=True)]
    target = [
        {"answers": {"text": some, "answer_start": [0] * len(some)}, "id": item.id}
        for some, item in zip(references, items, strict=True)
    ]
    told = squad(preds, target)
    scores = f1.score_all(answers, references, rules=["whitespace"])["whitespace"]
    assert sum(score.f1 for score in scores) == pytest.approx(float(told["f1"]), abs=1e-3)
    assert sum(score.em for score in scores) == pytest.approx(float(told["exact_match"]), abs=1e-4)
    assert 10 < float(told["f1"]) < 90
