"""A model that repeats what a real one was recorded to say, so that notebooks run at once, offline, without weights.

What was not recorded is an error, never a guess. Token counts of prompts are counts of UTF-8 bytes here.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thaikit import ThaikitError
from thaikit.encoding import Encoded
from thaikit.model_facts import WRITTEN
from thaikit.params import ModelEntry, expand
from thaikit.records import root, sha256_file

DECIMALS = 6


@dataclass(frozen=True)
class Replayed:
    """Recorded log-probabilities of a continuation's tokens."""

    logprobs: np.ndarray
    greedy: bool

    @property
    def ll(self) -> float:
        """Their sum in float64."""
        return float(self.logprobs.sum(dtype=np.float64))


@dataclass(frozen=True)
class Written:
    """A recorded completion; `ids` only has its length."""

    text: str
    ids: range
    finish: str


def pair_key(context: bytes, continuation: bytes) -> str:
    """The key of a scoring request."""
    return hashlib.sha256(context + b"\0" + continuation).hexdigest()[:24]


def prompt_key(prompt: bytes, stops: Sequence[str], max_new_tokens: int) -> str:
    """The key of a generation: the prompt and all that can change the answer."""
    rules = json.dumps([list(stops), max_new_tokens], ensure_ascii=False).encode()
    return hashlib.sha256(prompt + b"\0" + rules).hexdigest()[:24]


@dataclass(frozen=True)
class Replay:
    """Recorded answers of one model, by request."""

    name: str
    entry: ModelEntry
    path: Path
    records: Mapping[str, Any]
    chat: bool = False
    bos: str = ""
    max_length: int = 1 << 30

    @classmethod
    def read(cls, name: str, entry: ModelEntry) -> Replay:
        """The records of the file that the entry names."""
        path = expand(entry.source, base=root())
        if not path.exists():
            raise ThaikitError(f"model {name}: no recorded answers at {path}; run make replay, or choose another model")
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            return cls(name, entry, path, json.load(stream))

    def facts(self) -> dict[str, Any]:
        """What run.json says of it: the recorded model's own facts, and that they were replayed."""
        entry, recorded = self.entry, self.records.get("model", {})
        told = {"name": self.name, "source": entry.source, "rehearsal": entry.rehearsal, "note": entry.note}
        told |= {"kind": "replay", "records_sha256": sha256_file(self.path)}
        return {"thai": {"why": WRITTEN}, **recorded, **told}

    def encode_prompt(self, prompt: str, *, bos: str) -> list[int]:
        """The prompt's bytes, which key its record."""
        return list(prompt.encode())

    def encode_pair(self, prompt: str, continuation: str, *, bos: str, boundary: str, prefix: str) -> Encoded:
        """The request's bytes, which key its record."""
        return Encoded(tuple(prompt.encode()), tuple(continuation.encode()))

    def score(self, requests: Sequence[Encoded], **_: Any) -> Iterator[tuple[int, Replayed]]:
        """Yield (request index, recorded score)."""
        for index, request in enumerate(requests):
            record = self.look_up("scores", pair_key(bytes(request.context), bytes(request.continuation)))
            yield index, Replayed(np.asarray(record["lp"], dtype=np.float32), bool(record["g"]))

    def pieces(self, request: Encoded) -> list[str]:
        """The recorded texts of a request's tokens; [] where none were recorded."""
        return list(self.look_up("scores", pair_key(bytes(request.context), bytes(request.continuation))).get("t", []))

    def generate(
        self, prompts: Sequence[Sequence[int]], *, stops: Sequence[str], max_new_tokens: int, **_: Any
    ) -> Iterator[tuple[int, Written]]:
        """Yield (prompt index, recorded completion)."""
        for index, prompt in enumerate(prompts):
            record = self.look_up("texts", prompt_key(bytes(prompt), stops, max_new_tokens))
            yield index, Written(record["text"], range(record["n"]), record["finish"])

    def look_up(self, part: str, key: str) -> Any:
        """A record, or one sentence where this request was never recorded."""
        found = self.records[part].get(key)
        if found is None:
            raise ThaikitError(
                f"model {self.name}: a request is not among its {len(self.records[part])} recorded {part}; it repeats "
                "the bundled samples with the notebook's own settings only, choose a real model for anything else"
            )
        return found


@dataclass
class Recorder:
    """A model that passes each question on to a real one and keeps the answers, keyed as `Replay` looks them up."""

    model: Any
    records: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def encode_prompt(self, prompt: Any, **rules: Any) -> list[int]:
        """As the model encodes it; remembers which text the ids stand for."""
        ids = self.model.encode_prompt(prompt, **rules)
        self.records["_prompts"][tuple(ids)] = prompt.encode()
        return ids

    def encode_pair(self, prompt: Any, continuation: str, **rules: Any) -> Encoded:
        """As the model encodes it; remembers which texts the ids stand for."""
        request = self.model.encode_pair(prompt, continuation, **rules)
        key = pair_key(prompt.encode(), continuation.encode())
        self.records["_pairs"].setdefault((request.context, request.continuation), set()).add(key)
        return request

    def score(self, requests: Sequence[Encoded], **options: Any) -> Iterator[tuple[int, Any]]:
        """Pass on and keep."""
        for index, scored in self.model.score(requests, **options):
            request = requests[index]
            kept = {"lp": [round(float(x), DECIMALS) for x in scored.logprobs], "g": scored.greedy}
            kept |= {"t": self.model.pieces(request)} if hasattr(self.model, "pieces") else {}
            for key in self.records["_pairs"][(request.context, request.continuation)]:
                self.records["scores"][key] = kept
            yield index, scored

    def generate(self, prompts: Sequence[Sequence[int]], **options: Any) -> Iterator[tuple[int, Any]]:
        """Pass on and keep."""
        for index, made in self.model.generate(prompts, **options):
            text = self.records["_prompts"][tuple(prompts[index])]
            key = prompt_key(text, options["stops"], options["max_new_tokens"])
            self.records["texts"][key] = {"text": made.text, "n": len(made.ids), "finish": made.finish}
            yield index, made


def record(model: Any) -> Recorder:
    """A recorder around a model, with nothing recorded yet."""
    return Recorder(model, {"model": model.facts(), "scores": {}, "texts": {}, "_pairs": {}, "_prompts": {}})


def save(recorder: Recorder, path: Path) -> None:
    """Write the records as gzipped JSON (no time stamp inside, so equal records give equal bytes)."""
    kept = {key: value for key, value in recorder.records.items() if not key.startswith("_")}
    text = json.dumps(kept, ensure_ascii=False, sort_keys=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
