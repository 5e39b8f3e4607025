"""The leaderboard as data frames, for a leaf's tables/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from thaikit import report_board, report_pairs
from thaikit.records import Run
from thaikit.report_board import Board
from thaikit.report_parts import number


def read(run: Run, suite: Path | str) -> tuple[list[Board], pd.DataFrame, pd.DataFrame]:
    """The boards of a suite and their two tables, written into the run's leaf as leaderboard and leaderboard_pairs. Of
    a closed leaf its tables as they stand and no boards: nothing is computed."""
    names = ("leaderboard", "leaderboard_pairs")
    if run.closed:
        paths = [run.out_dir / "tables" / f"{name}.csv" for name in names]
        ranked, pairs = (pd.read_csv(path) if path.is_file() else pd.DataFrame() for path in paths)
        return [], ranked, pairs
    found = report_board.boards(suite)
    ranked, pairs = frame(found), pair_frame(found)
    for name, table in zip(names, (ranked, pairs), strict=True):
        if len(table):
            run.table(table, name)
    return found, ranked, pairs


def frame(found: Sequence[Board]) -> pd.DataFrame:
    """The boards below each other: benchmark, terms, model, rank_best, rank_worst, value, low, high, n, method, models
    (ranked on this board), rehearsal. Percent for Thai-H6 and MRC, the judge's scale for ThaiCLI, full precision."""
    lines = []
    for one in found:
        ranked = sum(band is not None for band in one.bands)
        for i in one.order:
            entry, band = one.entries[i], one.bands[i] or (None, None)
            told = {key: one.scale * number(entry.estimate.get(key)) for key in ("value", "low", "high")}
            lines.append({"benchmark": one.benchmark, "measure": one.measure, "terms": one.terms, "model": entry.model,
                          "rank_best": band[0], "rank_worst": band[1], **told, "n": entry.estimate.get("n", 0),
                          "method": entry.estimate.get("method", ""), "models": ranked,
                          "rehearsal": entry.rehearsal})  # fmt: skip
    return pd.DataFrame(lines).astype({"rank_best": "Int64", "rank_worst": "Int64"}) if lines else pd.DataFrame()


def pair_frame(found: Sequence[Board]) -> pd.DataFrame:
    """Every pair of every board with difference, interval, p, Holm's p and smallest detectable differences."""
    return pd.DataFrame([
        {"benchmark": one.benchmark, "terms": one.terms, **report_pairs.record(pair, scale=one.scale),
         "measure": one.measure}
        for one in found for pair in one.pairs
    ])  # fmt: skip
