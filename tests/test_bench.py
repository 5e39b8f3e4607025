"""The benchmark's choices: the peer's batch size, the columns, the progress line of a run."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from thaikit import bench
from thaikit.asking import Local, counter
from thaikit.models import LocalModel


@pytest.mark.parametrize(
    ("fits", "seconds", "cuda", "chosen", "tried"),
    [
        (8, {1: 4.0, 8: 1.0}, False, 8, [1, 8]),
        (8, {1: 1.0, 8: 4.0}, False, 1, [1, 8]),
        (2, {1: 4.0, 2: 3.0}, False, 2, [1, 8, 4, 2]),
        (1, {1: 4.0}, False, 1, [1, 8, 4, 2]),
        (32, {1: 4.0, 32: 1.0}, True, 32, [1, 32]),
        (16, {1: 4.0, 16: 1.0}, True, 16, [1, 32, 16]),
    ],
)
def test_the_peer_runs_at_the_better_of_one_and_the_largest_that_fits(
    monkeypatch: pytest.MonkeyPatch, fits: int, seconds: dict[int, float], cuda: bool, chosen: int, tried: list[int]
) -> None:
    asked: list[tuple[int, int]] = []

    def ask_peer(local: Any, work: bench.Work, items: int, batch_size: int) -> tuple[float, list[Any]]:
        asked.append((batch_size, items))
        if batch_size > fits:
            raise torch.cuda.OutOfMemoryError("too large")
        return seconds[batch_size], []

    monkeypatch.setattr(bench, "ask_peer", ask_peer)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    work = bench.Work("arc", ((((1, 2), (3,)),),) * 12)
    assert bench.best_peer(None, work, 12)[0] == seconds[chosen]
    assert asked == [*((size, 2) for size in tried), (chosen, 12)]


def test_every_shape_has_its_sizes_and_the_table_its_columns(tiny: LocalModel) -> None:
    assert bench.COLUMNS == (
        "shape", "device", "model", "items", "peer_items_per_s", "kit_items_per_s", "ratio", "distinct_tokens_per_s",
        "matrix_share", "peak_gib", "max_abs_diff_per_token",
    )  # fmt: skip
    for shape, (_, _, prefix, question, choices, length) in bench.SIZES.items():
        items = bench.random_work(Local(tiny), shape, 3).items
        assert len(items) == 3 and all(len(item) == choices for item in items)
        for context, tail in (request for item in items for request in item):
            assert len(tail) == length and abs(len(context) - prefix - question) <= question // 4 + 2


def test_progress_tells_what_is_done_how_fast_and_what_is_left(
    tiny: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, said = [0.0], []
    monkeypatch.setattr("thaikit.asking.time.monotonic", lambda: clock[0])
    local = Local(tiny)
    hear = counter(local, said.append, 3000, "distinct tokens")
    for clock[0] in (2.0, 4.0):
        hear(1000)
    assert said == [
        "1,000 of 3,000 distinct tokens, 500/s, 4 s left",
        "2,000 of 3,000 distinct tokens, 500/s, 2 s left",
    ]
    assert local.ran == 2000
