"""A judge put to the test in a leaf: answers changed in ways of known sign, the same answer again, a frozen panel."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from thaikit import ThaikitError, bench_card, chat, panels, records, shifts
from thaikit.inputs import ENGLISH, answers_path
from thaikit.judge import Case, Judge, judge_all
from thaikit.panels import PanelEntry
from thaikit.params import expand
from thaikit.records import Run
from thaikit.tasks import thaicli, thaicli_answer
from thaikit.tasks.thaicli import CliData, CliItem

SIDES = ("chosen", "rejected")
SHOWN = ("id", "shift", "answer", "reply", "outcome", "score", "question", "chosen", "rejected")


@dataclass(frozen=True)
class Base:
    """One answer that is changed: its item, where it comes from (chosen, rejected, or a model), and the same in
    English where that is known."""

    item: CliItem
    source: str
    text: str
    english: str = ""

    @property
    def id(self) -> str:
        """The id under which it is judged unchanged."""
        return f"{self.item.id}@{self.source}"

    @property
    def kind(self) -> str:
        """What the expected sign of a change goes by."""
        return self.source if self.source in SIDES else ""


@dataclass
class Bench:
    """A judge, the answers it is tried on, and their leaf; the judge is opened when the first reply is needed."""

    run: Run
    judge: Judge
    data: CliData
    bases: tuple[Base, ...]
    panel: PanelEntry | None
    repeats: int = 3
    repeat_items: int = 8
    max_cost: float = 0.0

    @cached_property
    def model(self) -> Any:
        """What replies, ready to be asked."""
        shared: dict[str, Any] = {"suite_dir": self.run.purse, "closing": self.run.closing}
        return chat.open_chat(self.judge.entry.model, max_cost=self.max_cost, **shared)

    def cases(self) -> list[Case]:
        """Everything that is judged: each answer as it is, under each change, some of them again, then the panel."""
        found = [case_of(base) for base in self.bases]
        found += [case for base in self.bases for name in shifts.SHIFTS if (case := shifted(base, name)) is not None]
        again = spread_out(self.bases, self.repeat_items)
        found += [case_of(base, repeat=number) for base in again for number in range(1, self.repeats)]
        if self.panel is not None:
            found += panels.cases(self.panel, run=f"{self.run.out_dir} {self.run.begun}")
        return found

    def planned(self) -> pd.DataFrame:
        """How often each change can be made, by where the answers come from, and what it does."""
        lines = []
        for name, one in shifts.SHIFTS.items():
            made = Counter(base.source for base in self.bases if shifted(base, name) is not None)
            counts = {source: made[source] for source in dict.fromkeys(base.source for base in self.bases)}
            lines.append({"shift": name, "says": one.says, **counts})
        return pd.DataFrame(lines)

    def judged(self) -> list[dict[str, Any]]:
        """Every judgement, in the order of the cases; read back where the leaf is closed."""
        if self.run.closed:
            return records.read_rows(self.run.out_dir / "rows" / "judgements.jsonl")
        replies, log, tell = self.run.log("replies"), self.run.log("judgements"), records.ticker(self.judge.name)
        judge_all(self.judge, self.cases(), self.model, replies=replies, log=log, tell=tell)
        return log.rows()

    def items(self, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
        """One answer under every change as a person reads it: the judge's raw reply and what was read from it.

        Texts of a sensitive theme, and of other data than the bundled samples, are replaced by a dash.
        """
        there = [row for row in rows if row["kind"] in ("base", "shift")]
        first_one = next((row for row in there if row["theme"] not in thaicli.SENSITIVE), there[0])
        one = [row for row in there if all(row[key] == first_one[key] for key in ("item", "source"))]
        shown = list(thaicli_answer.visible(one, self.data, first=len(one)))
        return pd.DataFrame(shown)[list(SHOWN)]

    def drift(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What the panel says; see `panels.drift`. {} without a panel."""
        return panels.drift(self.panel, self.judge.name, rows) if self.panel else {}

    def panel_table(self, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
        """The panel's scores, frozen and now."""
        return pd.DataFrame(panels.table(self.panel, self.judge.name, rows) if self.panel else [])

    def finish(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Close the leaf; returns run.json. The headline holds each change of score and the judge's own spread; the
        drift on the panel is in `drift`."""
        if self.run.closed:
            return self.run.record
        card = bench_card.bias_card(rows).to_dict("records")
        lines = {f"{one['shift']} on {one['source']}": bench_card.headline(one) for one in card}
        return self.run.finish(
            headline={"judge_bench": {**lines, "within_judge_sd": bench_card.spread(rows)["sd"]}},
            judge=self.judge.facts(),
            model=self.model.facts(),
            drift=self.drift(rows),
            spread=bench_card.spread(rows),
            outcomes=dict(Counter(row["outcome"] for row in rows).most_common()),
            repeats=self.repeats,
            margin=bench_card.MARGIN,
            **self.data.facts(),
        )


def load(
    run: Run,
    *,
    judge: str,
    tasks: str,
    data: str = "",
    items: int = 14,
    bases: Sequence[str] = SIDES,
    answers: str = "",
    repeats: int = 3,
    repeat_items: int = 8,
    panel: str = "",
    max_cost: float = 0.0,
) -> Bench:
    """The bench of a judge. `items` of the task file (0: all) in turn over themes and formats; `bases` are chosen,
    rejected or both; `answers`, a leaf of 20_thaicli_answer or a file, adds a model's answers to them; `repeats` is how
    often `repeat_items` of the answers are judged in all.

    ThaikitError for a setting that is not allowed.
    """
    unknown = [name for name in bases if name not in SIDES]
    if unknown or not (bases or answers):
        raise ThaikitError(f"bases is {list(bases)!r}; allowed are chosen and rejected, and none only with answers")
    if min(repeats, repeat_items + 1) < 1:
        raise ThaikitError(f"repeats is {repeats} and repeat_items {repeat_items}; at least 1 and 0 are needed")
    everything, some = thaicli.load(tasks, data=data), thaicli.load(tasks, data=data, limit=items)
    english = read_english(everything.place)
    found = [
        Base(item, side, getattr(item, side), english.get((item.id, side), "")) for side in bases for item in some.items
    ]
    if answers:
        there = answers_path("judge_bench", {"answers": answers}) or Path(answers)
        found += model_bases(there, everything, {item.id for item in some.items})
    if not any(base.text.strip() for base in found):
        raise ThaikitError(f"answers {answers}: none of the answers to the {len(some.items)} items can be changed")
    chosen = panels.read(panel) if panel else None
    return Bench(run, Judge.read(judge), some, tuple(found), chosen, repeats, repeat_items, max_cost)


def read_english(place: str) -> dict[tuple[str, str], str]:
    """(item, side) → the answer in English, of the file english.jsonl beside the rows; {} where there is none."""
    path = expand(place, base=records.root()) / ENGLISH
    if not path.is_file():
        return {}
    try:
        return {(row["id"], side): str(row[side]) for row in records.read_rows(path) for side in SIDES}
    except KeyError as error:
        raise ThaikitError(f"{path}: a row lacks {error}; each row holds id, chosen and rejected") from error


def model_bases(path: Path, data: CliData, wanted: set[str]) -> list[Base]:
    """A model's answers to the items in `wanted`, those that came (filtered and failed ones are not judged)."""
    run = path / "run.json"
    name = json.loads(run.read_text(encoding="utf-8"))["params"]["model"] if run.is_file() else path.stem
    if name in SIDES:
        raise ThaikitError(f"answers {path}: its name is {name!r}, which means an item's own answer; rename the file")
    rows = thaicli_answer.read_answers(path, model=name, data=data)
    items = {item.id: item for item in data.items}
    kept = [row for row in rows if row["item"] in wanted and row["answer_outcome"] not in ("filtered", "failed")]
    return [Base(items[row["item"]], name, row["answer"]) for row in kept]


def case_of(base: Base, *, repeat: int = 0) -> Case:
    """An unchanged answer to be judged."""
    item = base.item
    told = panels.told_of(item, source=base.source, kind="repeat" if repeat else "base")
    return Case(base.id, base.text, item.question, item.chosen, item.rejected, told, repeat=repeat)


def shifted(base: Base, name: str) -> Case | None:
    """An answer under a change, None where the change cannot be made."""
    text = shifts.apply(name, base.text, english=base.english)
    if text is None:
        return None
    chosen, rejected = base.item.chosen, base.item.rejected
    good, bad = (rejected, chosen) if name == "swap" else (chosen, rejected)
    told = panels.told_of(base.item, source=base.source, kind="shift", shift=name)
    return Case(f"{base.id}/{name}", text, base.item.question, good, bad, told)


def spread_out(bases: Sequence[Base], count: int) -> list[Base]:
    """`count` of the bases, evenly over their order."""
    if count >= len(bases):
        return list(bases)
    return [bases[place * len(bases) // count] for place in range(count)]
