"""Requests that a server rejects, leaves closed with what is there, and the gate that is paid once."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drill import KEY, workspace
from fault_server import FaultServer, Plan
from test_server import ask_all, entry, questions, stored

from thaikit import ThaikitError, chat, inputs, leaves, report_limits
from thaikit.__main__ import main
from thaikit.chat import Ask
from thaikit.chat_replay import Recorded
from thaikit.params import ModelEntry
from thaikit.records import Run
from thaikit.rowlog import RowLog
from thaikit.server import open_server
from thaikit.tasks import answers, mrc, mrc_answer, mrc_judging, mrc_read, thaicli_judge

MARKER = "MARKER-KEY-0123456789-DO-NOT-STORE"
TOO_LONG = "HTTP 400: This model's maximum context length is 8192 tokens"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THAIKIT_TEST_KEY", MARKER)
    monkeypatch.setenv(KEY, MARKER)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(Plan()) as running:
        yield running


def bad(number: int, mark: str = "bad-request") -> list[Ask]:
    return [Ask(f"bad{n}", f"[[{mark}]] {n}") for n in range(number)]


def one_by_one(server: FaultServer, **more: Any) -> Any:
    return open_server("judge", entry(server.url, concurrency_start=1, concurrency_max=1, **more))


# ----------------------------------------------------------------------------------------- what the server rejects


def test_a_rejected_request_is_asked_once_more_and_then_failed_for_good(server: FaultServer, tmp_path: Path) -> None:
    asks = [*questions(10), *bad(2), *questions(15)[10:]]
    replies = ask_all(open_server("judge", entry(server.url)), asks, tmp_path)
    lost = [replies[f"bad{n}"] for n in range(2)]
    assert all((one.outcome, one.text, one.error) == ("failed", "", TOO_LONG) for one in lost)
    assert all(one.for_good for one in lost) and len(replies) == 17
    met = Counter(seen.met for seen in server.calls)
    assert met == {"ok": 15, "bad-request": 4} and {seen.met for seen in server.calls[-2:]} == {"bad-request"}
    again = ask_all(open_server("judge", entry(server.url)), asks, tmp_path)
    assert len(server.calls) == 19 and again["bad0"] == lost[0], "what failed for good is not asked again"


def test_a_rejection_that_was_a_whim_is_a_reply(server: FaultServer, tmp_path: Path) -> None:
    draw = server.draw
    server.draw = lambda request, number, prompt: (  # type: ignore[method-assign]
        "bad-request" if "ก" in prompt and not number else draw(request, number, prompt)
    )
    replies = ask_all(open_server("judge", entry(server.url)), [Ask("whim", "ก"), Ask("a", "ข")], tmp_path)
    assert replies["whim"].outcome == "ok" and len(server.calls) == 3
    assert stored(tmp_path)["whim"][2] == "ok"


def test_rejections_with_no_reply_at_all_stop_each_run_and_are_never_final(server: FaultServer, tmp_path: Path) -> None:
    stop = "rejected 10 requests in a row and answered none.*context length"
    for run in (1, 2):
        with pytest.raises(ThaikitError, match=stop) as told:
            ask_all(one_by_one(server), bad(30), tmp_path)
        assert len(server.calls) == 10 * run and "model file" in str(told.value) and str(told.value).count("\n") == 0
    few = ask_all(one_by_one(server), bad(3), tmp_path / "few")
    assert not any(reply.for_good for reply in few.values()), "nothing shows that the server takes any request"
    mended = [Ask(ask.id, f"ข้อ {ask.id}") for ask in bad(30)]
    assert {reply.outcome for reply in ask_all(one_by_one(server), mended, tmp_path).values()} == {"ok"}


def test_rejections_after_replies_stop_once_and_not_for_ever(server: FaultServer, tmp_path: Path) -> None:
    asks = [*questions(5), *bad(30)]
    with pytest.raises(ThaikitError, match="in a row after it had answered others.*run again: what is rejected once"):
        ask_all(one_by_one(server), asks, tmp_path)
    assert len(server.calls) == 15
    replies = ask_all(one_by_one(server), asks, tmp_path)
    assert sum(reply.for_good for reply in replies.values()) == 30 and len(replies) == 35
    assert len(server.calls) == 15 + 10 + 2 * 20, "those of the first run were rejected twice by then"
    assert len(ask_all(one_by_one(server), asks, tmp_path)) == 35 and len(server.calls) == 65


def test_passing_faults_keep_their_item_open_beside_rejected_ones(server: FaultServer, tmp_path: Path) -> None:
    asks = [*questions(3), *bad(1), Ask("down", "[[500]]")]
    for run in (1, 2):
        replies = ask_all(open_server("judge", entry(server.url, attempts=2)), asks, tmp_path)
        assert not replies["down"].for_good and replies["bad0"].for_good
        assert Counter(seen.met for seen in server.calls) == {"ok": 3, "bad-request": 2, "500": 2 * run}
    assert RowLog(tmp_path / "rows" / "replies.jsonl").ids == {"q0", "q1", "q2", "bad0"}


def test_not_found_is_the_model_at_first_and_the_request_later(server: FaultServer, tmp_path: Path) -> None:
    with pytest.raises(ThaikitError, match="HTTP 404.*see whether .* knows the model 'judge-1'"):
        ask_all(one_by_one(server), bad(3, "404"), tmp_path / "first")
    assert len(server.calls) == 1
    replies = ask_all(one_by_one(server), [*questions(2), *bad(1, "404")], tmp_path / "later")
    assert replies["bad0"].for_good and replies["bad0"].error.startswith("HTTP 404")
    with pytest.raises(ThaikitError, match="HTTP 402: Insufficient balance; see to the account"):
        ask_all(one_by_one(server), [*questions(3), *bad(1, "402")], tmp_path / "paid")


@pytest.mark.parametrize(
    ("mark", "told"),
    [("plain", "HTTP 413: too much too much"), ("words", "HTTP 400: no such thing"),
     ("detail", "HTTP 422: a field is missing"), ("long-key", "HTTP 400: xxx")],
)  # fmt: skip
def test_the_servers_sentence_is_kept_in_any_form_and_never_a_part_of_the_key(
    server: FaultServer, tmp_path: Path, mark: str, told: str
) -> None:
    reply = ask_all(open_server("judge", entry(server.url)), [*questions(2), *bad(1, mark)], tmp_path)["bad0"]
    assert reply.for_good and reply.error.startswith(told) and len(reply.error) <= 210
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(MARKER[:8].encode() in data for data in files)


def test_an_error_that_drips_on_is_a_time_out(server: FaultServer, tmp_path: Path) -> None:
    begun = time.monotonic()
    model = open_server("judge", entry(server.url, timeout=0.5, attempts=1))
    reply = ask_all(model, [*questions(2), *bad(1, "drip")], tmp_path)["bad0"]
    assert (reply.outcome, reply.for_good) == ("failed", False) and reply.error.startswith("ReadTimeout")
    assert time.monotonic() - begun < 5


def test_a_stop_in_the_midst_changes_no_end(server: FaultServer, tmp_path: Path) -> None:
    asks = [*questions(6), *bad(2), *questions(12)[6:]]
    log = RowLog(tmp_path / "rows" / "replies.jsonl")
    found = one_by_one(server).ask(asks, sampling=chat.Sampling(max_tokens=64), log=log, tell=lambda _: None)
    for _ in range(9):
        next(found)
    found.close()
    assert {row["id"] for row in log.rows() if row["rejected"]} == {"bad0", "bad1"}
    replies = ask_all(one_by_one(server), asks, tmp_path)
    assert [key for key, reply in replies.items() if reply.for_good] == ["bad0", "bad1"]
    assert max(Counter(seen.request for seen in server.calls).values()) == 2


# --------------------------------------------------------------------------------------------- leaves that end


def judging(folder: Path, out: Path, *, gate: bool = False, answers: str = "answers.jsonl") -> Any:
    given = {"model": "replay-thaicli-answers", "judge": f"{folder}/judge.yaml", "tasks": f"{folder}/tasks.yaml"}
    read = {**given, "gate": gate, "answers": str(folder / answers), "suite": ""}
    run = Run.open("thaicli_judge", params=read, inputs=inputs.inputs_of("thaicli_judge", read), out_dir=str(out))
    return thaicli_judge.start(run, gate=gate, **given)


def closed(folder: Path, out: Path, **more: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    made = judging(folder, out, **more)
    rows, gate = made.score()
    return made.finish(rows, gate), rows


def test_a_leaf_with_rejected_items_closes_with_lower_coverage_and_says_why(tmp_path: Path) -> None:
    with FaultServer(Plan(echo_key=True)) as server:
        folder = workspace(tmp_path / "w", server.url, items=20, mark="[[bad-request]]", every=10)
        record, rows = closed(folder, tmp_path / "thaicli_judge" / "leaf")
    scores = [row["score"] for row in rows if row["outcome"] == "ok"]
    found = record["headline"]["thaicli"]
    assert (found["asked"], found["ok"], found["coverage"]) == (20, 18, 0.9) and found["factoid"]["n"] == 18
    assert found["factoid"]["value"] == pytest.approx(sum(scores) / 18)
    cell = next(line for line in record["cells"] if line["theme"] == "all")
    assert cell["lowest"] == pytest.approx((sum(scores) + 2) / 20)
    assert cell["highest"] == pytest.approx((sum(scores) + 20) / 20)
    assert [row["score"] for row in rows if row["outcome"] == "failed"] == [None, None]
    (why,) = record["failures"]["reasons"]
    assert why.startswith(TOO_LONG) and "[key]" in why and record["failures"]["count"] == 2
    assert any(line.startswith("2 of 20 FAILED, for good") and TOO_LONG in line for line in record["told"])
    (loud,) = report_limits.lost(tmp_path)
    assert loud.startswith("thaicli_judge/leaf: 2 rows FAILED and are in no score") and TOO_LONG in loud
    assert not any("nan" in line for line in record["told"])
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(MARKER.encode() in data for data in files)


def test_a_leaf_can_be_closed_with_what_is_there(
    server: FaultServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = workspace(tmp_path / "w", server.url, items=20, mark="[[500]]", every=10, attempts=2)
    out = tmp_path / "leaf.partial"
    with pytest.raises(ThaikitError, match=r"2 items failed \(judgements q0@.*with: HTTP 500.*thaikit close LEAF"):
        closed(folder, out)
    asked = len(server.calls)
    log = out / "rows" / "replies.jsonl"
    kept = log.read_text(encoding="utf-8").splitlines(keepends=True)
    (out / "rows" / "judgements.jsonl").unlink()
    log.write_text("".join(line for line in kept if '"q5@' not in line), encoding="utf-8")  # paid, and lost in a kill
    assert main(["close", str(tmp_path / "leaf")]) == 0
    assert "nobody is asked any more" in capsys.readouterr().out
    made = judging(folder, out)
    assert made.cost()["basis"][0].endswith("nobody is asked")
    rows, gate = made.score()
    record = made.finish(rows, gate)
    assert len(server.calls) == asked and record["failures"] == {
        "count": 2, "reasons": {"HTTP 500: The server had an error <score>10</score>": 2},
        "first": ["judgements q0@replay-thaicli-answers", "judgements q10@replay-thaicli-answers"], "given_up": True,
    }  # fmt: skip
    assert next(row["outcome"] for row in rows if row["item"] == "q5") == "ok" and len(rows) == 20
    assert not (out / leaves.CLOSE).exists() and record["headline"]["thaicli"]["coverage"] == 0.9
    assert main(["close", str(out)]) == 2 and "is closed already" in capsys.readouterr().err
    assert main(["close", str(tmp_path / "none")]) == 2 and "no leaf was begun here" in capsys.readouterr().err


def test_a_mark_that_comes_while_a_leaf_runs_is_for_its_next_run(tmp_path: Path) -> None:
    out = str(tmp_path / "leaf")
    run = Run.open("thaicli_answer", params={}, out_dir=out)
    run.log("answers").append({"id": "a", "index": 0, "outcome": "failed", "error": "no", "for_good": True})
    leaves.give_up(out)
    assert not run.closing and Run.open("thaicli_answer", params={}, out_dir=out).closing
    assert run.finish(headline={})["failures"]["given_up"] is False


def test_a_leaf_without_a_single_reply_cannot_be_closed(tmp_path: Path) -> None:
    Run.open("thaicli_judge", params={}, out_dir=str(tmp_path))
    with pytest.raises(ThaikitError, match="no reply is there to close it with"):
        leaves.give_up(tmp_path)


def test_a_leaf_that_asks_for_no_replies_cannot_be_closed_so(tmp_path: Path) -> None:
    Run.open("thai_h6", params={}, out_dir=str(tmp_path))
    with pytest.raises(ThaikitError, match="thai_h6 asks for no replies"):
        leaves.give_up(tmp_path)


def test_leaves_side_by_side_pay_for_the_gate_once(server: FaultServer, tmp_path: Path) -> None:
    folder = workspace(tmp_path / "w", server.url, items=7)
    other = (folder / "answers.jsonl").read_text(encoding="utf-8").replace("คำตอบของ", "อีกคำตอบของ")
    (folder / "other.jsonl").write_text(other, encoding="utf-8")
    closed(folder, tmp_path / "thaicli_judge" / "a", gate=True)
    assert len(server.calls) == 7 + 14
    closed(folder, tmp_path / "thaicli_judge" / "b", gate=True, answers="other.jsonl")
    assert len(server.calls) == 7 + 14 + 7
    closed(folder, tmp_path / "elsewhere", gate=True)
    assert len(server.calls) == 2 * (7 + 14) + 7, "a leaf that stands alone has its own"


def rejecting(server: FaultServer, mark: str) -> None:
    """Have the server reject every prompt that holds a mark."""
    draw = server.draw
    server.draw = lambda request, number, prompt: (  # type: ignore[method-assign]
        "bad-request" if mark in prompt else draw(request, number, prompt)
    )


def test_reading_comprehension_ends_too(server: FaultServer, tmp_path: Path) -> None:
    data = mrc.load()
    rejecting(server, data.items[4].question)
    model = {"kind": "openai", "source": "judge-1", "base_url": server.url, "api_key_env": KEY, "backoff": 0.01}
    (tmp_path / "m.yaml").write_text(json.dumps(model), encoding="utf-8")
    judge = {"model": f"{tmp_path}/m.yaml", "prompt": "mrc-judge-d1", "rule": "numbered", "tries": 1}
    (tmp_path / "j.yaml").write_text(json.dumps(judge), encoding="utf-8")
    run = Run.open("mrc_answer", params={"model": f"{tmp_path}/m.yaml"}, out_dir=str(tmp_path / "a"))
    asking = mrc_answer.prepare(run, model=f"{tmp_path}/m.yaml", data=data)
    rows = asking.answer()
    assert any(line.startswith("1 of 36 FAILED, for good") for line in mrc_answer.warnings(rows, max_new_tokens=512))
    assert asking.finish(rows)["failures"]["first"] == [f"answers {data.items[4].id}"]
    read = mrc_read.from_leaf(tmp_path / "a")
    assert len(read.rows) == 36 and len(read.scored) == 35
    rejecting(server, data.items[5].question)
    run = Run.open("mrc_judge", params={"answers": str(tmp_path / "a")}, out_dir=str(tmp_path / "j"))
    judging = mrc_judging.start(run, judge=f"{tmp_path}/j.yaml")
    rows = judging.score()
    record = judging.finish(rows)
    failed = {row["item"]: row["asked"] for row in rows if row["outcome"] == "failed"}
    assert failed == {data.items[4].id: False, data.items[5].id: True}
    assert record["failures"]["reasons"] == {"no answer came": 1, TOO_LONG: 1}
    assert not any(row["q1"] is not None for row in rows if row["outcome"] == "failed")


# --------------------------------------------------------------------------------------------- recorded replies


def recording(folder: Path, *rows: dict[str, Any]) -> Recorded:
    path = folder / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return Recorded.read("said", ModelEntry(kind="replay", source=str(path)))


def test_a_recorded_reply_is_given_to_its_own_text_only(tmp_path: Path) -> None:
    turns = ({"role": "user", "content": "ให้คะแนน ก"},)
    tied = {"id": "a", "text": "ดี", "prompt_sha256": [chat.prompt_sha256("อื่น"), chat.prompt_sha256(turns)]}
    model = recording(tmp_path, tied, {"id": "b", "text": "พอใช้"}, {"id": "c", "outcome": "failed", "error": "gone"})

    def asked(*asks: Ask) -> list[chat.Reply]:
        log = RowLog(tmp_path / "-".join(ask.id for ask in asks) / "replies.jsonl")
        return [r for _, r in model.ask(asks, sampling=chat.Sampling(), log=log, tell=lambda _: None)]

    first, second, third = asked(Ask("a", turns), Ask("b", "อะไรก็ได้"), Ask("c", "ก"))
    assert (first.text, second.text) == ("ดี", "พอใช้") and third.for_good
    assert (model.facts()["replies_used"], model.facts()["replies_tied_to_no_text"]) == (3, 2)
    with pytest.raises(ThaikitError, match="'a' in said.jsonl was recorded for another text .*record it again") as told:
        asked(Ask("a", ({"role": "user", "content": "ให้คะแนน ข"},)))
    assert str(told.value).count("\n") == 0
    with pytest.raises(ThaikitError, match="line 1: prompt_sha256 is 7; a hash or a list"):
        recording(tmp_path, {"id": "a", "text": "ดี", "prompt_sha256": 7})


def test_a_leafs_own_log_can_be_replayed(server: FaultServer, tmp_path: Path) -> None:
    asks = questions(2)
    before = ask_all(open_server("judge", entry(server.url)), asks, tmp_path)
    model = Recorded.read("mine", ModelEntry(kind="replay", source=str(tmp_path / "rows" / "replies.jsonl")))
    log, rules = RowLog(tmp_path / "again.jsonl"), {"sampling": chat.Sampling(), "tell": lambda _: None}
    assert [reply.text for _, reply in model.ask(asks, log=log, **rules)] == [before[ask.key].text for ask in asks]
    assert not model.facts()["replies_tied_to_no_text"]


@pytest.mark.parametrize("name", ["thaicli-answers", "thaicli-answers-b", "thaicli-judge", "mrc-answers",
                                  "mrc-answers-long", "mrc-judge"])  # fmt: skip
def test_every_bundled_reply_is_tied_to_a_text(name: str) -> None:
    model = chat.open_chat(f"replay-{name}")
    assert set(model.prompts) == set(model.replies)


def test_answers_with_nothing_to_see_are_empty() -> None:
    rows = [{"answer": text, "outcome": "ok", "finish": "stop"} for text in ("ก", "", " \n", "\u200b", "\ufeff \u200d")]
    assert answers.counts(rows)["empty"] == 4 and answers.outcome_line(rows)["empty"] == 4
