"""Every checkable statement of both papers' result sections, checked against the numbers that the papers print.

A claim names the numbers that it rests on and can read no others; its check computes, nothing is typed in. How
verdicts come about: a statement about printed numbers ("highest", "lower counts") holds where their order is as stated.
One about models (better, lower risk, preferred) needs, where counts are printed, a 95 % interval or an exact p as well:
a difference as stated that 0 could explain cannot be told at this n, one the other way does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd

from thaikit import ThaikitError, counts, published
from thaikit.analysis_stats import newcombe
from thaikit.published import Book, Cell
from thaikit.stats import Estimate

HOLDS, FAILS, UNTOLD = "holds", "does not hold", "cannot be told"
COLUMNS = ("id", "paper", "section", "statement", "evidence", "test", "value", "interval", "verdict")
LISTED = 6  # a claim on more numbers tells its evidence by rows and columns
SEED = 1234  # of bootstrap intervals
# The tables that measure; what stands in the others is stated.
RESULTS = ("thaicli.4", "thaicli.5", "wangchan.2", "wangchan.3", "wangchan.4", "wangchan.5")
ANSWERS = {"wangchan.3": "questions for each model", "wangchan.5": "questions for each judged model"}  # behind a count


class NotTold(Exception):
    """The numbers that a check needs are not there: its verdict is "cannot be told", for this reason."""


@dataclass(frozen=True)
class Pick:
    """Numbers of one table: columns and rows by name ("open" and "closed" stand for the models of that kind), () for
    all; with `names` the row names themselves instead."""

    table: str
    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    names: bool = False


def pick(table: str, *columns: str, rows: Sequence[str] = ()) -> Pick:
    """The cells of a table by columns and rows."""
    return Pick(table, columns, tuple(rows))


def names(table: str) -> Pick:
    """The row names of a table."""
    return Pick(table, names=True)


@dataclass(frozen=True)
class Finding:
    """What a check found: a verdict, the number behind it, and that number's interval ("" for a plain order)."""

    verdict: str
    value: str
    interval: str = ""


@dataclass(frozen=True)
class View:
    """A book of numbers, of which a claim sees those that it declares."""

    book: Book
    allowed: frozenset[Cell]
    listed: frozenset[str] = frozenset()

    def text(self, table: str, row: str, column: str) -> str:
        """A number as printed. NotTold where the book has none; ThaikitError where the claim did not declare it."""
        cell = Cell(table, row, column)
        if cell not in self.book.printed:
            raise NotTold(f"no result for {row}, {column}")
        if cell not in self.allowed:
            raise ThaikitError(f"audit: a check reads {tuple(cell)}, which its claim does not declare; add it there")
        return self.book.printed[cell]

    def __call__(self, table: str, row: str, column: str) -> float:
        """A number."""
        return float(self.text(table, row, column))

    def column(self, table: str, column: str, *, access: str = "", least: int = 1) -> dict[str, float]:
        """Row → number of a column, of all declared rows or of open or closed models; NotTold below `least`."""
        rows = [row for row in self.book.rows(table) if Cell(table, row, column) in self.allowed]
        kept = [row for row in rows if not access or self.fact(row, "access") == access]
        if len(kept) < least:
            raise NotTold(f"{len(kept)} {access or 'rows'} with {column}, {least} are needed".replace("  ", " "))
        return {row: self(table, row, column) for row in kept}

    def names(self, table: str) -> list[str]:
        """The row names of a declared table."""
        if table not in self.listed:
            raise ThaikitError(f"audit: a check reads the row names of {table} undeclared; add names({table!r})")
        return self.book.rows(table)

    def fact(self, row: str, key: str) -> object:
        """A fact of a model; None where it is not known."""
        return self.book.facts.get(row, {}).get(key)

    def size(self, row: str) -> float:
        """A model's parameters in billions; NotTold where they are not known."""
        known = self.fact(row, "parameters")
        if not isinstance(known, int | float) or not known > 0:
            raise NotTold(f"the size of {row} is not known")
        return float(known)

    def sizes(self, task: str) -> list[int]:
        """The numbers of items, up to Table 1's, over which all printed accuracies of a task are whole counts."""
        listed = int(self("thaicli.1", published.TABLE_1[task], "samples"))
        printed = [self.text("thaicli.4", model, task) for model in self.column("thaicli.4", task)]
        return counts.sizes(printed, range(max(1, 3 * listed // 4), listed + 1))

    def count(self, table: str, row: str, column: str) -> tuple[int, int]:
        """(k, n) behind a percentage or a count of answers; NotTold where an accuracy's n is not one size only."""
        value = self(table, row, column)
        cell = Cell(table, row, column)
        if cell in self.book.items:
            n = self.book.items[cell]
        elif table in ANSWERS:
            n = int(self("wangchan.text", ANSWERS[table], "value"))
            return max(0, min(n, round(value))), n
        else:
            found = self.sizes(column)
            if len(found) != 1:
                raise NotTold(f"the accuracies of {column} are whole counts over {len(found)} sizes, not over one")
            n = found[0]
        return max(0, min(n, round(value * n / 100))), n


Check = Callable[[View], Finding]


@dataclass(frozen=True)
class Claim:
    """A statement: where it stands, a few words of it, how it is tested, and the numbers that it rests on. `generic`
    claims name no model and can be put to any other results."""

    id: str
    paper: str
    section: str
    statement: str
    test: str
    picks: tuple[Pick, ...]
    check: Check
    generic: bool = False


def cells(claim: Claim, book: Book) -> tuple[Cell, ...]:
    """The numbers of a book that a claim rests on."""
    return tuple(
        cell for chosen in claim.picks if not chosen.names for cell in book.printed if fits(cell, chosen, book)
    )


def fits(cell: Cell, chosen: Pick, book: Book) -> bool:
    """Whether a cell is among those picked."""
    access = book.facts.get(cell.row, {}).get("access")
    row = not chosen.rows or cell.row in chosen.rows or access in chosen.rows
    return cell.table == chosen.table and row and (not chosen.columns or cell.column in chosen.columns)


def judge(claim: Claim, book: Book) -> Finding:
    """A claim's finding on a book of numbers; "cannot be told" with the reason where numbers are missing."""
    listed = frozenset(chosen.table for chosen in claim.picks if chosen.names)
    try:
        return claim.check(View(book, frozenset(cells(claim, book)), listed))
    except NotTold as reason:
        return Finding(UNTOLD, str(reason))


def evidence(claim: Claim, book: Book) -> str:
    """The numbers a claim rests on: each with its place where they are few, else by table, columns and rows."""
    found = cells(claim, book)
    if len(found) <= LISTED:
        heads = list(dict.fromkeys((c.table, c.column) for c in found))
        told = [
            f"{place(table)}, {column}: "
            + ", ".join(f"{c.row} {short(book.printed[c])}" for c in found if (c.table, c.column) == (table, column))
            for table, column in heads
        ]
    else:
        told = [summary([c for c in found if fits(c, chosen, book)]) for chosen in claim.picks if not chosen.names]
    told += [f"{place(chosen.table)}, its row names" for chosen in claim.picks if chosen.names]
    return "; ".join(part for part in told if part)


def short(text: str) -> str:
    """A number as printed; one of other results, which have more digits, rounded."""
    return text if len(text.partition(".")[2]) <= 4 else f"{float(text):.2f}"


def summary(found: Sequence[Cell]) -> str:
    """One table's cells as `Table 4, average of 6 rows`."""
    if not found:
        return ""
    columns, rows = (list(dict.fromkeys(getattr(c, key) for c in found)) for key in ("column", "row"))
    which = rows[0] if len(rows) == 1 else f"{len(rows)} rows"
    return (
        f"{place(found[0].table)}, {' '.join(columns) if len(columns) <= 4 else f'{len(columns)} columns'} of {which}"
    )


def place(table: str) -> str:
    """A table as the paper calls it."""
    number = table.partition(".")[2]
    return "prose" if number == "text" else f"Table {number}"


def audit(claims: Iterable[Claim], book: Book) -> pd.DataFrame:
    """One row a claim, in the columns id, paper, section, statement, evidence, test, value, interval, verdict."""
    rows = []
    for claim in claims:
        found = judge(claim, book)
        rows.append((claim.id, claim.paper, claim.section, claim.statement, evidence(claim, book), claim.test,
                     found.value, found.interval, found.verdict))  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))


def rerun(claims: Iterable[Claim], own: Book) -> pd.DataFrame:
    """Every claim put to other results than the papers', in the same columns. One that names models can be told where
    the results hold each number on which it rests; what the papers state without measuring it stays as stated."""
    stated = {cell: text for cell, text in published.book().printed.items() if cell.table not in RESULTS}
    full = replace(own, printed={**stated, **own.printed})
    return audit((put(claim, full) for claim in claims), full)


def put(claim: Claim, own: Book) -> Claim:
    """A claim as it is put to other results: not told, with the reason, where it names what they lack."""
    why = "" if claim.generic else lacking(claim, own)
    return replace(claim, paper="these results", check=partial(untold, why=why) if why else claim.check)


def lacking(claim: Claim, own: Book) -> str:
    """Why a claim that names models cannot be put to other results; "" where it can."""
    wanted = [cell for cell in cells(claim, published.book()) if cell.table in RESULTS]
    there = set(cells(claim, own))
    gone = [cell for cell in wanted if cell not in there]
    if not wanted:
        return "it rests on what the paper says of itself, not on results"
    more = f" and {len(gone) - 1} more of its numbers" if len(gone) > 1 else ""
    return f"no result for {gone[0].row}, {gone[0].column}{more}" if gone else ""


def untold(_: View, *, why: str) -> Finding:
    """The check of a claim that cannot be told."""
    raise NotTold(why)


def told(holds: bool) -> str:
    """A verdict that knows no third way."""
    return HOLDS if holds else FAILS


def in_order(pairs: Sequence[tuple[float, float]], *, note: str = "") -> Finding:
    """Every first number above its second."""
    if not pairs:
        raise NotTold("nothing to compare")
    right = sum(a > b for a, b in pairs)
    value = f"{pairs[0][0]:g} against {pairs[0][1]:g}" if len(pairs) == 1 else f"{right} of {len(pairs)} as stated"
    return Finding(told(right == len(pairs)), value + (f"; {note}" if note else ""))


def difference(found: Estimate, *, scale: float = 100, unit: str = "points") -> Finding:
    """A difference that is stated to be above 0, by its interval."""
    interval = f"{scale * found.low:+.2f} to {scale * found.high:+.2f}"
    verdict = FAILS if found.value <= 0 else HOLDS if found.low > 0 else UNTOLD
    return Finding(verdict, f"{scale * found.value:+.2f} {unit}", interval)


def more(view: View, table: str, column: str, high: str, low: str) -> Finding:
    """Two rows' counts, of which the first is stated to be higher (Newcombe's interval)."""
    found = newcombe(*view.count(table, high, column), *view.count(table, low, column))
    return difference(found, unit=f"points over {low}")


def all_of(found: Sequence[Finding]) -> Finding:
    """Findings that must hold together: the worst verdict, with the numbers of each."""
    verdicts = {one.verdict for one in found}
    verdict = FAILS if FAILS in verdicts else UNTOLD if UNTOLD in verdicts else HOLDS
    return Finding(verdict, "; ".join(one.value for one in found), "; ".join(o.interval for o in found if o.interval))
