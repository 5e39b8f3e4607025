"""Printed percentages → the whole counts behind them: pure functions over the digits as they stand in a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def whole_count(printed: str, n: int) -> int:
    """The one k of n items whose percentage rounds to the printed text ("39.59"); ties of rounding count either way.

    ValueError where no whole count or more than one does, so that a number is never made up.
    """
    fitting = whole_counts(printed, n)
    if len(fitting) != 1:
        raise ValueError(f"whole_count: {printed} % is {len(fitting)} whole counts of {n}; there must be exactly one.")
    return fitting[0]


def whole_counts(printed: str, n: int) -> list[int]:
    """Every k of n items whose percentage rounds to the printed text."""
    if n < 1:
        raise ValueError(f"whole_counts: {n} items; there must be at least one.")
    low, high = _bounds(printed)
    first, last = int(np.floor(low * n / 100)), int(np.ceil(high * n / 100))
    return [k for k in range(max(0, first), min(n, last) + 1) if low <= 100 * k / n <= high]


def sizes(printed: Sequence[str], candidates: Iterable[int]) -> list[int]:
    """Those numbers of items over which every printed percentage is a whole count; ValueError for no percentages."""
    if not printed:
        raise ValueError("sizes: no percentages; pass at least one.")
    return [n for n in candidates if all(whole_counts(text, n) for text in printed)]


def recover_agreement(precision: str, recall: str, f1: str, *, human: int) -> tuple[int, int]:
    """(both, judge): how often judge and people agreed to an answer, and how often the judge did, of which precision
    both / judge, recall both / human and F1 are printed in percent. ValueError unless exactly one pair fits all three.
    """
    pairs = [
        (both, judge)
        for both in whole_counts(recall, human)
        for judge in _denominators(precision, both)
        if rounds_to(f1, 200 * both / (judge + human))
    ]
    if len(pairs) != 1:
        told = f"P {precision}, R {recall}, F1 {f1}"
        raise ValueError(f"recover_agreement: {len(pairs)} pairs of counts give {told} over {human}; one must.")
    return pairs[0]


def _denominators(printed: str, k: int) -> list[int]:
    """Every n of which k is the printed percentage."""
    low, high = _bounds(printed)
    if k == 0 or high <= 0:
        return []
    first = int(np.floor(100 * k / high))
    last = int(np.ceil(100 * k / low)) if low > 0 else first
    return [n for n in range(max(k, first), last + 1) if low <= 100 * k / n <= high]


def rounds_to(printed: str, value: float, *, slack: float = 0.0) -> bool:
    """Whether the value rounds to the printed number's last digit, a tie either way; `slack` widens both sides."""
    low, high = _bounds(printed)
    return low - slack <= value <= high + slack


def _bounds(printed: str) -> tuple[float, float]:
    """The values that round to a printed number, both ends included, with room for binary fractions."""
    half = 0.5 * 10.0 ** -len(printed.partition(".")[2])
    return float(printed) - half - 1e-9, float(printed) + half + 1e-9
