"""The report's leaderboard, MRC part and length normalisations: what may be ranked together, and what is not said."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import fake_leaves
import pandas as pd
import pytest

from thaikit import ThaikitError, report, report_board, report_board_tables, report_lengths, report_mrc, report_parts
from thaikit.records import leaves, write_atomic

SHARP = "<b>m|x</b> $1$ & \u202eรุ่น"


def scores(suite: Path, model: str, right: list[int], **changes: Any) -> Path:
    """A closed leaf of one task in which `right` says which items were answered rightly; `changes` go into run.json."""
    folder = suite / "thai_h6" / re.sub(r"[^a-z0-9-]", "", model)
    fake_leaves.write_leaf(suite, folder.name, tasks=("arc",), items=len(right) or 1)
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    path = folder / "rows" / "arc.parquet"
    frame = pd.read_parquet(path)
    frame["score"] = [float(x) for x in right] if right else [math.nan]
    frame.to_parquet(path, index=False)
    value = {"value": sum(right) / len(right) if right else None, "low": 0.1, "high": 0.9, "n": len(right),
             "method": "wilson" if right else "none: no items"}  # fmt: skip
    record["headline"] = {"thai_h6": {"arc": value}}
    write_atomic(folder / "run.json", json.dumps(record | changes, ensure_ascii=False))
    return folder


def spread(total: int, right: int) -> list[int]:
    return [1] * right + [0] * (total - right)


def answered(suite: Path, name: str, f1: dict[str, float], *, shots: int = 0, model: str = "", judge: bool = False,
             place: str = "samples:mrc") -> None:  # fmt: skip
    """A closed leaf of scored (or judged) answers: item → F1; a verdict of 1 where F1 is above a half."""
    folder = suite / ("mrc_judge" if judge else "mrc_f1") / name
    (folder / "rows").mkdir(parents=True)
    model = model or name
    facts = [{"model": model, "tasks": "set", "shots": shots, "place": place}]
    stage = "mrc_judge" if judge else "mrc_f1"
    run = {"stage": stage, "params": {"answers": "x"}, "answers": facts,
           "signatures": {"wangchanx": "f1|rule:wangchanx"},
           "judge": {"name": "j", "model": "m", "rule": "numbered"}, "headline": {}}  # fmt: skip
    rows = []
    for item, value in f1.items():
        row = {"id": item, "item": item, "model": model, "tasks": "set", "shots": shots, "passage": item[0]}
        row |= {
            "words": 3,
            "question": "ถาม" + item,
            "references": ["ตอบ"],
            "answer": fake_leaves.HOSTILE,
            "answer_outcome": "ok",
        }
        if judge:
            four = dict.fromkeys(("q1", "q2", "q3", "q4"), None if math.isnan(value) else int(value > 0.5))
            row |= four | {"outcome": "unreadable" if math.isnan(value) else "ok", "reply": "1. <script>", "tries": 1,
                           "fault": "", "asked": True, "tags": 0}  # fmt: skip
        else:
            row |= {"score": None if math.isnan(value) else value}
            row |= {f"wangchanx_{key}": row["score"] for key in ("f1", "em", "recall")}
        rows.append(row)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    file = folder / "rows" / ("judgements.jsonl" if judge else "scores.jsonl")
    write_atomic(file, lines)
    pd.DataFrame(rows).to_parquet(file.with_suffix(".parquet"), index=False)
    write_atomic(folder / "run.json", json.dumps(run, ensure_ascii=False))


def items(*values: float) -> dict[str, float]:
    return {f"{chr(97 + i // 2)}{i}": value for i, value in enumerate(values)}


def page(suite: Path, **options: Any) -> str:
    return report.build(suite, out_path=suite / "r.html", **options).read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------- ranks


def test_ranks_are_shared_until_a_difference_is_shown(tmp_path: Path) -> None:
    for model, right in (("a", 18), ("b", 17), ("c", 2)):
        scores(tmp_path, model, spread(20, right))
    (one,) = report_board.boards(tmp_path)
    assert [one.entries[i].model for i in one.order] == ["a", "b", "c"]
    assert one.bands == ((1, 2), (1, 2), (3, 3))
    frame = report_board_tables.frame([one])
    assert frame["rank_worst"].tolist() == [2, 2, 3] and frame["value"].tolist() == [90, 85, 10]
    pairs = report_board_tables.pair_frame([one])
    assert pairs["higher"].tolist() == ["", "a", "b"] and (pairs["p_holm"] >= pairs["p"]).all()
    assert pairs["smallest_among"].iloc[1] > pairs["smallest_alone"].iloc[1] > 0
    told = report_board.section(report_board.boards(tmp_path))
    assert [row["cells"][0]["rank"] for row in told["rows"]] == ["1–2", "1–2", "3"]
    assert "a and b may be first (2 of 3 pairs shown to differ). Smallest" in told["told"][0]["says"]


def test_the_average_is_tested_over_tasks_with_subjects_alike(tmp_path: Path) -> None:
    fake_leaves.write_leaf(tmp_path, "good", seed=1, skill=9.0)
    fake_leaves.write_leaf(tmp_path, "poor", seed=2, skill=0.0)
    (one,) = report_board.boards(tmp_path)
    assert one.measure == "average of the six, %" and one.bands == ((1, 1), (2, 2))
    found = {leaf.name: leaf.run["headline"]["thai_h6"]["average"]["value"] for leaf in leaves(tmp_path)}
    (pair,) = one.pairs
    assert pair.gap is not None and pair.gap.difference.value == pytest.approx(found["good"] - found["poor"])
    assert "good is higher than every other model" in report_board.told_of(one)["says"]


def test_what_cannot_be_compared_is_never_in_one_ranking(tmp_path: Path) -> None:
    scores(tmp_path, "a", spread(20, 20))
    scores(tmp_path, "b", spread(20, 0), data_place="/other")
    fake_leaves.write_leaf(tmp_path, "c", profile="v1")
    fake_leaves.write_leaf(tmp_path, "d", labels="th")
    found = report_board.boards(tmp_path)
    assert len(found) == 4 and all(len(one.entries) == 1 and not one.pairs for one in found)
    told = report_board.section(report_board.boards(tmp_path))
    assert all("nothing to rank" in one["says"] for one in told["told"])
    assert not [cell for row in told["rows"] for cell in row["cells"] if cell["rank"]] and len(told["heads"]) == 4


def test_no_shared_items_one_item_no_score_and_equal_scores(tmp_path: Path) -> None:
    scores(tmp_path, "a", spread(20, 20))
    other = scores(tmp_path, "b", spread(20, 0))
    frame = pd.read_parquet(other / "rows" / "arc.parquet").assign(question="another")
    frame.to_parquet(other / "rows" / "arc.parquet", index=False)
    scores(tmp_path, "c", [])
    scores(tmp_path, "d", [1])
    scores(tmp_path, "e", spread(20, 20))
    (one,) = report_board.boards(tmp_path)
    bands = {entry.model: band for entry, band in zip(one.entries, one.bands, strict=True)}
    assert bands == {"a": (1, 4), "b": (1, 4), "c": None, "d": (1, 4), "e": (1, 4)}
    why = {(pair.a, pair.b): pair.why for pair in one.pairs}
    assert why["a", "b"] == "no shared items in ARC" and not any("c" in pair for pair in why)
    html = page(tmp_path)
    assert "none: no items" in html and "the differences have no spread" in html and "not compared" in html
    assert "No model is shown to be higher" in html


def test_a_hostile_name_is_a_name_everywhere(tmp_path: Path) -> None:
    for name, value in ((SHARP, 0.9), ("plain", 0.2)):
        answered(tmp_path, f"leaf{len(name)}", items(*[value] * 12), model=name)
    html = page(tmp_path)
    assert "<b>m|x" not in html and "&lt;b&gt;m|x&lt;/b&gt; $1$ &amp;" in html and "\u202e" not in html
    assert "is higher than every other model" in html
    assert set(report_board_tables.frame(report_board.boards(tmp_path))["model"]) == {SHARP, "plain"}


# ------------------------------------------------------------------------------------------------- MRC


def test_mrc_groups_by_shots_and_turns_whole_passages(tmp_path: Path) -> None:
    answered(tmp_path, "a", items(1, 1, 1, 1, 1, 1))
    answered(tmp_path, "b", items(0, 0, 0, 0, 0, 0))
    answered(tmp_path, "c", items(0, 0, 0, 0, 0, 0), shots=1)
    groups = report_mrc.f1_groups(tmp_path)
    assert [[part.model for part in group.parts] for group in groups] == [["a", "b"], ["c"]]
    (pair,) = report_board.boards(tmp_path)[0].pairs
    assert pair.gap is not None and pair.gap.p == pair.gap.least == 2 / 8  # three passages, not six questions
    assert "no difference, however large" in report_board.told_of(report_board.boards(tmp_path)[0])["says"]
    (line,) = [one for one in report_mrc.scored_section(groups[0])["comparisons"]["lines"] if one["what"] == "F1"]
    assert line["reading"] == "no difference shown" and "0-shot" in groups[0].terms and "1-shot" in groups[1].terms


def test_no_failure_becomes_a_score(tmp_path: Path) -> None:
    answered(tmp_path, "a", items(1, math.nan, 0, 1))
    answered(tmp_path, "b", items(1, math.nan, 0, 1), judge=True)
    (part,) = report_mrc.f1_groups(tmp_path)[0].parts
    assert report_mrc.headline(part)["f1"]["value"] == pytest.approx(2 / 3)
    row = report_mrc.verdict_row(report_mrc.judge_groups(tmp_path)[0].parts[0])
    assert row["unreadable"] == 1 and row["cells"][0]["count"] == "2 of 3" and row["counted"] == "3 of 4"
    html = page(tmp_path)
    assert "75.0 %" in html and "<script>" not in html and fake_leaves.HOSTILE[:20] not in html


def test_answers_of_other_data_need_the_gallery(tmp_path: Path) -> None:
    answered(tmp_path, "a", items(1, 0, 0, 1), place="/data/secret")
    found = report_mrc.sections(tmp_path)
    assert found["items"] == [] and found["hidden"] == ["a"] and "ถามa0" not in page(tmp_path)
    assert "ถามa0" in page(tmp_path, gallery=True)


def test_the_same_answers_in_two_leaves_count_once(tmp_path: Path) -> None:
    answered(tmp_path, "one", items(1, 0, 1, 0), model="m")
    answered(tmp_path, "two", items(1, 0, 1, 0), model="m")
    answered(tmp_path, "three", items(0, 0, 1, 0), model="m")
    assert [part.model for part in report_mrc.f1_groups(tmp_path)[0].parts] == ["one", "three"]


def test_each_benchmark_alone_gives_a_report_and_nothing_gives_none(tmp_path: Path) -> None:
    answered(tmp_path / "f1", "a", items(1, 0))
    answered(tmp_path / "judge", "a", items(1, 0), judge=True)
    assert ">Leaderboard</h2>" in page(tmp_path / "f1") and "Reading comprehension" in page(tmp_path / "judge")
    with pytest.raises(ThaikitError, match="no closed leaf of thai_h6, thaicli_judge, mrc_f1 or mrc_judge"):
        page(tmp_path)


# ------------------------------------------------------------------------------------------------- lengths


def lengths(suite: Path, values: dict[str, dict[str, float]]) -> dict[str, Any]:
    """The table of ARC for models with these four scores, in whole items of 10."""
    for model, told in values.items():
        folder = scores(suite, model, spread(20, 10))
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        for key, value in told.items():
            record["tasks"]["arc"]["metrics"][key] |= {"value": value, "n": 20}
        write_atomic(folder / "run.json", json.dumps(record))
    (table,) = report_lengths.tables(report_parts.groups(leaves(suite, stage="thai_h6"))[0])
    return table


def test_rank_changes_are_told_against_the_headline(tmp_path: Path) -> None:
    one = {"acc": 0.2, "acc_norm": 0.5, "acc_bytes": 0.5, "acc_tokens": 0.4}
    two = {"acc": 0.3, "acc_norm": 0.4, "acc_bytes": 0.4, "acc_tokens": 0.4}
    table = lengths(tmp_path, {"one": one, "two": two})
    cells = {row["model"]: [(cell["rank"], cell["move"]) for cell in row["cells"]] for row in table["rows"]}
    assert table["headline"] == "acc_norm"
    assert cells["one"] == [("2", "▼ 1"), ("1", ""), ("1", ""), ("1–2", "▼ 0.5")]
    assert cells["two"] == [("1", "▲ 1"), ("2", ""), ("2", ""), ("1–2", "▲ 0.5")]
    assert "acc moves one ▼ 1, two ▲ 1; acc_tokens moves one ▼ 0.5, two ▲ 0.5" in table["says"]


def test_one_model_and_unlike_items_have_no_ranks(tmp_path: Path) -> None:
    told = dict.fromkeys(("acc", "acc_norm", "acc_bytes", "acc_tokens"), 0.5)
    table = lengths(tmp_path, {"one": told})
    assert table["rows"][0]["cells"][0]["rank"] == "" and "no order" in table["says"]
    folder = scores(tmp_path, "two", spread(5, 3))
    assert json.loads((folder / "run.json").read_text())["tasks"]["arc"]["metrics"]["acc"]["n"] == 5
    (table,) = report_lengths.tables(report_parts.groups(leaves(tmp_path, stage="thai_h6"))[0])
    assert "different numbers of items" in table["says"] and table["rows"][0]["cells"][0]["move"] == ""


def test_letters_say_why_there_is_no_table() -> None:
    (group,) = report_parts.groups(leaves(report.suite_folder(""), stage="thai_h6"))
    tables = {t["task"]: t for t in report_lengths.tables(group)}
    assert list(tables) == ["ARC", "HellaSwag", "MMLU", "Winogrande"] and tables["ARC"]["rows"]
    for task in ("MMLU", "Winogrande"):
        assert tables[task]["rows"] == [] and "alike in length" in tables[task]["says"]


def test_the_page_of_bundled_answers_shows_the_leafs_numbers(tmp_path: Path) -> None:
    """The bundled outputs, whose numbers must stand in the leaderboard as run.json has them."""
    folder = report.suite_folder("")
    html = page_of(folder, tmp_path)
    for leaf in leaves(folder, stage="thai_h6"):
        assert f'<span class="value">{100 * leaf.run["headline"]["thai_h6"]["average"]["value"]:.2f}' in html


def page_of(folder: Path, out: Path) -> str:
    return report.build(folder, out_path=out / "r.html").read_text(encoding="utf-8")
