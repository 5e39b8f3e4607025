"""One sample of lm-evaluation-harness (`--log_samples`): its requests, responses and numbers, by the kit's names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thaikit import ThaikitError
from thaikit.tasks.items import digest

QUESTION_SHOWN = 2000
QUESTIONS = ("question", "query", "sentence", "ctx", "premise", "Question", "text", "input")
FILTERS = {"strict-match": "strict", "flexible-extract": "flexible"}
DERIVED = ("acc", "acc_norm", "acc_bytes")
CLOSE = 1e-6  # two of the same share of probability mass, added up in another order


@dataclass
class Again:
    """What came of working the scores out again: items compared and differing by metric, items that could not be."""

    compared: Counter[str] = field(default_factory=Counter)
    differ: Counter[str] = field(default_factory=Counter)
    impossible: int = 0

    def add(self, mine: Mapping[str, float], theirs: Mapping[str, Any]) -> None:
        """Compare the metrics that both have."""
        for name in mine.keys() & theirs.keys():
            if theirs[name] is not None:
                self.compared[name] += 1
                self.differ[name] += abs(mine[name] - theirs[name]) > CLOSE

    def told(self) -> dict[str, Any]:
        """The counts, for run.json."""
        return {"compared": dict(self.compared), "differ": {k: n for k, n in self.differ.items() if n},
                "impossible": self.impossible}  # fmt: skip


@dataclass(frozen=True)
class Manner:
    """How a harness task was asked: the delimiter before a choice, worked examples, the half of TruthfulQA, and
    whether its answers are GSM8K's, which every rule of the kit can read again."""

    delimiter: str
    shots: int
    part: str = ""
    numbers: bool = False


def question_of(doc: Any, prompt: str) -> str:
    """The question: a field of the source row, else the last block of the prompt."""
    if isinstance(doc, Mapping):
        told = next((doc[key] for key in QUESTIONS if isinstance(doc.get(key), str) and doc[key].strip()), "")
        if told:
            return told
    return prompt.rstrip().split("\n\n")[-1]


def asked_of(sample: Mapping[str, Any], where: str) -> list[list[Any]]:
    """The arguments of each request, from a mapping gen_args_0 … or, in older logs, a list of lists."""
    given = sample["arguments"]
    requests = list(given.values()) if isinstance(given, Mapping) else given
    found = (
        [list(one.values()) if isinstance(one, Mapping) else one for one in requests]
        if isinstance(requests, list)
        else []
    )
    if not found or not all(isinstance(one, list) and one and isinstance(one[0], str) for one in found):
        raise ThaikitError(
            f"{where}: 'arguments' holds no request; gen_args_0 with arg_0, or lists of texts, are expected"
        )
    return found


def replies_of(sample: Mapping[str, Any], count: int, where: str) -> list[Any]:
    """The first response to each request."""
    for key in ("resps", "filtered_resps"):
        given = sample.get(key)
        if isinstance(given, list) and len(given) >= count:
            nested = key == "resps"
            return [one[0] if nested and isinstance(one, list) and one else one for one in given]
    raise ThaikitError(f"{where}: {count} requests and fewer responses in 'resps'; copy the file again")


def base_row(sample: Mapping[str, Any], manner: Manner, prompt: str) -> dict[str, Any]:
    """What every row begins with; what the harness does not log is None."""
    return {
        "id": "", "task": "", "subject": "", "index": 0, "metric": "",
        "question": question_of(sample.get("doc"), prompt)[:QUESTION_SHOWN],
        "prompt_sha256": str(sample.get("prompt_hash") or digest(prompt)), "shots": manner.shots,
        "context_tokens": None, "cut_tokens": None, "outcome": "ok",
    }  # fmt: skip


def own_id(doc: Any) -> str:
    """A source row's own id, as the kit reads it; "" where it has none."""
    told = doc.get("id", doc.get("qID")) if isinstance(doc, Mapping) else None
    return str(told) if isinstance(told, str | int) and not isinstance(told, bool) else ""


def number(value: Any) -> float | None:
    """A score from 0 to 1; None for whatever is none (a pair, NaN, a text, a perplexity)."""
    if isinstance(value, bool | int | float) and math.isfinite(value) and -CLOSE <= value <= 1 + CLOSE:
        return float(value)
    return None


def own_scores(sample: Mapping[str, Any], manner: Manner) -> dict[str, float | None]:
    """The harness's numbers for the item under the kit's names; a metric without any number is left out."""
    told = sample.get("metrics")
    keys = told if isinstance(told, list) else ["acc", "acc_norm", "acc_bytes", "exact_match", "mc1", "mc2", "em", "f1"]
    found = {}
    for key in keys:
        value = sample.get(str(key))
        if isinstance(value, bool | int | float):
            found[named(str(key), str(sample.get("filter") or "none"), manner.part)] = number(value)
    return found


def named(metric: str, chosen: str, part: str = "") -> str:
    """The kit's name of a harness metric under a filter; `acc` of a half of TruthfulQA is mc1 or mc2."""
    if part and metric == "acc":
        return f"mc{part}"
    if metric == "exact_match" and chosen in FILTERS:
        return FILTERS[chosen]
    return metric if chosen in ("none", "") else f"{metric}_{chosen.replace('-', '_')}"


def is_choice(asked: Sequence[Sequence[Any]], replies: Sequence[Any]) -> bool:
    """Whether the requests were scored by log-probability: texts answered by a number and a flag."""
    return all(len(one) > 1 and isinstance(one[1], str) for one in asked) and all(
        isinstance(one, list | tuple) and len(one) == 2 for one in replies
    )
