"""Answers × judge → four verdicts an answer (WangchanLion paper, section 3.3): asked, or read from replies on file.

A reply without four clear verdicts is asked for again up to the judge's `tries`, then left out of every count and
counted; so are refused, filtered, truncated and failed ones. No failure becomes a verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thaikit import ThaikitError, judging, params, verdicts
from thaikit.chat import OUTCOMES, Ask, Message, Reply, Sampling, ended
from thaikit.judging import NOT_JUDGED
from thaikit.rowlog import RowLog
from thaikit.shapes import JudgeEntry, PromptEntry
from thaikit.verdicts import QUESTIONS

REGENERATED = re.compile(r"#(?:r[0-9]+|a[0-9]+|r[0-9]+\.a[0-9]+)$")  # what `chat.Ask.key` puts behind an id


@dataclass(frozen=True)
class Answered:
    """One answer to judge: its item, the model that gave it, and the texts that the judge sees. `outcome` is the
    answer's own, `passage` what answers on one text share, `words` by PyThaiNLP, NaN where the text is not known."""

    item: str
    model: str
    context: str = ""
    question: str = ""
    references: tuple[str, ...] = ()
    answer: str = ""
    passage: str = ""
    outcome: str = "ok"
    words: float = math.nan

    @property
    def id(self) -> str:
        """The id of its request and row: one item may be answered by several models."""
        return f"{self.item}@{self.model}"


@dataclass(frozen=True)
class MrcJudge:
    """A judge file of the four questions with its prompt, checked."""

    name: str
    entry: JudgeEntry
    prompt: PromptEntry

    @classmethod
    def read(cls, name: str) -> MrcJudge:
        """The judge of params/judges/<name>.yaml; ThaikitError for a rule or a prompt of another kind."""
        entry = params.load("judges", name, JudgeEntry)
        return cls(name, entry, params.load("prompts", entry.prompt, PromptEntry)).checked()

    def checked(self) -> MrcJudge:
        """The judge itself if rule and prompt can be used."""
        check_rule(self.entry.rule, where=f"judge {self.name}")
        if self.entry.variant:
            told = f"variant is {self.entry.variant!r}"
            raise ThaikitError(f"judge {self.name}: {told}; the four questions have none, name another prompt file")
        try:
            self.messages(Answered("", ""))
        except ValueError as error:
            raise ThaikitError(f"judge {self.name}, prompt {self.entry.prompt}: {error}") from error
        return self

    @property
    def sampling(self) -> Sampling:
        """How its replies are drawn."""
        return self.entry.sampling.drawn()

    def messages(self, case: Answered) -> tuple[Message, ...]:
        """The conversation about an answer (`judging.turns`); the first reference is shown."""
        places = {
            "context": case.context,
            "question": case.question,
            "reference_answer": case.references[0] if case.references else "",
            "prediction_answer": case.answer,
        }
        return judging.turns(self.prompt, places)

    def facts(self) -> dict[str, Any]:
        """What run.json says of it."""
        return judging.facts(self.name, self.entry, self.prompt)


def check_rule(rule: str, *, where: str) -> None:
    """ThaikitError for a rule that `verdicts.read` does not know."""
    if rule not in verdicts.RULES:
        hint = params.nearest(rule, list(verdicts.RULES))
        raise ThaikitError(f"{where}: rule is {rule!r}{hint}; allowed are {', '.join(verdicts.RULES)}")


def outcome_of(reply: Reply, read: verdicts.Reading) -> str:
    """The outcome of a judge's reply after reading (`judging.settled`)."""
    return judging.settled(reply, read=read.verdicts is not None)


def judge_all(
    judge: MrcJudge, cases: Sequence[Answered], model: Any, *, replies: RowLog, log: RowLog, tell: Callable[[str], None]
) -> None:
    """Judge every answer and append one row each to `log`; answers that never came are rows too, not asked.

    `model` and `replies` as `judging.rounds` takes them. ThaikitError where an item of a model stands twice.
    """
    by_id = {case.id: (index, case) for index, case in enumerate(cases)}
    if len(by_id) != len(cases):
        raise ThaikitError(f"judge {judge.name}: an item stands twice among {len(cases)} answers; ids must be unique")
    for index, case in by_id.values():
        if case.outcome in NOT_JUDGED and case.id not in log.ids:
            log.append(judgement(case, [], index=index, rule=judge.entry.rule, judge=judge.name))
    asks = (Ask(case.id, judge.messages(case)) for case in cases if case.outcome not in NOT_JUDGED)

    def outcome(reply: Reply) -> str:
        return outcome_of(reply, verdicts.read(reply.text, rule=judge.entry.rule))

    for ask, said in judging.rounds(asks, model, judge.entry, outcome=outcome, replies=replies, tell=tell):
        if ask.id not in log.ids:
            index, case = by_id[ask.id]
            log.append(judgement(case, said, index=index, rule=judge.entry.rule, judge=judge.name))


def judgement(case: Answered, said: Sequence[Reply], *, index: int, rule: str, judge: str) -> dict[str, Any]:
    """The row of an answer: the last reply as it came, q1 to q4 (1, 0, None where the outcome is not ok), what was
    wrong (`fault`), and what it cost (`judging.account`)."""
    last = said[-1] if said else Reply(outcome="failed")
    read = verdicts.read(last.text, rule=rule)
    outcome = outcome_of(last, read)
    given = read.verdicts if outcome == "ok" else None
    four = dict(zip(QUESTIONS, map(int, given) if given else [None] * len(QUESTIONS), strict=True))
    return {
        "id": case.id, "index": index, "item": case.item, "model": case.model, "judge": judge, **four,
        "outcome": outcome if said else case.outcome, "asked": bool(said),
        "fault": read.fault if outcome in ("unreadable", "truncated") else "",
        "passage": case.passage or f"item {case.item}",
        "question": case.question, "references": list(case.references), "answer": case.answer,
        "answer_outcome": case.outcome, "words": case.words, "reply": last.text, "rule": rule,
        **judging.account(said),
    }  # fmt: skip


def read_replies(
    rows: Iterable[Mapping[str, Any]], cases: Mapping[str, Answered], *, column: str, rule: str, judge: str, where: str
) -> list[dict[str, Any]]:
    """Judgement rows from raw replies on file, without a judge.

    A row's `id` (or `question_id`, `item`; without any, row-N) is ITEM or ITEM@MODEL, with #a1, #a2 … for
    regenerations, as the kit logs them: the last one counts.
    `column` holds the raw text; finish, outcome, refusal, error and token counts are taken where they stand. `cases`
    are the answers by id; one that is not there has no text and NaN words. ThaikitError without such a column, for a
    text that is none, for an id that stands twice.
    """
    check_rule(rule, where=where)
    said: dict[str, dict[str, Reply]] = {}
    for number, row in enumerate(rows, 1):
        key = str(next((row[name] for name in ("id", "question_id", "item") if name in row), f"row-{number}"))
        name = REGENERATED.sub("", key)
        if key in said.get(name, {}):
            raise ThaikitError(f"{where}, row {number}: id {key!r} stands there twice; keep one of the rows")
        said.setdefault(name, {})[key] = reply_of(row, column, where=f"{where}, row {number} (id {key})")
    found = []
    for index, (name, replies) in enumerate(said.items()):
        item, _, model = name.partition("@")
        case = cases.get(name) or (None if model else cases.get(item)) or Answered(item, model or "answers")
        found.append(judgement(case, list(replies.values()), index=index, rule=rule, judge=judge))
    return found


def reply_of(row: Mapping[str, Any], column: str, *, where: str) -> Reply:
    """A row of a file as the reply it holds."""
    if column not in row:
        hint = params.nearest(column, list(map(str, row)))
        raise ThaikitError(f"{where}: no column {column!r}{hint}; there are {', '.join(map(str, row))}")
    text = row[column]
    if text is not None and not isinstance(text, str):
        raise ThaikitError(f"{where}, field {column}: found {type(text).__name__}, the raw reply is a text")
    told: dict[str, Any] = {key: str(row.get(key) or "") for key in ("finish", "refusal", "error", "model")}
    told |= {key: row[key] for key in ("prompt_tokens", "completion_tokens") if isinstance(row.get(key), int)}
    seconds = row.get("seconds")
    told["seconds"] = float(seconds) if isinstance(seconds, int | float) else 0.0
    outcome = row.get("outcome")
    named = outcome if outcome in OUTCOMES else ended(text or "", told["finish"], refusal=told["refusal"])
    return Reply(text=text or "", outcome=named, **told)
