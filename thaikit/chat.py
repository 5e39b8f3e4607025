"""Models that answer in text, asked one way: weights on this machine, a server, or a file of recorded replies.

A reply is in the leaf's log before anybody uses it, and one that is there is never asked for again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from thaikit import params
from thaikit.rowlog import RowLog

Message = dict[str, str]
Prompt = str | tuple[Message, ...]
Outcome = Literal["ok", "refused", "filtered", "truncated", "failed"]
OUTCOMES = ("ok", "refused", "filtered", "truncated", "failed")
Tell = Callable[[str], None]
Then = Callable[["Ask", "Reply"], "Ask | None"]
OPEN_THOUGHT = re.compile(r"\s*<think(?:ing)?>(?:(?!</think(?:ing)?>).)*", re.DOTALL)


@dataclass(frozen=True)
class Ask:
    """One request: an item's `id` in this leaf, a raw prompt to continue or a conversation, the number of this
    regeneration (`attempt`, 0 the first) and of this independent repeat. `run` sets requests apart that each run has
    to ask anew of a server (a drift panel)."""

    id: str
    prompt: Prompt
    attempt: int = 0
    repeat: int = 0
    run: str = ""

    @property
    def key(self) -> str:
        """The reply's id in the leaf's log: the item's, then what sets a repeat or a regeneration apart."""
        parts = [f"r{self.repeat}"] if self.repeat else []
        parts += [f"a{self.attempt}"] if self.attempt else []
        return self.id + ("#" + ".".join(parts) if parts else "")

    def again(self) -> Ask:
        """The same request, one regeneration later."""
        return replace(self, attempt=self.attempt + 1)


@dataclass(frozen=True)
class Reply:
    """What came back: raw text and how it ended. `outcome` is that of the transport, before anything is read from the
    text: ok, refused (the server's own refusal field), filtered, truncated (the token limit, or a thought block that
    never ends), failed (nothing came; `error` says why). A failure is asked again when its leaf is resumed, unless it
    is `for_good`; `rejected` tells that the server took this very request for a bad one. `seconds` is the wait for the
    last try."""

    text: str = ""
    finish: str = ""
    outcome: Outcome = "ok"
    refusal: str = ""
    error: str = ""
    model: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0
    retries: int = 0
    cached: bool = False
    rejected: bool = False
    for_good: bool = False

    @property
    def lasting(self) -> bool:
        """Whether it stays: a reply that came, or a failure for good."""
        return self.outcome != "failed" or self.for_good


@dataclass(frozen=True)
class Sampling:
    """How a reply is drawn; temperature 0 is greedy. `max_tokens` bounds the reply."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int | None = None
    stops: tuple[str, ...] = ()


def open_chat(
    name: str,
    *,
    max_cost: float = 0.0,
    suite_dir: Path | str | None = None,
    batch_size: int = 0,
    closing: bool = False,
) -> Any:
    """The model of params/models/<name>.yaml as something to ask: `ask(asks, sampling=, log=, tell=, then=)`.

    `max_cost` (US dollars, 0 for no limit) and `suite_dir`, whose processes share it, are for servers; `batch_size`
    (rows, 0 for what fits) is for local weights. With `closing` nobody is asked: what has no reply yet fails for good.
    """
    if closing:
        from thaikit.closing import Closing

        return Closing(open_chat(name, suite_dir=suite_dir, batch_size=batch_size))
    entry = params.load("models", name, params.ModelEntry)
    if entry.kind == "openai":
        from thaikit import server

        return server.open_server(name, entry, max_cost=max_cost, suite_dir=suite_dir)
    if entry.kind == "replay":
        from thaikit import chat_replay

        return chat_replay.Recorded.read(name, entry)
    from thaikit import asking, chat_local

    return chat_local.Weights(asking.open_model(name), batch_size=batch_size)


def ended(text: str, finish: str, *, refusal: str = "") -> Outcome:
    """The outcome of a reply that came: refused by the server's own word, filtered, truncated or ok."""
    if refusal:
        return "refused"
    if finish == "content_filter":
        return "filtered"
    return "truncated" if finish == "length" or OPEN_THOUGHT.fullmatch(text) else "ok"


def prompt_sha256(prompt: Prompt) -> str:
    """SHA-256 of a prompt's text, of a conversation's JSON: what a recorded reply is tied to."""
    text = prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


# ---------------------------------------------------------------------------------------------- the log of replies


def reply_row(ask: Ask, reply: Reply, *, index: int) -> dict[str, Any]:
    """A reply as a row of the leaf's log, with its prompt's hash: such a file can be replayed, for these texts only."""
    told = {name: getattr(reply, name) for name in Reply.__dataclass_fields__}
    place = {"id": ask.key, "item": ask.id, "attempt": ask.attempt, "repeat": ask.repeat, "index": index}
    return {**place, **told, "seconds": round(reply.seconds, 3), "prompt_sha256": prompt_sha256(ask.prompt)}


def row_reply(row: Mapping[str, Any]) -> Reply:
    """A row of the log as the reply it holds."""
    return Reply(**{name: row[name] for name in Reply.__dataclass_fields__ if name in row})


@dataclass
class Kept:
    """The log of a leaf's replies and what it held at the start: an item asked twice is answered once. `rejected` are
    requests that the server rejected and that are still open."""

    log: RowLog
    known: dict[str, Reply] = field(default_factory=dict)
    count: int = 0
    rejected: frozenset[str] = frozenset()

    @classmethod
    def read(cls, log: RowLog) -> Kept:
        """The replies that are in the log; failed ones are asked again, unless they failed for good."""
        rows = log.rows()
        said = {row["id"]: row_reply(row) for row in rows}
        known = {key: reply for key, reply in said.items() if reply.lasting}
        rejected = frozenset(key for key, reply in said.items() if reply.rejected and not reply.lasting)
        return cls(log, known, 1 + max((row["index"] for row in rows), default=-1), rejected)

    @property
    def answered(self) -> bool:
        """Whether any request of this leaf was ever answered."""
        return any(reply.outcome != "failed" for reply in self.known.values())

    def keep(self, ask: Ask, reply: Reply) -> None:
        """Put a reply on disk."""
        self.keep_all([(ask, reply)])

    def keep_all(self, found: Sequence[tuple[Ask, Reply]]) -> None:
        """Put replies that came together on disk, in one wait for it."""
        self.log.extend([reply_row(ask, reply, index=self.count + place) for place, (ask, reply) in enumerate(found)])
        self.count += len(found)
        self.known.update({ask.key: reply for ask, reply in found if reply.lasting})

    def replay(self, asks: Iterable[Ask], then: Then | None) -> Iterator[tuple[Ask, Reply | None]]:
        """Each request with its reply from the log, followed by the regenerations that it leads to; None where it has
        to be asked."""
        for first in asks:
            ask: Ask | None = first
            while ask is not None:
                reply = self.known.get(ask.key)
                yield ask, reply
                ask = then(ask, reply) if then is not None and reply is not None else None
