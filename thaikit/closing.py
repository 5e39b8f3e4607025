"""A leaf closed with what is there: nobody is asked any more, and what has no reply yet fails for good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from thaikit.chat import Ask, Kept, Reply, Sampling, Tell, Then
from thaikit.rowlog import RowLog

NEVER = "never asked: the leaf was closed with what was there"


@dataclass
class Closing:
    """A model behind the same calls that is not asked: replies come from the leaf's log, paid ones from the ledger."""

    model: Any
    closing: bool = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def ask(
        self, asks: Iterable[Ask], *, sampling: Sampling, log: RowLog, tell: Tell, then: Then | None = None
    ) -> Iterator[tuple[Ask, Reply]]:
        """Yield each request with its reply, in order; one without is `failed` for good, with the last error."""
        kept = Kept.read(log)
        errors = {row["id"]: str(row.get("error") or "") for row in log.rows()}
        for first in asks:
            ask: Ask | None = first
            while ask is not None:
                reply = kept.known.get(ask.key)
                if reply is None:
                    reply = self.paid(ask, sampling=sampling, log=log)
                    if reply is None:
                        reply = Reply(outcome="failed", error=errors.get(ask.key) or NEVER, for_good=True)
                    kept.keep(ask, reply)
                yield ask, reply
                ask = then(ask, reply) if then is not None else None

    def paid(self, ask: Ask, *, sampling: Sampling, log: RowLog) -> Reply | None:
        """A reply that was paid for and has not reached the leaf's log, as a kill may leave it."""
        look_up = getattr(self.model, "paid", None)
        return look_up(ask, sampling=sampling, log=log) if look_up is not None else None
