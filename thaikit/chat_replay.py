"""Recorded replies: notebooks that ask models run at once, offline, on what was written down."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thaikit import ThaikitError, params
from thaikit.chat import OUTCOMES, Ask, Kept, Reply, Sampling, Tell, Then, ended, prompt_sha256
from thaikit.model_facts import WRITTEN
from thaikit.records import root, sha256_file
from thaikit.rowlog import RowLog


@dataclass
class Recorded:
    """Replies read from a JSONL file of rows {id, text, finish, outcome, …}, the id that of the request (`Ask.key`).
    What was not recorded is an error, never a guess; so is a reply recorded for another text, which the row's
    `prompt_sha256` (one hash, or a list) tells. `asked` are the hashes of what was asked so far."""

    name: str
    entry: params.ModelEntry
    path: Path
    replies: Mapping[str, Reply]
    prompts: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    chat: bool = True
    ran: int = 0
    asked: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, name: str, entry: params.ModelEntry) -> Recorded:
        """The file that the entry names; ThaikitError names file and line of a fault."""
        path = params.expand(entry.source, base=root())
        if path.suffix != ".jsonl" or not path.is_file():
            raise ThaikitError(
                f"model {name}: source is {entry.source!r}; recorded replies are a .jsonl file that exists"
            )
        rows = list(read_rows(path))
        told = {key: reply for key, reply, _ in rows}
        return cls(name, entry, path, told, {key: hashes for key, _, hashes in rows if hashes})

    def facts(self) -> dict[str, Any]:
        """What run.json says of it, and that it was replayed."""
        told = {"name": self.name, "source": self.entry.source, "rehearsal": self.entry.rehearsal}
        told |= {"note": self.entry.note, "kind": "replay", "thai": {"why": WRITTEN}}
        loose = [key for key in self.asked if key not in self.prompts]
        used = {"replies_used": len(self.asked), "replies_tied_to_no_text": len(loose)}
        return {**told, "records_sha256": sha256_file(self.path), **used}

    def ask(
        self, asks: Iterable[Ask], *, sampling: Sampling, log: RowLog, tell: Tell, then: Then | None = None
    ) -> Iterator[tuple[Ask, Reply]]:
        """Yield each request with its recorded reply, in order, a regeneration right after the reply it follows."""
        kept = Kept.read(log)
        for first in asks:
            ask: Ask | None = first
            while ask is not None:
                reply = kept.known.get(ask.key)
                if reply is None:
                    reply = self.look_up(ask)
                    kept.keep(ask, reply)
                yield ask, reply
                ask = then(ask, reply) if then is not None else None

    def look_up(self, ask: Ask) -> Reply:
        """A recorded reply, or one sentence where this request was never recorded."""
        if ask.key not in self.replies:
            raise ThaikitError(
                f"model {self.name}: no reply to {ask.key!r} is among the {len(self.replies)} recorded in "
                f"{self.path.name}; it repeats the bundled samples with the notebook's own settings only"
            )
        self.asked[ask.key] = prompt_sha256(ask.prompt)
        known = self.prompts.get(ask.key)
        if known and self.asked[ask.key] not in known:
            raise ThaikitError(
                f"model {self.name}: the reply to {ask.key!r} in {self.path.name} was recorded for another text "
                f"(prompt_sha256 {known[0][:8]}…, asked now {self.asked[ask.key][:8]}…); record it again, or take "
                "prompt_sha256 out of its row to use it all the same"
            )
        return self.replies[ask.key]


def read_recorded(path: Path) -> Iterator[tuple[str, Reply]]:
    """(id, reply) of each line; see `read_rows`."""
    yield from ((key, reply) for key, reply, _ in read_rows(path))


def read_rows(path: Path) -> Iterator[tuple[str, Reply, tuple[str, ...]]]:
    """(id, reply, hashes of the prompts that it answers) of each line. The outcome is read from text and finish where
    the row does not name it; a recorded failure is one for good. ThaikitError names file and line of a fault."""
    seen: set[str] = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path.name}, line {number}"
        try:
            row = json.loads(line)
            name, text = row["id"], row.get("text", "")
        except (ValueError, KeyError, TypeError) as error:
            raise ThaikitError(f"{where}: {error}; each line is a JSON object with id and text") from error
        finish, refusal = row.get("finish", "stop"), row.get("refusal", "")
        outcome = row.get("outcome") or ended(text, finish, refusal=refusal)
        if outcome not in OUTCOMES or name in seen:
            told = f"id {name!r} is there twice" if name in seen else f"outcome is {outcome!r}"
            raise ThaikitError(f"{where}: {told}; ids are unique, and outcomes are {', '.join(OUTCOMES)}")
        seen.add(name)
        hashes = row.get("prompt_sha256") or []
        hashes = [hashes] if isinstance(hashes, str) else hashes
        if not isinstance(hashes, list) or not all(isinstance(one, str) for one in hashes):
            told = f"prompt_sha256 is {row['prompt_sha256']!r}; a hash or a list of them is allowed"
            raise ThaikitError(f"{where}: {told}")
        extra = {key: row[key] for key in ("error", "model", "prompt_tokens", "completion_tokens") if key in row}
        lost = {"for_good": outcome == "failed"}
        yield name, Reply(text=text, finish=finish, outcome=outcome, refusal=refusal, **extra, **lost), tuple(hashes)
