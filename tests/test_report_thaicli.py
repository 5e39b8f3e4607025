"""The report's ThaiCLI part: numbers as in the leaves, no scripts, nothing of the sensitive theme unless asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from thaikit import inputs, report, report_thaicli
from thaikit.records import Run, read_leaf
from thaikit.tasks import thaicli, thaicli_answer, thaicli_judge

JUDGE = "replay-thaicli-judge"


def judged(suite: Path, model: str, *, gate: bool = True, place: str = "") -> Path:
    """A closed leaf of the bundled answers under the bundled judge; `place` pretends that the data came from there."""
    given = {"model": model, "judge": JUDGE, "tasks": "thaicli-samples", "gate": gate, "answers": "", "suite": ""}
    folder = suite / "thaicli_judge" / f"{model}--{JUDGE}"
    run = Run.open("thaicli_judge", params=given, inputs=inputs.inputs_of("thaicli_judge", given), out_dir=str(folder))
    judging = thaicli_judge.start(run, model=model, judge=JUDGE, tasks="thaicli-samples", gate=gate)
    judging.finish(*judging.score())
    if place:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8")) | {"data_place": place}
        (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    for model in ("replay-thaicli-answers", "replay-thaicli-answers-b"):
        judged(folder, model)
    return folder


def page(suite: Path, tmp_path: Path, **options: Any) -> str:
    return report.build(suite, out_path=tmp_path / "r.html", **options).read_text(encoding="utf-8")


def royal_texts() -> list[str]:
    data = thaicli.load("thaicli-samples")
    rows = thaicli_answer.read_answers(None, model="replay-thaicli-answers", data=data)
    return [row[key] for row in rows if row["theme"] == "royal family" for key in ("question", "chosen", "rejected")]


def test_the_page_has_the_leaves_numbers_and_no_script(suite: Path, tmp_path: Path) -> None:
    html = page(suite, tmp_path)
    assert not re.search(r"<(script|iframe|link|object|base)\b", html)
    assert "<script>alert" not in html and "&lt;script&gt;" in page(suite, tmp_path, show_sensitive=True)
    for model in ("replay-thaicli-answers", "replay-thaicli-answers-b"):
        found = read_leaf(suite / "thaicli_judge" / f"{model}--{JUDGE}").run["headline"]["thaicli"]
        for name in ("average", "factoid", "instruction"):
            assert f'<span class="value">{found[name]["value"]:.2f}</span>' in html
    assert "rehearse the machinery" in html and "gate below 0.8" in html
    assert "no difference shown" in html and "replay-thaicli-answers is higher" in html


def test_texts_of_the_sensitive_theme_are_hidden(suite: Path, tmp_path: Path) -> None:
    html = page(suite, tmp_path)
    shown = report_thaicli.sections(suite)[0]["items"]
    assert any(card["hidden"] and "question" not in card for one in shown for card in one["cards"])
    assert not [text for text in royal_texts() if text[:40] in html]
    open_page = report_thaicli.sections(suite, sensitive=True)[0]["items"]
    assert not any(card["hidden"] for one in open_page for card in one["cards"])
    assert {card["outcome"] for card in shown[0]["cards"]} == {"ok", "filtered", "truncated", "unreadable", "refused"}


def test_texts_of_other_data_need_the_gallery(tmp_path: Path) -> None:
    judged(tmp_path / "other", "replay-thaicli-answers", gate=False, place="/data/cli")
    (part,) = report_thaicli.sections(tmp_path / "other")
    assert part["items"] == [] and part["hidden"] == ["replay-thaicli-answers"] and part["gate"] == []
    (part,) = report_thaicli.sections(tmp_path / "other", gallery=True)
    assert part["items"][0]["cards"]
    assert "was not gated" in page(tmp_path / "other", tmp_path)


def test_judges_are_never_mixed(suite: Path, tmp_path: Path) -> None:
    judged(tmp_path, "replay-thaicli-answers", gate=False)
    folder = judged(tmp_path, "replay-thaicli-answers-b", gate=False)
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    record["judge"]["rule"] = "open-tag"
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    parts = report_thaicli.sections(tmp_path)
    assert [len(part["rows"]) for part in parts] == [1, 1] and not any(part["comparisons"] for part in parts)
    assert len(report_thaicli.sections(suite)) == 1
