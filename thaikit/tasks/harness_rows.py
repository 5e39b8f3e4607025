"""Samples of lm-evaluation-harness → rows in the kit's schema. The harness's own number for each item is the score;
the kit works each out again from the logged responses and counts where the two differ, and replaces nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thaikit import extract, metrics
from thaikit.tasks.harness_choices import choice_row
from thaikit.tasks.harness_samples import (
    Again,
    Manner,
    asked_of,
    base_row,
    is_choice,
    named,
    own_scores,
    replies_of,
)


def text_row(sample: Mapping[str, Any], manner: Manner, where: str, again: Again) -> dict[str, Any]:
    """The row of a generated answer under one filter: completion, the filter's answer, the harness's number."""
    asked = asked_of(sample, where)
    reply = replies_of(sample, 1, where)[0]
    completion = reply if isinstance(reply, str) else str(reply)
    filtered = sample.get("filtered_resps")
    answer = filtered[0] if isinstance(filtered, list) and filtered else None
    while isinstance(answer, list) and answer:
        answer = answer[0]
    rule, target = named("exact_match", str(sample.get("filter") or "none")), str(sample["target"])
    answers = {rule: None if answer in (None, extract.INVALID, []) else str(answer)}
    theirs = own_scores(sample, manner)
    row = base_row(sample, manner, str(asked[0][0])) | {
        "reference": extract.normalise_exact(target) if manner.numbers else target, "answers": answers,
        "completion": completion, "finish": "not logged", "new_tokens": None, **theirs,
    }  # fmt: skip
    return row | (numbers_again(completion, target, row, again) if manner.numbers else {})


def numbers_again(completion: str, target: str, row: Mapping[str, Any], again: Again) -> dict[str, Any]:
    """The two rules that the harness has, compared; em_thai and v1, which it has not, beside them."""
    reference = row["reference"]
    read = {"strict": extract.strict(completion), "flexible": extract.flexible(completion)}
    again.add({name: metrics.exact_match(value, reference) for name, value in read.items()}, row)
    thai, old = extract.em_thai(completion), extract.gsm8k_v1(completion)
    return {
        "answers": {**row["answers"], "em_thai": thai, "v1": old},
        "em_thai": float(extract.same_number(thai, reference)),
        "v1": metrics.exact_match(old, extract.gsm8k_v1(target) or reference),
    }


def row_of(sample: Mapping[str, Any], manner: Manner, where: str, again: Again) -> dict[str, Any]:
    """One sample as a row; the caller gives it its place, id, metric and score."""
    asked = asked_of(sample, where)
    replies = replies_of(sample, len(asked), where)
    return (choice_row if is_choice(asked, replies) else text_row)(sample, manner, where, again)
