"""The leaves of a plan, run: one process each, built aside in `<leaf>.partial` and renamed when it ended well.

A closed leaf with the same inputs is left alone. A killed one is resumed inside its `.partial`; where the suite has
changed since that was begun, the `.partial` is moved to `<leaf>.partial.old-<time>` and the leaf begins again. The last
good leaf stays until its successor is done. A lock beside the leaf keeps two runners off it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from thaikit import ThaikitError
from thaikit.params import shown
from thaikit.plan import Leafplan, waits_for
from thaikit.records import partial, read_leaf, state_of, write_atomic

try:
    import fcntl
except ImportError:  # Windows: no lock, so no two runners there
    fcntl = None  # type: ignore[assignment]

HEARTBEAT = 30.0  # seconds between two lines on a leaf that is still at work
GRACE = 15.0  # seconds that a child has to save its notebook before it is killed
NO_RUN_JSON = "the notebook ended without closing its leaf: a cell called exit, or its last cell is not run.finish"
KILLED = "kernel died (often memory): lower batch_size or take a smaller model, and run again to resume"


@dataclass(frozen=True)
class Done:
    """How a leaf went: closed (nothing to do), done, failed (with a reason) or stopped (Ctrl-C)."""

    name: str
    state: str
    seconds: float = 0.0
    told: str = ""


@dataclass
class Runner:
    """What the leaves of one `run` share: how many go at once, and whether the user wants to stop."""

    jobs: int = 1
    stop: threading.Event = field(default_factory=threading.Event)

    def environment(self) -> dict[str, str]:
        """The children's environment: batch mode, and the cores shared out when several run at once."""
        given = {"THAIKIT_BATCH": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        # Threads that spin at barriers starve each other where cores are shared; sleeping ones cost nothing alone.
        found = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, **given}
        if self.jobs > 1:
            threads = str(max(1, cores() // self.jobs))
            for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
                found.setdefault(name, threads)
            found.setdefault("TOKENIZERS_PARALLELISM", "false")
        return found


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(leaves: Sequence[Leafplan], *, jobs: int = 1) -> list[Done]:
    """Run the leaves that are not closed, `jobs` of them at once, each as soon as those it may read have ended; one
    printed line a leaf.

    A failed leaf does not hold up the others. KeyboardInterrupt ends the children and is passed on.
    """
    if jobs < 1:
        raise ThaikitError(f"-j {jobs}: at least one leaf at a time is needed")
    runner, ended, waiting = Runner(jobs), [], list(leaves)
    working: dict[Future[Done], Leafplan] = {}
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        while waiting or working:
            before = [*waiting, *working.values()]
            ready = [leaf for leaf in waiting if not any(waits_for(leaf, other) for other in before)]
            for leaf in ready[: jobs - len(working)]:
                waiting.remove(leaf)
                working[pool.submit(attempt, leaf, runner)] = leaf
            for future in wait(working, return_when=FIRST_COMPLETED).done:
                del working[future]
                ended.append(future.result())
                say(ended[-1])
    except KeyboardInterrupt:
        runner.stop.set()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return ended


def say(done: Done) -> None:
    """One line a leaf: state, leaf, seconds, headline or reason."""
    print(f"{done.state:<8} {done.name:<44} {done.seconds:>6.0f} s  {done.told}".rstrip(), flush=True)


def attempt(leaf: Leafplan, runner: Runner) -> Done:
    """A leaf, however it goes, as a `Done`."""
    begun = time.monotonic()
    try:
        state, told = work(leaf, runner)
    except (ThaikitError, OSError) as error:
        state, told = "failed", f"{shown(leaf.folder)}: {error}"
    return Done(leaf.name, state, time.monotonic() - begun, told)


def work(leaf: Leafplan, runner: Runner) -> tuple[str, str]:
    """State and headline or reason of a leaf after it was looked at and, if need be, run."""
    if leaf.state().state == "closed":
        return "closed", headline(leaf.folder)
    leaf.folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(leaf, runner) as lock:
        digest = leaf.digest()
        if lock is None or runner.stop.is_set():
            return "stopped", "run again to resume"
        if state_of(leaf.folder, digest=digest).state == "closed":  # by the runner that had the lock
            return "closed", headline(leaf.folder)
        set_aside_other_inputs(leaf, digest)
        reason = run_process(leaf, runner, lock)
        if runner.stop.is_set() and reason:
            return "stopped", "run again to resume"
        if not reason:
            reason = fault_of_record(partial(leaf.folder), digest)
        if reason:
            return "failed", f"{shown(partial(leaf.folder))}: {reason}"
        publish(leaf.folder)
    return "done", headline(leaf.folder)


@contextlib.contextmanager
def locked(leaf: Leafplan, runner: Runner) -> Iterator[list[int] | None]:
    """Hold the leaf's lock, waiting for another runner to be done with it; None where the user stops the wait.

    The lock lies beside the leaf, since the leaf's own folder is renamed. The child and its kernel inherit it: it is
    free when the last process that could write into the leaf is gone, even after a SIGKILL of the runner.
    """
    if fcntl is None:
        yield []
        return
    path = leaf.folder.with_name(f".{leaf.folder.name}.lock")
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        told, held = time.monotonic() + 3, False
        while not held and not runner.stop.is_set():
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except OSError:
                if time.monotonic() > told:
                    print(f"waits    {leaf.name}: another run works on this leaf ({shown(path)})", flush=True)
                    told = float("inf")
                runner.stop.wait(0.2)
        yield [handle] if held else None
    finally:
        os.close(handle)


def set_aside_other_inputs(leaf: Leafplan, digest: str) -> None:
    """Move a `.partial` that was begun with other inputs out of the way: its rows answer another question."""
    building = partial(leaf.folder)
    found = [read_json(building / name).get("input_hash") for name in ("run.json", ".inputs.json")]
    begun = [value for value in found if value]
    if not begun or begun == [digest] * len(begun):
        return
    if not any((building / "rows").glob("*.jsonl")):
        shutil.rmtree(building)
        return
    aside = building.with_name(f"{building.name}.old-{datetime.now():%Y%m%d-%H%M%S}")
    building.rename(aside)
    print(f"changed  {leaf.name}: begun with other inputs, kept as {shown(aside)}, begins again", flush=True)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, {} where the file is missing or unfinished."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def run_process(leaf: Leafplan, runner: Runner, lock: list[int]) -> str:
    """Run the leaf's notebook in its own process; "" when papermill ended well, else the reason."""
    building = partial(leaf.folder)
    building.mkdir(exist_ok=True)
    job = {
        "notebook": str(leaf.notebook),
        "output": str(building / "notebook.ipynb"),
        "params": {**leaf.params, "out_dir": str(building)},
        "lock": lock,
        "parent": os.getpid(),
    }
    (building / ".reason").unlink(missing_ok=True)
    write_atomic(building / ".job.json", json.dumps(job, ensure_ascii=False))
    command = [sys.executable, "-m", "thaikit.execute", str(building / ".job.json")]
    with (building / "log.txt").open("ab") as log:
        options: dict[str, Any] = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL, "pass_fds": lock}
        child = subprocess.Popen(command, env=runner.environment(), start_new_session=True, **options)
        late = watch(child, leaf, runner)
    return late or reason_of(child.returncode, building)


def watch(child: subprocess.Popen[bytes], leaf: Leafplan, runner: Runner) -> str:
    """Wait for a child, with a sign of life now and then; end it on Ctrl-C or past the stage's timeout (the reason)."""
    begun = shown_at = time.monotonic()
    while child.poll() is None:
        now = time.monotonic()
        if runner.stop.is_set():
            end(child)
            return "stopped"
        if leaf.timeout and now - begun > leaf.timeout:
            end(child)
            return f"ran past its timeout of {leaf.timeout} s; raise timeout in the suite and run again to resume"
        if now - shown_at > HEARTBEAT:
            shown_at = now
            rows = state_of(leaf.folder, digest="-").rows
            print(f"at work  {leaf.name:<44} {now - begun:>6.0f} s  {rows} rows", file=sys.stderr, flush=True)
        runner.stop.wait(0.1)
    return ""


def end(child: subprocess.Popen[bytes]) -> None:
    """End a child: it may save its notebook first, and is killed if that takes too long."""
    child.terminate()
    try:
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def reason_of(code: int, building: Path) -> str:
    """Why a child failed: its own sentence, else what its exit status means; "" if it did not."""
    note = building / ".reason"
    reason = note.read_text(encoding="utf-8") if note.exists() else ""
    if reason or code == 0:
        return reason
    if code in (-9, 137, 138):
        return KILLED
    return f"its process ended with status {code}; see {shown(building / 'log.txt')}"


def fault_of_record(building: Path, digest: str) -> str:
    """What is wrong with the run.json that a notebook left, or ""."""
    record = read_json(building / "run.json")
    if not record:
        return NO_RUN_JSON
    if record.get("input_hash") != digest:
        return (
            "the notebook closed its leaf with other inputs than the suite says: they changed meanwhile, or Run.open "
            "is not given all parameters of its parameters cell and inputs_of"
        )
    return ""


def publish(folder: Path) -> None:
    """Put the finished `.partial` in the leaf's place; the old leaf goes only now."""
    building, old = partial(folder), folder.with_name(f".{folder.name}.replaced")
    for name in (".job.json", ".reason", ".inputs.json"):
        (building / name).unlink(missing_ok=True)
    log = building / "log.txt"
    if log.exists() and not log.stat().st_size:
        log.unlink()
    if old.exists():
        shutil.rmtree(old)
    if folder.exists():
        folder.rename(old)
    building.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def headline(folder: Path) -> str:
    """The number that a leaf's line shows: the average of its first group of estimates, else the first estimate."""
    for group, estimates in (read_leaf(folder).run.get("headline") or {}).items():
        if isinstance(estimates, dict) and estimates:
            name = "average" if "average" in estimates else next(iter(estimates))
            estimate = estimates[name]
            value = estimate.get("value") if isinstance(estimate, dict) else estimate
            return f"{group} {name} {value:.3f}" if isinstance(value, float | int) else ""
    return ""
