"""How many requests go at once: few at first, more while the server takes them, fewer when it says 429.

Growth is by one for each reply until the first 429 (it doubles in the time of one reply), and by one for each round
after it; a 429 takes the number to 0.6 of it, once for all requests that were under way together. A 5xx, a time-out
or a broken connection changes nothing: they say nothing about the rate.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import Any

CUT = 0.6
WAKE = 0.5  # seconds after which a waiting dispatcher looks again at the latest


@dataclass(order=True)
class Due:
    """A job and the moment before which it is not taken."""

    at: float
    number: int
    job: Any = field(compare=False)


class Pace:
    """The jobs that wait and the slots that they wait for. One thread takes, any thread puts and gives slots back."""

    def __init__(self, *, start: int, most: int) -> None:
        self.limit, self.most = float(min(start, most)), most
        self.flying = self.peak = self.cuts = self.epoch = 0
        self.waiting: list[Due] = []
        self.numbers = itertools.count()
        self.until, self.closed, self.cut_once = 0.0, False, False
        self.changed = threading.Condition()

    def put(self, job: Any, *, delay: float = 0.0) -> None:
        """Queue a job that may go after `delay` seconds; first queued, first gone."""
        with self.changed:
            heapq.heappush(self.waiting, Due(time.monotonic() + delay, next(self.numbers), job))
            self.changed.notify()

    def take(self) -> tuple[Any, int] | None:
        """The next job and the epoch to give back with its slot; waits for one, None once closed."""
        with self.changed:
            while not self.closed:
                if (found := self.due()) is not None:
                    return found
                self.changed.wait(self.nap(time.monotonic()))
        return None

    def due(self) -> tuple[Any, int] | None:
        """The next job if it may go now, with a slot; None for none. Under the lock."""
        now = time.monotonic()
        free = not self.closed and self.flying < int(self.limit) and now >= self.until
        if not (free and self.waiting and self.waiting[0].at <= now):
            return None
        self.flying += 1
        self.peak = max(self.peak, self.flying)
        return heapq.heappop(self.waiting).job, self.epoch

    def passed_on(self) -> tuple[Any, int] | None:
        """The next job for a thread that has just given its slot back: it goes on without waking another. Under the
        lock; who waits in `take` is woken where there is room for one more."""
        self.flying -= 1
        found = self.due()
        if self.waiting and self.flying < int(self.limit):
            self.changed.notify()
        return found

    def nap(self, now: float) -> float:
        """Seconds until something may have become due without anybody's notice."""
        moments = [self.until] + ([self.waiting[0].at] if self.waiting else [])
        ahead = [moment - now for moment in moments if moment > now]
        return min([WAKE, *ahead])

    def fine(self) -> tuple[Any, int] | None:
        """Give a slot back after a reply; a number that was the bottleneck grows. The next job, as `take` gives it,
        where one may go now: the same thread does it."""
        with self.changed:
            if self.waiting and self.limit < self.most:
                self.limit = min(self.limit + (1.0 / self.limit if self.cut_once else 1.0), float(self.most))
            return self.passed_on()

    def limited(self, epoch: int, *, wait: float = 0.0) -> tuple[Any, int] | None:
        """Give a slot back after a 429: fewer at once, and nothing new for `wait` seconds (its Retry-After)."""
        with self.changed:
            self.until = max(self.until, time.monotonic() + wait)
            if epoch == self.epoch:
                self.epoch += 1
                self.cuts += 1
                self.cut_once = True
                self.limit = max(1.0, self.limit * CUT)
            return self.passed_on()

    def neither(self) -> tuple[Any, int] | None:
        """Give a slot back after something that says nothing about the rate."""
        with self.changed:
            return self.passed_on()

    def close(self) -> list[Any]:
        """Take no more; the jobs that still waited."""
        with self.changed:
            self.closed = True
            left, self.waiting = [due.job for due in sorted(self.waiting)], []
            self.changed.notify_all()
        return left

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        with self.changed:
            return self.flying == 0
