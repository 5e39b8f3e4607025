"""One or two leaves' lines matched item by item, filtered, and told in sentences: what the explorer shows, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from thaikit import ThaikitError, explore_rows
from thaikit.explore_rows import APART, RIGHT, SAMPLES, Rows, line, near, number, read

Line = Mapping[str, Any]
KEYS = (("id", "key"), ("id", "key", "task"), ("id", "key", "task", "source"))  # the first that is unique in both
TEXTS = ("question", "answer", "reference")


@dataclass(frozen=True)
class View:
    """Lines of one leaf or of two. A pair holds an item's line in each; the second is None where there is one leaf.
    `pairs` are those that the filters leave, `everything` all of them, `told` what a reader must know, in sentences."""

    a: Rows
    b: Rows | None
    everything: tuple[tuple[Line, Line | None], ...]
    pairs: tuple[tuple[Line, Line | None], ...]
    told: tuple[str, ...]

    @property
    def names(self) -> tuple[str, str]:
        """The leaves' names; where both are alike with the folders above that tell them apart."""
        if self.b is None:
            return self.a.name, ""
        a, b = (str(one.path).removesuffix(".partial").split("/") for one in (self.a, self.b))
        same = next((n for n in range(1, min(len(a), len(b))) if a[-n:] != b[-n:]), 1)
        return "/".join(a[-same:]), "/".join(b[-same:])

    def frame(self) -> pd.DataFrame:
        """The filtered lines as a table, columns in which nothing stands left out; texts that are not to be shown are
        empty. With two leaves `_a` is the first, `_b` the second, and `who` says who was right or scored higher."""
        columns = ["id", "task", "theme", "outcome", "right", "score", *explore_rows.QUESTIONS, *TEXTS]
        if self.b is None:
            return packed(pd.DataFrame([{key: a.get(key) for key in columns} for a, _ in self.pairs], columns=columns))
        rows = [both(a, b or {}) for a, b in self.pairs]
        scores, answers, *rest = (
            [f"{key}_a", f"{key}_b"] for key in ("score", "answer", *explore_rows.QUESTIONS, "outcome")
        )
        order = ["id", "task", "theme", "who", *scores, "question", *answers, "reference", *sum(rest, [])]
        return packed(pd.DataFrame(rows, columns=order))

    def find(self, item: str = "") -> tuple[Line, Line | None] | None:
        """The pair of an item or row id, also of one that the filters leave out; without an id the first filtered
        one, None where there is none. ThaikitError names near ids."""
        if not item:
            return self.pairs[0] if self.pairs else None
        for wanted in (self.pairs, self.everything):
            for a, b in wanted:
                if item in (a["id"], explore_rows.text_of(a["row"].get("id"))):
                    return a, b
        known = [a["id"] for a, _ in self.everything]
        close = near(item, known) or known[:3]
        told = f"near are {', '.join(close)}" if close else "there are no items"
        raise ThaikitError(f"item {item!r}: not among the {len(known)} items of {self.a.name}; {told}")

    def facts(self) -> dict[str, Any]:
        """What run.json says of what was looked at: counts, and of two leaves who was right."""
        found: dict[str, Any] = {"rows": len(self.pairs), "of": len(self.everything), "leaf": self.names[0]}
        if self.b is not None:
            counts = pd.Series([who(a, b) for a, b in self.everything if b], dtype=object).value_counts()
            found |= {"other": self.names[1], "who": {str(key): int(n) for key, n in counts.items() if key}}
        return found


def packed(frame: pd.DataFrame) -> pd.DataFrame:
    """The table without the columns in which nothing stands."""
    empty = [name for name in frame if not (frame[name].notna() & (frame[name].astype(str) != "")).any()]
    return frame if frame.empty else frame.drop(columns=[name for name in empty if name != "id"])


def both(a: Line, b: Line) -> dict[str, Any]:
    """Two lines of an item as one row of the table."""
    shared = {key: a[key] for key in ("id", "task", "theme", "question", "reference")}
    each = ("outcome", "score", "answer", *explore_rows.QUESTIONS)
    sides = {f"{key}_{side}": one.get(key) for key in each for side, one in (("a", a), ("b", b))}
    return shared | sides | {"who": who(a, b)}


def who(a: Line, b: Line | None) -> str:
    """Who was right, or without right and wrong who scored higher; "" where one of both has no score."""
    if not b:
        return ""
    if a["right"] and b["right"]:
        return {(True, True): "both", (True, False): "only a", (False, True): "only b"}.get(
            (a["right"] == "right", b["right"] == "right"), "neither"
        )
    x, y = number(a["score"]), number(b["score"])
    return "" if x != x or y != y else "a higher" if x > y else "b higher" if y > x else "equal"


def load(
    leaf: str = "",
    other: str = "",
    *,
    task: str = "",
    theme: str = "",
    outcome: str = "",
    right: str = "",
    disagree: bool = False,
    gallery: bool = False,
    show_sensitive: bool = False,
) -> View:
    """The lines of `leaf`, or of `leaf` and `other` on the items that both have (by item id and question text). Without
    either the recorded outputs of two models that come with the kit.

    Filters: `task` (a ThaiCLI format, "gate" for a judge's rows on the items' own answers), `theme` (MMLU's subject,
    a passage's title), `outcome` and `right` ("right" or "wrong") of the first leaf, `disagree` for items on which two
    models or judges give different verdicts. Texts are shown of the bundled samples, of other data with `gallery`, of
    the royal-family theme with `show_sensitive`. ThaikitError for a leaf that is none, or a filter's unknown value.
    """
    first, second = (leaf, other) if leaf else (SAMPLES[0], other or SAMPLES[1])
    if disagree and not second:
        raise ThaikitError("disagree: there is one leaf; name a second one as `other`, of another model or judge")
    a, b = read(first), read(second) if second else None
    shown = {"texts": gallery or shipped(a), "sensitive": show_sensitive}
    lines = [line(row, a, **shown) for row in kept(a, task)]
    told = [*notes(a), *(notes(b) if b else [])]
    everything: list[tuple[Line, Line | None]] = [(one, None) for one in lines]
    if b is not None:
        shown_b = {"texts": gallery or shipped(b), "sensitive": show_sensitive}
        everything, said = matched(lines, [line(row, b, **shown_b) for row in kept(b, task)])
        told += said
    wanted = {"task": "" if task == APART else task, "theme": theme, "outcome": outcome, "right": right}
    pairs = filtered(everything, wanted, allowed_task=APART in a.files)
    if disagree:
        pairs = [(x, y) for x, y in pairs if y and None not in (x["verdict"], y["verdict"])]
        pairs = [(x, y) for x, y in pairs if y and x["verdict"] != y["verdict"]]
    left_out = sum(row["file"] == APART for row in a.lines) if task != APART else 0
    told += [f"{left_out} rows of the judge gate are left out; task 'gate' shows them."] if left_out else []
    told += hidden(pairs)
    return View(a, b, tuple(everything), tuple(pairs), tuple(told))


def kept(rows: Rows, task: str) -> list[Mapping[str, Any]]:
    """The rows that a table is about: a judge's rows on the items' own answers only where they are asked for."""
    return [row for row in rows.lines if (row["file"] == APART) == (task == APART)]


def shipped(rows: Rows) -> bool:
    """Whether a leaf's texts are the bundled samples': judged passages are looked up by what the judge was given."""
    if rows.shipped or not rows.closed or rows.run.get("stage") != "mrc_judge":
        return rows.shipped
    from thaikit.tasks import mrc_judging

    given = rows.run.get("params") or {}
    if given.get("judgements"):
        return str(given["judgements"]).startswith("samples:")
    try:
        return mrc_judging.given_answers(given).shipped
    except ThaikitError:
        return False


def notes(rows: Rows) -> list[str]:
    """What is to be said of a leaf before its rows: that it is open, that it holds none."""
    found = []
    if not rows.closed:
        found.append(f"{rows.name} is open: these are the {len(rows.lines)} rows on disk now, more may come.")
    elif not rows.lines:
        found.append(f"{rows.name} holds no rows.")
    return found


def matched(a: Sequence[Line], b: Sequence[Line]) -> tuple[list[tuple[Line, Line | None]], list[str]]:
    """The items that both have, matched by id and question text (and task, and whose answer, where an item stands
    several times), in the first one's order; and how many only one of them has."""
    for names in KEYS:
        sides = [{tuple(one[name] for name in names): one for one in lines} for lines in (a, b)]
        if len(sides[0]) == len(a) and len(sides[1]) == len(b):
            break
    else:
        raise ThaikitError(
            "other: an item stands several times in one of the two leaves, so rows cannot be matched; "
            "name leaves that hold one answer an item"
        )
    pairs: list[tuple[Line, Line | None]] = [(one, sides[1][key]) for key, one in sides[0].items() if key in sides[1]]
    only = [len(side) - len(pairs) for side in sides]
    if not pairs:
        return [], [f"The two leaves have no item in common ({only[0]} in the first, {only[1]} in the second)."]
    if any(only):
        told = f"{len(pairs)} items are in both; {only[0]} only in the first and {only[1]} only in the second are left"
        return pairs, [f"{told} out."]
    return pairs, []


def filtered(
    pairs: Sequence[tuple[Line, Line | None]], wanted: Mapping[str, str], *, allowed_task: bool
) -> list[tuple[Line, Line | None]]:
    """The pairs whose first line has the wanted values; ThaikitError lists the values that there are."""
    for name, value in wanted.items():
        there = list(dict.fromkeys(one[name] for one, _ in pairs if one[name]))
        extra = [APART] if name == "task" and allowed_task else []
        allowed = list(RIGHT) if name == "right" and there else sorted(there) + extra
        if value and value not in allowed:
            close = near(value, allowed)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            none = "its rows are scored by degrees or not at all" if name == "right" else f"its rows have no {name}"
            told = f"allowed are {', '.join(allowed)}" if allowed else f"{none}, leave it empty"
            raise ThaikitError(f"{name} is {value!r}{hint}; {told}")
    return [pair for pair in pairs if all(not value or pair[0][name] == value for name, value in wanted.items())]


def hidden(pairs: Sequence[tuple[Line, Line | None]]) -> list[str]:
    """How many items show no texts, and what shows them."""
    touchy = sum(bool(a["sensitive"]) for a, _ in pairs)
    kept_back = sum(bool(a["hidden"] or (b and b["hidden"])) for a, b in pairs) - touchy
    found = []
    if kept_back > 0:
        found.append(f"Texts of {kept_back} items are not shown, for they are no bundled samples; gallery shows them.")
    if touchy:
        found.append(f"Texts of {touchy} items on the royal family are not shown; show_sensitive shows them.")
    return found
