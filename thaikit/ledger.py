"""What a suite has asked of servers and what it has paid: one SQLite file, shared by all processes of the suite.

One transaction finds a known reply, takes a request that nobody is asking, and reserves its money; so two processes
never pay for the same request, and recorded spend never passes the limit. diskcache was considered: it would hold the
replies, but not reply, claim and money in one transaction, so this is sqlite3 in WAL mode. Several processes of one
machine may share the file; a network file system without working locks is no place for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from thaikit import ThaikitError

NAME = "ledger.sqlite"
VERSION = 1
BUSY = 60.0  # seconds that a process waits for another one's transaction
SCHEMA = """
CREATE TABLE requests (
    key TEXT PRIMARY KEY, model TEXT, item TEXT,
    state TEXT NOT NULL,              -- flying: being asked now; idle: not answered yet; done: the reply is here
    owner TEXT, expires REAL,         -- of a flying request: the process that asks it, and until when it may
    bound REAL NOT NULL DEFAULT 0,    -- of a flying request: US dollars reserved for it
    orphan INTEGER NOT NULL DEFAULT 0,  -- 1 where its process died with it in flight
    reply TEXT
);
CREATE INDEX flying ON requests (owner, expires) WHERE state = 'flying';
CREATE TABLE journal (at REAL, event TEXT, key TEXT, model TEXT, item TEXT, owner TEXT, usd REAL, told TEXT);
CREATE TABLE money (spent REAL NOT NULL, unsettled REAL NOT NULL);
INSERT INTO money VALUES (0, 0);
"""
TAKE = """
INSERT INTO requests (key, model, item, state, owner, expires, bound) VALUES (?, ?, ?, 'flying', ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET state = 'flying', owner = excluded.owner, expires = excluded.expires,
    bound = excluded.bound, orphan = 0, reply = NULL
"""


@dataclass(frozen=True)
class Turn:
    """Whether a request may be sent now: go (it is this process's; money is reserved), known (with its reply), wait
    (somebody asks it, or money is reserved by others), full (the limit would be passed). `repeat` is true where a
    process died with this very request in flight."""

    state: Literal["go", "known", "wait", "full"]
    reply: dict[str, Any] = field(default_factory=dict)
    repeat: bool = False


@dataclass(frozen=True)
class Totals:
    """A ledger's sums: requests with a reply, tries sent, requests that a process died with, requests asked again
    because of that; US dollars by the servers' own usage, reserved now, and never settled (tries that may have been
    billed although no reply came, at their upper bound)."""

    replies: int
    sent: int
    lost: int
    repeats: int
    spent: float
    reserved: float
    unsettled: float


class Ledger:
    """The ledger file at `path`; made where it is missing. Safe for many threads and processes."""

    def __init__(self, path: Path) -> None:
        self.path, self.lock = path, threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ThaikitError(
                f"{path}: its folder cannot be made ({error.strerror}); name one that can be written"
            ) from error
        try:
            # One connection and a lock: SQLite writes one at a time anyhow, and its own waiting is by sleeping.
            self.connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
            self.begin_wal()
            # A commit survives the end of the process; the leaf's own log is what survives a power cut.
            self.connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error as error:
            raise ThaikitError(f"{path}: not usable as a ledger of requests ({error}); move it away") from error
        self.prepare()
        self.reap()

    def begin_wal(self) -> None:
        """Journal ahead of writing. SQLite does not wait for this one lock, which two that make the file both want."""
        end = time.monotonic() + BUSY
        while True:
            try:
                self.connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(random.uniform(0.01, 0.05))

    def prepare(self) -> None:
        """Make the tables of a new file; refuse one of another version."""
        with self.transaction() as sql:
            version = sql.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in SCHEMA.split(";\n"):
                    if statement.strip():
                        sql.execute(statement)
                sql.execute(f"PRAGMA user_version = {VERSION}")
            elif version != VERSION:
                raise ThaikitError(
                    f"{self.path}: a ledger of version {version}, this kit writes version {VERSION}; move it away"
                )

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction, held by one thread of one process at a time."""
        try:
            with self.lock:
                self.connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self.connection
                    self.connection.execute("COMMIT")
                except BaseException:
                    self.connection.execute("ROLLBACK")
                    raise
        except sqlite3.Error as error:
            raise ThaikitError(
                f"{self.path}: the ledger of requests failed ({error}); free disk space or move it, and run again"
            ) from error

    def begin(
        self, key: str, *, model: str, item: str, bound: float, max_cost: float, seconds: float,
        usable: Callable[[Mapping[str, Any]], bool] = bool,
    ) -> Turn:  # fmt: skip
        """Take a request for at most `seconds`, and reserve `bound` US dollars for it under `max_cost` (0: no limit).

        A reply that is there comes back if it is `usable`; else it is asked for anew. A request whose process died is
        taken over, and the repeat is in the journal.
        """
        now, item = time.time(), storable(item)
        with self.transaction() as sql:
            found = sql.execute(
                "SELECT state, owner, expires, orphan, reply FROM requests WHERE key = ?", (key,)
            ).fetchone()
            if found and found[0] == "done":
                reply = json.loads(found[4])
                if usable(reply):
                    return Turn("known", reply)
            if found and found[0] == "flying":
                if found[2] > now and alive(found[1]):
                    return Turn("wait")
                lose(sql, key)
            repeat = bool(found and (found[3] or found[0] == "flying"))
            if max_cost > 0 and bound > 0:
                room = room_for(sql, bound, max_cost)
                if room != "go":
                    return Turn(room)
            sql.execute(TAKE, (key, model, item, me(), now + seconds, bound))
            if repeat:
                note(sql, "repeat", key, model, item)
            note(sql, "sent", key, model, item)
            return Turn("go", repeat=repeat)

    def settle(
        self, key: str, *, spent: float = 0.0, unsettled: float = 0.0, reply: Mapping[str, Any] | None, told: str = ""
    ) -> None:
        """Put a try's end on disk: its reply, or why there is none, with what it cost or may have cost.

        Where the try took longer than it said, and another process has taken the request, only the money counts.
        """
        text = None if reply is None else storable(json.dumps(reply, ensure_ascii=False))
        with self.transaction() as sql:
            sql.execute(
                "UPDATE requests SET state = ?, owner = NULL, bound = 0, reply = ? WHERE key = ? AND owner = ?",
                ("idle" if text is None else "done", text, key, me()),
            )
            sql.execute("UPDATE money SET spent = spent + ?, unsettled = unsettled + ?", (spent, unsettled))
            note(sql, "fault" if text is None else "reply", key, usd=spent + unsettled, told=told)

    def reap(self) -> int:
        """Give up the requests of processes that died or held them too long; their money counts as spent. How many."""
        with self.transaction() as sql:
            flying = sql.execute("SELECT key, owner, expires FROM requests WHERE state = 'flying'").fetchall()
            dead = [key for key, owner, expires in flying if expires <= time.time() or not alive(owner)]
            for key in dead:
                lose(sql, key)
        return len(dead)

    def totals(self) -> Totals:
        """The sums so far, over all models and processes."""
        with self.lock:
            ask = self.connection.execute
            events = dict(ask("SELECT event, COUNT(*) FROM journal GROUP BY event").fetchall())
            spent, unsettled = ask("SELECT spent, unsettled FROM money").fetchone()
            reserved = ask("SELECT TOTAL(bound) FROM requests WHERE state = 'flying'").fetchone()[0]
            replies = ask("SELECT COUNT(*) FROM requests WHERE state = 'done'").fetchone()[0]
        counts = [events.get(event, 0) for event in ("sent", "lost", "repeat")]
        return Totals(replies, *counts, spent, reserved, unsettled)

    def replies(self, model: str) -> list[dict[str, Any]]:
        """All replies of one model file, for a pilot's lengths."""
        with self.lock:
            rows = self.connection.execute(
                "SELECT reply FROM requests WHERE state = 'done' AND model = ? ORDER BY key", (model,)
            ).fetchall()
        return [json.loads(reply) for (reply,) in rows]

    def reply(self, key: str) -> dict[str, Any]:
        """The reply to a request, {} where there is none."""
        with self.lock:
            found = self.connection.execute(
                "SELECT reply FROM requests WHERE state = 'done' AND key = ?", (key,)
            ).fetchone()
        return json.loads(found[0]) if found else {}

    def known(self) -> set[str]:
        """The names of all requests whose reply is here."""
        with self.lock:
            return {key for (key,) in self.connection.execute("SELECT key FROM requests WHERE state = 'done'")}

    def journal(self, event: str = "") -> list[dict[str, Any]]:
        """The journal's rows in order, of one event if named: sent, reply, fault, lost, repeat."""
        names = ("at", "event", "key", "model", "item", "owner", "usd", "told")
        with self.lock:
            rows = self.connection.execute(
                "SELECT * FROM journal WHERE ? IN ('', event) ORDER BY rowid", (event,)
            ).fetchall()
        return [dict(zip(names, row, strict=True)) for row in rows]

    def close(self) -> None:
        """Let the file go."""
        with self.lock:
            self.connection.close()


def room_for(sql: sqlite3.Connection, bound: float, max_cost: float) -> Literal["go", "wait", "full"]:
    """Whether so many dollars more stay under the limit, now or once what is reserved has been settled."""
    spent, unsettled = sql.execute("SELECT spent, unsettled FROM money").fetchone()
    if spent + unsettled + bound > max_cost:
        return "full"
    reserved = sql.execute("SELECT TOTAL(bound) FROM requests WHERE state = 'flying'").fetchone()[0]
    return "wait" if spent + unsettled + reserved + bound > max_cost else "go"


def lose(sql: sqlite3.Connection, key: str) -> None:
    """Note that a flying request's process is gone. It may have been billed: its bound counts as spent."""
    model, item, owner, bound = sql.execute(
        "SELECT model, item, owner, bound FROM requests WHERE key = ?", (key,)
    ).fetchone()
    sql.execute("UPDATE money SET unsettled = unsettled + ?", (bound,))
    sql.execute("UPDATE requests SET state = 'idle', owner = NULL, bound = 0, orphan = 1 WHERE key = ?", (key,))
    note(sql, "lost", key, model, item, usd=bound, told=f"in flight when {owner} ended")


def note(
    sql: sqlite3.Connection, event: str, key: str, model: str = "", item: str = "", *, usd: float = 0.0, told: str = ""
) -> None:
    """One row of the journal."""
    row = (time.time(), event, key, model, item, me(), usd, storable(told))
    sql.execute("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def storable(text: str) -> str:
    """The text with half a surrogate pair, which a cut emoji leaves and SQLite refuses, as its JSON escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def me() -> str:
    """This process among all that may share a ledger: host, process id, and when it began (ids are used again)."""
    return owner_of(os.getpid())


@cache
def owner_of(process: int) -> str:
    return f"{socket.gethostname()}:{process}:{began(process)}"


def alive(owner: str) -> bool:
    """Whether the process that took a request still runs; one of another host is believed until its time is up."""
    host, process, begun = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return begun == began(int(process))


def began(process: int) -> str:
    """When a process began, in the kernel's own count; "" where /proc does not tell."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return told.rsplit(") ", 1)[1].split()[19]
