"""Requests under way: a dispatcher takes them at the server's pace, threads ask, replies reach the ledger first."""

from __future__ import annotations

import contextlib
import functools
import queue
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from thaikit import ThaikitError, money
from thaikit.chat import Ask, Reply, Sampling, ended
from thaikit.ledger import Ledger
from thaikit.pace import Pace
from thaikit.params import ModelEntry
from thaikit.transport import Came, Clients, Fault, body_of, name_of, send

LONGEST = 60.0  # seconds of back-off at most
PATIENCE = 600.0  # seconds of Retry-After that are waited for; a server that asks for more ends the run
IN_A_ROW = 10  # requests that failed for good with no reply between them; then the server is not there
Release = Callable[[], tuple[Any, int] | None]  # gives a slot back, takes the next request
POLL = (0.05, 0.2)  # seconds until a request of another process, or its money, is looked at again


@dataclass
class Job:
    """A request on its way: its place in the ledger, its body, the dollars to reserve, and the tries so far."""

    ask: Ask
    key: str
    body: dict[str, Any]
    bound: float
    tries: int = 0


@dataclass
class Sums:
    """What happened since the model was opened: counts by name, tokens and dollars by the servers' own usage."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0
    peak: int = 0
    cuts: int = 0


class Flow:
    """The requests of one call of `ask`: put them in, take replies out with `next`, close it at the end."""

    def __init__(
        self, name: str, entry: ModelEntry, *, sampling: Sampling, ledger: Ledger, max_cost: float, sums: Sums
    ) -> None:
        self.name, self.entry, self.sampling, self.ledger = name, entry, sampling, ledger
        self.max_cost, self.sums, self.clients = max_cost, sums, Clients(entry)
        self.pace = Pace(start=entry.concurrency_start, most=entry.concurrency_max)
        self.results: queue.SimpleQueue[tuple[Ask, Reply] | None] = queue.SimpleQueue()
        self.pool = ThreadPoolExecutor(entry.concurrency_max, thread_name_prefix="thaikit-ask")
        self.lock, self.failed, self.stopped, self.crash = threading.Lock(), 0, "", None
        self.crash: Exception | None
        self.rejections, self.answered, self.confirming = 0, False, False
        self.dispatcher = threading.Thread(target=self.dispatch, name="thaikit-pace", daemon=True)
        self.dispatcher.start()

    def put(self, ask: Ask) -> None:
        """Queue a request."""
        body = body_of(self.entry, ask.prompt, self.sampling)
        tokens = money.most_tokens(ask.prompt)
        bound = self.entry.dollars(tokens, self.sampling.max_tokens) if self.entry.priced else 0.0
        self.pace.put(Job(ask, name_of(self.entry, ask, body), body, bound))

    def next(self) -> list[tuple[Ask, Reply]]:
        """The replies that are there, in the ledger by now, at least one; none where the run stopped (`stopped` says
        why) and nothing is under way."""
        while not (self.stopped and self.pace.idle and self.results.empty()):
            with contextlib.suppress(queue.Empty):
                found = [self.results.get(timeout=0.2 if self.stopped else None)]
                while not self.results.empty():
                    found.append(self.results.get())
                if got := [one for one in found if one is not None]:
                    return got
        return []

    def close(self) -> None:
        """Send nothing more. Requests under way end by themselves and reach the ledger, which they have paid for."""
        self.pace.close()
        self.dispatcher.join()
        self.pool.shutdown(wait=False)
        with self.lock:
            self.sums.peak = max(self.sums.peak, self.pace.peak)
            self.sums.cuts += self.pace.cuts

    def dispatch(self) -> None:
        """Hand due requests to threads, one slot each."""
        while (taken := self.pace.take()) is not None:
            claim = threading.Lock()
            try:
                self.pool.submit(self.work, claim, *taken)
            except RuntimeError as error:  # a limit of the machine; the pool may have kept the request all the same
                self.halt(
                    f"model {self.name}: this machine starts no further thread ({error}); set concurrency_max lower in "
                    "the model file, and run again to resume"
                )
                if claim.acquire(blocking=False):
                    self.pace.neither()

    def work(self, claim: threading.Lock, job: Job, epoch: int) -> None:
        """Requests one after the other in a thread, while there are any that may go; the first if it is unclaimed."""
        taken: tuple[Job, int] | None = (job, epoch) if claim.acquire(blocking=False) else None
        while taken is not None:
            taken = self.turn(*taken)

    def turn(self, job: Job, epoch: int) -> tuple[Job, int] | None:
        """One turn of a request. Its slot goes back last, when all that came of it can be seen; the next request."""
        release: Release = self.pace.neither
        try:
            release = self.step(job, epoch)
        except ThaikitError as error:
            self.halt(str(error))
        except Exception as error:  # a thread has nobody above it: the consumer raises this one
            self.crash = error
            self.halt(f"model {self.name}: {type(error).__name__}")
        return release()

    def halt(self, reason: str) -> None:
        """Stop sending, for this reason; what is under way still ends. Before the last reply is handed on, so that
        nobody takes it for the end."""
        self.stopped = self.stopped or reason
        self.pace.close()
        self.results.put(None)

    def step(self, job: Job, epoch: int) -> Release:
        """Look the request up, or send it; returns how its slot is given back."""
        turn = self.ledger.begin(
            job.key, model=self.name, item=job.ask.key, bound=job.bound, max_cost=self.max_cost,
            seconds=2 * self.entry.timeout + LONGEST, usable=lambda reply: self.fits(str(reply.get("model", ""))),
        )  # fmt: skip
        if turn.state == "known":
            self.give(job, self.reply_of(Came(**turn.reply), job, cached=True))
        elif turn.state == "wait":
            self.pace.put(job, delay=random.uniform(*POLL))
        elif turn.state == "full":
            self.halt(self.at_the_limit(job))
        else:
            job.tries += 1
            self.count("sent", **{"repeats after a kill": int(turn.repeat)})
            try:
                came = send(self.clients.mine(), self.entry, job.body, name=self.name, key=job.key)
            except Fault as fault:
                return self.fell(job, fault, epoch)
            except ThaikitError as error:  # no key: nothing was sent
                self.ledger.settle(job.key, reply=None, told=str(error))
                raise
            return self.arrived(job, came)
        return self.pace.neither

    def arrived(self, job: Job, came: Came) -> Release:
        """Put a reply on disk with what it cost, and only then hand it on."""
        prompt, completion = came.prompt_tokens, came.completion_tokens
        known = prompt is not None and completion is not None
        dollars = self.entry.dollars(prompt, completion) if known and self.entry.priced else job.bound
        if came.told:  # filtered before anything was written
            dollars = 0.0
        self.ledger.settle(job.key, spent=dollars, reply=vars(came), told=came.model)
        with self.lock:
            self.sums.prompt_tokens += prompt or 0
            self.sums.completion_tokens += completion or 0
            self.sums.dollars += dollars
        if not self.fits(came.model):
            self.halt(
                f"model {self.name}, item {job.ask.key}: {self.entry.source!r} was asked and the server answered as "
                f"{came.model!r}; no score is made of that: correct source, or list the id under served_as"
            )
        self.give(job, self.reply_of(came, job))
        return self.pace.fine

    def fell(self, job: Job, fault: Fault, epoch: int) -> Release:
        """Journal a try without a reply, and ask again later, give up on the request, or on the run."""
        dollars = job.bound if fault.billed else 0.0
        self.ledger.settle(job.key, unsettled=dollars, reply=None, told=fault.told)
        self.count("limited" if fault.kind == "limited" else "faults", told=fault.told)
        where = f"model {self.name}, item {job.ask.key}: {fault.told}"
        # A server that has answered knows the model: then its 404 is about this request.
        rejected = fault.kind == "rejected" or (self.answered and fault.told.startswith("HTTP 404"))
        if rejected:
            self.give(job, Reply(outcome="failed", error=fault.told, retries=job.tries - 1, rejected=True))
        elif fault.kind == "fatal":
            self.halt(f"{where}; {self.advice(fault)}")
        elif fault.after > PATIENCE:
            self.halt(f"{where}, and the server asks to wait {fault.after:,.0f} s; run again then to go on")
        elif job.tries >= self.entry.attempts:
            self.give(job, Reply(outcome="failed", error=fault.told, retries=job.tries - 1))
        else:
            backoff = min(LONGEST, self.entry.backoff * 2 ** (job.tries - 1)) * random.uniform(0.5, 1.0)
            self.pace.put(job, delay=max(fault.after, backoff))
        if fault.kind == "limited":
            return functools.partial(self.pace.limited, epoch, wait=min(fault.after, PATIENCE))
        return self.pace.neither

    def give(self, job: Job, reply: Reply) -> None:
        """Hand a reply to the consumer; too many failures in a row stop the run instead of failing each item."""
        with self.lock:
            came = reply.outcome != "failed"
            self.failed = 0 if came or reply.rejected else self.failed + 1
            self.rejections = 0 if came else self.rejections + reply.rejected
            self.answered = self.answered or came
            refused = self.rejections >= IN_A_ROW and not (self.answered and self.confirming)
        if self.failed >= IN_A_ROW or refused:
            self.halt(self.streak(job, reply))
        self.results.put((job.ask, reply))

    def streak(self, job: Job, reply: Reply) -> str:
        """Why the run stops after many failures in a row, and what to do about it."""
        last = f"the last one ({job.ask.key}) with: {reply.error}"
        if not reply.rejected:
            return (
                f"model {self.name}: {self.failed} requests in a row failed, {last}; see to the server at "
                f"{self.entry.base_url}, and run again to resume"
            )
        if not self.answered:
            return (
                f"model {self.name}: the server rejected {self.rejections} requests in a row and answered none, "
                f"{last}; see to the model file (source, extra, omit, max_tokens_key), and run again"
            )
        return (
            f"model {self.name}: the server rejected {self.rejections} requests in a row after it had answered others, "
            f"{last}; see to the account or the settings if it is these, and run again: what is rejected once more is "
            "then closed as failed"
        )

    def reply_of(self, came: Came, job: Job, *, cached: bool = False) -> Reply:
        """A reply with its outcome, as `reply_from` reads it."""
        return reply_from(came, self.entry, retries=max(0, job.tries - 1), cached=cached)

    def fits(self, served: str) -> bool:
        """Whether a reply by this model answers what was asked."""
        return self.entry.may_be_served_as(self.entry.source, served)

    def count(self, what: str, *, told: str = "", **more: int) -> None:
        """Add to the sums."""
        with self.lock:
            self.sums.counts.update({what: 1, **more})
            if told:
                self.sums.faults[told.split(":")[0].split(" after ")[0]] += 1

    def at_the_limit(self, job: Job) -> str:
        """Why no more is sent: the money."""
        sums = self.ledger.totals()
        return (
            f"model {self.name}, item {job.ask.key}: max_cost is {self.max_cost:g} US dollars for the whole suite and "
            f"{sums.spent + sums.unsettled:.4f} are spent, so that this request (at most {job.bound:.4f}) may pass it; "
            "all replies are kept, raise max_cost and run again to go on"
        )

    def advice(self, fault: Fault) -> str:
        """What to do about a server that takes no request at all."""
        if fault.told.startswith(("HTTP 401", "HTTP 403")):
            return f"the server refuses the key in {self.entry.api_key_env or 'no variable (api_key_env is empty)'}"
        if fault.told.startswith("HTTP 404"):
            return f"see whether {self.entry.base_url} knows the model {self.entry.source!r}"
        return "see to the account, and run again to resume"


def reply_from(came: Came, entry: ModelEntry, *, retries: int = 0, cached: bool = False) -> Reply:
    """What came as a reply with its outcome; one of another model than was asked for is `failed`, without its text."""
    told: dict[str, Any] = {
        "model": came.model, "prompt_tokens": came.prompt_tokens, "completion_tokens": came.completion_tokens,
        "seconds": came.seconds, "retries": retries, "cached": cached,
    }  # fmt: skip
    if not entry.may_be_served_as(entry.source, came.model):
        return Reply(outcome="failed", error=f"answered by {came.model}, asked for {entry.source}", **told)
    outcome = ended(came.text, came.finish, refusal=came.refusal)
    return Reply(came.text, came.finish, outcome, came.refusal, came.told, **told)
