"""Scores of one item and plain aggregates, on plain numbers; each metric has a signature to be printed beside it.

`ll` is always a list of summed natural-log probabilities, one a choice. A fault in the data is a ValueError.
"""

import math
from collections.abc import Mapping, Sequence

SIGNATURES: dict[str, str] = {
    "acc": "acc|argmax:ll|ties:lowest|version:1",
    "acc_norm": "acc_norm|argmax:ll/codepoints|delimiter:excluded|ties:lowest|version:1",
    "acc_bytes": "acc_bytes|argmax:ll/utf8bytes|delimiter:excluded|ties:lowest|version:1",
    "acc_tokens": "acc_tokens|argmax:ll/tokens|delimiter:included|ties:lowest|version:1",
    "mc1": "mc1|argmax:ll|true:index0|ties:lowest|version:1",
    "mc2": "mc2|mass:true/all|labels:mask|shift:max|length:none|version:1",
    "winogrande": "acc|argmax:ll(tail)|partial:yes|ties:lowest|version:1",
    "strict": "exact_match|filter:first####|delete:comma,dollar,####,stop|case:lower|version:1",
    "flexible": "exact_match|filter:lastnumber|delete:comma,dollar,####,stop|case:lower|version:1",
    "em_thai": "em_thai|digits:thai+arabic|order:####,คำตอบคือ,ตอบ,answer is,last|compare:decimal|version:1",
    "v1": "exact_match|filter:first####|stop:colon|delete:comma|case:kept|version:1",
}


def accuracies(
    ll: Sequence[float], gold: int, *, choices: Sequence[str], tokens: Sequence[int]
) -> dict[str, float | int]:
    """The four accuracies of one item (0.0 or 1.0) and the index each of them predicts.

    Keys: acc, acc_norm (ll per Unicode code point of the choice, without the delimiter), acc_bytes (per UTF-8 byte),
    acc_tokens (per token of the continuation), and prediction, prediction_norm, prediction_bytes, prediction_tokens.
    Ties go to the lowest index. ValueError for lists of unequal length, gold out of range, NaN, or a choice without
    characters or tokens. Source: lm-evaluation-harness 0.4.13, api/task.py.
    """
    if isinstance(choices, str):
        raise ValueError(f"accuracies: choices is the string {choices!r}; pass a list of strings.")
    _check(ll, gold)
    if not len(ll) == len(choices) == len(tokens):
        raise ValueError(
            f"accuracies: {len(ll)} log-probabilities, {len(choices)} choices and {len(tokens)} token counts; "
            "all three need the same length."
        )
    for index, (choice, count) in enumerate(zip(choices, tokens, strict=True)):
        if not choice or count < 1:
            raise ValueError(
                f"accuracies: choice {index} ({choice!r}) has {len(choice)} characters and {count} tokens; "
                "every choice needs at least one of each."
            )
    lengths = {
        "": [1] * len(ll),
        "_norm": [len(choice) for choice in choices],
        "_bytes": [len(choice.encode("utf-8")) for choice in choices],
        "_tokens": tokens,
    }
    best = {key: _argmax([x / n for x, n in zip(ll, ns, strict=True)]) for key, ns in lengths.items()}
    scores = {f"acc{key}": float(index == gold) for key, index in best.items()}
    return scores | {f"prediction{key}": index for key, index in best.items()}


def mc1(ll: Sequence[float]) -> float:
    """TruthfulQA mc1 of one item: 1.0 when the first choice, the true one, has the highest log-probability."""
    _check(ll, 0)
    return float(_argmax(ll) == 0)


def mc2(ll: Sequence[float], labels: Sequence[int]) -> float:
    """TruthfulQA mc2 of one item: the share of probability mass on the true answers, in [0, 1].

    Labels are a mask (1 true, 0 false, in any order), and the largest ll is subtracted first so that long answers do
    not underflow to 0/0. ValueError unless there is at least one 1 and one 0, and one finite ll.
    """
    _check(ll, 0)
    if len(ll) != len(labels):
        raise ValueError(f"mc2: {len(ll)} log-probabilities and {len(labels)} labels; both need the same length.")
    if set(labels) != {0, 1}:
        raise ValueError(f"mc2: labels are {list(labels)}; at least one 1 and one 0, and nothing else, is needed.")
    top = max(ll)
    if math.isinf(top):
        raise ValueError(f"mc2: the highest log-probability is {top}; at least one finite value is needed.")
    mass = [math.exp(x - top) for x in ll]
    return math.fsum(m for m, label in zip(mass, labels, strict=True) if label == 1) / math.fsum(mass)


def winogrande(ll: Sequence[float], gold: int) -> dict[str, float | int]:
    """Acc (0.0 or 1.0) and prediction (0 or 1) of one item: which option makes the shared tail likelier.

    `gold` is the data's answer minus 1. No length enters, because the scored text is the same.
    """
    _check(ll, gold)
    if len(ll) != 2:
        raise ValueError(f"winogrande: {len(ll)} log-probabilities; exactly two are needed.")
    prediction = _argmax(ll)
    return {"acc": float(prediction == gold), "prediction": prediction}


def exact_match(prediction: str | None, gold: str) -> float:
    """1.0 when both strings are equal, else 0.0; no answer (None) is 0.0. Normalise both sides before, once."""
    return float(prediction is not None and prediction == gold)


def mean_stderr(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error (sample deviation with n - 1, over the root of n).

    The error is NaN for one value, and both are NaN for none.
    """
    n = len(values)
    if n == 0:
        return math.nan, math.nan
    mean = math.fsum(values) / n
    if n == 1:
        return mean, math.nan
    return mean, math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (n - 1) / n)


def macro_micro(groups: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """(macro, micro): the mean of the group means, and the mean over all items. NaN, NaN without groups.

    ValueError when a group has no items, since it has no mean.
    """
    empty = [name for name, values in groups.items() if len(values) == 0]
    if empty:
        raise ValueError(f"macro_micro: group {empty[0]!r} has no items; leave it out or load its rows.")
    if not groups:
        return math.nan, math.nan
    macro = math.fsum(math.fsum(values) / len(values) for values in groups.values()) / len(groups)
    micro = math.fsum(math.fsum(values) for values in groups.values()) / sum(len(v) for v in groups.values())
    return macro, micro


def pooled_stderr(sizes: Sequence[int], stderrs: Sequence[float]) -> float:
    """The harness's standard error of the size-weighted mean over J groups.

    sqrt( sum (n_j - 1) se_j^2 n_j / (sum n_j - J) / sum n_j ); a group of one has no weight in the sum, whatever its
    error; NaN when every group has one item. Source: lm-evaluation-harness 0.4.13, api/metrics.py.
    """
    if len(sizes) != len(stderrs):
        raise ValueError(f"pooled_stderr: {len(sizes)} sizes and {len(stderrs)} errors; both need the same length.")
    total, free = sum(sizes), sum(sizes) - len(sizes)
    if free < 1:
        return math.nan
    squares = math.fsum((n - 1) * se**2 * n for n, se in zip(sizes, stderrs, strict=True) if n > 1)
    return math.sqrt(squares / free / total)


def _argmax(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda i: values[i])  # max keeps the first of equals


def _check(ll: Sequence[float], gold: int) -> None:
    if any(math.isnan(x) for x in ll):
        raise ValueError(f"log-probabilities are {list(ll)}; NaN cannot be ranked, find out where it comes from.")
    if not 0 <= gold < len(ll):
        raise ValueError(f"gold is {gold} and there are {len(ll)} choices; it must lie between 0 and {len(ll) - 1}.")
