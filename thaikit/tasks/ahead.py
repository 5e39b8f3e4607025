"""Each task encoded beside the forward passes of the one before it, unless a prompt could be too long for the model."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from thaikit.tasks.build import Task
from thaikit.tasks.items import context
from thaikit.tasks.score import Ready, Settings, new_tokens, prepare

SPARE = 256  # ids that a template, BOS and a normaliser may add to a prompt's bytes


def encoded(tasks: Sequence[Task], model: Any, settings: Settings) -> Iterator[tuple[Task, list[Ready]]]:
    """Each task with its encoded items, in order; a thread encodes the next ones while the caller runs the model.

    A token stands for one byte or more, so where every prompt's bytes fit the window none can be too long. Where some
    do not, all tasks are encoded and measured before the first is yielded, so that a prompt that is too long is told
    (ThaikitError) before anything is run. A fault found beside a running task is told before the next one is run. Who
    stops in the midst, by Ctrl-C or a fault, waits for the item under way only.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waiting: list[Future[list[Ready]]] = [pool.submit(prepare, task, model, settings, stop=stop) for task in tasks]
        try:
            sure = all(surely_fits(task, model) for task in tasks)
            for task in tasks:
                for future in waiting:
                    if not sure or future.done():
                        future.result()
                yield task, waiting.pop(0).result()
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def surely_fits(task: Task, model: Any) -> bool:
    """Whether no prompt of a task can be too long, as its bytes show: chat templates may double what they wrap."""
    room = model.max_length - (new_tokens(task) if task.generates else 0) - SPARE
    most = 0
    for index, item in enumerate(task.items):
        shots = task.shots(index)
        for choice in range(len(item.queries)):  # one for all choices, but in Winogrande
            tails = item.continuations if len(item.queries) == 1 else item.continuations[choice : choice + 1]
            text = context(item, shots, delimiter=task.spec.delimiter, choice=choice)
            most = max(most, size(text) + max(map(size, () if task.generates else tails), default=0))
    return most * (2 if task.in_turns(model) else 1) <= room


def size(text: str) -> int:
    """UTF-8 bytes."""
    return len(text.encode("utf-8", "surrogatepass"))
