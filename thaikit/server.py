"""A model behind any OpenAI-compatible server, asked like every other model of the kit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from thaikit import ThaikitError
from thaikit.chat import Ask, Kept, Reply, Sampling, Tell, Then
from thaikit.flow import IN_A_ROW, Flow, Sums, reply_from
from thaikit.ledger import NAME, Ledger
from thaikit.model_facts import SERVED
from thaikit.params import ModelEntry
from thaikit.rowlog import RowLog
from thaikit.transport import Came, body_of, name_of

ROOM = 4  # requests taken from the caller, as a multiple of the most that go at once: memory stays flat


def open_server(name: str, entry: ModelEntry, *, max_cost: float = 0.0, suite_dir: Path | str | None = None) -> Server:
    """The server of a model file, not yet asked. ThaikitError where a limit in money has no prices to go by."""
    if max_cost < 0 or max_cost != max_cost:
        raise ThaikitError(f"model {name}: max_cost is {max_cost}; it is US dollars, 0 for no limit")
    if max_cost and not entry.priced and entry.api_key_env:
        raise ThaikitError(
            f"model {name}: max_cost is {max_cost:g} but its file has no dated prices; set price_input, price_output "
            "and price_date in params/models, or max_cost to 0"
        )
    return Server(name, entry, max_cost, Path(suite_dir) if suite_dir else None)


@dataclass
class Server:
    """A model file of kind openai, behind the one call that tasks and judges make. It never holds a key.

    The ledger lies in `suite_dir`, shared by all processes there, else in the leaf that is asked for.
    """

    name: str
    entry: ModelEntry
    max_cost: float = 0.0
    suite_dir: Path | None = None
    chat: bool = True
    sums: Sums = field(default_factory=Sums, repr=False)
    drawn: dict[str, Any] = field(default_factory=dict, repr=False)
    places: set[Path] = field(default_factory=set, repr=False)

    @property
    def ran(self) -> int:
        """Prompt tokens that servers counted so far, without what came from the ledger or the log."""
        return self.sums.prompt_tokens

    def facts(self) -> dict[str, Any]:
        """What run.json says of it: what was asked and who answered, tries and faults, tokens and money."""
        entry, sums = self.entry, self.sums
        kept = ("base_url", "inferred", "served_as", "extra", "omit", "rehearsal", "note", "licence")
        dollars = round(sums.dollars, 6) if entry.priced else None
        return {
            "name": self.name,
            "kind": "openai",
            "source": entry.source,
            **{key: getattr(entry, key) for key in kept},
            "thai": {"why": SERVED},
            "sampling": self.drawn,
            "served": dict(sums.served),
            "requests": dict(sums.counts),
            "faults": dict(sums.faults),
            "tokens": {"prompt": sums.prompt_tokens, "completion": sums.completion_tokens},
            "usd": dollars,
            "thb": round(dollars * entry.thb_rate, 4) if dollars is not None and entry.thb_rate else None,
            "price_date": entry.price_date,
            "concurrency": {
                "start": entry.concurrency_start, "most": entry.concurrency_max, "peak": sums.peak, "cuts": sums.cuts,
            },
            "suite": self.suite_totals(),
        }  # fmt: skip

    def suite_totals(self) -> dict[str, Any]:
        """What all processes that share the ledger have spent, and the repeats that kills led to."""
        found = {}
        for place in sorted(self.places):
            ledger = Ledger(place)
            sums = ledger.totals()
            ledger.close()
            found = {"sent": sums.sent, "lost": sums.lost, "repeats": sums.repeats, "usd": round(sums.spent, 6),
                     "usd_unsettled": round(sums.unsettled, 6), "max_cost": self.max_cost}  # fmt: skip
        return found

    def place(self, log: RowLog) -> Path:
        """Where the ledger of a leaf's requests is."""
        leaf = log.path.parent.parent if log.path.parent.name == "rows" else log.path.parent
        return (self.suite_dir or leaf) / NAME

    def ask(
        self, asks: Iterable[Ask], *, sampling: Sampling, log: RowLog, tell: Tell, then: Then | None = None
    ) -> Iterator[tuple[Ask, Reply]]:
        """Yield each request with its reply as it comes, on disk by then; a regeneration joins the queue.

        A request whose attempts are used up is yielded as `failed`, and asked again when the leaf is resumed. One that
        the server rejects (400, 413, 422 …) is asked once more after all others, and rejected again, by a server that
        has answered others, it failed for good. ThaikitError, after all that was under way is on disk, where the run
        has to stop: the limit in money, a key that is refused or missing, another model than was asked for, a server
        that is not there or rejects one request after the other.
        """
        self.drawn = {name: getattr(sampling, name) for name in Sampling.__dataclass_fields__}
        self.places.add(self.place(log))
        kept, ledger = Kept.read(log), Ledger(self.place(log))
        shared: dict[str, Any] = {"ledger": ledger, "max_cost": self.max_cost, "sums": self.sums}
        flow = Flow(self.name, self.entry, sampling=sampling, **shared)
        # A run that stopped over rejections has left as many: who runs again has seen what the server says.
        flow.answered, flow.confirming = kept.answered, len(kept.rejected) >= IN_A_ROW
        done = 0
        try:
            for ask, reply in self.replies(asks, flow, kept, then):
                done += 1
                self.sums.served[reply.model] += reply.outcome != "failed"
                self.sums.counts["cached"] += reply.cached
                tell(f"{done:,} replies, {flow.pace.flying} of {int(flow.pace.limit)} at once{self.spent()}")
                yield ask, reply
        finally:
            flow.close()
            if flow.pace.idle:
                ledger.close()
        if flow.crash is not None:
            raise flow.crash
        if flow.stopped:
            raise ThaikitError(flow.stopped)

    def spent(self) -> str:
        """The money so far, for a progress line."""
        return f", {self.sums.dollars:.4f} USD" if self.entry.priced else ""

    def replies(self, asks: Iterable[Ask], flow: Flow, kept: Kept, then: Then | None) -> Iterator[tuple[Ask, Reply]]:
        """Feed the flow as room allows; each reply goes into the leaf's log, then out. An item asked twice while it is
        under way is asked once."""
        sources: deque[Iterator[tuple[Ask, Reply | None]]] = deque([kept.replay(asks, then)])
        open_now: dict[str, list[Ask]] = {}
        bad = Rejected(flow, kept)
        while True:
            while sources and len(open_now) < ROOM * self.entry.concurrency_max and not flow.stopped:
                ask, reply = next(sources[0], (None, None))
                if ask is None:
                    sources.popleft()
                elif reply is not None:
                    yield ask, reply
                elif ask.key in open_now:
                    open_now[ask.key].append(ask)
                else:
                    open_now[ask.key] = [ask]
                    flow.put(ask)
            found = flow.next() if open_now or flow.stopped else []
            if not found and (flow.stopped or not bad.waiting):
                return
            if not found:
                sources.append(kept.replay(bad.again(), then))
                continue
            found = [(first, bad.weighed(first, reply)) for first, reply in found]
            kept.keep_all(found)
            for ask, reply in bad.passed([(one, reply) for first, reply in found for one in open_now.pop(first.key)]):
                yield ask, reply
                more = then(ask, reply) if then is not None else None
                if more is not None:
                    sources.appendleft(kept.replay([more], then))

    def paid(self, ask: Ask, *, sampling: Sampling, log: RowLog) -> Reply | None:
        """The reply that the ledger holds to a request, None without one; nobody is asked."""
        place = self.place(log)
        if not place.exists():
            return None
        self.places.add(place)
        ledger = Ledger(place)
        found = ledger.reply(name_of(self.entry, ask, body_of(self.entry, ask.prompt, sampling)))
        ledger.close()
        reply = reply_from(Came(**found), self.entry, cached=True) if found else None
        return reply if reply is not None and reply.outcome != "failed" else None


@dataclass
class Rejected:
    """Requests that the server takes for bad ones: each is put off until all others are done and asked once more. A
    second rejection, in this run or an earlier one, is final where the server has answered anything at all."""

    flow: Flow
    kept: Kept
    once: set[str] = field(default_factory=set)
    waiting: list[Ask] = field(default_factory=list)

    def again(self) -> list[Ask]:
        """Those put off, to be asked now; a row of rejections is no surprise from here on."""
        self.flow.confirming = True
        asks, self.waiting = self.waiting, []
        return asks

    def weighed(self, ask: Ask, reply: Reply) -> Reply:
        """The reply, for good where it is a second rejection."""
        twice = ask.key in self.once or ask.key in self.kept.rejected
        return replace(reply, for_good=True) if reply.rejected and twice and self.flow.answered else reply

    def passed(self, found: Sequence[tuple[Ask, Reply]]) -> list[tuple[Ask, Reply]]:
        """What can be handed on; a first rejection is put off instead."""
        first = {ask.key for ask, reply in found if reply.rejected and not reply.for_good} - self.once
        self.once |= first
        self.waiting += [ask for ask, _ in found if ask.key in first]
        return [(ask, reply) for ask, reply in found if ask.key not in first]
