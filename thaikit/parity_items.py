"""One item asked by the kit and by the peer: what must be equal, what may differ by how much, and what is set aside."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thaikit import extract
from thaikit.asking import Local
from thaikit.tasks import score
from thaikit.tasks.build import Task
from thaikit.tasks.items import Item, context

# Nats a token between two fp32 log-likelihoods. Over 262,144 entries PyTorch's fp32 log_softmax on a CPU, which the
# peer calls, alone errs by up to 7e-5, mostly to one side; this kit's logsumexp of the same row errs by 1e-6.
LIMIT = 1e-4
MARGIN = 1e-3  # between the two best logits of a step: closer ones may swap places
EXACT = 1e-9  # for values that are counts or means of counts


@dataclass(frozen=True)
class Answer:
    """One item as the kit answered it: its strings, scores per request, and the row that it writes."""

    prompts: list[Any]
    row: Mapping[str, Any]
    ll: Sequence[float] = ()
    tokens: Sequence[int] = ()
    greedy: Sequence[bool] = ()
    prompt_ids: Sequence[int] = ()
    ids: Sequence[int] = ()


@dataclass
class Finding:
    """What comparing one task found. `listed` says in words what differs, and which near-ties were set aside."""

    task: str
    kit_seconds: float = 0.0
    peer_seconds: float = 0.0
    items: int = 0
    lls: int = 0
    largest: float = 0.0
    largest_metric: float = 0.0
    prompts_differ: int = 0
    greedy_differ: int = 0
    lls_beyond: int = 0
    metrics_differ: int = 0
    predictions_differ: int = 0
    texts_differ: int = 0
    near_ties: int = 0
    tied: set[int] = field(default_factory=set)
    listed: list[str] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether no limit is passed."""
        counts = (self.prompts_differ, self.greedy_differ, self.lls_beyond, self.metrics_differ)
        return self.items > 0 and not any((*counts, self.predictions_differ, self.texts_differ))

    def counts(self) -> dict[str, Any]:
        """The table's cells."""
        cells = {key: value for key, value in vars(self).items() if key not in ("tied", "listed", "largest")}
        return cells | {"largest_per_token": self.largest, "agrees": self.agrees}

    def differs(self, kind: str, told: str) -> None:
        """Count a difference beyond its limit and say what it is."""
        setattr(self, kind, getattr(self, kind) + 1)
        self.listed.append(told)

    def aside(self, place: int, told: str) -> None:
        """Set an item's near-tie aside and say what it is."""
        self.near_ties += 1
        self.tied.add(place)
        self.listed.append(told)


def kit_answers(task: Task, local: Local) -> list[Answer]:
    """Every item as the kit asks it, by the code that a run uses, with default settings."""
    settings = score.Settings()
    ready = score.prepare(task, local, settings)
    return generated(task, local, ready, settings) if task.generates else scored(task, local, ready, settings)


def scored(task: Task, local: Local, ready: Sequence[score.Ready], settings: score.Settings) -> list[Answer]:
    """Multiple-choice items: all requests in one go, as a run asks them."""
    requests = [request for one in ready for request in one.requests]
    found = dict(local.score(requests, batch_size=settings.batch_size, tell=print_nothing))
    answers, start = [], 0
    for one in ready:
        values = [found[start + n] for n in range(len(one.requests))]
        start += len(values)
        answers.append(
            Answer(
                strings(task, one),
                score.choice_row(task, one, values, settings),
                [v.ll for v in values],
                [len(v.logprobs) for v in values],
                [v.greedy for v in values],
            )  # fmt: skip
        )
    return answers


def strings(task: Task, one: score.Ready) -> list[list[str]]:
    """(context, continuation) of each choice, as strings."""
    shots, delimiter = task.shots(one.index), task.spec.delimiter
    return [
        [context(one.item, shots, delimiter=delimiter, choice=n), delimiter + text]
        for n, text in enumerate(one.item.continuations)
    ]


def generated(task: Task, local: Local, ready: Sequence[score.Ready], settings: score.Settings) -> list[Answer]:
    """Generated answers, with the ids that were written."""
    stops = score.stop_strings(task)
    prompts = [one.prompt_ids for one in ready]
    options = {"stops": stops, "max_new_tokens": score.new_tokens(task), "batch_size": settings.batch_size}
    made = dict(local.generate(prompts, tell=print_nothing, **options))
    answers = []
    for n, one in enumerate(ready):
        text = extract.cut_at_stops(made[n].text, stops)
        row = {"completion": text} | score.number_scores(task, one.item, text, made[n].finish == "length")
        answers.append(Answer([one.prompt], row, prompt_ids=one.prompt_ids, ids=made[n].ids))
    return answers


def print_nothing(told: str) -> None:
    """A listener that keeps quiet."""


def compare_item(found: Finding, task: Task, place: int, mine: Answer, other: Mapping[str, Any], local: Local) -> None:
    """Compare one item's prompts, log-likelihoods, greedy flags, predictions, texts and metrics."""
    item = task.items[place]
    found.items += 1
    if mine.prompts != other["prompts"]:
        found.differs("prompts_differ", f"item {item.id}: {first_difference(mine.prompts, other['prompts'])}")
        return
    if task.generates:
        compare_text(found, place, item, mine, other["text"], local)
    else:
        compare_lls(found, item, mine, other)
        compare_predictions(found, task, place, mine, other["ll"])
    compare_metrics(found, place, item, mine, other)


def compare_metrics(found: Finding, place: int, item: Item, mine: Answer, other: Mapping[str, Any]) -> None:
    """Every metric equal; mc2 no further apart than the log-likelihoods under it (its slopes sum to 1/2 at most)."""
    spread = max((abs(a - b) for a, b in zip(mine.ll, other["ll"], strict=True)), default=0.0)
    for name, value in other["metrics"].items():
        gap = abs(mine.row[name] - value)
        if place in found.tied:
            continue
        if math.isnan(value):
            found.aside(place, f"item {item.id}: {name} is {mine.row[name]}, the peer's exponentials underflow to 0/0")
            continue
        found.largest_metric = max(found.largest_metric, gap)
        if not gap <= EXACT + (spread if name == "mc2" else 0.0):
            found.differs("metrics_differ", f"item {item.id}: {name} is {mine.row[name]}, the peer says {value}")


def first_difference(mine: Sequence[Any], other: Sequence[Any]) -> str:
    """Where two lists of prompts part, in words."""
    if len(mine) != len(other):
        return f"{len(mine)} prompts, the peer has {len(other)}"
    pairs = [(a, b) for a, b in zip(flat(mine), flat(other), strict=True) if a != b]
    return f"prompts {parting(*pairs[0])}"


def parting(a: str, b: str) -> str:
    """Where two texts part, with what stands there in each."""
    at = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return f"part at character {at}: {a[at : at + 20]!r}, the peer {b[at : at + 20]!r}"


def flat(prompts: Sequence[Any]) -> list[str]:
    """The strings of a list of prompts or pairs."""
    return [text for one in prompts for text in ([one] if isinstance(one, str) else one)]


def compare_lls(found: Finding, item: Item, mine: Answer, other: Mapping[str, Any]) -> None:
    """Log-likelihoods within the limit per token; the same greedy flags."""
    for n, (a, b, tokens) in enumerate(zip(mine.ll, other["ll"], mine.tokens, strict=True)):
        gap = abs(a - b) / tokens
        found.lls += 1
        found.largest = max(found.largest, gap)
        if not gap <= LIMIT:
            found.differs("lls_beyond", f"item {item.id}, choice {n}: {a:.6f}, the peer {b:.6f}, {tokens} tokens")
        if mine.greedy[n] != other["greedy"][n]:
            found.differs("greedy_differ", f"item {item.id}, choice {n}: greedy is {mine.greedy[n]}, the peer differs")


def compare_predictions(found: Finding, task: Task, place: int, mine: Answer, other: Sequence[float]) -> None:
    """The same best choice under every normalisation, unless the two best are closer than the tolerance."""
    item = task.items[place]
    for name, key, part, length in predictions(task, item):
        lengths = np.array([length(choice) for choice in item.choices[part]], dtype=float)
        theirs = np.array(other[part]) / lengths
        ours = mine.row[key] if key else int(np.argmax(mine.ll[part]))
        if ours == theirs.argmax():
            continue
        tolerance = float((LIMIT * np.array(mine.tokens[part]) / lengths).max())
        gap = float(np.diff(np.sort(theirs)[-2:])[0])
        told = f"item {item.id}: {name} picks {ours}, the peer {theirs.argmax()}, its two best {gap:.1e} apart"
        if gap < tolerance:
            found.aside(place, told + " (near-tie)")
        else:
            found.differs("predictions_differ", told)


def predictions(task: Task, item: Item) -> list[tuple[str, str, slice, Callable[[str], int]]]:
    """The predictions under the peer's metrics: name, the row's key or "", competing choices, divisor."""
    if task.spec.kind == "truthfulqa":
        parts = [("mc1", "", slice(0, item.first)), ("mc2", "prediction", slice(item.first, None))]
        return [(name, key, part, whole) for name, key, part in parts if item.choices[part]]
    found: list[tuple[str, str, slice, Callable[[str], int]]] = [("acc", "prediction", slice(0, None), whole)]
    if task.spec.kind in ("arc", "hellaswag"):
        found += [("acc_norm", "prediction_norm", slice(0, None), len)]
        found += [("acc_bytes", "prediction_bytes", slice(0, None), lambda choice: len(choice.encode()))]
    return found


def whole(choice: str) -> int:
    """The divisor of a plain accuracy."""
    return 1


def compare_text(found: Finding, place: int, item: Item, mine: Answer, theirs: str, local: Local) -> None:
    """The same text, up to the first step at which the two best logits are closer than the margin."""
    ours = mine.row["completion"]
    if ours == theirs:
        return
    gaps = margins(local, mine.prompt_ids, mine.ids)
    close = [n for n, gap in enumerate(gaps) if gap < MARGIN]
    text = local.loaded.tokenizer.decode(mine.ids[: close[0]], skip_special_tokens=True) if close else ""
    if close and theirs.startswith(text.rstrip("\ufffd")):
        found.aside(place, f"item {item.id}: texts part after step {close[0]}, whose two best logits differ by "
                    f"{gaps[close[0]]:.1e} (near-tie)")  # fmt: skip
        return
    found.differs("texts_differ", f"item {item.id}: texts {parting(ours, theirs)}")


def margins(local: Local, prompt: Sequence[int], written: Sequence[int]) -> list[float]:
    """The gap between the two best logits at each step of a generation and at the one after it, by one forward pass."""
    import torch

    from thaikit import loglikelihood

    model = local.loaded.model
    ids = torch.tensor([[*prompt, *written]], device=model.get_input_embeddings().weight.device)
    with torch.inference_mode():
        positions = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0)
        hidden = loglikelihood.hidden_states(model, ids, torch.ones_like(ids), positions)[0, len(prompt) - 1 :]
        best = loglikelihood.logits(model, hidden).topk(2).values
    return (best[:, 0] - best[:, 1]).tolist()


def compare_totals(found: Finding, ours: Sequence[Answer], totals: Sequence[Mapping[str, Any]]) -> None:
    """The harness's aggregates against plain means of the kit's rows."""
    for total in totals:
        name, places = total["metric"], total["places"]
        if found.tied.intersection(places) or found.prompts_differ:
            continue
        mean = float(np.mean([ours[place].row[name] for place in places]))
        allowed = EXACT + (found.largest_metric if name == "mc2" else 0.0)
        if not abs(mean - total["value"]) <= allowed:
            found.differs(
                "metrics_differ", f"{name} over {len(places)} items is {mean}, the peer says {total['value']}"
            )
