"""What every judge of the kit does, whatever it is asked for: prompt filled, replies settled, asked again, accounted.

One generation and at most as many regenerations as the judge file allows (ThaiCLI paper, section 4.4: 16). A failed
transport is no verdict and a content filter is asked once; neither becomes a score.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from thaikit import reading
from thaikit.chat import Ask, Message, Reply
from thaikit.rowlog import RowLog
from thaikit.shapes import JudgeEntry, PromptEntry

AGAIN = reading.WITHOUT_VERDICT  # outcomes that lead to a regeneration
NOT_JUDGED = ("filtered", "failed")  # outcomes of an answer that leave nothing to judge


def turns(prompt: PromptEntry, places: Mapping[str, str]) -> tuple[Message, ...]:
    """The conversation: all places filled in one pass, so that texts are never read as places. ValueError for a place
    that the prompt lacks."""
    user = reading.fill(prompt.user, places)
    system = ({"role": "system", "content": prompt.system},) if prompt.system else ()
    return (*system, {"role": "user", "content": user})


def facts(name: str, entry: JudgeEntry, prompt: PromptEntry) -> dict[str, Any]:
    """What run.json says of any judge: model, prompt by hash, rule, sampling, tries."""
    both = {"system": prompt.system, "user": prompt.user}
    return {
        "name": name, "model": entry.model, "prompt": entry.prompt,
        "prompt_sha256": {key: hashlib.sha256(text.encode()).hexdigest() for key, text in both.items() if text},
        "prompt_source": prompt.source, "rule": entry.rule, "tries": entry.tries,
        "sampling": entry.sampling.model_dump(), "note": entry.note,
    }  # fmt: skip


def settled(reply: Reply, *, read: bool, thinking: bool = False) -> str:
    """The outcome of a reply in which a verdict was `read` or not, or that ends in the midst of `thinking`: what the
    server said outranks what the text looks like."""
    if reply.outcome in ("refused", "filtered", "failed"):
        return reply.outcome
    if thinking:
        return "truncated"
    if read:
        return "ok"
    return "truncated" if reply.outcome == "truncated" or reply.finish == "length" else "unreadable"


def rounds(
    asks: Iterable[Ask], model: Any, entry: JudgeEntry, *, outcome: Callable[[Reply], str], replies: RowLog,
    tell: Callable[[str], None],
) -> Iterator[tuple[Ask, list[Reply]]]:  # fmt: skip
    """Yield each request's last regeneration with all replies to it, once a verdict came or the tries are used up.

    `model` is what `chat.open_chat` gives. Every reply is in `replies` before it is read; those that are there already
    are not asked for again.
    """

    def again(ask: Ask, reply: Reply) -> bool:
        return ask.attempt + 1 < entry.tries and outcome(reply) in AGAIN

    def then(ask: Ask, reply: Reply) -> Ask | None:
        return ask.again() if again(ask, reply) else None

    heard: dict[tuple[str, int], list[Reply]] = {}
    for ask, reply in model.ask(asks, sampling=entry.sampling.drawn(), log=replies, tell=tell, then=then):
        heard.setdefault((ask.id, ask.repeat), []).append(reply)
        if not again(ask, reply):
            yield ask, heard.pop((ask.id, ask.repeat))


def account(said: Sequence[Reply]) -> dict[str, Any]:
    """What a row tells of the replies to one case, none where it was not asked: `tries` came, `identical` of them
    repeat an earlier one to the letter (a greedy judge can only repeat itself); the last one's end; what all cost. An
    answer that never came is lost for good here: its own leaf is closed."""
    last = said[-1] if said else Reply(for_good=True)
    return {
        "tries": len(said), "identical": len(said) - len({reply.text for reply in said}), "finish": last.finish,
        "refusal": last.refusal, "error": last.error, "for_good": last.for_good, "judge_model": last.model,
        "retries": sum(reply.retries for reply in said),
        "seconds": round(sum((reply.seconds for reply in said), 0.0), 3),
        "prompt_tokens": total(reply.prompt_tokens for reply in said),
        "completion_tokens": total(reply.completion_tokens for reply in said),
    }  # fmt: skip


def total(counts: Iterable[int | None]) -> int | None:
    """The sum of token counts, None where a server told none or there is nothing to count."""
    told = list(counts)
    return None if None in told or not told else sum(told)  # type: ignore[arg-type]
