"""A judge: its prompt filled, its replies read, an unreadable one asked for again, each case ended in one outcome.

One generation and at most as many regenerations as the judge file allows (ThaiCLI paper, section 4.4: 16). A failed
transport is no verdict and a content filter is asked once; neither becomes a score.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thaikit import ThaikitError, params, reading
from thaikit.chat import Ask, Message, Reply, Sampling
from thaikit.rowlog import RowLog
from thaikit.shapes import JudgeEntry, PromptEntry

AGAIN = reading.WITHOUT_VERDICT  # outcomes that lead to a regeneration
NOT_JUDGED = ("filtered", "failed")  # outcomes of an answer that leave nothing to judge
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
        s = self.entry.sampling
        return Sampling(s.temperature, s.top_p, s.max_tokens, s.seed, tuple(s.stops))

    def ask(self, case: Case) -> Ask:
        """The request about a case."""
        return Ask(case.id, self.messages(case), repeat=case.repeat, run=case.run)

    def messages(self, case: Case) -> tuple[Message, ...]:
        """The conversation about a case: all places filled in one pass, so that texts are never read as places."""
        answer = reading.neutralised(case.answer) if self.entry.variant == "neutralise" else case.answer
        texts = (answer, case.question, case.chosen, case.rejected)
        user = reading.fill(self.prompt.user, dict(zip(PLACES, texts, strict=True)))
        system = ({"role": "system", "content": self.prompt.system},) if self.prompt.system else ()
        return (*system, {"role": "user", "content": user})

    def facts(self) -> dict[str, Any]:
        """What run.json says of it: model, prompt by hash, rule in words, variant, sampling, tries."""
        both = {"system": self.prompt.system, "user": self.prompt.user}
        hashes = {key: hashlib.sha256(text.encode()).hexdigest() for key, text in both.items() if text}
        return {
            "name": self.name, "model": self.entry.model, "prompt": self.entry.prompt, "prompt_sha256": hashes,
            "prompt_source": self.prompt.source, "rule": self.entry.rule, "rule_says": reading.RULES[self.entry.rule],
            "pattern": reading.PAPER_PATTERN, "variant": self.entry.variant, "tries": self.entry.tries,
            "variant_says": reading.VARIANTS[self.entry.variant],
            "sampling": self.entry.sampling.model_dump(), "note": self.entry.note,
        }  # fmt: skip


def outcome_of(reply: Reply, verdict: reading.Verdict) -> str:
    """The outcome of a judge's reply after reading: what the server said outranks what the text looks like."""
    if reply.outcome in ("refused", "filtered", "failed"):
        return reply.outcome
    if verdict.thinking:
        return "truncated"
    if verdict.score is not None:
        return "ok"
    return "truncated" if reply.outcome == "truncated" or reply.finish == "length" else "unreadable"


def judge_all(
    judge: Judge, cases: Sequence[Case], model: Any, *, replies: RowLog, log: RowLog, tell: Callable[[str], None]
) -> None:
    """Judge every case and append one row each to `log` as soon as its outcome is known.

    `model` is what `chat.open_chat` gives. A case whose answer was filtered or failed (`answer_outcome` in `told`) is
    not put to it: there is nothing to judge, and its row says so. Every reply, regenerated ones too, is in `replies`
    before it is read; those that are there already are not asked for again.
    """
    by_key = {case.key: (index, case) for index, case in enumerate(cases)}
    if len(by_key) != len(cases):
        raise ThaikitError(f"judge {judge.name}: a case id stands twice among {len(cases)}; ids are unique in a leaf")
    for index, case in enumerate(cases):
        if case.lost and case.key not in log.ids:
            log.append(unjudged(case, index=index, outcome=case.told["answer_outcome"]))
    waiting = [case for case in cases if not case.lost]
    heard: dict[str, list[Reply]] = {}
    done = 0
    asks = (judge.ask(case) for case in waiting)
    for ask, reply in model.ask(asks, sampling=judge.sampling, log=replies, tell=tell, then=follow_up(judge)):
        key = Ask(ask.id, "", repeat=ask.repeat).key
        heard.setdefault(key, []).append(reply)
        if again(judge, ask, reply):
            continue
        index, case = by_key[key]
        said = heard.pop(key)
        if key not in log.ids:
            log.append(judgement(judge, case, said, index=index))
        done += 1
        tell(f"{done:,} of {len(waiting):,} judged")


def follow_up(judge: Judge) -> Callable[[Ask, Reply], Ask | None]:
    """What to ask after a reply: the same once more where it holds no verdict and tries are left."""
    return lambda ask, reply: ask.again() if again(judge, ask, reply) else None


def again(judge: Judge, ask: Ask, reply: Reply) -> bool:
    """Whether a reply leads to a regeneration."""
    if ask.attempt + 1 >= judge.entry.tries:
        return False
    return outcome_of(reply, reading.read(reply.text, rule=judge.entry.rule)) in AGAIN


def judgement(judge: Judge, case: Case, said: Sequence[Reply], *, index: int) -> dict[str, Any]:
    """The row of a case: the last reply as it came, what was read from it, the outcome. Only `ok` has a score.

    `tries` replies came, `identical` of them repeat an earlier one to the letter (a greedy judge can only repeat
    itself); `score_tags` counts score tags in the last reply, `answer_tags` our own tags inside the answer.
    """
    last = said[-1]
    verdict = reading.read(last.text, rule=judge.entry.rule)
    outcome = outcome_of(last, verdict)
    score = verdict.score if outcome == "ok" else None
    return {
        "id": case.key, "index": index, **case.told, "question": case.question, "answer": case.answer,
        "chosen": case.chosen, "rejected": case.rejected, "asked": True, "reply": last.text, "outcome": outcome,
        "score": score, "explanation": verdict.explanation if outcome == "ok" else "", "rule": judge.entry.rule,
        "tries": len(said), "identical": len(said) - len({reply.text for reply in said}),
        "score_tags": verdict.score_tags, "answer_tags": reading.count_tags(case.answer), "finish": last.finish,
        "refusal": last.refusal, "error": last.error, "judge_model": last.model,
        "retries": sum(reply.retries for reply in said), "seconds": round(sum(reply.seconds for reply in said), 3),
        "prompt_tokens": total(reply.prompt_tokens for reply in said),
        "completion_tokens": total(reply.completion_tokens for reply in said),
    }  # fmt: skip


def unjudged(case: Case, *, index: int, outcome: str) -> dict[str, Any]:
    """The row of a case that is not put to the judge because its answer was filtered or failed: no score."""
    return {
        "id": case.key, "index": index, **case.told, "question": case.question, "answer": case.answer,
        "chosen": case.chosen, "rejected": case.rejected, "asked": False, "reply": "", "outcome": outcome,
        "score": None, "explanation": "", "rule": "", "tries": 0, "identical": 0, "score_tags": 0,
        "answer_tags": reading.count_tags(case.answer), "finish": "", "refusal": "", "error": "", "judge_model": "",
        "retries": 0, "seconds": 0.0, "prompt_tokens": None, "completion_tokens": None,
    }  # fmt: skip


def total(counts: Iterator[int | None]) -> int | None:
    """The sum of token counts, None where a server told none."""
    told = list(counts)
    return None if None in told else sum(told)  # type: ignore[arg-type]
