"""ThaiCLI judged: one model's answers put to one judge, and where asked for the judge gate (the items' own chosen and
rejected answers put to it in the same way)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from thaikit import ThaikitError, chat, inputs, money, params, records
from thaikit.judge import Case, Judge, judge_all
from thaikit.records import Run, read_leaf
from thaikit.tasks import thaicli_answer, thaicli_gate, thaicli_summary
from thaikit.tasks.thaicli import SENSITIVE, CliData, CliItem, load

SAME_JUDGE = ("model", "prompt_sha256", "rule", "variant", "tries", "sampling")


@dataclass
class Judging:
    """A judge's work on its way into a leaf. `answers` are rows with their items; `place` is where they came from."""

    run: Run
    judge: Judge
    model_name: str
    data: CliData
    answers: Sequence[Mapping[str, Any]]
    place: Path | None = None
    gate: bool = False
    max_cost: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def asked(self) -> Any:
        """The judge's model, ready to be asked."""
        shared: dict[str, Any] = {"suite_dir": self.run.purse, "closing": self.run.closing}
        return chat.open_chat(self.judge.entry.model, max_cost=self.max_cost, **shared)

    def cases(self) -> list[Case]:
        """The model's answers as cases, in item order; the id says whose answer it is."""
        return [answer_case(row, self.model_name) for row in self.answers]

    def gate_cases(self) -> list[Case]:
        """Each answered item's own chosen and rejected answer as if a model had given it."""
        by_id = {item.id: item for item in self.data.items}
        items = [by_id[row["item"]] for row in self.answers]
        return [own_case(item, source) for source in ("chosen", "rejected") for item in items]

    def cost(self) -> pd.DataFrame:
        """What is still to be paid before the first reply: requests, tokens, money where prices are known; the high
        line has every try of every case."""
        if self.run.closed:
            return pd.DataFrame([{"case": "none", "requests": 0, "basis": "the leaf is closed, nobody is asked"}])
        cases = [*self.cases(), *(self.gate_cases() if self.gate else [])]
        asks = [self.judge.ask(case) for case in cases if not case.lost]
        rules: dict[str, Any] = {"sampling": self.judge.sampling, "tries": self.judge.entry.tries}
        return money.plan(self.asked, asks, log=self.run.log("replies"), **rules)

    def conversation(self, **options: bool) -> str:
        """A case as the judge gets it, of the first theme whose texts may be shown; dashes where none may."""
        open_ones = [row for row in self.answers if row["theme"] not in SENSITIVE] or self.answers
        row = next(thaicli_answer.visible(open_ones, self.data, first=1, **options))
        return "\n\n".join(f"[{turn['role']}]\n{turn['content']}" for turn in self.judge.messages(answer_case(row, "")))

    def score(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """(the model's judgements, those of the gate), each in item order, every reply on disk before it is read."""
        if self.run.closed:
            return self.stored("judgements"), self.stored("gate")
        log, tell = self.run.log("judgements"), records.ticker(f"{self.judge.name} {self.model_name}")
        replies = self.run.log("replies")
        judge_all(self.judge, self.cases(), self.asked, replies=replies, log=log, tell=tell)
        if not self.gate:
            return log.rows(), []
        gate = self.run.log("gate")
        judge_all(self.judge, self.gate_cases(), self.asked, replies=replies, log=gate, tell=tell)
        return log.rows(), gate.rows()

    def sentences(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """What must be said in words: what the rows tell, and items without an answer, which are in no mean."""
        left, all_of = len(self.data.items) - len(self.answers), len(self.data.items)
        more = [f"{left} of {all_of} items have no answer here and are in no mean."] if left else []
        return [*thaicli_summary.sentences(rows), *more]

    def stored(self, name: str) -> list[dict[str, Any]]:
        """A closed leaf's rows, none where there is no such file."""
        path = self.run.out_dir / "rows" / f"{name}.jsonl"
        return records.read_rows(path) if path.exists() else []

    def finish(self, rows: Sequence[Mapping[str, Any]], gate: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Close the leaf with the ThaiCLI headline and all that a reader must know of it; returns run.json."""
        if self.run.closed:
            return self.run.record
        lines = thaicli_gate.gate(gate)
        return self.run.finish(
            headline={"thaicli": thaicli_summary.headline(rows)},
            model=self.answered_by(), judge=self.judge.facts(), judge_model=self.asked.facts(),
            cells=thaicli_summary.cells(rows), counts=thaicli_summary.counts(rows),
            outcomes=thaicli_summary.outcomes(rows), told=self.sentences(rows),
            gate=lines, gate_counts=thaicli_summary.counts(gate) if gate else {},
            way=thaicli_gate.way(rows, gate) if gate else [],
            gate_marked=[line["theme"] for line in lines if line["format"] == "both" and line["marked"]],
            unanswered=len(self.data.items) - len(self.answers),
            **self.data.facts(),
        )  # fmt: skip

    def answered_by(self) -> dict[str, Any]:
        """What run.json says of the model that answered: its facts from the answers' leaf, else its file's."""
        if self.place is not None and self.place.is_dir():
            return dict(read_leaf(self.place).run.get("model") or {})
        entry = params.load("models", self.model_name, params.ModelEntry)
        return {"name": self.model_name, "source": entry.source, "rehearsal": entry.rehearsal, "note": entry.note}


def start(
    run: Run, *, model: str, judge: str, tasks: str, data: str = "", gate: bool = False, max_cost: float = 0.0
) -> Judging:
    """A judge file, the items and the answers that the leaf's parameters lead to, read and checked; nobody is asked."""
    if model in ("chosen", "rejected"):
        raise ThaikitError(f"model is {model!r}, which means an item's own answer here; give its file another name")
    items = load(tasks, data=data)
    place = inputs.answers_path("thaicli_judge", run.params)
    answers = thaicli_answer.read_answers(place, model=model, data=items)
    return Judging(run, Judge.read(judge), model, items, answers, place, gate, max_cost)


def answer_case(row: Mapping[str, Any], model: str) -> Case:
    """A model's answer as a case."""
    keys = ("item", "item_sha256", "format", "theme", "answer_outcome", "answer_finish")
    told = {"task": "thaicli", "source": model, **{key: row[key] for key in keys}}
    return Case(f"{row['item']}@{model}", row["answer"], row["question"], row["chosen"], row["rejected"], told)


def own_case(item: CliItem, source: str) -> Case:
    """An item's own chosen or rejected answer as a case."""
    told = {
        "task": "thaicli", "source": source, "item": item.id, "item_sha256": item.sha256(), "format": item.format,
        "theme": item.theme, "answer_outcome": "ok", "answer_finish": "",
    }  # fmt: skip
    return Case(f"{item.id}@{source}", getattr(item, source), item.question, item.chosen, item.rejected, told)


# ------------------------------------------------------------------------------------------------- other leaves


def against(
    run: Run, rows: Sequence[Mapping[str, Any]], leaves: Sequence[str]
) -> dict[str, Sequence[Mapping[str, Any]]]:
    """This leaf's rows and those of other closed leaves of the same judge, by model; ThaikitError for another judge."""
    found: dict[str, Sequence[Mapping[str, Any]]] = {str(run.params["model"]): rows}
    mine = Judge.read(str(run.params["judge"])).facts()
    for place in leaves:
        leaf = read_leaf(params.expand(place, base=records.root()))
        other = leaf.run.get("judge") or {}
        differs = [key for key in SAME_JUDGE if other.get(key) != mine[key]]
        if differs:
            raise ThaikitError(
                f"{leaf.path}: judged with another {differs[0]} ({other.get(differs[0])!r}, here "
                f"{mine[differs[0]]!r}); models are compared under one judge only"
            )
        names = (str(leaf.run["params"]["model"]), leaf.name, str(leaf.path))
        found[next((name for name in names if name not in found), names[-1])] = records.read_rows(
            leaf.path / "rows" / "judgements.jsonl"
        )
    return found


# ------------------------------------------------------------------------------------------------- for a page


def score_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The headline as a table: average and each format by the paper's rule, over `ok`, coverage and bounds."""
    told = thaicli_summary.headline(rows)
    lines = []
    for name in ("average", "factoid", "instruction"):
        part = rows if name == "average" else thaicli_summary.of(rows, name)
        low, high = (told["lowest"], told["highest"]) if name == "average" else thaicli_summary.bounds(part)
        paper, ok = told[name], told[f"{name}_ok"]
        line = {"score": name, **{key: paper[key] for key in ("value", "low", "high", "n")}, "mean_ok": ok["value"]}
        lines.append(
            line | thaicli_summary.coverage(part) | {"lowest": low, "highest": high, "method": paper["method"]}
        )
    return pd.DataFrame(lines)


def cell_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Format by theme: mean, interval, n, mean over `ok`, coverage, and a column for each outcome that occurs."""
    lines = list(unfolded(thaicli_summary.cells(rows)))
    kept = ["format", "theme", "value", "low", "high", "n", "mean_ok", "n_ok", "coverage", "lowest", "highest"]
    extra = list(thaicli_summary.outcomes(rows))
    return pd.DataFrame(lines).reindex(columns=[*kept, *extra]).fillna(dict.fromkeys(extra, 0))


def unfolded(lines: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each line with its outcome counts as columns."""
    for line in lines:
        yield {**{key: value for key, value in line.items() if key != "outcomes"}, **line["outcomes"]}


def item_table(rows: Sequence[Mapping[str, Any]], data: CliData, **options: Any) -> pd.DataFrame:
    """Judgements as a person reads them: the three answers, the judge's raw text, what was read from it. Texts are
    hidden as `thaicli_answer.visible` says."""
    shown = list(thaicli_answer.visible(rows, data, **options))
    columns = ["item", "theme", "question", "answer", "chosen", "rejected", "reply", "outcome", "score", "explanation",
               "tries", "answer_tags"]  # fmt: skip
    return pd.DataFrame(shown).reindex(columns=columns)


def compare_table(models: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """Every two models on the items that both have (thaicli_summary.compare), or one line that says there is one."""
    lines = thaicli_summary.compare(models, on_shared=True)
    return pd.DataFrame(lines or [{"a": name, "why": "no other leaf is named as against"} for name in models])


def odd_first(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows with one of each outcome, tag count and refusal first, so that a short table shows what can happen."""
    seen: set[tuple[Any, ...]] = set()
    first, rest = [], []
    for row in rows:
        kind = (row["outcome"], row["score_tags"] > 1, row["answer_tags"] > 0, row["tries"] > 1)
        (rest if kind in seen else first).append(row)
        seen.add(kind)
    return first + thaicli_answer.by_theme(rest)
