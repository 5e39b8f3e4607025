"""The result tables of both papers as tidy data frames, as printed, with model facts and where each number stands.

Sources: "Representing the Under-Represented: Cultural and Core Capability Benchmarks for Developing Thai Large Language
Models" (ThaiCLI paper, arXiv 2410.04795v2, Tables 1, 3, 4, 5) and "WangchanLion and WangchanX MRC Eval" (WangchanLion
paper, arXiv 2403.16127, Tables 2 to 5). The files of published_data/ hold what is printed there and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from thaikit import ThaikitError, counts, stats

FOLDER = Path(__file__).resolve().parent / "published_data"
H6_TASKS = ("arc", "hellaswag", "mmlu", "truthfulqa", "winogrande", "gsm8k")
FORMATS = ("factoid", "instruction")
QUESTIONS = ("q1", "q2", "q3", "q4")
TABLE_1 = {"arc": "th-ARC", "hellaswag": "th-HellaSwag", "mmlu": "th-MMLU", "truthfulqa": "th-TruthfulQA",
           "winogrande": "th-Winogrande", "gsm8k": "th-GSM8k"}  # fmt: skip
ENGLISH_SIZES = {"hellaswag": 10_042, "mmlu": 14_042}  # of the English sets; 0.01 % is too coarse to tell the Thai ones
JUDGED = 100  # answers a model in Tables 3 and 5 of the WangchanLion paper, section 3.2
HUMAN_TO_JUDGED = {"OpenThaiGPT": "OpenThaiGPT 7B", "SeaLLM V2": "SeaLLM V2", "WangchanLion": "WangchanLion"}
NO_ITEMS = "none: only the mean is published, without the items' spread"


class Cell(NamedTuple):
    """The place of one printed number: table (a name of `tables()`), row and column."""

    table: str
    row: str
    column: str


@dataclass(frozen=True)
class Book:
    """The printed numbers of both papers by their place, and the facts of each model: what an audit reads.

    `printed` keeps the digits as they stand ("5.50"), so that rounding can be told; `facts` has one entry a model;
    `items` the number of items behind a cell, where a book of other results knows it.
    """

    printed: Mapping[Cell, str]
    facts: Mapping[str, Mapping[str, object]]
    items: Mapping[Cell, int] = field(default_factory=dict)

    def value(self, table: str, row: str, column: str) -> float:
        """One number; ThaikitError, naming the place, where the papers print none."""
        cell = Cell(table, row, column)
        if cell not in self.printed:
            raise ThaikitError(f"published {table}: nothing at row {row!r}, column {column!r}; see published.read")
        return float(self.printed[cell])

    def rows(self, table: str) -> list[str]:
        """The row names of a table, in printed order."""
        return list(dict.fromkeys(cell.row for cell in self.printed if cell.table == table))

    def columns(self, table: str) -> list[str]:
        """The column names of a table, in printed order."""
        return list(dict.fromkeys(cell.column for cell in self.printed if cell.table == table))


@cache
def tables() -> pd.DataFrame:
    """One line a table: table, paper, number, title, section, page (of the paper's PDF; "" where the text that we have
    shows none), unit, file."""
    return pd.read_csv(FOLDER / "tables.csv", dtype=str, keep_default_na=False)


@cache
def models() -> pd.DataFrame:
    """One line a model as the papers name it: short (for figures), paper, parameters in billions (NaN where not
    published), access (open or closed weights), region (global, southeast-asia, thai), base family, release (of the
    first version of that name; a year where the month is not told), partner (the model without specialisation that the
    paper sets it against), params_file, note, specialised."""
    text = ("base", "release", "partner", "params_file", "note")
    frame = pd.read_csv(FOLDER / "models.csv", dtype=dict.fromkeys(text, str))
    frame[list(text)] = frame[list(text)].fillna("")
    return frame.assign(specialised=frame["region"] != "global")


@cache
def book() -> Book:
    """All printed numbers and model facts."""
    printed = {cell: text for name, file in zip(tables()["table"], tables()["file"], strict=True)
               for cell, text in read_file(name, file)}  # fmt: skip
    return Book(printed, {str(fact["model"]): fact for fact in models().to_dict("records")})


def read_file(name: str, file: str) -> Iterator[tuple[Cell, str]]:
    """The cells of one file of published_data/, row by row; the column `section` of prose numbers is none."""
    wide = pd.read_csv(FOLDER / file, dtype=str, keep_default_na=False).set_index("row")
    for row, line in wide.drop(columns="section", errors="ignore").iterrows():
        for column, text in line.items():
            yield Cell(name, str(row), str(column)), str(text)


def read(name: str) -> pd.DataFrame:
    """A table in tidy form: paper, table, page, section, row, column, printed (text), value, decimals; for tables of
    models their facts too. ThaikitError names the tables where there is no such one."""
    known = list(tables()["table"])
    if name not in known:
        raise ThaikitError(f"published: no table {name!r}; there are {', '.join(known)}")
    place = tables().set_index("table").loc[name]
    lines = [
        {
            "paper": place["paper"], "table": name, "page": place["page"], "section": place["section"],
            "row": cell.row, "column": cell.column, "printed": text, "value": float(text),
            "decimals": decimals(text),
        }
        for cell, text in book().printed.items() if cell.table == name
    ]  # fmt: skip
    frame = pd.DataFrame(lines)
    known_models = models().drop(columns="paper").rename(columns={"model": "row"})
    return frame.merge(known_models, on="row", how="left") if set(frame["row"]) <= set(book().facts) else frame


def decimals(printed: str) -> int:
    """Digits after the point of a printed number."""
    return len(printed.partition(".")[2])


@cache
def h6_sizes() -> pd.DataFrame:
    """How many items of each task were scored: task, listed (Table 1), sizes (those from three quarters of the listed
    one up to it over which every printed accuracy is a whole count), scored (the one, else that of the English set,
    else 0), why."""
    lines = []
    for task in H6_TASKS:
        printed = [book().printed[Cell("thaicli.4", model, task)] for model in book().rows("thaicli.4")]
        listed = int(book().value("thaicli.1", TABLE_1[task], "samples"))
        fitting = counts.sizes(printed, range(3 * listed // 4, listed + 1)) if task != "truthfulqa" else []
        lines.append({"task": task, "listed": listed, "sizes": fitting, **scored(task, fitting)})
    return pd.DataFrame(lines)


def scored(task: str, fitting: list[int]) -> dict[str, object]:
    """The scored number of items and how it is known."""
    if task == "truthfulqa":
        return {"scored": 0, "why": "mc2 is a mean of shares, not of right and wrong: no counts"}
    if len(fitting) == 1:
        return {"scored": fitting[0], "why": "the only size over which every printed accuracy is a whole count"}
    return {"scored": ENGLISH_SIZES.get(task, 0), "why": f"{len(fitting)} sizes fit; that of the English set"}


def h6_counts() -> pd.DataFrame:
    """Right answers behind each printed accuracy where they can be told: model, task, right, n (Table 4)."""
    sizes = {row.task: row.scored for row in h6_sizes().itertuples() if len(row.sizes) == 1}
    return pd.DataFrame([
        {"model": model, "task": task, "n": n,
         "right": counts.whole_count(book().printed[Cell("thaicli.4", model, task)], n)}
        for model in book().rows("thaicli.4") for task, n in sizes.items()
    ])  # fmt: skip


def thai_h6() -> pd.DataFrame:
    """Table 4 of the ThaiCLI paper with 95 % intervals where there are counts: benchmark, model, task, value, low, high
    (percent), right, n, method, and the model's facts. Averages have no interval: mc2 has none."""
    sizes = h6_sizes().set_index("task")
    return results("thaicli.4", "Thai-H6", [
        {"model": model, "task": task, **h6_estimate(book().printed[Cell("thaicli.4", model, task)], task, sizes)}
        for model in book().rows("thaicli.4") for task in book().columns("thaicli.4")
    ])  # fmt: skip


def h6_estimate(printed: str, task: str, sizes: pd.DataFrame) -> dict[str, object]:
    """One number of Table 4 with Wilson's interval over whole counts, or NaN and the reason."""
    if task in ("average", "truthfulqa"):
        why = "none: th-TruthfulQA, one of the six, has no interval" if task == "average" else NO_ITEMS
        return bare(float(printed), n=0, why=why)
    n = int(sizes.loc[task, "scored"])
    sure = len(sizes.loc[task, "sizes"]) == 1
    right = counts.whole_count(printed, n) if sure else round(float(printed) * n / 100)
    method = "wilson" if sure else f"wilson, n {n:,} of the English set"
    found = stats.wilson(int(right), n)
    return {"value": float(printed), "low": 100 * found.low, "high": 100 * found.high, "right": right if sure else None,
            "n": n, "method": method}  # fmt: skip


def bare(value: float, *, n: int, why: str) -> dict[str, object]:
    """A published mean without interval."""
    return {"value": value, "low": float("nan"), "high": float("nan"), "right": None, "n": n, "method": why}


def thaicli() -> pd.DataFrame:
    """Table 5 of the ThaiCLI paper in the columns of `thai_h6` (points of 10): tasks average, factoid, instruction. No
    interval: the items' scores are not published. n is the number of questions."""
    sizes = {name: int(book().value("thaicli.3", "Total", name)) for name in FORMATS}
    sizes["average"] = sum(sizes.values())
    return results("thaicli.5", "ThaiCLI", [
        {"model": model, "task": task, **bare(book().value("thaicli.5", model, task), n=sizes[task], why=NO_ITEMS)}
        for model in book().rows("thaicli.5") for task in ("average", *FORMATS)
    ])  # fmt: skip


def mrc_f1() -> pd.DataFrame:
    """Table 2 of the WangchanLion paper in the columns of `thai_h6` (percent), without interval."""
    return results("wangchan.2", "MRC F1", [
        {"model": model, "task": task, **bare(book().value("wangchan.2", model, task), n=0, why=NO_ITEMS)}
        for model in book().rows("wangchan.2") for task in book().columns("wangchan.2")
    ])  # fmt: skip


def mrc_questions(table: str) -> pd.DataFrame:
    """Table 3 (people, "wangchan.3") or 5 (GPT-4, "wangchan.5") of the WangchanLion paper in the columns of `thai_h6`:
    agreed answers in percent of 100, with Wilson's interval; `tokens` is mean words an answer, without."""
    lines = []
    for model in book().rows(table):
        for task in QUESTIONS:
            right = int(book().value(table, model, task))
            found = stats.wilson(right, JUDGED)
            told = {"value": 100 * found.value, "low": 100 * found.low, "high": 100 * found.high}
            lines.append({"model": model, "task": task, **told, "right": right, "n": JUDGED, "method": "wilson"})
        tokens = book().value(table, model, "tokens")
        lines.append({"model": model, "task": "tokens", **bare(tokens, n=JUDGED, why=NO_ITEMS)})
    return results(table, "MRC, people" if table == "wangchan.3" else "MRC, GPT-4", lines)


def results(table: str, benchmark: str, lines: list[dict[str, object]]) -> pd.DataFrame:
    """Result lines with where they stand and the models' facts."""
    frame = pd.DataFrame(lines)
    frame.insert(0, "benchmark", benchmark)
    frame = frame.assign(source="published", table=table)
    return frame.merge(models().drop(columns=["paper", "note", "params_file"]), on="model", how="left")


def agreement_counts() -> pd.DataFrame:
    """Table 4 of the WangchanLion paper as counts over 300 answers: assessor, question (q1 to q4, pooled), human,
    judge, both (answers that people, the judge, and both agreed to). The human counts are the sums of Table 3."""
    human = {q: sum(int(book().value("wangchan.3", model, q)) for model in book().rows("wangchan.3"))
             for q in QUESTIONS}  # fmt: skip
    lines = []
    for assessor in book().rows("wangchan.4"):
        found = []
        for question in QUESTIONS:
            printed = [book().printed[Cell("wangchan.4", assessor, f"{question} {name}")] for name in ("p", "r", "f1")]
            both, judge = counts.recover_agreement(*printed, human=human[question])
            found.append({"assessor": assessor, "question": question, "human": human[question], "judge": judge,
                          "both": both})  # fmt: skip
        pooled = {key: sum(line[key] for line in found) for key in ("human", "judge", "both")}
        lines += [*found, {"assessor": assessor, "question": "pooled", **pooled}]
    return pd.DataFrame(lines)
