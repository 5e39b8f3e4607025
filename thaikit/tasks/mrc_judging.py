"""The four questions on their way into a leaf: answers put to a judge, or replies read from a file."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from thaikit import ThaikitError, chat, f1, params, records
from thaikit.judging import NOT_JUDGED
from thaikit.params import ModelEntry, expand
from thaikit.records import Run, root
from thaikit.tasks import mrc_read, mrc_verdicts
from thaikit.tasks.load import read_file
from thaikit.tasks.mrc_judge import Answered, MrcJudge, judge_all, judgement, read_replies
from thaikit.tasks.mrc_verdicts import Rows


@dataclass
class Judging:
    """The four questions on their way into a leaf: answers and a judge, or a file of replies (`judgements`)."""

    run: Run
    judge: MrcJudge
    answers: Sequence[Answered]
    judgements: Path | None = None
    reply_column: str = "text"
    max_cost: float = 0.0
    shipped: bool = False
    sets: Sequence[mrc_read.Answers] = ()

    @cached_property
    def asked(self) -> Any:
        """The judge's model, ready to be asked."""
        shared: dict[str, Any] = {"suite_dir": self.run.purse, "closing": self.run.closing}
        return chat.open_chat(self.judge.entry.model, max_cost=self.max_cost, **shared)

    def conversation(self, *, gallery: bool = False) -> str:
        """What the judge gets about the first answer; its places unfilled where texts may not be shown, "" where
        replies are read from a file."""
        if self.judgements is not None or not self.answers:
            return ""
        if not gallery and not self.shipped:
            return "\n\n".join(filter(None, (self.judge.prompt.system, self.judge.prompt.user)))
        return "\n\n".join(f"[{turn['role']}]\n{turn['content']}" for turn in self.judge.messages(self.answers[0]))

    def score(self) -> list[dict[str, Any]]:
        """One row an answer, in item order; every reply is on disk before it is read."""
        if self.run.closed:
            return records.read_rows(self.run.out_dir / "rows" / "judgements.jsonl")
        log = self.run.log("judgements")
        if self.judgements is None:
            tell = records.ticker(f"{self.judge.name} four questions")
            judge_all(self.judge, self.answers, self.asked, replies=self.run.log("replies"), log=log, tell=tell)
        else:
            cases = {key: case for case in self.answers for key in (case.id, case.item)}
            rows, name = read_file(self.judgements, self.judgements.name), self.judgements.name
            said = read_replies(rows, cases, column=self.reply_column, rule=self.judge.entry.rule,
                                judge=self.judgements.stem, where=name)  # fmt: skip
            self.check_ids(said, name)
            said += self.without_reply({row["id"] for row in said}, name)
            log.extend([row for row in said if row["id"] not in log.ids])
        return log.rows()

    def check_ids(self, said: Rows, name: str) -> None:
        """ThaikitError for a reply to an answer that is none of those named, another model's aside."""
        known, models = {case.id for case in self.answers}, {"answers", *(case.model for case in self.answers)}
        strange = [row["id"] for row in said if known and row["id"] not in known and row["model"] in models]
        if strange:
            told = "none of the answers has this id; name the answers that were judged, or none"
            raise ThaikitError(f"{name}, id {strange[0]}: {told}")

    def without_reply(self, judged: Collection[str], name: str) -> list[dict[str, Any]]:
        """A row without verdicts for each answer that the file holds no reply to: it lowers coverage."""
        found, told = [], {"rule": self.judge.entry.rule, "judge": Path(name).stem}
        for case in self.answers:
            if case.id not in judged:
                row = judgement(case, [], index=len(judged) + len(found), **told)
                lost = {"outcome": "failed", "fault": "no reply on file", "error": f"no reply in {name}"}
                found.append(row if case.outcome in NOT_JUDGED else row | lost)
        return found

    def finish(self, rows: Rows) -> dict[str, Any]:
        """Close the leaf with each question's share of agreement; returns run.json. A reply that failed on the way
        keeps the leaf open, to be asked for again, unless it failed for good or was read from a file so."""
        if self.run.closed:
            return self.run.record
        told = {"judgements": params.shown(self.judgements)} if self.judgements else {"judge_model": self.asked.facts()}
        return self.run.finish(
            headline={"mrc_judge": mrc_verdicts.headline(rows)},
            accept_failed=self.judgements is not None,
            judge=self.judge.facts(),
            answers=[one.facts() for one in self.sets],
            outcomes=mrc_verdicts.outcomes(rows),
            faults=mrc_verdicts.faults(rows),
            cost=mrc_verdicts.cost(rows, self.judge),
            models=list(dict.fromkeys(row["model"] for row in rows)),
            **told,
        )


def start(
    run: Run, *, judge: str, judgements: str = "", reply_column: str = "text", rule: str = "", max_cost: float = 0.0
) -> Judging:
    """The judge file and the answers that the leaf's parameters lead to, read and checked; nobody is asked.

    With `judgements` the answers are those that `answers` names, else the same file where it holds them too.
    """
    chosen = MrcJudge.read(judge)
    if rule:
        entry = params.changed(chosen.entry, {"rule": rule}, where="rule")
        chosen = MrcJudge(chosen.name, entry, chosen.prompt).checked()
    if not judgements:
        found = [given_answers(run.params)]
        return Judging(run, chosen, answered(found), max_cost=max_cost, shipped=found[0].shipped, sets=found)
    path = expand(judgements, base=root())
    path = path / "rows" / "replies.jsonl" if path.is_dir() else path
    if not path.is_file():
        raise ThaikitError(f"judgements {judgements!r}: no such file; name a CSV or JSONL file with raw replies")
    named = run.params.get("answers") or run.params.get("suite")
    sets = [given_answers(run.params)] if named else own(path)
    shipped = judgements.startswith("samples:")
    return Judging(run, chosen, answered(sets), path, reply_column, shipped=shipped, sets=sets)


def given_answers(given: Mapping[str, Any]) -> mrc_read.Answers:
    """The answers that `answers` or the suite lead to; without either what a replay model repeats of the samples."""
    model = str(given.get("model") or mrc_read.BUNDLED)
    if given.get("answers") or given.get("suite"):
        return mrc_read.find("mrc_judge", given)[0]
    if params.load("models", model, ModelEntry).kind != "replay":
        raise ThaikitError(f"model {model}: its answers are not told; name a leaf of 30 as answers, or a suite")
    return mrc_read.bundled(model)


def own(path: Path) -> list[mrc_read.Answers]:
    """The answers that a file of replies holds beside them; none where it has no such columns."""
    first = next(iter(read_file(path, path.name)), {})
    there = any(name in first for name in mrc_read.PREDICTIONS) and "references" in first
    return [mrc_read.from_file(path)] if there else []


def answered(found: Sequence[mrc_read.Answers]) -> list[Answered]:
    """Answers as the judge needs them, with their words."""
    cut, cases = f1.Segmenter(), []
    for answers in found:
        passages = mrc_read.passages(answers.rows)
        for row, passage in zip(answers.rows, passages, strict=True):
            words = float(cut.count(row["answer"])) if row["outcome"] not in mrc_read.NOT_SCORED else math.nan
            cases.append(Answered(row["id"], answers.model, row["context"], row["question"], tuple(row["references"]),
                                  row["answer"], passage, row["outcome"], words))  # fmt: skip
    return cases
