"""The published tables against the papers' own text, found beside the public rows that THAIKIT_REAL_DATA names."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from thaikit import published
from thaikit.published import Cell

DATA = os.environ.get("THAIKIT_REAL_DATA", "")
PAPERS = Path(DATA).resolve().parent / "papers"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not DATA or not PAPERS.is_dir(),
        reason="no papers/ beside the folder of THAIKIT_REAL_DATA: the published tables are not compared",
    ),
]
NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?"
THEMES = ("Royal family", "Religion", "Culture", "Economy", "Humanity", "Lifestyle", "Politics", "Total")


def text(start: str) -> str:
    (path,) = PAPERS.glob(f"{start}_*.txt")
    return path.read_text(encoding="utf-8")


def lines(of: str, names: list[str], numbers: int) -> dict[str, list[str]]:
    """The first line of each name that is followed by so many numbers and nothing else."""
    found = {}
    for name in names:
        hit = re.search(rf"^{re.escape(name)}\s+((?:{NUMBER}\s*){{{numbers}}})$", of, re.MULTILINE)
        assert hit, f"{name} is not in the text"
        found[name] = [number.replace(",", "") for number in hit[1].split()]
    return found


def printed(table: str) -> dict[str, list[str]]:
    book = published.book()
    return {row: [book.printed[Cell(table, row, c)] for c in book.columns(table)] for row in book.rows(table)}


def same(table: str, of: str) -> None:
    ours = printed(table)
    assert lines(of, list(ours), len(next(iter(ours.values())))) == ours


def part(of: str, start: str, end: str) -> str:
    """The text from one mark to the next."""
    begin = of.index(start)
    return of[begin : of.index(end, begin)]


def test_table_1_of_the_thaicli_paper() -> None:
    same("thaicli.1", part(text("000"), "Dataset name # of samples", "Table 1:"))


def test_table_3_of_the_thaicli_paper() -> None:
    block = part(text("000"), "Question Format Theme # of Samples", "Table 3:")
    factoid, _, instruction = block.partition("\nInstruction\n")
    both = zip(lines(factoid, list(THEMES), 1).items(), lines(instruction, list(THEMES), 1).values(), strict=True)
    assert {theme: [*one, *other] for (theme, one), other in both} == printed("thaicli.3")


@pytest.mark.parametrize(("table", "head"), [("thaicli.4", "Model \tThai-H6 (Avg.)"), ("thaicli.5", "Model \tThaiCLI")])
def test_tables_4_and_5_of_the_thaicli_paper(table: str, head: str) -> None:
    same(table, part(text("000"), head, f"Table {table[-1]}:"))


@pytest.mark.parametrize("table", ["wangchan.2", "wangchan.3", "wangchan.4", "wangchan.5"])
def test_tables_of_the_wangchanlion_paper(table: str) -> None:
    paragraphs = text("002").split("\n\n")
    caption = f"{table[-1]}: "
    (block,) = [a for a, b in zip(paragraphs, paragraphs[1:], strict=False) if "\t" in a and b.startswith(caption)]
    same(table, block)


def test_columns_stand_in_the_papers_order() -> None:
    one, two = text("000"), text("002")
    assert "Thai-H6 (Avg.) th-ARC th-HellaSwag th-MMLU th-TruthfulQA th-Winogrande th-GSM8K" in one
    assert published.book().columns("thaicli.4") == ["average", *published.H6_TASKS]
    assert "ThaiCLI (Avg.) Factoid Instruction" in one
    assert "\tXQuAD\t\tiapp_wiki_qa_squad\nModel\t0-shot\t1-shot\t0-shot\t1-shot" in two
    assert two.count("Model\tQ1\tQ2\tQ3\tQ4\tNum Tokens") == 2
    heads = "Q1: Correctness\t\t\tQ2: Helpfulness\t\t\tQ3: Irrelevancy\t\t\tQ4: Out-of-Context\t\t\tOverall"
    assert heads in two and "\tP\tR\tF1" * 5 in two


def test_numbers_of_the_prose() -> None:
    one, two = " ".join(text("000").split()), " ".join(text("002").split())
    stated = {
        "factoid questions": r"consists of ([\d,]+) samples with factoid",
        "instruction questions": r"there are ([\d,]+) samples with instruction",
        "large Thai-H6 sets hold over": r"contain over ([\d,]+) samples",
        "special Thai-H6 sets hold around": r"include around ([\d,]+) samples",
        "large models exceed (billion parameters)": r"that exceeds (\d+) billion",
        "questions for each model": r"answering (\d+) Questions", "answers judged by people": r"responses to (\d+)\.",
        "questions for each judged model": r"one model with (\d+) questions",
        "dollars for each judged model": r"approximately \$([\d.]+)\. ",
        "dollars for all judged models (less than)": r"less than \$([\d.]+) on",
        "questions on length": r"Vicuna evaluation \[28\] in (\d+) questions",
        "people asked about length": r"our evaluation to (\d+) humans", "long preferred": r"(\d+) evaluations resulted",
        "short preferred": r"in long answers, (\d+) in short", "ties": r"and (\d+) in a tie",
        "models judged by people": r"responses from (three) models", "annotators": r"obtained (five) annotators",
        "models judged by GPT-4": r"comprising (seven) models",
        "entries of the SEA-LION vocabulary with Thai": r"the Thai vocab size of SEA-LION is ([\d,]+) tokens",
    }  # fmt: skip
    words = {"three": "3", "five": "5", "seven": "7"}
    ours = {c.row: v for c, v in published.book().printed.items() if c.table.endswith(".text")}
    assert set(ours) == set(stated)
    for row, pattern in stated.items():
        hit = re.search(pattern, one) or re.search(pattern, two)
        assert hit, row
        assert words.get(hit[1], hit[1]).replace(",", "") == ours[row], row


def test_pages_of_the_thaicli_paper() -> None:
    pages = re.split(r"-- \d+ of 16 --", text("000"))
    for line in published.tables().query("page != ''").itertuples():
        assert f"Table {line.number}:" in pages[int(line.page) - 1]
