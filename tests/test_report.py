"""The report: one file, nothing foreign in it, every text as text, numbers that cannot be compared kept apart."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import fake_leaves
import pytest

from thaikit import ThaikitError, report, report_items, report_parts
from thaikit.figures import thai_font
from thaikit.records import Leaf, leaves


class Reader(HTMLParser):
    """Tags with attributes, and the text that is seen."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.styled = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.styled = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self.styled = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self.styled else data


def read(path: Path) -> tuple[str, Reader]:
    page = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(page)
    return page, reader


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    fake_leaves.write_suite(folder, hostile=True)
    return report.build(folder, out_path=folder / "report" / "report.html", title="รายงาน <b>&</b>")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "suite"


def edit(leaf: Path, **changes: Any) -> None:
    path = leaf / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes), encoding="utf-8")


def build(suite: Path, **options: Any) -> tuple[str, Reader]:
    return read(report.build(suite, out_path=suite / "report.html", **options))


# ------------------------------------------------------------------------------------------- one safe file


def test_one_file_without_scripts_or_addresses(hostile: Path) -> None:
    page, reader = read(hostile)
    names = {tag for tag, _ in reader.tags}
    assert not names & {"script", "iframe", "object", "embed", "link", "base", "form", "svg", "math"}
    bare = re.sub(r"data:[a-z/]+;base64,[A-Za-z0-9+/=]+", "", page).replace("http-equiv", "")
    assert not re.search(r"http|xmlns|@import", bare, re.IGNORECASE)
    images = [attrs for tag, attrs in reader.tags if tag == "img"]
    assert len(images) == 3  # scores, and the mosaics of tasks and subjects
    assert all(one["src"].startswith("data:image/png;base64,") and one["alt"] for one in images)
    for _, attrs in reader.tags:
        assert not [value for value in attrs.values() if value and "//" in value and not value.startswith("data:")]
        assert not [name for name in attrs if name.startswith("on")]
        assert attrs.get("href", "#").startswith("#")
    assert ("html", {"lang": "th"}) in reader.tags
    policy = "default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'"
    assert ("meta", {"http-equiv": "Content-Security-Policy", "content": policy}) in reader.tags


def test_the_thai_font_is_inside(hostile: Path) -> None:
    page, _ = read(hostile)
    found = re.search(r'@font-face \{[^}]*url\("data:font/ttf;base64,([^"]+)"', page)
    assert found and base64.b64decode(found[1]) == thai_font().read_bytes()


def test_hostile_texts_are_texts(hostile: Path) -> None:
    page, reader = read(hostile)
    seen = fake_leaves.HOSTILE.replace("\u202e", "U+202E").replace("\u202c", "U+202C").replace("\x07", "U+0007")
    assert reader.text.count(seen) > 20
    assert "{{7*7}}" in page and "\u202e" not in page and "\x07" not in page
    assert page.count("</style>") == 1 and "<b>&</b>" in reader.text
    assert [attrs["src"] for tag, attrs in reader.tags if tag == "img" and "onerror" in attrs] == []
    assert "… (98,002 more characters)" in reader.text and len(page) < 2_000_000


def test_characters_that_hide_are_written_out() -> None:
    shown = str(report.visible("ก\u200bข\u2066\ufeff\x00\ud800\U000e0041\n\t\u2028ฃ HTTPS://x"))
    plain = re.sub(r"<[^>]+>", "", shown)
    assert plain == "กU+200BขU+2066U+FEFFU+0000U+D800U+E0041\n\tU+2028ฃ HTTPS://x" and "HTTPS" not in shown
    assert report.visible(3) == 3


# ------------------------------------------------------------------------------------------- what it says


def test_the_table_has_scores_intervals_n_and_guessing(hostile: Path) -> None:
    _, reader = read(hostile)
    leaf = leaves(hostile.parent.parent, stage="thai_h6")[0]
    for estimate in leaf.run["headline"]["thai_h6"].values():
        assert f"{100 * estimate['value']:.2f}" in reader.text
        assert f"{100 * estimate['low']:.1f} to {100 * estimate['high']:.1f}" in reader.text
    assert "n 120" in reader.text and "43.21" in reader.text  # the average's items; guessing at TruthfulQA
    for words in (
        "Guessing",
        "MMLU micro",
        "macro over subjects",
        "profile thai-h6",
        "labels en",
        "วิทยาศาสตร์",
        "28.04",
    ):
        assert words in reader.text


def test_all_sections_are_there(hostile: Path) -> None:
    _, reader = read(hostile)
    for words in (
        "Models compared on the items they share", "Every metric", "Generated answers", "Counts", "Provenance", "Items",
        "acc_bytes", "em_thai", "zero_width 2", "2.9", "embedded:gemma3-270m", "Apache-2.0", "2, 9413, 236", "e" * 64,
        "b" * 64, "f" * 64, "thai_h6/gemma3-270m", "✓ right answer", "◀ chosen", "[invalid]", "reference", "numpy",
    ):  # fmt: skip
        assert words in reader.text, words


def test_rehearsal_and_cut_answers_are_said_first(hostile: Path) -> None:
    _, reader = read(hostile)
    top = reader.text[: reader.text.index("Task file")]
    assert "These models rehearse the machinery; their numbers rank nothing: gemma3-270m, smollm2-135m-instruct." in top
    assert re.search(r"gemma3-270m, GSM8K: \d+\.\d\d % of the completions hit the limit of 128 new tokens", top)


def test_a_limit_is_said(suite: Path) -> None:
    fake_leaves.write_leaf(suite, "m", rehearsal=False, limit=4)
    _, reader = build(suite)
    assert "A limit was set" in reader.text and "m (4 items a task)" in reader.text
    assert "rehearse" not in reader.text and "Models compared" not in reader.text


def test_missing_tasks_and_values_are_dashes_with_a_reason(suite: Path) -> None:
    leaf = fake_leaves.write_leaf(suite, "m", tasks=("arc", "gsm8k"))
    run = json.loads((leaf / "run.json").read_text())
    nothing = {"value": None, "low": None, "high": None, "n": 0, "method": "none: no items"}
    edit(leaf, headline={"thai_h6": run["headline"]["thai_h6"] | {"gsm8k": nothing}})
    table = report_parts.score_table(report_parts.groups(leaves(suite))[0])
    cells = {head["key"]: cell for head, cell in zip(table["columns"], table["rows"][0]["cells"], strict=True)}
    assert cells["hellaswag"]["value"] == "–" and cells["hellaswag"]["why"] == "not run"
    assert cells["gsm8k"]["value"] == "–" and cells["gsm8k"]["why"] == "none: no items"
    assert len(table["columns"]) == 7
    _, reader = build(suite)
    assert "none: no items" in reader.text


def test_numbers_of_different_protocols_never_share_a_table(suite: Path) -> None:
    fake_leaves.write_leaf(suite, "a", items=6)
    fake_leaves.write_leaf(suite, "b", items=6, profile="v1")
    fake_leaves.write_leaf(suite, "c", items=6, labels="th")
    fake_leaves.write_leaf(suite, "d", items=6)
    found = report_parts.groups(leaves(suite))
    assert [[leaf.name for leaf in group.leaves] for group in found] == [["a", "d"], ["b"], ["c"]]
    _, reader = build(suite)
    assert len([1 for tag, attrs in reader.tags if attrs.get("class") == "scores"]) == 3
    assert "asked in 3 different ways" in reader.text


def test_tasks_of_another_kind_have_their_own_columns(suite: Path) -> None:
    leaf = fake_leaves.write_leaf(suite, "m", tasks=("arc",), items=6)
    run = json.loads((leaf / "run.json").read_text())
    edit(leaf, tasks={"xcopa": run["tasks"]["arc"]}, headline={"thai_h6": {"xcopa": run["headline"]["thai_h6"]["arc"]}})
    group = report_parts.groups(leaves(suite))[0]
    assert [head["key"] for head in report_parts.columns(group)] == ["xcopa"]
    build(suite)


def test_comparisons_pair_by_item_and_correct_for_number(suite: Path) -> None:
    fake_leaves.write_leaf(suite, "strong", seed=1, skill=12)
    fake_leaves.write_leaf(suite, "weak", seed=2, skill=-12, items=15)
    rows = report_parts.comparisons(report_parts.groups(leaves(suite))[0])
    assert [row["task"] for row in rows] == ["ARC", "HellaSwag", "MMLU", "TruthfulQA", "Winogrande", "GSM8K"]
    assert {row["n"] for row in rows} == {"15"}
    assert rows[0]["reading"] == "strong is higher" and rows[0]["holm"] == "< 0.001"


def test_counts_that_differ_from_the_expected_are_said(suite: Path) -> None:
    leaf = fake_leaves.write_leaf(suite, "m", items=6)
    tasks = json.loads((leaf / "run.json").read_text())["tasks"]
    tasks["arc"]["files"][0] |= {"expected": 9, "difference": -3}
    edit(leaf, tasks=tasks)
    tasks["mmlu"] |= {"expected_rows": 14042, "rows_scorable": 48}
    edit(leaf, tasks=tasks)
    told = build(suite)[1].text
    assert "m, ARC: arc/test.jsonl has 6 scored rows, 9 were expected." in told
    assert "m, MMLU: 48 rows can be scored, 14,042 were expected." in told


# ------------------------------------------------------------------------------------------- items


@pytest.mark.parametrize(("place", "shown"), [("samples:thai_h6", True), (None, False), ("/data/release", False)])
def test_texts_of_other_data_are_shown_only_when_asked_for(suite: Path, place: str | None, shown: bool) -> None:
    fake_leaves.write_leaf(suite, "m", items=6, data_place=place)
    question = fake_leaves.source_rows("arc")[0]["question"]
    text = build(suite)[1].text
    assert (question in text) is shown and ("Not shown: the items of m." in text) is not shown
    assert question in build(suite, gallery=True)[1].text


def test_sensitive_rows_are_shown_only_when_asked_for(suite: Path) -> None:
    leaf = fake_leaves.write_leaf(suite, "m", tasks=("arc",), items=6)
    path = leaf / "rows" / "arc.parquet"
    found = leaves(suite)[0]
    found.rows("arc").assign(sensitive=True).to_parquet(path)
    assert not report_items.gallery(found)[0]["cards"]
    assert report_items.gallery(found, sensitive=True)[0]["cards"]
    rows = found.rows("arc").assign(sensitive=[True, False] * 3, score=1.0)
    rows.to_parquet(path)
    shown = [(card["id"], card["question"]) for card in report_items.gallery(found)[0]["cards"]]
    assert shown == list(rows.loc[[1, 3], ["id", "question"]].itertuples(index=False, name=None))


def test_texts_are_read_twice_at_most(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_leaves.write_suite(suite)
    whole: Counter[tuple[str, str]] = Counter()
    read = Leaf.rows

    def counted(leaf: Leaf, task: str, *columns: str) -> Any:
        whole[leaf.name, task] += not columns
        return read(leaf, task, *columns)

    monkeypatch.setattr(Leaf, "rows", counted)
    build(suite)
    assert len(whole) == 12 and set(whole.values()) == {2}, "for the rows and the items of the page"


def test_at_most_two_right_and_two_wrong_items(suite: Path) -> None:
    fake_leaves.write_leaf(suite, "m")
    for task in report_items.gallery(leaves(suite)[0]):
        sides = [card["right"] for card in task["cards"]]
        assert sides == sorted(sides, reverse=True) and 0 < len(sides) <= 4
        for card in (card for card in task["cards"] if "choices" in card):
            chosen = [choice for choice in card["choices"] if choice["chosen"]]
            assert len(chosen) == 1 and chosen[0]["width"] == "100.0" and chosen[0]["gold"] is card["right"]


# ------------------------------------------------------------------------------------------- around it


def test_nothing_to_report_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ThaikitError, match="no closed leaf of thai_h6, thaicli_judge"):
        report.build(tmp_path, out_path=tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    with pytest.raises(ThaikitError, match="suite 'no-such-suite': no such folder"):
        report.suite_folder("no-such-suite")
    assert report.suite_folder(str(tmp_path)) == tmp_path.resolve()


def test_no_browser_is_no_failure(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    path, told = report.write_pdf(hostile)
    assert path is None and told.startswith("No Chromium on the PATH")


@pytest.mark.chromium
@pytest.mark.skipif(not any(map(shutil.which, report.BROWSERS)), reason="no Chromium on the PATH")
def test_the_page_prints_to_a_pdf(hostile: Path) -> None:
    path, told = report.write_pdf(hostile)
    assert told == "PDF: report.pdf" and path is not None and path.read_bytes().startswith(b"%PDF")
