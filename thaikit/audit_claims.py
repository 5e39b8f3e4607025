"""All claims of both papers, and a suite's own results in the papers' form for those that are general."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from thaikit import audit, audit_cli, audit_groups, audit_h6, audit_judge, audit_mrc
from thaikit.audit import Claim
from thaikit.published import Book, Cell, book, h6_sizes, models

CLAIMS: tuple[Claim, ...] = (
    *audit_h6.CLAIMS, *audit_cli.CLAIMS, *audit_groups.CLAIMS, *audit_mrc.CLAIMS, *audit_judge.CLAIMS,
)  # fmt: skip
TABLES = {"Thai-H6": "thaicli.4", "ThaiCLI": "thaicli.5", "MRC F1": "wangchan.2", "MRC, judge": "wangchan.5"}


def published_audit() -> pd.DataFrame:
    """The audit of both papers: one row a claim, in `audit.COLUMNS`."""
    return audit.audit(CLAIMS, book())


def own_audit(results: pd.DataFrame) -> pd.DataFrame:
    """All claims put to results in the form of `own.own_results`, in the same columns: those that name models where
    the results hold these, under their parameter file's name or the paper's own."""
    if results.empty:
        return pd.DataFrame(columns=list(audit.COLUMNS))
    return audit.rerun(CLAIMS, own_book(results))


def own_book(results: pd.DataFrame) -> Book:
    """Own results (benchmark, model, task, value, n, and facts) at the places where the papers print theirs."""
    kept = results[results["benchmark"].isin(list(TABLES)) & results["value"].notna()]
    lines = [(place(line), line) for line in kept.to_dict("records")]
    facts = {cell.row: {key: line[key] for key in ("parameters", "access", "region")} for cell, line in lines}
    return Book({cell: f"{line['value']:.9f}" for cell, line in lines}, facts, items_of(lines))


def place(line: Mapping[str, Any]) -> Cell:
    """Where a paper prints such a number. Words an answer stand in Table 3, whoever scored the answers."""
    table = "wangchan.3" if line["task"] == "tokens" and line["benchmark"] == "MRC F1" else TABLES[line["benchmark"]]
    return Cell(table, row_of(table, str(line["model"])), str(line["task"]))


def row_of(table: str, model: str) -> str:
    """What a table of the papers calls the model of a parameter file; a model that it lacks keeps its name."""
    named = models().query("params_file == @model")["model"]
    return next((row for row in book().rows(table) if row in set(named)), model)


def items_of(lines: Iterable[tuple[Cell, Mapping[str, object]]]) -> dict[Cell, int]:
    """The number of items behind each cell, where there is one."""
    return {cell: int(line["n"]) for cell, line in lines if isinstance(line["n"], int | float) and line["n"] > 0}


def tally(frame: pd.DataFrame) -> pd.DataFrame:
    """How many claims of each paper have each verdict."""
    order = [verdict for verdict in (audit.HOLDS, audit.FAILS, audit.UNTOLD) if verdict in set(frame["verdict"])]
    return pd.crosstab(frame["paper"], frame["verdict"])[order].reset_index()


def size_table() -> pd.DataFrame:
    """`published.h6_sizes` for a reader: task, listed in Table 1, how many sizes fit, the one where there is one, how
    many more Table 1 lists, and why."""
    sizes = h6_sizes()
    only = [found[0] if len(found) == 1 else None for found in sizes["sizes"]]
    made = sizes.assign(fitting=sizes["sizes"].map(len), only=pd.array(only, dtype="Int64"))
    return made.assign(more_listed=made["listed"] - made["only"])[["task", "listed", "fitting", "only", "more_listed",
                                                                    "why"]]  # fmt: skip


def headline(frame: pd.DataFrame) -> dict[str, dict[str, int]]:
    """How many statements have each verdict, `value` of `n`, for run.json."""
    found = frame["verdict"].value_counts()
    return {str(verdict): {"value": int(count), "n": len(frame)} for verdict, count in found.items()}
