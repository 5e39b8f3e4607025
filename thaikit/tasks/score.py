"""Ask a model the items of a task and write one row an item, as soon as the item is done."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from thaikit import ThaikitError, extract, metrics
from thaikit.encoding import Encoded, cut_left
from thaikit.records import RowLog
from thaikit.tasks.build import Task
from thaikit.tasks.items import Item, context, digest, messages

OVERLENGTH = ("error", "drop_shots", "left", "skip")
KERNELS = ("tree", "plain")
ENCODERS = min(16, os.cpu_count() or 1)  # threads: a tokenizer lets the others run while it is at work
QUESTION_SHOWN = 2000  # characters of a question kept in its row; prompts are known by their hash


@dataclass(frozen=True)
class Settings:
    """How to ask: what to do with prompts beyond the window, how many rows a batch (0: what fits), what to keep."""

    overlength: str = "error"
    batch_size: int = 0
    token_logprobs: bool = False
    kernel: str = "tree"

    def __post_init__(self) -> None:
        if self.overlength not in OVERLENGTH:
            raise ThaikitError(f"overlength is {self.overlength!r}; allowed are {', '.join(OVERLENGTH)}")
        if self.kernel not in KERNELS:
            raise ThaikitError(f"kernel is {self.kernel!r}; allowed are {', '.join(KERNELS)}")


@dataclass(frozen=True)
class Ready:
    """An item encoded for one model: its requests (one a choice) or its prompt, and what had to give way."""

    index: int
    item: Item
    prompt: str
    requests: tuple[Encoded, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    shots: int = 0
    cut: int = 0
    skipped: bool = False

    @property
    def longest(self) -> int:
        """The most ids that enter the model for this item (a last target never does)."""
        return max((r.length - 1 for r in self.requests), default=len(self.prompt_ids))


def prepare(task: Task, model: Any, settings: Settings, *, stop: threading.Event | None = None) -> list[Ready]:
    """Encode every item and check every length. ThaikitError, before any forward pass, where a prompt is too long;
    CancelledError once `stop` is set."""
    room = model.max_length - (new_tokens(task) if task.generates else 0)
    if room < 1:
        raise ThaikitError(
            f"task {task.name}: max_new_tokens is {new_tokens(task)}, {model.name} has a window of {model.max_length}; "
            "nothing is left for the prompt, set a smaller max_new_tokens"
        )

    def one(index: int) -> Ready:
        if stop is not None and stop.is_set():
            raise CancelledError
        return fit(task, model, index, room, settings)

    with ThreadPoolExecutor(ENCODERS) as pool:
        ready = list(pool.map(one, range(len(task.items))))
    late = [one for one in ready if one.longest > room and not one.skipped]
    if late:
        worst = max(late, key=lambda one: one.longest)
        extra = f" ({new_tokens(task)} of it kept for the answer)" if task.generates else ""
        raise ThaikitError(
            f"task {task.name}, item {worst.item.id}: {worst.longest} tokens, the window of {model.name} has "
            f"{model.max_length}{extra}; {len(late)} of {len(ready)} items are too long; "
            "set overlength to drop_shots, left or skip, or lower shots"
        )
    return ready


def fit(task: Task, model: Any, index: int, room: int, settings: Settings) -> Ready:
    """One item, made to fit by the chosen policy where it can be."""
    shots = task.shots(index)
    one = encode_item(task, model, index, shots)
    if one.longest <= room or settings.overlength == "error":
        return one
    if settings.overlength == "skip":
        return Ready(index, one.item, one.prompt, one.requests, one.prompt_ids, one.shots, skipped=True)
    if settings.overlength == "left":
        return cut(one, room)
    while shots and one.longest > room:
        shots = shots[1:]
        one = encode_item(task, model, index, shots)
    return one


def cut(one: Ready, room: int) -> Ready:
    """The item with its oldest tokens gone."""
    if one.prompt_ids:
        gone = max(0, len(one.prompt_ids) - room)
        return Ready(one.index, one.item, one.prompt, (), one.prompt_ids[gone:], one.shots, gone)
    try:
        pairs = [cut_left(request, room) for request in one.requests]
    except ValueError as error:
        raise ThaikitError(f"item {one.item.id}: {error}; only overlength 'skip' can leave it out") from error
    return Ready(one.index, one.item, one.prompt, tuple(r for r, _ in pairs), (), one.shots, max(n for _, n in pairs))


def encode_item(task: Task, model: Any, index: int, shots: Sequence[Item]) -> Ready:
    """An item's token ids under the task's profile, as plain text or through the model's chat template."""
    item, profile, delimiter = task.items[index], task.profile, task.spec.delimiter
    chat = task.in_turns(model)

    def prompt(choice: int) -> Any:
        if chat:
            return messages(item, shots, choice=choice)
        return context(item, shots, delimiter=delimiter, choice=choice)

    first = prompt(0)
    rules = {"bos": model.bos or profile.bos, "boundary": profile.boundary, "prefix": profile.prefix}
    try:
        told = first if isinstance(first, str) else model.render(first)
        if task.generates:
            return Ready(index, item, told, (), tuple(model.encode_prompt(first, bos=rules["bos"])), len(shots))
        glue = "" if chat else delimiter
        requests = [model.encode_pair(prompt(i), glue + text, **rules) for i, text in enumerate(item.continuations)]
    except ValueError as error:
        raise ThaikitError(f"task {task.name}, item {item.id}: {error}") from error
    return Ready(index, item, told, tuple(requests), (), len(shots))


def new_tokens(task: Task) -> int:
    """The limit of new tokens for a generated answer."""
    return task.spec.max_new_tokens or task.profile.max_new_tokens


def stop_strings(task: Task) -> list[str]:
    """The task's stop strings, or its profile's with the question label actually used; the model's end tokens apart."""
    from thaikit.tasks.labels import LABELS

    if task.spec.stops:
        return list(task.spec.stops)
    label = LABELS[task.language].question
    extra = [f"\n\n{label}", label] if task.profile.label_stops else []
    return [*task.profile.stops, *(stop for stop in extra if stop not in task.profile.stops)]


def score(
    task: Task, model: Any, log: RowLog, *, ready: Sequence[Ready], settings: Settings, tell: Callable[[str], None]
) -> None:
    """Ask what is not yet in the log, one row appended as each item is done. `tell` hears about progress."""
    for one in ready:
        if one.skipped and one.item.id not in log.ids:
            log.append({**base_row(task, one), "outcome": "truncated", "score": None})
    waiting = [one for one in ready if one.item.id not in log.ids]
    rows = generated_rows if task.generates else scored_rows
    for done, row in enumerate(rows(task, model, waiting, settings, tell), 1):
        log.append(row)
        tell(f"{done} of {len(waiting)} items")


def one(task: Task, model: Any, *, index: int = 0, settings: Settings | None = None) -> dict[str, Any]:
    """The row of a single item, asked here and now, with the log-probability of every token."""
    settings = settings or Settings(token_logprobs=True)
    room = model.max_length - (new_tokens(task) if task.generates else 0)
    ready = [fit(task, model, index, room, settings)]
    if ready[0].longest > room:
        item = ready[0].item.id
        raise ThaikitError(f"task {task.name}, item {item}: {ready[0].longest} tokens, the window has room for {room}")
    return next((generated_rows if task.generates else scored_rows)(task, model, ready, settings, lambda _: None))


def base_row(task: Task, one: Ready) -> dict[str, Any]:
    """What every row begins with."""
    item = one.item
    return {
        "id": item.id, "task": task.name, "subject": item.subject, "index": one.index, "metric": task.metric,
        "question": item.question[:QUESTION_SHOWN], "prompt_sha256": digest(one.prompt), "shots": one.shots,
        "context_tokens": len(one.requests[0].context) if one.requests else len(one.prompt_ids),
        "cut_tokens": one.cut,
    }  # fmt: skip


def scored_rows(
    task: Task, model: Any, waiting: Sequence[Ready], settings: Settings, tell: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Rows of multiple-choice items, each as soon as the last of its choices is scored."""
    owners = [(place, choice) for place, one in enumerate(waiting) for choice in range(len(one.requests))]
    requests = [request for one in waiting for request in one.requests]
    found: list[dict[int, Any]] = [{} for _ in waiting]
    for index, scored in model.score(requests, batch_size=settings.batch_size, tell=tell, kernel=settings.kernel):
        place, choice = owners[index]
        found[place][choice] = scored
        if len(found[place]) == len(waiting[place].requests):
            ordered = [found[place][n] for n in range(len(found[place]))]
            found[place] = {}
            texts = pieces(model, waiting[place]) if settings.token_logprobs else []
            yield choice_row(task, waiting[place], ordered, settings, texts)


def pieces(model: Any, one: Ready) -> list[list[str]]:
    """The text of each scored token of each choice; [] for a model that cannot tell."""
    told = getattr(model, "pieces", None)
    found = [told(request) for request in one.requests] if told else []
    return found if all(found) else []


def choice_row(
    task: Task, one: Ready, scored: Sequence[Any], settings: Settings, texts: Sequence[Sequence[str]] = ()
) -> dict[str, Any]:
    """The row of a multiple-choice item: log-probabilities, every normalisation, the score; where they are kept, each
    token's own with its text (`texts`, see `encoding.pieces`)."""
    item, ll, tokens = one.item, [s.ll for s in scored], [len(s.logprobs) for s in scored]
    second = slice(item.first, None)
    row = base_row(task, one) | {
        "outcome": "ok", "choices": list(item.choices[second]), "gold": item.gold, "ll": ll[second],
        "tokens": tokens[second], "greedy": [s.greedy for s in scored][second],
        "boundary": sum(request.boundary for request in one.requests),
    }  # fmt: skip
    if item.shown:
        row["shown"] = list(item.shown)
    if settings.token_logprobs:
        kept = [np.asarray(s.logprobs, dtype=float).tolist() for s in scored]
        row |= {"token_logprobs": kept[second], **({"mc1_token_logprobs": kept[: item.first]} if item.first else {})}
        row |= {"token_texts": [list(told) for told in texts[second]]} if texts else {}
    if not all(math.isfinite(value) for value in ll):
        why = "a log-probability is not finite (dtype too narrow?)"
        return row | {"outcome": "failed", "score": None, "error": why}
    row |= truth_scores(item, scored) if item.labels else choice_scores(item, ll, tokens)
    return row | {"score": row[task.metric]}


def choice_scores(item: Item, ll: Sequence[float], tokens: Sequence[int]) -> dict[str, Any]:
    """The four accuracies; where the continuations are one shared tail (Winogrande) its length divides both."""
    measured = item.choices if len(set(item.continuations)) > 1 else item.continuations
    found = metrics.accuracies(ll, item.gold, choices=measured, tokens=tokens)
    return {key: float(value) if key.startswith("acc") else value for key, value in found.items()}


def truth_scores(item: Item, scored: Sequence[Any]) -> dict[str, Any]:
    """TruthfulQA: mc1 over the first choices, mc2 over the rest, and the plain reading of mc2's best choice."""
    ll, greedy = [s.ll for s in scored], [s.greedy for s in scored[: item.first]]
    first, second = ll[: item.first], ll[item.first :]
    best = int(np.argmax(second))
    found = {
        "mc2": metrics.mc2(second, item.labels), "labels": list(item.labels), "prediction": best,
        "gold": item.labels.index(1), "acc": float(item.labels[best]),
    }  # fmt: skip
    if first:
        choices = list(item.choices[: item.first])
        found |= {"mc1": metrics.mc1(first), "mc1_choices": choices, "mc1_ll": first, "mc1_greedy": greedy}
    return found


def generated_rows(
    task: Task, model: Any, waiting: Sequence[Ready], settings: Settings, tell: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Rows of generated answers: the raw completion, every rule's answer, the score."""
    stops = stop_strings(task)
    options = {"stops": stops, "max_new_tokens": new_tokens(task), "batch_size": settings.batch_size, "tell": tell,
               "kernel": settings.kernel}  # fmt: skip
    for index, made in model.generate([one.prompt_ids for one in waiting], **options):
        one = waiting[index]
        completion = extract.cut_at_stops(made.text, stops)
        yield base_row(task, one) | number_scores(task, one.item, completion, made.finish == "length") | {
            "completion": completion, "finish": made.finish, "new_tokens": len(made.ids),
        }  # fmt: skip


def number_scores(task: Task, item: Item, completion: str, limit_hit: bool) -> dict[str, Any]:
    """Strict, flexible, em_thai and v1 side by side. An answer that is not there is wrong by protocol, and its own
    outcome: `truncated` where the limit was hit, else `unreadable`."""
    pattern = task.spec.answer_pattern or extract.STRICT_PATTERN
    reference = extract.normalise_exact(item.reference)
    answers = {
        "strict": extract.strict(completion, pattern=pattern), "flexible": extract.flexible(completion),
        "em_thai": extract.em_thai(completion), "v1": extract.gsm8k_v1(completion),
    }  # fmt: skip
    scores = {
        "strict": metrics.exact_match(answers["strict"], reference),
        "flexible": metrics.exact_match(answers["flexible"], reference),
        "em_thai": float(extract.same_number(answers["em_thai"], reference)),
        "v1": metrics.exact_match(answers["v1"], extract.gsm8k_v1(item.reference) or reference),
    }
    metric = task.metric
    missing = "truncated" if limit_hit else "unreadable"
    return {
        "outcome": "ok" if answers[metric] is not None else missing, "reference": reference, "answers": answers,
        **scores, "score": scores[metric], "metric": metric,
    }  # fmt: skip
