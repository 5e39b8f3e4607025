"""ThaiCLI's judge: the texts of a case put into its prompt, a score read, each case ended in one outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thaikit import ThaikitError, judging, params, reading
from thaikit.chat import Ask, Message, Reply, Sampling
from thaikit.judging import NOT_JUDGED
from thaikit.rowlog import RowLog
from thaikit.shapes import JudgeEntry, PromptEntry

PLACES = ("MODEL_ANSWER", "QUESTION", "CHOSEN", "REJECTED")


@dataclass(frozen=True)
class Case:
    """One thing to judge: an `id` that is unique in the leaf, the four texts, and what its row says beside them.
    `repeat` counts independent repetitions (0 the first)."""

    id: str
    answer: str
    question: str
    chosen: str
    rejected: str
    told: Mapping[str, Any] = field(default_factory=dict)
    repeat: int = 0
    run: str = ""

    @property
    def key(self) -> str:
        """The id of its row."""
        return Ask(self.id, "", repeat=self.repeat).key

    @property
    def lost(self) -> bool:
        """Whether there is no answer to judge."""
        return self.told.get("answer_outcome") in NOT_JUDGED


@dataclass(frozen=True)
class Judge:
    """A judge file with its prompt, checked."""

    name: str
    entry: JudgeEntry
    prompt: PromptEntry

    @classmethod
    def read(cls, name: str) -> Judge:
        """The judge of params/judges/<name>.yaml; ThaikitError for a rule, variant or prompt that cannot be used."""
        entry = params.load("judges", name, JudgeEntry)
        for key, known in (("rule", reading.RULES), ("variant", reading.VARIANTS)):
            value = getattr(entry, key)
            if value not in known:
                hint = params.nearest(value, list(known))
                told = ", ".join(repr(one) for one in known)
                raise ThaikitError(f"judge {name}: {key} is {value!r}{hint}; allowed are {told}")
        found = cls(name, entry, params.load("prompts", entry.prompt, PromptEntry))
        try:
            found.messages(Case("", "", "", "", ""))
        except ValueError as error:
            raise ThaikitError(f"judge {name}, prompt {entry.prompt}: {error}") from error
        return found

    @property
    def sampling(self) -> Sampling:
        """How its replies are drawn."""
        return self.entry.sampling.drawn()

    def ask(self, case: Case) -> Ask:
        """The request about a case."""
        return Ask(case.id, self.messages(case), repeat=case.repeat, run=case.run)

    def messages(self, case: Case) -> tuple[Message, ...]:
        """The conversation about a case (`judging.turns`)."""
        answer = reading.neutralised(case.answer) if self.entry.variant == "neutralise" else case.answer
        texts = (answer, case.question, case.chosen, case.rejected)
        return judging.turns(self.prompt, dict(zip(PLACES, texts, strict=True)))

    def facts(self) -> dict[str, Any]:
        """What run.json says of it: model, prompt by hash, rule in words, variant, sampling, tries."""
        return judging.facts(self.name, self.entry, self.prompt) | {
            "rule_says": reading.RULES[self.entry.rule], "pattern": reading.PAPER_PATTERN,
            "variant": self.entry.variant, "variant_says": reading.VARIANTS[self.entry.variant],
        }  # fmt: skip


def outcome_of(reply: Reply, verdict: reading.Verdict) -> str:
    """The outcome of a judge's reply after reading (`judging.settled`)."""
    return judging.settled(reply, read=verdict.score is not None, thinking=verdict.thinking)


def judge_all(
    judge: Judge, cases: Sequence[Case], model: Any, *, replies: RowLog, log: RowLog, tell: Callable[[str], None]
) -> None:
    """Judge every case and append one row each to `log` as soon as its outcome is known.

    `model` and `replies` as `judging.rounds` takes them. A case whose answer was filtered or failed (`answer_outcome`
    in `told`) is not put to it: there is nothing to judge, and its row says so.
    """
    by_key = {case.key: (index, case) for index, case in enumerate(cases)}
    if len(by_key) != len(cases):
        raise ThaikitError(f"judge {judge.name}: a case id stands twice among {len(cases)}; ids are unique in a leaf")
    for index, case in enumerate(cases):
        if case.lost and case.key not in log.ids:
            log.append(unjudged(case, index=index, outcome=case.told["answer_outcome"]))
    waiting = [case for case in cases if not case.lost]

    def outcome(reply: Reply) -> str:
        return outcome_of(reply, reading.read(reply.text, rule=judge.entry.rule))

    asks = (judge.ask(case) for case in waiting)
    # No variable holds the rounds: where the loop breaks off, the traceback would keep them, and they send on.
    for done, (ask, said) in enumerate(
        judging.rounds(asks, model, judge.entry, outcome=outcome, replies=replies, tell=tell), 1
    ):
        key = Ask(ask.id, "", repeat=ask.repeat).key
        index, case = by_key[key]
        if key not in log.ids:
            log.append(judgement(judge, case, said, index=index))
        tell(f"{done:,} of {len(waiting):,} judged")


def judgement(judge: Judge, case: Case, said: Sequence[Reply], *, index: int) -> dict[str, Any]:
    """The row of a case: the last reply as it came, what was read from it, the outcome, what it cost
    (`judging.account`). Only `ok` has a score. `score_tags` counts score tags in the last reply."""
    last = said[-1]
    verdict = reading.read(last.text, rule=judge.entry.rule)
    outcome = outcome_of(last, verdict)
    ok = outcome == "ok"
    return texts_of(case, index=index) | {
        "asked": True, "reply": last.text, "outcome": outcome, "score": verdict.score if ok else None,
        "explanation": verdict.explanation if ok else "", "rule": judge.entry.rule, "score_tags": verdict.score_tags,
        **judging.account(said),
    }  # fmt: skip


def unjudged(case: Case, *, index: int, outcome: str) -> dict[str, Any]:
    """The row of a case that is not put to the judge because its answer was filtered or failed: no score."""
    return texts_of(case, index=index) | {
        "asked": False, "reply": "", "outcome": outcome, "score": None, "explanation": "", "rule": "", "score_tags": 0,
        **judging.account([]),
    }  # fmt: skip


def texts_of(case: Case, *, index: int) -> dict[str, Any]:
    """What a row says of the case itself; `answer_tags` counts our own tags inside the answer."""
    return {
        "id": case.key, "index": index, **case.told, "question": case.question, "answer": case.answer,
        "chosen": case.chosen, "rejected": case.rejected, "answer_tags": reading.count_tags(case.answer),
    }  # fmt: skip
