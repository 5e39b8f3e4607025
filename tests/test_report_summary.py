"""The report's first words: every number filled in by code, grammatical in both languages whatever is there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from string import Formatter
from typing import Any

import fake_leaves
import pytest

from thaikit import report, report_board, report_thaicli, report_words
from thaikit.figures_thaicli import THEMES
from thaikit.records import Leaf, leaves
from thaikit.report_board import Board, Entry
from thaikit.report_pairs import Pair
from thaikit.report_parts import percent
from thaikit.report_summary import summary
from thaikit.report_words import LANGUAGES, REASONS, SENTENCES, date, listed, reason

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def entry(model: str, value: float | None = 0.5, n: int = 20, **more: Any) -> Entry:
    low, high = (value - 0.1, value + 0.1) if value is not None else (None, None)
    estimate = {"value": value, "low": low, "high": high, "n": n, "method": "wilson"} | more
    return Entry(model, estimate, False, {})


def board(*entries: Entry, differ: int = 0, **changes: Any) -> Board:
    """A board whose first `differ` pairs are shown to differ."""
    pairs = []
    for place, (a, b) in enumerate([(x, y) for i, x in enumerate(entries) for y in entries[i + 1 :]]):
        pair = Pair(a.model, b.model, "", None, "", (0, 0), holm=0.01 if place < differ else 0.5)
        object.__setattr__(pair, "gap", Ahead() if place < differ else None)
        pairs.append(pair)
    told = {"benchmark": "Thai-H6", "measure": "average, %", "terms": "labels en", "show": percent, "scale": 100.0}
    bands = tuple((1, len(entries)) if one.value == one.value else None for one in entries)
    return Board(**(told | changes), entries=entries, pairs=tuple(pairs), bands=bands)


class Ahead:
    """A comparison that the first model wins."""

    class difference:
        value = 0.1


def leaf(stage: str = "thai_h6", **run: Any) -> Leaf:
    told = {"stage": stage, "params": {}, "finished": "2026-11-30T05:41:21+00:00", "data_place": "samples:x"}
    return Leaf(Path("somewhere") / "a", told | run)


def cli(**changes: Any) -> Leaf:
    found = {"coverage": 0.9, "ok": 9, "asked": 10}
    told = {"params": {"model": "a", "judge": "j"}, "judge": {"name": "j"}, "headline": {"thaicli": found},
            "gate": [{"n": 1}], "gate_marked": []}  # fmt: skip
    return leaf(report_thaicli.STAGE, **(told | changes))


def both(*boards: Board, read: tuple[Leaf, ...] = (), thai: Any = None) -> tuple[str, str]:
    made = summary(boards, read, thai=thai)
    return "\n".join(made["en"]), "\n".join(made["th"])


# ------------------------------------------------------------------------------------------- the words


def test_no_number_is_typed_and_both_languages_fill_the_same_places() -> None:
    assert set(SENTENCES["en"]) == set(SENTENCES["th"])
    for key in SENTENCES["en"]:
        places = [{name for _, name, _, _ in Formatter().parse(SENTENCES[lang][key]) if name} for lang in LANGUAGES]
        assert places[0] == places[1] or key in ("tax one", "tax")
        for lang in LANGUAGES:
            assert not re.search(r"[0-9๐-๙]", SENTENCES[lang][key]), key
    for text in [*SENTENCES["th"].values(), *(thai for _, thai in REASONS)]:
        assert "\u0e4d\u0e32" not in text and "  " not in text and not text.endswith(" ")


def test_dates_lists_and_reasons() -> None:
    assert date("en", "2026-11-30") == "30 November 2026" and date("th", "2026-11-30") == "30 พฤศจิกายน พ.ศ. 2569"
    assert date("th", "2026-13-30") == "2026-13-30" and date("en", "soon") == "soon"
    assert listed("en", ["a"]) == "a" and listed("en", ["a", "b", "c"]) == "a, b and c"
    assert (
        listed("th", ["a", "b"]) == "a และ b"
        and listed("th", ["ศาสนา", "วัฒนธรรม", "การเมือง"]) == "ศาสนา วัฒนธรรม และการเมือง"
    )
    assert listed("en", list("abcdefghi")).endswith("f and 3 more") and listed("th", list("abcdefgh")).endswith(
        " และอีก 2 รายการ"
    )
    assert reason("en", "none: no items") == "no items" and reason("th", "none: no items") == "ไม่มีโจทย์ที่ได้คะแนน"
    assert reason("th", "none: 1 of 6 estimates have no interval") == "ค่าประมาณ 1 จาก 6 ค่าไม่มีช่วงความเชื่อมั่น"
    assert reason("th", "none: <odd>") == "สาเหตุที่บันทึกไว้ว่า “<odd>”"
    assert reason("en", None) == reason("en", "wilson") == "no reason is recorded" and "เหตุผล" in reason("th", None)


# ------------------------------------------------------------------------------------------- what is said


def test_one_model() -> None:
    english, thai = both(board(entry("a", 0.2891, 248)))
    assert (
        "Thai-H6: 1 model (a), scored on 248 items. a scores 28.91 % (95 % interval 18.91 to 38.91). Only one"
        in english
    )
    assert (
        "ประเมิน 1 โมเดล (a) โดยคิดคะแนนจากโจทย์ 248 ข้อ a ได้คะแนน ร้อยละ 28.91 (ช่วงความเชื่อมั่น 95% ตั้งแต่ 18.91 ถึง 38.91)"
        in thai
    )
    assert "จึงไม่มีการเปรียบเทียบ" in thai


@pytest.mark.parametrize(
    ("count", "differ", "english", "thai"),
    [
        (
            2,
            0,
            "no difference between the two is shown, so it cannot be told",
            "ระหว่างสองโมเดลนี้ จึงยังสรุปไม่ได้ว่าโมเดลใดดีกว่า",
        ),
        (2, 1, "m0 is shown to be higher", "m0 ได้คะแนนสูงกว่าอย่างมีนัยสำคัญทางสถิติ"),
        (4, 0, "none of the 6 pairs", "ในคู่ใดเลยจากทั้งหมด 6 คู่"),
        (4, 2, "2 of 6 pairs are shown to differ; for the other 4", "2 คู่ จากทั้งหมด 6 คู่ ส่วนอีก 4 คู่"),
        (4, 6, "every one of the 6 pairs", "ครบทั้ง 6 คู่"),
    ],
)
def test_what_cannot_be_told(count: int, differ: int, english: str, thai: str) -> None:
    told = both(board(*(entry(f"m{i}", 0.6 - i / 10) for i in range(count)), differ=differ))
    assert english in told[0] and thai in told[1]
    last = f"m{count - 1}"
    assert "m0 has the highest score, 60.00 %" in told[0] and f"{last} has the lowest" in told[0]
    assert "m0 ได้คะแนนสูงสุด คือ ร้อยละ 60.00" in told[1] and f"ส่วน {last} ได้คะแนนต่ำสุด คือ" in told[1]


def test_scores_that_are_not_there_have_a_reason() -> None:
    none = entry("a", None, method="none: no factoid item has a score")
    bare = entry("b", 0.5, low=None, high=None, method="none: one item has no spread")
    english, thai = both(board(none, bare))
    assert "a has no score, because no factoid item has a score." in english
    assert "b scores 50.00 % (no interval, because one item has no spread)" in english
    assert "คะแนนของ a ไม่มีค่า เนื่องจากไม่มีโจทย์แบบ factoid ที่ได้คะแนน" in thai
    assert "ช่วงความเชื่อมั่นไม่มีค่า เนื่องจากมีโจทย์เพียงข้อเดียว" in thai
    assert "nan" not in (english + thai).lower() and "None" not in english + thai
    only = both(board(none))
    assert "Only one model" not in only[0] and "เพียงโมเดลเดียว" not in only[1]


def test_without_a_board_and_without_dates() -> None:
    english, thai = both(read=(leaf(finished="", data_place=""),))
    assert english == "No score of a benchmark is among these runs.\nData: not recorded."
    assert thai == "ไม่มีคะแนนของชุดทดสอบใดในผลการประเมินนี้\nข้อมูลที่ใช้: ไม่ได้บันทึกไว้"


def test_warnings() -> None:
    cut = leaf(tasks={"gsm8k": {"limit_hit": 0.533}}, params={"limit": 10}, finished="2026-12-01T00:00:00+00:00")
    read = (cut, cli(gate_marked=["religion", "politics"]), cli(judge={"name": "k"}, gate=[]))
    english, thai = both(board(entry("a")), read=read, thai={"drawn": [{"value": 1.2, "model": "a"}]})
    for words in ("a (at most 10 a task)", "More than 1 % of", "a in GSM8K (53.3 %)", "judge j hardly",
                  "Religion and Politics", "judge k was not tested", "coverage of a is 90.0 % (9 of 10)",
                  "a takes 1.20 times",
                  "between 30 November 2026 and 1 December 2026; data: samples:x."):  # fmt: skip
        assert words in english, words
    for words in ("a (ไม่เกินชุดละ 10 ข้อ)", "เกินร้อยละ 1 ได้แก่ a ในชุด GSM8K (ร้อยละ 53.3)", "โมเดลผู้ตัดสิน j แทบแยก",
                  "ศาสนา และการเมือง", "ไม่ได้ทดสอบโมเดลผู้ตัดสิน k", "ร้อยละ 90.0 (9 จาก 10 ข้อ)", "1.20 เท่า",
                  "ระหว่างวันที่ 30 พฤศจิกายน พ.ศ. 2569 ถึงวันที่ 1 ธันวาคม พ.ศ. 2569"):  # fmt: skip
        assert words in thai, words


def test_full_coverage_and_a_good_judge_are_no_warnings() -> None:
    whole = cli(headline={"thaicli": {"coverage": 1.0, "ok": 10, "asked": 10}})
    english, thai = both(board(entry("a")), read=(whole,))
    assert "coverage" not in english + thai and "judge" not in english and "ผู้ตัดสิน" not in thai


def test_thaicli_names_its_judge_and_counts_in_points() -> None:
    made = board(
        entry("a", 6.391), benchmark="ThaiCLI", scale=1.0, show=report_thaicli.point, terms="judge j · rule paper"
    )
    english, thai = both(made, read=(cli(),))
    assert "1 model (a), judged by j, scored on 20 items. a scores 6.39 points (95 % interval 6.29 to 6.49)" in english
    assert "โดยใช้ j เป็นโมเดลผู้ตัดสิน" in thai and "a ได้คะแนน 6.39 คะแนน" in thai and "labels" not in english


def test_two_boards_of_one_benchmark_say_how_they_differ() -> None:
    english, thai = both(board(entry("a")), board(entry("a"), terms="labels th"))
    assert english.count("Thai-H6 (labels") == 2 and "Thai-H6 (labels th):" in thai


# ------------------------------------------------------------------------------------------- from leaves to the page


def page_of(suite: Path) -> dict[str, list[str]]:
    every = report.read_leaves(suite)
    return summary(report_board.boards(suite), every, thai=None)


def test_a_changed_leaf_changes_both_languages(tmp_path: Path) -> None:
    fake_leaves.write_suite(tmp_path)
    before = page_of(tmp_path)
    path = leaves(tmp_path, stage="thai_h6")[0].path / "run.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    run["headline"]["thai_h6"]["average"] |= {"value": 0.98765, "low": 0.9123, "high": 0.9987}
    path.write_text(json.dumps(run), encoding="utf-8")
    after = page_of(tmp_path)
    for lang in LANGUAGES:
        assert "98.77" not in before[lang][0]
        assert {"98.77", "91.23", "99.87"} <= set(NUMBER.findall(after[lang][0]))
        assert before[lang][1:] == after[lang][1:]
    numbers = [sorted(n for line in after[lang][:2] for n in NUMBER.findall(line)) for lang in LANGUAGES]
    assert numbers[0] == numbers[1]


def test_hostile_names_stay_text_in_the_page(tmp_path: Path) -> None:
    fake_leaves.write_leaf(tmp_path, "<b>x|$y$</b>{0}".replace("/", "∕"), tasks=("arc",), items=5)
    page = report.build(tmp_path, out_path=tmp_path / "r.html").read_text(encoding="utf-8")
    part = page[page.index('<section id="summary">') :].split("</section>")[0]
    assert "&lt;b&gt;x|$y$&lt;∕b&gt;{0}" in part and "<b>" not in part and 'lang="th"' in part
    assert "สรุปผลการประเมิน" in part and part.index("Summary") < part.index("สรุปผลการประเมิน")


def test_every_theme_has_a_thai_name() -> None:
    assert all(report_words.theme("th", key) != key and report_words.theme("en", key) != key for key in THEMES)
    assert report_words.theme("th", "other") == "other"
