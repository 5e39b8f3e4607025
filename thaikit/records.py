"""Rows in and out, the leaf that holds them, and `run.json`, which closes it (nothing else means done)."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from thaikit import ThaikitError, __version__, table_text
from thaikit.leaves import CLOSE, Leaf, State, leaves, partial, read_leaf, state_of, status  # noqa: F401 - part of this API
from thaikit.rowlog import RowLog, drop_torn_line, finite, open_failure, read_rows, write_atomic  # noqa: F401 - part of this API

PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "accelerate", "numpy", "pandas", "pyarrow", "pythainlp")
OPERATIONAL = ("out_dir", "batch_size", "max_cost")  # they cannot change a row: no part of the input hash
LISTS = ("token_logprobs", "mc1_token_logprobs", "token_texts")  # stay in the JSONL; Parquet is for analyses


def root() -> Path:
    """The kit's own folder (the one with environment.yml), found from the package, never from the working folder."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "environment.yml").exists():
            return folder
    raise ThaikitError(
        f"{Path(__file__).parent}: no environment.yml in this folder or above; "
        "install the kit from its clone with pip install -e ."
    )


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sha256_json(value: Any) -> str:
    """SHA-256 of a value's canonical JSON (sorted keys, UTF-8), in hex."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def input_hash(params: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """Hash of all that decides a leaf's rows: parameters, input files by content, and the kit's version."""
    return sha256_json({"params": deciding(params), "inputs": dict(inputs), "thaikit": __version__})


def deciding(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that can change a row: all but the operational ones."""
    return {name: value for name, value in params.items() if name not in OPERATIONAL}


@dataclass
class Run:
    """One notebook execution and its leaf. `closed` is true where `run.json` was there with the same inputs."""

    stage: str
    out_dir: Path
    params: dict[str, Any]
    inputs: dict[str, str]
    closed: bool
    record: dict[str, Any]
    started: float = field(default_factory=time.time)
    logs: dict[str, RowLog] = field(default_factory=dict)
    begun: str = ""  # when an open leaf was first opened, the same after each kill
    closing: bool = False  # to be closed with what is there (python -m thaikit close): nobody is asked

    @property
    def purse(self) -> Path:
        """The folder whose runs share replies and the limit in money: the suite's; without one the stage's folder of a
        leaf FOLDER/<stage>/<leaf>, scratch aside; else the leaf itself."""
        if self.params.get("suite"):
            return Path(str(self.params["suite"]))
        folder = self.out_dir.parent
        return folder if folder.name == self.stage and folder.parent.name != "scratch" else self.out_dir

    @classmethod
    def open(
        cls, stage: str, *, params: Mapping[str, Any], inputs: Mapping[str, str] | None = None, out_dir: str = ""
    ) -> Run:
        """Open the leaf `out_dir` ("" makes a new folder under outputs/scratch/<stage>/).

        A closed leaf with the same input hash comes back with `closed=True`, to be shown without computing; an open
        one is resumed. With other inputs either is refused in one sentence (ThaikitError).
        """
        folder = scratch(stage) if not out_dir else Path(out_dir).expanduser().resolve()
        folder.mkdir(parents=True, exist_ok=True)
        kept = {k: v for k, v in params.items() if k != "out_dir"}
        digest = input_hash(kept, inputs or {})
        done, begun = folder / "run.json", folder / ".inputs.json"
        for marker in (done, begun):
            if marker.exists():
                refuse_other_inputs(marker, digest, kept, inputs or {})
        if done.exists():
            record = json.loads(done.read_text(encoding="utf-8"))
            return cls(stage, folder, kept, dict(inputs or {}), True, record)
        first = json.loads(begun.read_text(encoding="utf-8")).get("begun") if begun.exists() else ""
        begin = {"stage": stage, "input_hash": digest, "params": kept, "inputs": dict(inputs or {})}
        begin["begun"] = first or iso(time.time())
        write_atomic(begun, json.dumps(begin, ensure_ascii=False, default=str))
        told: dict[str, Any] = {"begun": begin["begun"], "closing": (folder / CLOSE).exists()}
        return cls(stage, folder, kept, dict(inputs or {}), False, {"input_hash": digest}, **told)

    def log(self, task: str) -> RowLog:
        """The append-only row log of one task, with what an earlier, killed run left in it."""
        return self.logs.setdefault(task, RowLog(self.out_dir / "rows" / f"{task}.jsonl"))

    def table(self, frame: Any, name: str) -> Path:
        """Write a data frame to tables/<name>.csv in full precision, and to .tex and .md rounded for display."""
        path = self.out_dir / "tables" / f"{name}.csv"
        if not self.closed:
            path.parent.mkdir(exist_ok=True)
            frame.to_csv(path, index=False)
            path.with_suffix(".tex").write_text(table_text.latex(frame), encoding="utf-8")
            path.with_suffix(".md").write_text(table_text.markdown(frame), encoding="utf-8")
        return path

    def figure(self, figure: Any, name: str) -> Path:
        """Write a matplotlib figure to figures/<name>.png, .pdf and .svg."""
        path = self.out_dir / "figures" / f"{name}.png"
        if not self.closed:
            path.parent.mkdir(exist_ok=True)
            figure.savefig(path)
            figure.savefig(path.with_suffix(".pdf"), metadata={"CreationDate": None})
            figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        return path

    def finish(self, *, headline: Mapping[str, Any], accept_failed: bool = False, **facts: Any) -> dict[str, Any]:
        """Close the leaf: rows in item order as JSONL and Parquet, then run.json, last. Returns what it holds.

        ThaikitError where rows failed, so that the next run tries them again, unless `accept_failed`, or they failed
        for good. `failures` tells of rows that stay without a result.
        """
        if self.closed:
            return self.record
        if not accept_failed:
            refuse_failed(self.logs)
        lost = failures(self.logs)
        if lost:
            facts["failures"] = lost | {"given_up": self.closing}
        for task, log in self.logs.items():
            settle(log, self.out_dir / "rows" / f"{task}.parquet")
        ended = time.time()
        record = {
            "stage": self.stage,
            "params": self.params,
            "input_hash": self.record["input_hash"],
            "inputs": self.inputs,
            "versions": versions(),
            "git_commit": git_commit(),
            "started": iso(self.started),
            "finished": iso(ended),
            "seconds": round(ended - self.started, 1),
            **facts,
            "headline": headline,
        }
        text = json.dumps(finite(record), ensure_ascii=False, indent=1, default=str)
        write_atomic(self.out_dir / "run.json", text + "\n")
        for name in (".inputs.json", CLOSE):
            (self.out_dir / name).unlink(missing_ok=True)
        self.closed, self.record = True, record
        return record


def refuse_failed(logs: Mapping[str, RowLog]) -> None:
    """Raise where rows failed: a failure is no score, and a leaf that holds one is not done."""
    failed = failed_rows(logs)
    open_ones = [f"{task} {row['id']}" for task, row in failed if open_failure(row)]
    if open_ones:
        why = next((f", with: {row['error']}" for _, row in failed if open_failure(row) and row.get("error")), "")
        raise ThaikitError(
            f"{len(open_ones)} items failed ({', '.join(open_ones[:3])}{' …' if len(open_ones) > 3 else ''}{why}); run "
            "again to try just these once more, or python -m thaikit close LEAF and run again to close it without them"
        )


def failed_rows(logs: Mapping[str, RowLog]) -> list[tuple[str, dict[str, Any]]]:
    """(task, row) of all failed rows; raw replies only where the leaf holds no other rows, since those repeat them."""
    telling = {task: log for task, log in logs.items() if task != "replies"} or logs
    return [(task, row) for task, log in telling.items() for row in log.rows() if row.get("outcome") == "failed"]


def failures(logs: Mapping[str, RowLog]) -> dict[str, Any]:
    """Rows that stay without a result, for run.json: how many, why, the first ids; {} where there are none."""
    failed = failed_rows(logs)
    reasons = Counter(row.get("error") or "no answer came" for _, row in failed)
    names = [f"{task} {row['id']}" for task, row in failed]
    return {"count": len(failed), "reasons": dict(reasons.most_common(10)), "first": names[:20]} if failed else {}


def settle(log: RowLog, parquet: Path) -> None:
    """Rewrite a task's JSONL in item order and write its Parquet twin without the per-token lists."""
    import pandas as pd

    rows = log.rows()
    write_atomic(log.path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    frame = pd.DataFrame([{k: v for k, v in row.items() if k not in LISTS} for row in rows])
    unfinished = parquet.with_suffix(".unfinished")
    frame.to_parquet(unfinished, index=False)
    unfinished.replace(parquet)


def suite_folder(suite: str) -> Path:
    """The folder of a suite's outputs: a path, or a suite's name under outputs/; ThaikitError where there is none."""
    given = Path(suite).expanduser()
    tried = [given] if given.is_absolute() else [root() / given, root() / "outputs" / given]
    for folder in tried:
        if folder.is_dir():
            return folder.resolve()
    raise ThaikitError(
        f"suite {suite!r}: no such folder ({', '.join(map(str, tried))}); name the folder of its outputs"
    )


def scratch(stage: str) -> Path:
    """A new folder under outputs/scratch/<stage>/, named by the time."""
    base = root() / "outputs" / "scratch" / stage
    base.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=datetime.now().strftime("%Y%m%d-%H%M%S-"), dir=base))


def refuse_other_inputs(marker: Path, digest: str, params: Mapping[str, Any], inputs: Mapping[str, str]) -> None:
    """Raise one sentence if the leaf was begun or closed with other inputs, naming what differs."""
    record = json.loads(marker.read_text(encoding="utf-8"))
    if record.get("input_hash") == digest:
        return
    changed = [f"{k}={v!r} now, {record['params'].get(k)!r} then" for k, v in deciding(params).items()
               if record.get("params", {}).get(k) != v]  # fmt: skip
    changed += [f"input {k} has another content" for k, v in inputs.items() if record.get("inputs", {}).get(k) != v]
    state = "closed" if marker.name == "run.json" else "begun"
    raise ThaikitError(
        f"{marker.parent}: this leaf was {state} with other inputs ({'; '.join(changed) or 'another kit version'}); "
        "name another out_dir, or delete the folder to begin again"
    )


def versions() -> dict[str, str]:
    """Versions of Python, the kit and the libraries that can change a number."""
    found = {"python": platform.python_version(), "thaikit": __version__}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_commit() -> str:
    """The kit's commit, with "+changes" where the tree was not clean; "" outside a clone."""

    def git(*words: str) -> str:  # fmt: skip
        done = subprocess.run(["git", "-C", str(root()), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    commit = git("rev-parse", "HEAD")
    return commit + ("+changes" if commit and git("status", "--porcelain", "--untracked-files=no") else "")


def iso(seconds: float) -> str:
    """UTC time as ISO 8601, to the second."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def progress(items: Iterable[Any], label: str, *, total: int | None = None) -> Iterator[Any]:
    """The items, with a plain progress line on stderr (every 10 s in batch, live in JupyterLab)."""
    from tqdm import tqdm

    batch = bool(os.environ.get("THAIKIT_BATCH"))
    return iter(tqdm(items, desc=label, total=total, mininterval=10.0 if batch else 0.5, file=sys.stderr, leave=False))


def ticker(label: str, *, every: float = 10.0) -> Callable[[str], None]:
    """A function that prints `label: message` on stderr at most once in `every` seconds (0.0 prints always)."""
    last = [0.0]

    def tick(message: str) -> None:
        if time.monotonic() - last[0] >= every:
            last[0] = time.monotonic()
            print(f"{label}: {message}", file=sys.stderr, flush=True)

    return tick
