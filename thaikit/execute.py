"""The process of one leaf: papermill runs one notebook. Started by `run` as `python -m thaikit.execute JOB.json`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager

LONGEST_SOCKET = 100  # bytes of a Unix socket's path: 108 on Linux, 104 on macOS, less what is appended
DIED = "kernel died (often memory): lower batch_size or take a smaller model, and run again to resume"
POSIX = os.name == "posix"


class IPCKernelManager(AsyncKernelManager):
    """A kernel on Unix sockets in a folder of its own: kernels on TCP choose a port before they bind it, and race.

    The kernel inherits the leaf's lock, so that nobody else enters the leaf before the last writer is gone.
    """

    folder = ""
    lock: tuple[int, ...] = ()

    def __init__(self, **options: Any) -> None:
        path = str(Path(self.folder) / "k.json")
        if POSIX and len(os.fsencode(path)) < LONGEST_SOCKET:
            options |= {"transport": "ipc", "connection_file": path}
        super().__init__(**options)

    async def start_kernel(self, **options: Any) -> None:
        """Start the kernel, with the lock's file descriptor open in it."""
        await super().start_kernel(**options, **({"pass_fds": self.lock} if POSIX else {}))


def execute(job: dict[str, Any]) -> str:
    """Run a job's notebook; "" when papermill ended well, else the reason in one sentence."""
    # jsonschema takes this package if it can, to check addresses that no notebook has; importing it costs seconds.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    IPCKernelManager.folder = tempfile.mkdtemp(prefix="thaikit-")
    IPCKernelManager.lock = tuple(job["lock"])
    try:
        papermill.execute_notebook(
            plain_path(job["notebook"]),
            plain_path(job["output"]),
            parameters=job["params"],
            kernel_name="python3",
            kernel_manager_class=IPCKernelManager,
            progress_bar=False,
            request_save_on_cell_execute=True,
            start_timeout=180,
            coalesce_streams=True,
        )
    except PapermillExecutionError as error:
        return told(error)
    except DeadKernelError:
        return DIED
    except Exception as error:
        return one_line(f"{type(error).__name__}: {error}")
    finally:
        shutil.rmtree(IPCKernelManager.folder, ignore_errors=True)
    return ""


def told(error: Any) -> str:
    """A cell's exception (PapermillExecutionError) as one sentence; the kit's own faults are one already."""
    if error.ename == "ThaikitError":
        return one_line(error.evalue)
    return one_line(f"{error.ename}: {error.evalue} (in cell {error.exec_count})")


def one_line(text: str) -> str:
    """Text without colour codes and line breaks, 500 characters at most."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())[:500]


def plain_path(path: str) -> str:
    """A path that papermill takes as it is: it would fill braces from the parameters."""
    return path.replace("{", "{{").replace("}", "}}")


def leave_with_parent(parent: int) -> None:
    """End this process when the runner is gone; the kernel sees that by itself."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


def interrupted(*_: Any) -> None:
    """SIGTERM as Ctrl-C, so that papermill saves the notebook and ends its kernel."""
    raise KeyboardInterrupt


def main(job_file: str) -> int:
    """Exit status 0 when the notebook ran to its end; else the reason lies in `.reason` beside the job."""
    path = Path(job_file)
    job = json.loads(path.read_text(encoding="utf-8"))
    signal.signal(signal.SIGTERM, interrupted)
    if POSIX:
        threading.Thread(target=leave_with_parent, args=(job["parent"],), daemon=True).start()
    try:
        reason = execute(job)
    except KeyboardInterrupt:
        return 130
    path.with_name(".reason").write_text(reason, encoding="utf-8")
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
