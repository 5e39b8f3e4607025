"""The analyses of the ThaiCLI paper, sections 5.2 to 5.4, on published rows and a suite's own results alike."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from thaikit import published, stats
from thaikit.analysis_stats import Kind, Slope, correlation, minus, ranks, slope, smallest_shown, split_test
from thaikit.own import COLUMNS, own_results
from thaikit.published import FORMATS, H6_TASKS
from thaikit.records import suite_folder
from thaikit.stats import Estimate

SEED = 1234  # of bootstrap intervals and of orders drawn where they are too many to count
GAP = "gap"  # factoid less instruction
KEYS = ("value", "low", "high", "n", "method")


def folder_of(suite: str) -> Path | None:
    """The folder of a suite's outputs; None for "", which means the published rows alone."""
    return suite_folder(suite) if suite else None


def given_inputs(suite: str) -> dict[str, str]:
    """The parameter `suite` as `inputs.inputs_of` wants it: the folder's path, "" for none."""
    folder = folder_of(suite)
    return {"suite": str(folder) if folder else ""}


def results(suite: str = "") -> pd.DataFrame:
    """Every published result and a suite's own, one row a model and task, in the columns of `own.COLUMNS`.

    `source` is published or own. Own rows on samples or of rehearsing models have `ranked` false: they are shown and
    enter no statistic.
    """
    frames = [published.thai_h6(), published.thaicli(), published.mrc_f1(), *map(published.mrc_questions,
              ("wangchan.3", "wangchan.5"))]  # fmt: skip
    printed = pd.concat(frames, ignore_index=True).assign(ranked=True, leaf="")[list(COLUMNS)]
    own = own_results(folder_of(suite))
    return printed if own.empty else pd.concat([printed, own], ignore_index=True)


def of(frame: pd.DataFrame, benchmark: str, task: str = "") -> pd.DataFrame:
    """The rows of a benchmark, and of one of its tasks."""
    kept = frame[frame["benchmark"] == benchmark]
    return kept[kept["task"] == task] if task else kept


def estimate_of(row: Any) -> Estimate:
    """A row's estimate."""
    return Estimate(*(float(row[key]) for key in ("value", "low", "high")), int(row["n"]), str(row["method"]))


def series() -> list[tuple[str, str]]:
    """Benchmarks and tasks that are set against size: Thai-H6 and its six tasks, ThaiCLI."""
    return [("Thai-H6", task) for task in ("average", *H6_TASKS)] + [("ThaiCLI", "average")]


def sets(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """("published", its rows), and ("published and own", all that may be ranked) where own rows may."""
    kept = frame[frame["ranked"].astype(bool)]
    yield "published", kept[kept["source"] == "published"]
    if (kept["source"] == "own").any():
        yield "published and own", kept


def sized(frame: pd.DataFrame, benchmark: str, task: str) -> pd.DataFrame:
    """The rows of a task whose model's size is known."""
    kept = of(frame, benchmark, task)
    return kept[kept["parameters"].notna() & kept["value"].notna()]


def sized_sets(frame: pd.DataFrame) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """For each of `sets` and `series`, which it is and its rows of known size; where no own row is among them, the
    published ones are not told again as "published and own"."""
    for name, kept in sets(frame):
        for benchmark, task in series():
            rows = sized(kept, benchmark, task)
            if name == "published" or (rows["source"] == "own").any():
                yield {"rows": name, "benchmark": benchmark, "task": task}, rows


def size_slopes(frame: pd.DataFrame) -> pd.DataFrame:
    """Points a ten-fold of parameters: rows, benchmark, task, value, low, high, n (models), method, the lowest and
    highest slope with one model left out, intercept, and the slope's place among the six tasks (1 gains most)."""
    lines = []
    for told, rows in sized_sets(frame):
        found = slope(rows["parameters"], rows["value"])
        ends = {"lowest": min(found.without, default=math.nan), "highest": max(found.without, default=math.nan)}
        lines.append({**told, **found.estimate.as_dict(), **ends, "intercept": found.intercept})
    made = pd.DataFrame(lines)
    for name in made["rows"].unique():
        six = (made["rows"] == name) & (made["benchmark"] == "Thai-H6") & (made["task"] != "average")
        if six.sum() == len(H6_TASKS):
            made.loc[six, "place"] = ranks(made.loc[six, "value"])
    return made


def leave_one_out(frame: pd.DataFrame) -> pd.DataFrame:
    """The slopes without each model in turn: rows, left_out, benchmark, task, value, change (from the slope of all)."""
    lines = []
    for told, rows in sized_sets(frame):
        found: Slope = slope(rows["parameters"], rows["value"])
        for model, value in zip(rows["model"], found.without, strict=False):
            lines.append({**told, "left_out": model, "value": value, "change": value - found.estimate.value})
    return pd.DataFrame(lines, columns=["rows", "left_out", "benchmark", "task", "value", "change"])


def averages(frame: pd.DataFrame) -> pd.DataFrame:
    """Models with both averages: model, source, ranked, facts, h6, cli, their ranks among those that may be ranked
    (1 the best; NaN for others), and change, places gained from Thai-H6 to ThaiCLI."""
    facts = ["model", "source", "short", "parameters", "access", "specialised", "ranked"]
    h6, cli = (of(frame, name, "average")[[*facts, "value"]] for name in ("Thai-H6", "ThaiCLI"))
    made = h6.rename(columns={"value": "h6"}).merge(
        cli[["model", "source", "value"]].rename(columns={"value": "cli"}), on=["model", "source"]
    )
    kept = made["ranked"].astype(bool)
    for key in ("h6", "cli"):
        made.loc[kept, f"{key}_rank"] = ranks(made.loc[kept, key])
    return made.assign(change=made["h6_rank"] - made["cli_rank"])


def correlations(both: pd.DataFrame, *, seed: int = SEED) -> pd.DataFrame:
    """Spearman and Pearson of the two averages: rows, kind, value, low, high, n (models), method, p, test."""
    lines = []
    kinds: tuple[Kind, Kind] = ("spearman", "pearson")
    for name, kept in sets(both):
        for kind in kinds:
            rng = np.random.default_rng(seed)
            found = correlation(kept["h6"], kept["cli"], kind=kind, rng=rng)
            lines.append({"rows": name, "kind": kind, **found.as_dict()})
    return pd.DataFrame(lines)


def could_show() -> pd.DataFrame:
    """What 4 to 8 models could show: n, spearman, p, pearson, true80 (`analysis_stats.smallest_shown`)."""
    return pd.DataFrame([smallest_shown(n) for n in range(4, 9)])


def with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """ThaiCLI's rows with factoid less instruction as one more task: the items differ, so the two are independent."""
    cli = of(frame, "ThaiCLI")
    lines = []
    for _, rows in cli.groupby(["source", "model"], sort=False):
        each = rows.set_index("task")
        if set(FORMATS) <= set(each.index):
            found = minus(*(estimate_of(each.loc[name]) for name in FORMATS))
            first = each.reset_index().iloc[0].to_dict()
            lines.append({**first, "task": GAP, **found.as_dict(), "right": None})
    return pd.concat([cli, pd.DataFrame(lines, columns=cli.columns)], ignore_index=True) if lines else cli


def groups(frame: pd.DataFrame, *, tasks: tuple[str, ...] = ("average", *FORMATS, GAP)) -> pd.DataFrame:
    """Closed against open models: rows, task, closed and open (means over models), value (closed less open), low, high
    (Welch, over models), n, method, p, test (all ways to deal the models to two groups)."""
    lines = []
    for name, kept in sets(with_gaps(frame)):
        for task in tasks:
            rows = kept[kept["task"] == task]
            sides = [rows.loc[rows["access"] == access, "value"].to_numpy() for access in ("closed", "open")]
            found = split_test(*sides, rng=np.random.default_rng(SEED))
            means = {"closed": mean(sides[0]), "open": mean(sides[1])}
            lines.append({"rows": name, "task": task, **means, **found.as_dict()})
    return pd.DataFrame(lines)


def mean(values: np.ndarray) -> float:
    """The plain mean, NaN for none."""
    return float(values.mean()) if len(values) else math.nan


def against_closed(frame: pd.DataFrame) -> pd.DataFrame:
    """Each open model on ThaiCLI's average against the closed ones: its estimate, best closed less it with interval
    (NaN where only means are published), how many closed models it beats."""
    rows = of(frame, "ThaiCLI", "average")
    closed = rows[(rows["access"] == "closed") & rows["ranked"].astype(bool)]
    lines = []
    if closed.empty:
        return pd.DataFrame()
    best = closed.loc[closed["value"].idxmax()]
    for _, row in rows[rows["access"] == "open"].iterrows():
        found = minus(estimate_of(best), estimate_of(row))
        beaten = int((closed["value"] < row["value"]).sum())
        lines.append({"model": row["model"], "source": row["source"], "ranked": row["ranked"], "score": row["value"],
                      "best_closed": best["model"], **found.as_dict(), "n": row["n"], "beats_closed": beaten,
                      "closed": len(closed)})  # fmt: skip
    return pd.DataFrame(lines)


def format_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """Factoid, instruction and their gap of each model, widest first within open and closed: model, source, access,
    ranked, factoid, instruction, value (the gap), low, high, n, method."""
    all_rows = with_gaps(frame)
    wide = all_rows[all_rows["task"].isin(FORMATS)].pivot_table(
        index=["source", "model"], columns="task", values="value", sort=False
    )
    gaps = all_rows.loc[all_rows["task"] == GAP, ["model", "short", "source", "access", "ranked", *KEYS]]
    made = gaps.merge(wide.reset_index(), on=["source", "model"])
    return made.sort_values(["access", "value"], ascending=[True, False], ignore_index=True)


def group_means(frame: pd.DataFrame) -> pd.DataFrame:
    """The mean gap of closed and of open models over models, with Student's interval: rows, access, value, low, high,
    n, method."""
    lines = []
    for name, kept in sets(with_gaps(frame)):
        for access in ("closed", "open"):
            values = kept.loc[(kept["task"] == GAP) & (kept["access"] == access), "value"]
            lines.append({"rows": name, "access": access, **stats.mean_interval(list(values)).as_dict()})
    return pd.DataFrame(lines)


def as_headline(frame: pd.DataFrame, *keys: str) -> dict[str, Any]:
    """The estimates of a table for run.json, each named by its values in the key columns: value, low, high, n, method,
    and p where there is one."""
    kept = [key for key in (*KEYS, "p") if key in frame.columns]
    return {" ".join(str(line[key]) for key in keys): {key: line[key] for key in kept}
            for line in frame.to_dict("records")}  # fmt: skip


def shown(frame: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """A benchmark's results as a person reads them: what they are, value, interval, n, method; rounded."""
    columns = ["model", "source", "task", "value", "low", "high", "n", "method", "parameters", "access", "region",
               "ranked"]  # fmt: skip
    return of(frame, benchmark)[columns].round(2)
