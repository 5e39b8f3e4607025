"""Multiple-choice samples of lm-evaluation-harness → rows: what the harness found, worked out again and compared."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from thaikit import ThaikitError, metrics
from thaikit.tasks.harness_samples import Again, Manner, asked_of, base_row, own_scores, replies_of


def scored_pairs(replies: Sequence[Any], where: str) -> tuple[list[float], list[bool]]:
    """Log-probabilities and greedy flags, which newer logs write as texts."""
    try:
        return [float(one[0]) for one in replies], [str(one[1]) == "True" or one[1] is True for one in replies]
    except (TypeError, ValueError) as error:
        raise ThaikitError(f"{where}: 'resps' holds {error}; a number is expected") from error


def choice_row(sample: Mapping[str, Any], manner: Manner, where: str, again: Again) -> dict[str, Any]:
    """The row of a multiple-choice sample: texts, log-probabilities, the harness's numbers, those that follow."""
    asked = asked_of(sample, where)
    replies = replies_of(sample, len(asked), where)
    ll, greedy = scored_pairs(replies, where)
    theirs, tails = own_scores(sample, manner), [str(one[1]) for one in asked]
    if "acc_mutual_info" in theirs and len(asked) % 2 == 0:  # the second half is asked without a question
        asked, ll, greedy, tails = (one[: len(asked) // 2] for one in (asked, ll, greedy, tails))
    glue = manner.delimiter
    stripped = all(tail.startswith(glue) for tail in tails)
    texts = [tail[len(glue) :] for tail in tails] if stripped else tails
    row = base_row(sample, manner, str(asked[0][0])) | {"ll": ll, "greedy": greedy}
    if not all(map(math.isfinite, ll)):
        row |= {"choices": texts, "outcome": "failed", "error": "a logged log-probability is not finite"}
        return row | dict.fromkeys(theirs)
    if "mc1" in theirs and "mc2" in theirs:
        return row | both_truths(sample, texts, ll, greedy, theirs, again)
    if manner.part:
        return row | truth(sample, manner.part, texts, ll, greedy, theirs, again)
    return row | plain_choice(sample, asked, texts, ll, theirs, again)


def plain_choice(
    sample: Mapping[str, Any],
    asked: Sequence[Any],
    texts: list[str],
    ll: list[float],
    theirs: Mapping[str, Any],
    again: Again,
) -> dict[str, Any]:
    """Right answer, predictions and the accuracies of an item of single right answers."""
    shared = len(texts) > 1 and len(set(texts)) == 1 and len({one[0] for one in asked}) > 1
    right = golds(sample, texts, ll, theirs.get("acc"), shared)
    found: dict[str, Any] = {"choices": options(sample, asked) if shared else texts,
                             "gold": right[0] if len(right) == 1 else None}  # fmt: skip
    try:
        mine = dict(metrics.accuracies(ll, right[0] if right else 0, choices=texts, tokens=[1] * len(texts)))
    except ValueError:  # a choice without characters has no length to divide by
        mine = {"prediction": int(np.argmax(ll))}
    kept = {name: mine[name] for name in ("prediction", *(() if shared else ("prediction_norm", "prediction_bytes")))
            if name in mine}  # fmt: skip
    places = {"acc": "prediction", "acc_norm": "prediction_norm", "acc_bytes": "prediction_bytes"}
    scores = {name: float(kept[place] in right) for name, place in places.items() if place in kept and right}
    lettered = seen_choices(sample, texts)
    found |= {"shown": lettered} if lettered else {}
    if len(texts) < 2:
        return found | dict(theirs)
    again.impossible += not right
    again.add(scores, theirs)
    return found | kept | scores | dict(theirs)


def golds(sample: Mapping[str, Any], texts: list[str], ll: list[float], acc: Any, shared: bool) -> list[int]:
    """The places of the right choices, [] where the log does not say. A target may be a place, several, or a text."""
    target, doc = sample["target"], sample.get("doc")
    if shared and isinstance(doc, Mapping) and str(doc.get("answer")) in ("1", "2"):
        return [int(doc["answer"]) - 1]  # Winogrande: the target is the shared tail
    try:
        value = ast.literal_eval(target) if isinstance(target, str) and len(target) < 200 else target
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        value = target
    several = value if isinstance(value, list | tuple) else [value]
    places = [one for one in several if isinstance(one, int) and not isinstance(one, bool) and 0 <= one < len(texts)]
    if len(places) == len(several) > 1:
        return places
    same = [] if shared else [place for place, text in enumerate(texts) if text.strip() == str(target).strip()]
    if places and same and places[0] != same[0] and acc is not None:  # choices that are numbers: what was scored tells
        best = int(np.argmax(ll))
        return [one for one in (places[0], same[0]) if (one == best) == (acc == 1.0)][:1]
    return places[:1] or same[:1]


def seen_choices(sample: Mapping[str, Any], texts: Sequence[str]) -> list[str]:
    """The texts behind bare letters, where the source row lists them; [] for choices that speak for themselves."""
    doc = sample.get("doc")
    listed = doc.get("choices") if isinstance(doc, Mapping) else None
    there = isinstance(listed, list) and len(listed) == len(texts) and all(isinstance(one, str) for one in listed)
    return listed if there and all(len(text) == 1 for text in texts) and listed != list(texts) else []  # type: ignore[return-value]


def options(sample: Mapping[str, Any], asked: Sequence[Any]) -> list[str]:
    """What differs where the scored text is one: the two options, else the contexts' last lines."""
    doc = sample.get("doc")
    if isinstance(doc, Mapping):
        listed = doc.get("choices", [doc.get("option1"), doc.get("option2")])
        if isinstance(listed, list) and len(listed) == len(asked) and all(isinstance(one, str) for one in listed):
            return listed
    return [str(one[0]).rsplit("\n", 1)[-1] for one in asked]


def labels_of(sample: Mapping[str, Any], count: int) -> list[int]:
    """TruthfulQA's mask of true answers; [] where the source row does not hold one of that length."""
    doc = sample.get("doc")
    if not isinstance(doc, Mapping):
        return []
    inner = doc.get("mc2_targets")
    found = inner.get("labels") if isinstance(inner, Mapping) else doc.get("labels")
    return (
        [int(one) for one in found] if isinstance(found, list) and len(found) == count and set(found) == {0, 1} else []
    )


def truth(
    sample: Mapping[str, Any], part: str, texts: list[str], ll: list[float], greedy: list[bool],
    theirs: Mapping[str, Any], again: Again,
) -> dict[str, Any]:  # fmt: skip
    """One half of TruthfulQA: mc1, whose first choice is the true one, or mc2 with its mask."""
    if part == "1":
        again.add({"mc1": metrics.mc1(ll)}, theirs)
        return {"mc1_choices": texts, "mc1_ll": ll, "mc1_greedy": greedy, **theirs}
    labels, best = labels_of(sample, len(ll)), int(np.argmax(ll))
    found = {"choices": texts, "labels": labels or None, "prediction": best, "gold": None, "acc": None}
    if labels:
        again.add({"mc2": metrics.mc2(ll, labels)}, theirs)
        found |= {"gold": labels.index(1), "acc": float(labels[best])}
    else:
        again.impossible += 1
    return {**found, **theirs}


def both_truths(
    sample: Mapping[str, Any],
    texts: list[str],
    ll: list[float],
    greedy: list[bool],
    theirs: Mapping[str, Any],
    again: Again,
) -> dict[str, Any]:
    """TruthfulQA as versions before 0.4 logged it: mc1's choices before mc2's."""
    doc = sample.get("doc")
    inner = doc.get("mc1_targets") if isinstance(doc, Mapping) else None
    listed = inner.get("choices") if isinstance(inner, Mapping) else None
    first = len(listed) if isinstance(listed, list) and len(listed) < len(ll) else 0
    one = {"mc1": theirs["mc1"]}
    halves = truth(sample, "1", texts[:first], ll[:first], greedy[:first], one, again) if first else one
    two = truth(sample, "2", texts[first:], ll[first:], greedy[first:], {"mc2": theirs["mc2"]}, again)
    return {**halves, **two, "ll": ll[first:], "greedy": greedy[first:]}
