"""Published rows and a suite's own results through the same code, and the statistics of a handful of models."""

from __future__ import annotations

import io
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fake_leaves import write_leaf
from scipy import stats as sps

from thaikit import (
    ThaikitError,
    analysis,
    analysis_pairs,
    analysis_stats,
    audit_claims,
    counts,
    figures,
    figures_analysis,
    figures_groups,
    figures_labels,
    figures_ranks,
    own,
    published,
    resampling,
    stats,
    table_text,
)
from thaikit.records import Leaf, Run
from thaikit.tasks import thaicli_summary

HOSTILE = "<script>$x_1$ น้ำที่ปู่"


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


# --------------------------------------------------------------------------------------------------- statistics


def test_the_papers_correlations() -> None:
    both = analysis.averages(analysis.results())
    found = analysis.correlations(both).set_index("kind")
    assert round(found.loc["spearman", "value"], 4) == 0.0857
    assert round(found.loc["spearman", "p"], 4) == 0.9194
    assert found.loc["spearman", "test"] == "all 720 orders"
    assert round(found.loc["pearson", "value"], 4) == 0.3735
    assert (found["low"] < 0).all() and (found["high"] > 0.8).all()  # six models tell next to nothing
    again = analysis.correlations(both).set_index("kind")
    pd.testing.assert_frame_equal(found, again)


def test_correlation_as_scipy_has_it() -> None:
    draw = rng()
    x, y = draw.normal(size=7), draw.normal(size=7)
    found = analysis_stats.correlation(x, y, kind="pearson", rng=rng())
    exact = sps.permutation_test(
        (y,), lambda other: abs(sps.pearsonr(x, other).statistic), permutation_type="pairings", n_resamples=np.inf,
        alternative="greater",
    )  # fmt: skip
    assert found.estimate.value == pytest.approx(sps.pearsonr(x, y).statistic)
    assert found.p == pytest.approx(exact.pvalue)
    tied = analysis_stats.correlation([1, 1, 2, 3], [4, 5, 5, 9], kind="spearman", rng=rng())
    assert tied.estimate.value == pytest.approx(sps.spearmanr([1, 1, 2, 3], [4, 5, 5, 9]).statistic)
    many = analysis_stats.correlation(range(30), range(30), kind="pearson", rng=rng())
    assert many.p == pytest.approx(1 / 10001) and "drawn" in many.test


def test_too_few_models_give_nan_and_a_reason() -> None:
    for x, y in (([], []), ([1, 2], [3, 4]), ([1, 1, 1], [1, 2, 3])):
        found = analysis_stats.correlation(x, y, kind="spearman", rng=rng())
        assert math.isnan(found.p) and math.isnan(found.estimate.value) and found.test.startswith("none: ")
    assert math.isnan(analysis_stats.slope([1, 2], [3, 4]).estimate.low)
    assert math.isnan(analysis_stats.slope([5, 5, 5], [3, 4, 5]).estimate.value)
    assert analysis_stats.welch([], [1.0]).method == "none: one side has no items"
    assert analysis_stats.welch([1.0], [1.0, 2.0]).value == -0.5
    assert analysis_stats.newcombe(0, 0, 1, 2).method.startswith("none")
    with pytest.raises(ValueError, match="2 and 1 values"):
        analysis_stats.correlation([1, 2], [1], kind="pearson", rng=rng())
    with pytest.raises(ValueError, match="above 0"):
        analysis_stats.slope([0, 1, 2], [1, 2, 3])


def test_smallest_shown_by_six_models() -> None:
    found = analysis_stats.smallest_shown(6)
    assert found["spearman"] == pytest.approx(0.8857, abs=1e-4)
    assert found["p"] == pytest.approx(24 / 720)
    r = found["pearson"]
    t = r * math.sqrt(4 / (1 - r * r))
    assert 2 * sps.t.sf(t, 4) == pytest.approx(0.05)
    assert math.isnan(analysis_stats.smallest_shown(4)["spearman"])  # not even a perfect order of four


def test_slope_is_least_squares_and_leaves_each_point_out() -> None:
    size, score = [7.6, 8.0, 14.2, 70.6, 72.7], [1.0, 3.0, 2.0, 5.0, 6.0]
    found = analysis_stats.slope(size, score)
    theirs = sps.linregress(np.log10(size), score)
    half = sps.t.ppf(0.975, 3) * theirs.stderr
    assert (found.estimate.value, found.estimate.low) == pytest.approx((theirs.slope, theirs.slope - half))
    assert found.without[0] == pytest.approx(sps.linregress(np.log10(size[1:]), score[1:]).slope)
    assert len(found.without) == 5


def test_newcombe_and_split_test_as_others_compute_them() -> None:
    from statsmodels.stats.proportion import confint_proportions_2indep

    found = analysis_stats.newcombe(56, 70, 48, 80)
    assert (found.low, found.high) == pytest.approx(confint_proportions_2indep(56, 70, 48, 80, method="newcomb"))
    a, b = [1.0, 2.0, 4.0], [3.0, 5.0, 6.0, 7.0]
    mine = analysis_stats.split_test(a, b)
    gaps = [np.mean([*c]) - np.mean([v for v in a + b if v not in c]) for c in itertools.combinations(a + b, 3)]
    assert mine.p == np.mean(np.abs(gaps) >= abs(np.mean(a) - np.mean(b)) - 1e-12)
    assert (mine.estimate.low, mine.estimate.high) == pytest.approx(
        sps.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    )
    with pytest.raises(ValueError, match="too many"):
        analysis_stats.split_test(range(20), range(20, 40))


def test_bootstrap_interval_knows_its_limits() -> None:
    found = resampling.bootstrap_interval([1.0, 2.0, 3.0, 4.0], rng=rng())
    assert found == resampling.bootstrap_interval([1.0, 2.0, 3.0, 4.0], rng=rng())
    assert found.low < found.value == 2.5 < found.high
    median = resampling.bootstrap_interval([0.0, 1.0, 50.0], rng=rng(), statistic=np.median)
    assert (median.value, median.high) == (1.0, 50.0)
    for values in ([], [1.0], [2.0, 2.0]):
        assert math.isnan(resampling.bootstrap_interval(values, rng=rng()).low)
    with pytest.raises(ValueError, match="NaN"):
        resampling.bootstrap_interval([math.nan, 1.0], rng=rng())


# ------------------------------------------------------------------------------------------- counts and tables


def test_whole_counts_behind_the_published_accuracies() -> None:
    sizes = published.h6_sizes().set_index("task")
    assert {task: sizes.loc[task, "scored"] for task in ("arc", "winogrande", "gsm8k")} == {
        "arc": 1172, "winogrande": 1267, "gsm8k": 1319
    }  # fmt: skip
    right = published.h6_counts().pivot(index="model", columns="task", values="right")
    models = published.book().rows("thaicli.4")
    assert list(right.loc[models, "arc"]) == [464, 634, 681, 643, 556, 548]
    assert list(right.loc[models, "winogrande"]) == [831, 931, 935, 928, 895, 844]
    assert list(right.loc[models, "gsm8k"]) == [777, 888, 963, 1025, 661, 433]


def test_counts_refuse_to_guess() -> None:
    assert counts.whole_counts("50.0", 3) == [] and counts.whole_counts("33.3", 3) == [1]
    assert counts.whole_counts("0.0", 5) == [0] and counts.whole_counts("100.0", 5) == [5]
    with pytest.raises(ValueError, match="3 whole counts"):
        counts.whole_count("50", 200)
    with pytest.raises(ValueError, match="0 pairs"):
        counts.recover_agreement("50.00", "33.33", "99.00", human=3)


def test_table_4_as_counts() -> None:
    found = published.agreement_counts().set_index(["assessor", "question"])
    told = {q: tuple(found.loc[("GPT-4", q), ["human", "judge", "both"]]) for q in ("q1", "q2", "q3", "q4", "pooled")}
    assert told == {"q1": (207, 197, 195), "q2": (137, 70, 66), "q3": (73, 87, 48), "q4": (82, 61, 46),
                    "pooled": (499, 415, 355)}  # fmt: skip
    assert tuple(found.loc[("Gemini", "pooled"), ["judge", "both"]]) == (298, 263)
    assert tuple(found.loc[("GPT-3.5", "pooled"), ["judge", "both"]]) == (482, 363)


def test_tables_say_where_they_stand() -> None:
    frame = published.read("thaicli.5")
    assert {"paper", "table", "page", "printed", "value", "parameters", "access", "specialised", "base", "release"} <= {
        *frame.columns
    }
    assert set(frame["page"]) == {"8"} and len(frame) == 36
    assert published.read("wangchan.3").query("column == 'tokens'")["printed"].tolist() == ["10.35", "27.81", "5.50"]
    with pytest.raises(ThaikitError, match="no table 'x'; there are thaicli.1"):
        published.read("x")
    with pytest.raises(ThaikitError, match="nothing at row 'x'"):
        published.book().value("thaicli.4", "x", "arc")


def test_no_interval_without_counts() -> None:
    h6, cli = published.thai_h6(), published.thaicli()
    bare = h6[h6["task"].isin(["average", "truthfulqa"])]
    assert bare["low"].isna().all() and cli["low"].isna().all()
    assert bare["method"].str.startswith("none: ").all() and cli["method"].str.startswith("none: ").all()
    arc = h6.query("task == 'arc' and model == 'Qwen2-72B-Instruct'").iloc[0]
    assert (arc["right"], arc["low"]) == (681, pytest.approx(100 * stats.wilson(681, 1172).low))


# --------------------------------------------------------------------------------------------------- own results


def told_of(leaf: Path, *, ranked: bool = True, **facts: Any) -> None:
    """Change what a leaf says of its run: on the whole set, by a model of some size and region."""
    path = leaf / "run.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["model"] |= facts
    record["params"] |= {"tasks": "release" if ranked else "thai-h6-samples"}
    record["data_place"] = "release" if ranked else "samples:thai_h6"
    path.write_text(json.dumps(record), encoding="utf-8")


def judged_leaf(suite: Path, model: str, *, up: float, **facts: Any) -> None:
    """A closed ThaiCLI leaf of 40 judgements."""
    run = Run.open("thaicli_judge", params={"model": model, "judge": "j", "tasks": "release"},
                   out_dir=str(suite / "thaicli_judge" / f"{model}--j"))  # fmt: skip
    for n in range(40):
        kind, theme = ("factoid", "culture") if n % 4 else ("instruction", ("economy", "religion")[n % 8 == 0])
        score = min(10.0, 3 + n * n % 7 / 2 + up + (kind == "factoid"))
        row = {"id": f"{n}@{model}", "item": str(n), "item_sha256": "0", "format": kind, "theme": theme,
               "outcome": "ok", "score": score}  # fmt: skip
        run.log("judgements").append(row)
    rows = run.log("judgements").rows()
    run.finish(headline={"thaicli": thaicli_summary.headline(rows)}, model={"name": model, **facts}, unanswered=0)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain model, a specialised one of its size, and one that rehearses on samples."""
    folder = tmp_path_factory.mktemp("suite")
    plain, special = {"parameters": 7_000_000_000, "region": "global"}, {"parameters": 8_000_000_000, "region": "thai"}
    for seed, (model, skill, facts) in enumerate((("plain", 1.0, plain), (HOSTILE.split("$")[2], 6.0, special))):
        told_of(write_leaf(folder, model, seed=seed, skill=skill, rehearsal=False), **facts)
        judged_leaf(folder, model, up=skill / 3, **facts)
    told_of(write_leaf(folder, "gemma3-270m", seed=5), ranked=False, parameters=270_000_000)
    return folder


SPECIAL = HOSTILE.split("$")[2]


def test_own_models_join_the_published_ones_marked_apart(suite: Path) -> None:
    frame = analysis.results(str(suite))
    mine = frame[frame["source"] == "own"]
    assert set(mine["model"]) == {"plain", SPECIAL, "gemma3-270m"}
    assert set(mine.loc[mine["ranked"].astype(bool), "model"]) == {"plain", SPECIAL}
    row = mine.query("model == 'plain' and task == 'arc'").iloc[0]
    assert row["parameters"] == 7.0 and row["n"] == 20 and row["low"] < row["value"] < row["high"]
    assert list(frame.columns) == list(own.COLUMNS)
    slopes = analysis.size_slopes(frame)
    assert list(slopes["rows"].unique()) == ["published", "published and own"]
    by_rows = slopes.query("benchmark == 'Thai-H6' and task == 'average'").set_index("rows")
    assert by_rows.loc["published", "n"] == 6 and by_rows.loc["published and own", "n"] == 8  # none that rehearses
    published_alone = analysis.size_slopes(analysis.results())
    pd.testing.assert_frame_equal(slopes[slopes["rows"] == "published"], published_alone)


def test_published_rows_are_not_told_again_as_own(suite: Path) -> None:
    """Own rows of ThaiCLI alone say nothing of Thai-H6; own answers to the sample passages are never ranked."""
    frame = analysis.results(str(suite))
    cli_only = frame[(frame["source"] == "published") | (frame["benchmark"] == "ThaiCLI")]
    slopes = analysis.size_slopes(cli_only).query("rows == 'published and own'")
    assert list(slopes["benchmark"]) == ["ThaiCLI"] and list(slopes["n"]) == [8]
    assert set(analysis.leave_one_out(cli_only).query("rows != 'published'")["benchmark"]) == {"ThaiCLI"}
    answers = [{"model": "m", "tasks": "t", "shots": 0, "place": "samples:mrc"}]
    for run, ranked in (({"answers": answers}, False), ({"answers": [answers[0] | {"place": "data/xquad"}]}, True),
                        ({"data_place": "samples:thai_h6"}, False), ({}, True)):  # fmt: skip
        assert own.is_ranked(Leaf(suite, {"params": {"model": "m"}, **run})) is ranked


def test_gsm8k_mmlu_and_arc_gain_most() -> None:
    slopes = analysis.size_slopes(analysis.results())
    assert set(slopes.loc[slopes["place"] <= 3, "task"]) == {"gsm8k", "mmlu", "arc"}
    without = analysis.leave_one_out(analysis.results())
    assert len(without) == 6 * 8 and not without["value"].isna().any()


def test_own_pairs_are_compared_item_by_item(suite: Path) -> None:
    frame = analysis.results(str(suite))
    pairs = analysis_pairs.pairs(frame, suite)
    mine = pairs[pairs["source"] == "own"]
    assert set(mine["partner"]) == {"plain"} and set(mine["benchmark"]) == {"Thai-H6", "ThaiCLI"}
    arc = mine.query("task == 'arc'").iloc[0]
    assert "mcnemar exact" in arc["method"] and 0 < arc["p"] <= 1 and arc["n"] == 20
    factoid = mine.query("task == 'factoid'").iloc[0]
    assert factoid["value"] == pytest.approx(factoid["a"] - factoid["b"]) and factoid["p"] < 0.01
    h6, cli = (mine[mine["benchmark"] == name].set_index("task") for name in ("Thai-H6", "ThaiCLI"))
    scores = frame[frame["model"] == SPECIAL].set_index(["benchmark", "task"])["value"]
    for rows, name, tasks in ((h6, "Thai-H6", list(own.THAI_H6[:-1])), (cli, "ThaiCLI", ["factoid", "instruction"])):
        whole = rows.loc["average"]
        assert whole["value"] == pytest.approx(rows.loc[tasks, "value"].mean()) and whole["p"] < 0.05
        assert whole["a"] == pytest.approx(scores[name, "average"]) and whole["n"] == rows.loc[tasks, "n"].sum()
    assert h6.loc["average", "low"] < h6.loc["average", "value"] < h6.loc["average", "high"]
    assert "no spread" in cli.loc["average", "method"]  # the two judged leaves differ by one number throughout
    assert h6.loc["mmlu", "a"] == pytest.approx(scores["Thai-H6", "mmlu"])  # the mean over subjects, as everywhere
    theirs = pairs[pairs["source"] == "published"]
    gsm = theirs.query("task == 'gsm8k' and model == 'SeaLLMs-v3-7B-Chat'").iloc[0]
    assert gsm["value"] == pytest.approx(-26.08) and gsm["high"] < 0
    assert theirs.query("benchmark == 'ThaiCLI'")["low"].isna().all()
    counted = analysis_pairs.pair_counts(theirs).set_index(["pair", "benchmark"])
    assert counted.loc[("SeaLLMs v3 7B − Llama 3.1 8B", "Thai-H6"), "higher"] == 5


def test_pairs_that_were_asked_otherwise_are_not_compared(suite: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(suite, tmp_path / "s")
    path = tmp_path / "s" / "thai_h6" / "plain" / "run.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"release"', '"another"'), encoding="utf-8")
    pairs = analysis_pairs.pairs(analysis.results(str(tmp_path / "s")), tmp_path / "s")
    assert set(pairs.loc[pairs["source"] == "own", "benchmark"]) == {"ThaiCLI"}


def test_gaps_have_intervals_where_items_are_there(suite: Path) -> None:
    gaps = analysis.format_gaps(analysis.results(str(suite)))
    theirs, mine = gaps[gaps["source"] == "published"], gaps[gaps["source"] == "own"]
    assert theirs["low"].isna().all() and theirs["method"].str.startswith("none: ").all()
    assert (mine["low"] < mine["value"]).all() and (mine["value"] < mine["high"]).all()
    assert gaps.query("model == 'GPT-3.5 Turbo'")["value"].iloc[0] == pytest.approx(1.73)
    groups = analysis.groups(analysis.results(str(suite))).set_index(["rows", "task"])
    assert groups.loc[("published", "average"), "test"] == "all 924 splits"
    assert groups.loc[("published", "average"), "value"] == pytest.approx(7.5467 - 5.725, abs=1e-3)
    assert groups.loc[("published and own", "average"), "n"] == 14


def test_a_server_without_a_size_is_taken_for_closed(tmp_path: Path) -> None:
    judged_leaf(tmp_path, "gpt-4o-mini", up=2.0, kind="openai")
    mine = own.own_results(tmp_path)
    assert set(mine["access"]) == {"closed"} and mine["parameters"].isna().all()
    assert own.own_results(None).empty and list(own.own_results(None).columns) == list(own.COLUMNS)


def test_the_audit_runs_on_own_results(suite: Path) -> None:
    found = audit_claims.own_audit(own.own_results(suite)).set_index("id")
    assert found.loc["h6-03", "verdict"] == "holds"  # the average is the mean of six here too
    assert found.loc["cli-17", "verdict"] == "holds"  # the one specialised model is above the other
    assert found.loc["cli-19", "verdict"] == "cannot be told" and "0 closed" in found.loc["cli-19", "value"]
    assert set(found["paper"]) == {"these results"}
    assert audit_claims.own_audit(own.own_results(None)).empty


def test_no_such_suite_is_one_sentence() -> None:
    with pytest.raises(ThaikitError, match="no such folder"):
        analysis.results("no-such-suite")
    assert analysis.given_inputs("") == {"suite": ""}


# ------------------------------------------------------------------------------------------------------- figures


def all_figures(frame: pd.DataFrame, folder: Path | None) -> list[Any]:
    figures.use_style()
    slopes, both = analysis.size_slopes(frame), analysis.averages(frame)
    pairs = analysis_pairs.pairs(frame, folder)
    return [
        figures_analysis.size_figure(frame, slopes), figures_analysis.tasks_figure(frame, slopes),
        figures_analysis.slopes_figure(slopes), figures_groups.pairs_figure(pairs, "Thai-H6"),
        figures_groups.pairs_figure(pairs, "ThaiCLI"), figures_ranks.scatter_figure(both),
        figures_ranks.ranks_figure(both), figures_ranks.chance_figure(6, 0.0857),
        figures_groups.groups_figure(frame), figures_groups.formats_figure(analysis.format_gaps(frame)),
        figures_groups.audit_figure(audit_claims.published_audit()),
    ]  # fmt: skip


def drawn_ticks(axes: Any) -> list[Any]:
    """The tick labels that lie within the axes' limits."""
    across = [(label, label.get_position()[0], axes.get_xlim()) for label in axes.get_xticklabels()]
    across = across if axes.xaxis.get_visible() else []
    up = [(label, label.get_position()[1], axes.get_ylim()) for label in axes.get_yticklabels()]
    return [label for label, place, limits in (*across, *up) if min(limits) <= place <= max(limits)]


@pytest.mark.parametrize("with_suite", [False, True])
def test_no_text_is_clipped(suite: Path, with_suite: bool) -> None:
    folder = suite if with_suite else None
    for figure in all_figures(analysis.results(str(suite) if with_suite else ""), folder):
        figure.savefig(io.BytesIO(), format="svg")
        figure.draw_without_rendering()
        frame = figure.bbox
        for axes in figure.axes:
            for text in [*axes.texts, *drawn_ticks(axes), axes.xaxis.label, axes.yaxis.label, axes.title]:
                box = text.get_window_extent()
                if text.get_text() and text.get_visible() and box.width:
                    assert box.x0 >= frame.x0 - 1 and box.x1 <= frame.x1 + 1, text.get_text()
                    assert box.y0 >= frame.y0 - 1 and box.y1 <= frame.y1 + 1, text.get_text()


def test_labels_of_models_do_not_cover_each_other() -> None:
    figures.use_style()
    figure = figures_ranks.scatter_figure(analysis.averages(analysis.results()))
    boxes = np.array([text.get_window_extent().extents for text in figure.axes[0].texts if text.get_text()])
    assert len(boxes) == 6
    assert all(figures_labels.overlap(a, b[None]) == 0 for a, b in itertools.combinations(boxes, 2))


def test_a_figure_without_models_is_one_sentence() -> None:
    with pytest.raises(ThaikitError, match="no model with a known size"):
        figures_analysis.pick(analysis.results().head(0), "Thai-H6", "arc")


# --------------------------------------------------------------------------------------------------- table files


def test_tables_are_safe_in_latex_and_markdown() -> None:
    frame = pd.DataFrame({"a_b": [HOSTILE, "50 % & more\n| \u202e"], "x": [0.00541, math.nan], "n": [3, 4]})
    tex, md = table_text.latex(frame), table_text.markdown(frame)
    assert r"\$x\_1\$" in tex and r"50 \% \& more \textbar{} U+202E" in tex and r"\begin{tabular}{lrr}" in tex
    assert "&lt;script&gt;" in md and r"\| U+202E" in md and "น้ำที่ปู่" in md
    assert "0.0054" in md and "–" in md and len(md.splitlines()) == 4
    assert tex.count(r"\\") == 3


def test_a_leaf_holds_each_table_and_figure_in_three_forms(tmp_path: Path) -> None:
    figures.use_style()
    run = Run.open("test", params={}, out_dir=str(tmp_path))
    run.table(pd.DataFrame({"x": [1 / 3]}), "t")
    run.figure(figures_ranks.chance_figure(5, 0.1), "f")
    assert {path.name for path in tmp_path.rglob("*.*") if path.parent != tmp_path} == {
        "t.csv", "t.tex", "t.md", "f.png", "f.pdf", "f.svg"
    }  # fmt: skip
    assert "0.3333333333333333" in (tmp_path / "tables" / "t.csv").read_text()
    svg = (tmp_path / "figures" / "f.svg").read_text()
    assert "<script" not in svg and "<text" not in svg  # outlines: a page's font does not reach into an image
