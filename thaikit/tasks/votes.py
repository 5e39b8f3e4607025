"""Short answer or long: people's votes from files, majorities, what they say (WangchanLion paper, section 3.4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from thaikit import ThaikitError, agreement, params, preference, published, stats, text
from thaikit.params import Source
from thaikit.records import root
from thaikit.stats import Estimate
from thaikit.tasks.annotations import PERSON_COLUMN
from thaikit.tasks.load import Row, read_source, shorten

CHOICES = ("long", "short", "tie")
WRITTEN = {
    "a": "a", "b": "b", "tie": "tie", "long": "long", "short": "short", "a ดีกว่า": "a", "b ดีกว่า": "b",
    "a ทำได้ดีกว่า": "a", "b ทำได้ดีกว่า": "b", "ดี/แย่พอๆกัน": "tie", "ดี/แย่พอกัน": "tie", "เท่ากัน": "tie",
}  # fmt: skip
SEED = 1234  # of the resampling
NO_VOTES = "none: needs single votes; only the counts are published"
COLUMNS = ("quantity", "value", "low", "high", "p", "n", "method")


@dataclass(frozen=True)
class Pair:
    """A question with a short and a long answer: words of each (-1 where not told), which of them was shown as A (""
    where that is not told), and each voter's choice."""

    item: str
    votes: Mapping[str, str]
    words_short: float = -1.0
    words_long: float = -1.0
    shown_as_a: str = ""

    @property
    def majority(self) -> str:
        """What most voters chose; "split" for a shared first place or no votes."""
        return str(agreement.majority(list(self.votes.values())).label or "split")

    @property
    def margin(self) -> float:
        """Votes for the long answer less those for the short one, over all votes; from -1 to 1, NaN without votes."""
        counts = Counter(self.votes.values())
        return (counts["long"] - counts["short"]) / len(self.votes) if self.votes else math.nan

    @property
    def ratio(self) -> float:
        """Words of the long answer over those of the short one; NaN where one is not known or has no words."""
        return self.words_long / self.words_short if self.words_short > 0 and self.words_long > 0 else math.nan


def load(name: str) -> list[Pair]:
    """The pairs of a vote file, in file order; [] for "".

    CSV, JSONL or JSON with one row a vote (item, annotator or voter, vote) or one row an item with a column a voter
    (voter_01 …). A vote is long, short, tie, or A, B, in the questionnaire's Thai words too, with a column shown_as_a
    that says which answer stood as A. Words of both come from words_short and words_long, else from the texts in short
    and long, or answer_a and answer_b. ThaikitError names file, row and column of a fault.
    """
    if not name:
        return []
    path = params.expand(name, base=root())
    if not path.is_file():
        raise ThaikitError(f"votes {name!r}: no such file; name a CSV or JSONL file of votes, or leave it empty")
    rows = read_source(Source(files=path.name), path.parent).rows
    found: dict[str, Pair] = {}
    for row in rows:
        one = pair_of(row)
        before = found.get(one.item)
        if before is not None and (set(before.votes) & set(one.votes) or facts(before) != facts(one)):
            raise ThaikitError(
                f"{row.where()}: item {shorten(one.item)} has that vote, or other words, already; mend it"
            )
        found[one.item] = Pair(one.item, {**(before.votes if before else {}), **one.votes}, *facts(one))
    return list(found.values())


def facts(pair: Pair) -> tuple[float, float, str]:
    """What every row of an item says of it."""
    return pair.words_short, pair.words_long, pair.shown_as_a


def pair_of(row: Row) -> Pair:
    """One row as a pair with its vote or votes."""
    data = {str(key).strip().casefold(): value for key, value in row.data.items()}
    item = next((str(data[name]).strip() for name in ("item", "id") if not missing(data.get(name))), "")
    shown = str(data.get("shown_as_a") or "").strip().casefold()
    if not item or shown not in ("", "long", "short"):
        told = f"shown_as_a is {shown!r}; it is long or short" if item else "no item; each row names one"
        raise ThaikitError(f"{row.where()}: {told}")
    named = [str(data[name]).strip() for name in ("annotator", "voter") if not missing(data.get(name))]
    written = {named[0]: data.get("vote")} if named else {
        name: data[name] for name in data if PERSON_COLUMN.fullmatch(name)
    }  # fmt: skip
    if not written:
        raise ThaikitError(f"{row.where()}: no votes; columns annotator and vote, or one column a voter, are needed")
    votes = {name: choice(row, value, shown, name) for name, value in written.items() if not missing(value)}
    return Pair(item, votes, *words_of(row, data, shown), shown)


def missing(value: Any) -> bool:
    """Whether a cell is empty."""
    return value is None or str(value).strip() == ""


def choice(row: Row, value: Any, shown: str, voter: str) -> str:
    """A written vote as long, short or tie."""
    told = WRITTEN.get(str(value).strip().casefold().replace("ๆ ", "ๆ"))
    if told is None:
        known = "long, short, tie, A, B, or the questionnaire's Thai words"
        raise ThaikitError(f"{row.where(voter)}: vote {shorten(value)}; known are {known}")
    if told in ("a", "b") and not shown:
        raise ThaikitError(f"{row.where(voter)}: vote {shorten(value)} needs the column shown_as_a, long or short")
    if told in ("a", "b"):
        return shown if told == "a" else ({"long", "short"} - {shown}).pop()
    return told


def words_of(row: Row, data: Mapping[str, Any], shown: str) -> tuple[float, float]:
    """Words of the short and of the long answer."""
    found = []
    for name in ("short", "long"):
        told, texts = data.get(f"words_{name}"), data.get(name)
        if texts is None and shown:
            texts = data.get("answer_a" if shown == name else "answer_b")
        try:
            count = float(told) if not missing(told) else float(len(text.words(texts))) if texts else -1.0
            if not missing(told) and not 0 <= count < math.inf:
                raise ValueError(count)
        except (TypeError, ValueError) as error:
            raise ThaikitError(f"{row.where(f'words_{name}')}: {shorten(told)} is no number of words") from error
        found.append(count)
    return found[0], found[1]


# ------------------------------------------------------------------------------------------------ what they say


def tally(pairs: Sequence[Pair]) -> preference.Tally:
    """How many items go to each choice."""
    counts = Counter(pair.majority for pair in pairs)
    return preference.Tally(counts["long"], counts["short"], counts["tie"], counts["split"])


def published_tally() -> preference.Tally:
    """The counts of section 3.4: 31 long, 12 short, 7 ties."""
    book = published.book()
    names = ("long preferred", "short preferred", "ties")
    return preference.Tally(*(int(book.value("wangchan.text", name, "value")) for name in names))


def counts_table(pairs: Sequence[Pair]) -> pd.DataFrame:
    """One row for the votes read (if any) and one for the published ones: items, long, short, tie, split (no majority),
    win_rate of the long answer among the items that decide with its interval, p of the sign test."""
    lines = []
    for name, one in ([("these votes", tally(pairs))] if pairs else []) + [("published", published_tally())]:
        rate = one.win_rate()
        lines.append({"source": name, "items": one.n, "long": one.long, "short": one.short, "tie": one.tie,
                      "split": one.split, "win_rate": rate.value, "low": rate.low, "high": rate.high,
                      "p": one.p() if one.long + one.short else math.nan, "method": rate.method})  # fmt: skip
    return pd.DataFrame(lines)


def item_table(pairs: Sequence[Pair]) -> pd.DataFrame:
    """One row an item: votes for each choice, majority, margin, words of both answers and their ratio."""
    lines = []
    for pair in pairs:
        counts = Counter(pair.votes.values())
        lines.append({"item": pair.item, **{name: counts[name] for name in CHOICES}, "majority": pair.majority,
                      "margin": pair.margin, "words_short": known(pair.words_short),
                      "words_long": known(pair.words_long), "ratio": pair.ratio})  # fmt: skip
    columns = ["item", *CHOICES, "majority", "margin", "words_short", "words_long", "ratio"]
    return pd.DataFrame(lines, columns=columns)


def known(words: float) -> float:
    """A number of words, NaN where it is not told."""
    return words if words >= 0 else math.nan


def findings(pairs: Sequence[Pair], *, seed: int = SEED) -> pd.DataFrame:
    """What needs single votes, one row a quantity with value, interval, p and method; NaN with the reason without them.

    Share of votes for the long answer (items as clusters), votes for what was shown as A (position), agreement of the
    voters, the rank correlation of an item's margin with the ratio of lengths, and how often the longer answer wins.
    """
    rng = np.random.default_rng(seed)
    cast = [(pair, vote) for pair in pairs for vote in pair.votes.values()]
    rows: list[tuple[str, Estimate, float]] = [
        ("votes for the long answer, ties as half", share([(p.item, SCORE[v]) for p, v in cast]), math.nan),
        ("votes for the answer shown as A", share([(p.item, float(v == p.shown_as_a)) for p, v in cast
                                                   if p.shown_as_a and v != "tie"]), math.nan),
    ]  # fmt: skip
    voters = list(dict.fromkeys(voter for pair in pairs for voter in pair.votes))
    labels = [[pair.votes.get(voter) for voter in voters] for pair in pairs]
    named = {"agreement": "pairs of voters that agree", "fleiss_kappa": "Fleiss' kappa",
             "alpha": "Krippendorff's alpha", "ac1": "Gwet's AC1"}  # fmt: skip
    agreed = agreement.coefficients(labels, categories=CHOICES)
    rows += [(name, agreed[key], math.nan) for key, name in named.items()]
    ratios, margins = [pair.ratio for pair in pairs], [pair.margin for pair in pairs]
    follows, p = preference.rank_correlation(np.log2(ratios) if ratios else [], margins, rng=rng)
    won = [{"long": 1.0, "short": 0.0}.get(pair.majority, math.nan) for pair in pairs]
    rows += [("margin against ratio of lengths", follows, p),
             ("longer answer wins", preference.longer_wins(ratios, won), math.nan)]  # fmt: skip
    lines = [(name, e.value, e.low, e.high, p, e.n, e.method if pairs else NO_VOTES) for name, e, p in rows]
    return pd.DataFrame(lines, columns=list(COLUMNS))


SCORE = {"long": 1.0, "tie": 0.5, "short": 0.0}


def share(values: Sequence[tuple[str, float]]) -> Estimate:
    """The mean of votes, items as clusters."""
    if not values:
        return Estimate(math.nan, math.nan, math.nan, 0, "none: not told")
    return stats.clustered_interval([value for _, value in values], [item for item, _ in values])


def headline(pairs: Sequence[Pair]) -> dict[str, Any]:
    """The long answer's win rate, here and as published."""
    found = {"published": published_tally().win_rate().as_dict()}
    return {"long_wins": ({"votes": tally(pairs).win_rate().as_dict()} if pairs else {}) | found}
