"""A model behind a server, driven by the real client against a real server that fails as told."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fault_server import PASSING, THOUGHT, FaultServer, Plan, mixed, text_of

from thaikit import ThaikitError, params
from thaikit.chat import Ask, Reply, Sampling, open_chat
from thaikit.ledger import Ledger
from thaikit.pace import Pace
from thaikit.params import ModelEntry
from thaikit.rowlog import RowLog
from thaikit.server import Server, open_server
from thaikit.transport import Clients

KEY = "MARKER-KEY-0123456789-DO-NOT-STORE"
SAMPLING = Sampling(max_tokens=64)
CLOSED = ("gpt-4o-2024-05-13", "gpt-4-turbo", "gpt-4o-mini", "gpt-3.5-turbo", "gemini-pro", "claude-sonnet")
FAST = {"timeout": 0.5, "backoff": 0.01, "attempts": 12, "api_key_env": "THAIKIT_TEST_KEY"}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THAIKIT_TEST_KEY", KEY)


def entry(url: str, **more: Any) -> ModelEntry:
    return ModelEntry.model_validate({"kind": "openai", "source": "judge-1", "base_url": url, **FAST, **more})


def questions(number: int, mark: str = "") -> list[Ask]:
    turns = [
        ({"role": "system", "content": "ผู้ตัดสิน"}, {"role": "user", "content": f"ข้อ {n} {mark}"}) for n in range(number)
    ]
    return [Ask(f"q{n}", turn) for n, turn in enumerate(turns)]


def prompt_of(ask: Ask) -> str:
    return "\n".join(turn["content"] for turn in ask.prompt) if not isinstance(ask.prompt, str) else ask.prompt


def ask_all(server: Server, asks: list[Ask], folder: Path, **more: Any) -> dict[str, Reply]:
    log = RowLog(folder / "rows" / "replies.jsonl")
    found = server.ask(asks, sampling=SAMPLING, log=log, tell=lambda _: None, **more)
    replies = {}
    for ask, reply in found:
        assert {row["id"] for row in log.rows()} >= {ask.key}, "a reply is on disk before it is used"
        replies[ask.key] = reply
    return replies


def stored(folder: Path) -> dict[str, tuple[Any, ...]]:
    """The final rows, without what time changes."""
    rows = RowLog(folder / "rows" / "replies.jsonl").rows()
    return {row["id"]: (row["text"], row["finish"], row["outcome"], row["model"]) for row in rows}


@contextlib.contextmanager
def serving(**plan: Any) -> Iterator[FaultServer]:
    with FaultServer(Plan(**plan)) as server:
        yield server


def test_thirty_percent_of_passing_faults_change_no_row(tmp_path: Path) -> None:
    asks = questions(60)
    with serving(seed=3, rates=mixed(0.3), hang=1.0, slow=0.1, after=0.02) as server:
        chat = open_server("judge", entry(server.url))
        replies = ask_all(chat, asks, tmp_path / "faulty")
        met = Counter(seen.met for seen in server.calls)
    assert len(replies) == 60 and all(reply.outcome == "ok" for reply in replies.values())
    assert set(met) == {"ok", *PASSING}, "every passing fault was met"
    with serving() as server:
        ask_all(open_server("judge", entry(server.url)), asks, tmp_path / "clean")
        assert len(server.calls) == 60
    assert stored(tmp_path / "faulty") == stored(tmp_path / "clean")
    assert all(replies[ask.key].text == text_of(prompt_of(ask)) for ask in asks)
    facts = chat.facts()
    assert facts["requests"]["limited"] == met["429"] + met["429-after"] and facts["served"] == {"judge-1": 60}
    assert facts["faults"]["HTTP 500"] == met["500"] and facts["faults"]["an empty body"] == met["empty"]
    assert facts["requests"]["sent"] == sum(met.values())


@pytest.mark.parametrize(
    ("mark", "outcome", "finish"),
    [
        ("filter", "filtered", "content_filter"),
        ("finish-filter", "filtered", "content_filter"),
        ("refusal", "refused", "stop"),
        ("length", "truncated", "length"),
        ("open-think", "truncated", "stop"),
        ("think", "ok", "stop"),
    ],
)
def test_each_ending_has_its_outcome_after_one_call(tmp_path: Path, mark: str, outcome: str, finish: str) -> None:
    asks = questions(3, f"[[{mark}]]")
    with serving() as server:
        chat = open_server("judge", entry(server.url))
        replies = ask_all(chat, asks, tmp_path)
        again = ask_all(open_server("judge", entry(server.url)), asks, tmp_path)
        assert len(server.calls) == 3, "never a second call"
    assert {(reply.outcome, reply.finish) for reply in replies.values()} == {(outcome, finish)} and replies == again
    assert all(bool(reply.refusal) == (mark == "refusal") for reply in replies.values())
    if mark == "think":
        assert all(reply.text.startswith(THOUGHT) for reply in replies.values()), "raw text keeps its thoughts"


def test_a_fault_that_never_passes_is_failed_and_asked_again_on_resume(tmp_path: Path) -> None:
    asks = [*questions(2), Ask("bad", "[[500]] 10")]
    with serving() as server:
        chat = open_server("judge", entry(server.url, attempts=3))
        replies = ask_all(chat, asks, tmp_path)
        assert replies["bad"].outcome == "failed" and replies["bad"].text == "" and replies["bad"].retries == 2
        assert replies["bad"].error.startswith("HTTP 500") and len(server.calls) == 5
        ask_all(open_server("judge", entry(server.url, attempts=3)), asks, tmp_path)
        assert len(server.calls) == 8, "only the failed one is asked again"


@pytest.mark.parametrize(("mark", "said"), [("bad-key", "refuses the key in THAIKIT_TEST_KEY"), ("quota", "quota")])
def test_what_stops_every_request_stops_the_run(tmp_path: Path, mark: str, said: str) -> None:
    with serving() as server:
        chat = open_server("judge", entry(server.url, concurrency_start=1, concurrency_max=1))
        with pytest.raises(ThaikitError, match=said) as caught:
            ask_all(chat, questions(9, f"[[{mark}]]"), tmp_path)
        assert len(server.calls) == 1 and KEY not in str(caught.value) and str(caught.value).count("\n") == 0


def test_a_server_that_is_not_there_stops_the_run(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ThaikitError, match="10 requests in a row failed.*ConnectError"):
        ask_all(open_server("judge", entry(url, attempts=2)), questions(30), tmp_path)


def test_another_model_than_was_asked_for_stops_the_run_and_makes_no_score(tmp_path: Path) -> None:
    asks = questions(5, "[[wrong-model]]")
    with serving() as server:
        with pytest.raises(ThaikitError, match="'judge-1' was asked and the server answered as 'another-model'"):
            ask_all(open_server("judge", entry(server.url, concurrency_start=1)), asks, tmp_path)
        rows = RowLog(tmp_path / "rows" / "replies.jsonl").rows()
        assert rows and {row["outcome"] for row in rows} == {"failed"} and not any(row["text"] for row in rows)
        asked = len(server.calls)
        allowed = open_server("judge", entry(server.url, served_as=["another-*"]))
        assert {reply.outcome for reply in ask_all(allowed, asks, tmp_path).values()} == {"ok"}
        assert len(server.calls) == asked + 5 - len(rows), "paid replies are used once their id is allowed"


def test_regenerations_and_repeats_are_requests_of_their_own(tmp_path: Path) -> None:
    def again(ask: Ask, reply: Reply) -> Ask | None:
        return ask.again() if ask.attempt < 3 else None

    asks = [*questions(4), replace(questions(1)[0], repeat=1), replace(questions(1)[0], id="panel", run="today")]
    with serving() as server:
        replies = ask_all(open_server("judge", entry(server.url)), asks, tmp_path, then=again)
        assert len(replies) == len(server.calls) == 24 and "q0#r1.a3" in replies
        assert len({seen.request for seen in server.calls}) == 24
        replies = ask_all(open_server("judge", entry(server.url)), asks, tmp_path, then=again)
        assert len(replies) == 24 and len(server.calls) == 24
        ask_all(open_server("judge", entry(server.url)), [Ask("other", asks[0].prompt)], tmp_path)
        assert len(server.calls) == 24, "the same request under another name is in the ledger"


def test_one_id_asked_twice_at_once_is_one_call(tmp_path: Path) -> None:
    with serving(delay=0.1) as server:
        chat = open_server("judge", entry(server.url))
        log = RowLog(tmp_path / "replies.jsonl")
        found = list(chat.ask(questions(2) * 2, sampling=SAMPLING, log=log, tell=lambda _: None))
        assert len(found) == 4 and len(server.calls) == 2 and len(log.rows()) == 2


def test_raw_prompts_go_to_completions_with_stops_and_extras(tmp_path: Path) -> None:
    seen: list[Any] = []
    with serving() as server:
        see = server.see
        server.see = lambda *given: (seen.append(given[3]), see(*given))[1]  # type: ignore[method-assign]
        given = entry(server.url, extra={"top_k": 1}, omit=["top_p"], max_tokens_key="max_completion_tokens")
        chat = open_server("judge", given)
        log = RowLog(tmp_path / "replies.jsonl")
        ask = [Ask("a", "คำถาม: ")]
        [(_, reply)] = chat.ask(ask, sampling=Sampling(stops=("\n",), seed=7), log=log, tell=lambda _: None)
    assert reply.text == text_of("คำถาม: ") and seen == [
        {"model": "judge-1", "prompt": "คำถาม: ", "max_completion_tokens": 1024, "temperature": 0.0, "seed": 7,
         "stop": ["\n"], "top_k": 1}
    ]  # fmt: skip


def test_no_key_is_ever_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The server repeats the Authorization header in replies and in errors; it reaches no file, message or repr."""
    with serving(echo_key=True, rates={"500": 0.2, "429": 0.1}) as server:
        chat = open_server("judge", entry(server.url))
        replies = ask_all(chat, questions(20), tmp_path)
        failed = ask_all(chat, [Ask("bad", "[[bad-request]]"), Ask("never", "[[filter]]")], tmp_path)
        with pytest.raises(ThaikitError) as caught:
            ask_all(chat, [Ask("no", "[[bad-key]]")], tmp_path)
    assert all(reply.text.endswith("Bearer [key]") for reply in replies.values())
    assert "[key]" in failed["bad"].error and "[key]" in failed["never"].error
    told = [repr(chat), str(caught.value), json.dumps(chat.facts()), repr(replies), *capfd.readouterr()]
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 2 and not any(KEY in text for text in told)
    assert not any(KEY.encode() in data for data in files)


@pytest.mark.parametrize("value", [None, "", "  ", "sk-ก", "a\nb-secret-secret"])
def test_a_key_that_cannot_be_one_is_told_without_showing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("THAIKIT_TEST_KEY") if value is None else monkeypatch.setenv("THAIKIT_TEST_KEY", value)
    with serving() as server:
        with pytest.raises(ThaikitError, match="environment variable THAIKIT_TEST_KEY") as caught:
            ask_all(open_server("judge", entry(server.url)), questions(2), tmp_path)
        assert not server.calls and (not value or not value.strip() or value.strip() not in str(caught.value))


def test_a_limit_in_money_needs_dated_prices(tmp_path: Path) -> None:
    with pytest.raises(ThaikitError, match="no dated prices"):
        open_server("judge", entry("http://127.0.0.1:1/v1"), max_cost=1.0)
    with pytest.raises(ThaikitError, match="max_cost is -1"):
        open_server("judge", entry("http://127.0.0.1:1/v1"), max_cost=-1.0)


PRICES = {"price_input": 5.0, "price_output": 15.0, "price_date": "2024-10-08", "thb_rate": 33.0}


def test_the_limit_is_never_passed_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    asks = questions(40)
    with serving(rates=mixed(0.2), hang=1.0, slow=0.05, after=0.01) as server:
        chat = open_server("judge", entry(server.url, **PRICES), max_cost=0.03)
        with pytest.raises(ThaikitError, match="max_cost is 0.03 US dollars.*raise max_cost") as caught:
            ask_all(chat, asks, tmp_path)
        billed = sum(seen.prompt_tokens * 5e-6 + seen.completion_tokens * 15e-6 for seen in server.calls)
        sums = Ledger(tmp_path / "ledger.sqlite").totals()
        assert billed <= sums.spent + sums.unsettled + 1e-12 <= 0.03 + 2e-12 and sums.reserved == 0
        kept = stored(tmp_path)
        assert 0 < len(kept) < 40 and str(caught.value).count("\n") == 0
        before = Counter(seen.request for seen in server.calls if seen.met == "ok")
        rich = open_server("judge", entry(server.url, **PRICES), max_cost=9.0)
        assert len(ask_all(rich, asks, tmp_path)) == 40
        after = Counter(seen.request for seen in server.calls if seen.met == "ok")
        assert all(after[request] == count for request, count in before.items()), "nothing is paid twice"
    assert stored(tmp_path).items() >= kept.items() and rich.facts()["thb"] > 0


def test_two_servers_of_one_suite_ask_each_request_once(tmp_path: Path) -> None:
    """Two objects with their own ledger connections, at once; test_ledger has two processes."""
    asks, found = questions(30), []
    with serving(delay=0.05) as server:

        def one(name: str) -> None:
            chat = open_chat(str(model), suite_dir=tmp_path / "suite")
            found.append(ask_all(chat, asks, tmp_path / name))

        model = tmp_path / "judge.yaml"
        told = {"kind": "openai", "source": "judge-1", "base_url": server.url, **FAST}
        model.write_text(json.dumps(told), encoding="utf-8")
        threads = [threading.Thread(target=one, args=(name,)) for name in ("one", "two")]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(server.calls) == 30
    texts = [sorted(reply.text for reply in replies.values()) for replies in found]
    assert len(texts) == 2 and texts[0] == texts[1]
    assert stored(tmp_path / "one") == stored(tmp_path / "two")


def test_a_server_that_limits_is_asked_less_and_its_wait_obeyed(tmp_path: Path) -> None:
    with serving(delay=0.1, limit=6, after=0.1) as server:  # slow enough that even a slow client overruns it
        chat = open_server("judge", entry(server.url, attempts=40))
        replies = ask_all(chat, questions(150), tmp_path)
        limited = [seen for seen in server.calls if seen.met == "429"]
    assert all(reply.outcome == "ok" for reply in replies.values()) and limited
    assert chat.facts()["concurrency"]["cuts"] >= 1 and len(limited) < 75
    with serving(rates={"429-after": 1.0}, in_a_row=1, after=1.0) as server:
        begun = time.monotonic()
        ask_all(open_server("judge", entry(server.url)), questions(1), tmp_path / "after")
        assert time.monotonic() - begun >= 1.0 and len(server.calls) == 2


def test_pace_doubles_then_creeps_and_cuts_once_for_those_under_way() -> None:
    pace = Pace(start=8, most=64)
    for number in range(500):
        pace.put(number)
    taken = [pace.take() for _ in range(8)]
    for round_ in (16, 32, 64, 64):
        taken = [pace.fine() for _ in taken]
        taken += [pace.take() for _ in range(round_ - len(taken))]
        assert all(taken) and pace.flying == round_ == int(pace.limit)
    taken = [one for one in [pace.limited(one[1]) for one in taken if one] if one]
    assert pace.cuts == 1 and int(pace.limit) == int(64 * 0.6) == len(taken) == pace.flying
    assert all([pace.neither() for _ in taken[:19]] + [pace.fine() for _ in taken[19:]])
    assert 38 < pace.limit < 40 and pace.flying == 38


def test_a_thread_goes_on_with_the_next_request_and_wakes_another_where_there_is_room() -> None:
    pace = Pace(start=1, most=3)
    for job in "abcde":
        pace.put(job)
    assert pace.take() == ("a", 0) and pace.flying == 1
    woken: list[object] = []
    waiter = threading.Thread(target=lambda: woken.append(pace.take()))
    waiter.start()
    time.sleep(0.05)
    assert not woken, "one slot, and it is taken"
    assert pace.fine() == ("b", 0), "the slot goes on to the next"
    waiter.join(5)
    assert woken == [("c", 0)] and pace.flying == 2 == int(pace.limit), "and the one that grew wakes who waits"
    assert pace.limited(0, wait=60) is None and pace.flying == 1, "nothing goes while the server asks to wait"
    assert pace.neither() is None and pace.idle and len(pace.close()) == 2


def test_each_thread_asks_through_a_client_of_its_own_and_certificates_are_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[object] = []
    for name in ("load_default_certs", "load_verify_locations"):
        honest = getattr(ssl.SSLContext, name)
        told = lambda *given, honest=honest, **more: (read.append(given), honest(*given, **more))[1]  # noqa: E731
        monkeypatch.setattr(ssl.SSLContext, name, told, raising=False)
    clients = Clients(ModelEntry(kind="openai", source="m", base_url="http://127.0.0.1:1"))
    once = len(read)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(clients.mine).result()
        assert pool.submit(clients.mine).result() is other
    mine = clients.mine()
    assert mine is clients.mine() is not other and mine.max_retries == 0 and mine.api_key == "none"
    assert len(read) == once > 0


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SSL_CERT_FILE", "/nowhere/ca.pem", "SSL_CERT_FILE is '/nowhere/ca.pem': No such file"),
        ("SSL_CERT_FILE", __file__, "SSL_CERT_FILE is .*test_server.py"),
        ("HTTP_PROXY", "tcp://me:Pa55word@127.0.0.1:1", "HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"),
        ("HTTP_PROXY", "http://me:Pa55word@127.0.0.1:x1", "HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"),
    ],
)
def test_an_environment_that_no_client_can_use_is_one_sentence_and_reserves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    for other in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(other, raising=False)
        monkeypatch.delenv(other.lower(), raising=False)
    monkeypatch.setenv(name, value)
    with serving() as server:
        chat = open_server("judge", entry(server.url, **PRICES), max_cost=1.0)
        with pytest.raises(ThaikitError, match=said) as caught:
            ask_all(chat, questions(4), tmp_path)
        assert not server.calls and "\n" not in str(caught.value) and "Pa55word" not in str(caught.value)
    sums = Ledger(tmp_path / "ledger.sqlite").totals()
    assert (sums.sent, sums.reserved, sums.unsettled) == (0, 0.0, 0.0)


def test_a_proxy_that_refuses_has_billed_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault server takes no CONNECT, so the tunnel to the model's server is never there."""
    with serving() as server:
        monkeypatch.setenv("HTTPS_PROXY", server.url.removesuffix("/v1"))
        chat = open_server("judge", entry("https://127.0.0.9:1/v1", attempts=1, **PRICES), max_cost=1.0)
        [reply] = ask_all(chat, questions(1), tmp_path).values()
    assert reply.outcome == "failed" and reply.error.startswith("ProxyError")
    assert Ledger(tmp_path / "ledger.sqlite").totals().unsettled == 0


@pytest.mark.parametrize("most", [0, 3])
def test_a_machine_without_further_threads_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    honest, begun = threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith("thaikit-ask"):
            begun.append(thread)
            if len(begun) > most:
                raise RuntimeError("can't start new thread")
        honest(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    ended: list[BaseException] = []

    def run() -> None:
        try:
            ask_all(open_server("judge", entry(server.url)), questions(30), tmp_path)
        except ThaikitError as error:
            ended.append(error)

    with serving(delay=0.05) as server:
        asking = threading.Thread(target=run, daemon=True)
        asking.start()
        asking.join(10)
        assert not asking.is_alive() and "starts no further thread" in str(ended[0])
        assert len(server.calls) <= most


def test_a_log_that_cannot_be_read_leaves_no_thread(tmp_path: Path) -> None:
    (tmp_path / "replies.jsonl").write_text('{"id": "q0"}\n', encoding="utf-8")
    before = {thread for thread in threading.enumerate() if thread.name == "thaikit-pace"}
    log = RowLog(tmp_path / "replies.jsonl")
    with pytest.raises((KeyError, ThaikitError)) as caught:
        chat = open_server("judge", entry("http://127.0.0.1:1/v1"))
        list(chat.ask(questions(1), sampling=SAMPLING, log=log, tell=lambda _: None))
    assert caught and {thread for thread in threading.enumerate() if thread.name == "thaikit-pace"} == before


def test_ctrl_c_stops_sending_and_paid_replies_reach_the_ledger(tmp_path: Path) -> None:
    with serving(delay=0.2) as server:
        chat = open_server("judge", entry(server.url, concurrency_start=4, concurrency_max=4))
        log = RowLog(tmp_path / "replies.jsonl")
        found = chat.ask(questions(40), sampling=SAMPLING, log=log, tell=lambda _: None)
        next(found)
        found.close()
        time.sleep(0.6)
        asked = len(server.calls)
        assert asked <= 12
        assert Ledger(tmp_path / "ledger.sqlite").totals().replies == asked
        rest = list(chat.ask(questions(40), sampling=SAMPLING, log=log, tell=lambda _: None))
        assert len(rest) == 40 and len(server.calls) == 40


def test_every_server_file_of_the_kit_is_whole_and_without_prices() -> None:
    folder = Path(params.__file__).parent.parent / "params" / "models"
    served = [params.load("models", path.stem, ModelEntry) for path in sorted(folder.glob("*.yaml"))]
    served = [one for one in served if one.kind == "openai"]
    assert not any(one.priced or one.thb_rate for one in served), "prices ship empty"
    closed = {name: params.load("models", name, ModelEntry) for name in CLOSED}
    assert {name for name, one in closed.items() if not one.inferred} == {"gpt-4o-2024-05-13"}
    assert {one.base_url.split("/")[2] for one in closed.values()} == {
        "api.openai.com", "generativelanguage.googleapis.com", "api.anthropic.com"}  # fmt: skip
    assert all(one.api_key_env for one in closed.values()) and any(not one.api_key_env for one in served)


def test_half_an_emoji_passes_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fault_server

    monkeypatch.setattr(fault_server, "text_of", lambda prompt: "ก\ud83d")
    turns = ({"role": "user", "content": "ตอบ \ud83d"},)
    with serving() as server:
        replies = ask_all(open_server("judge", entry(server.url)), [Ask("a", "\ud83d"), Ask("b", turns)], tmp_path)
    assert {reply.text for reply in replies.values()} == {"ก\ud83d"}


def test_odd_bodies_are_read_or_called_broken(tmp_path: Path) -> None:
    from thaikit.transport import Came, came

    def body(**more: Any) -> str:
        return json.dumps({"model": "m", "choices": [{"finish_reason": "stop", **more}]})

    parts = [{"type": "text", "text": "ก"}, {"type": "text", "text": "ข"}, 7]
    got = came(body(message={"content": parts, "reasoning_content": "คิด"}), 0.0)
    assert isinstance(got, Came) and got.text == "กข" and got.thoughts == "คิด" and got.prompt_tokens is None
    got = came(body(message={"content": None}), 0.0)
    assert isinstance(got, Came) and got.text == ""
    for broken in ("[]", "{}", "null", '{"choices": []}', "[" * 100_000, body(finish_reason="abort"), "{", '"429"'):
        assert getattr(came(broken, 0.0), "kind", "") == "broken", broken[:40]
    got = came('{"error": {"code": "content_filter", "message": "no"}}', 0.0)
    assert isinstance(got, Came) and got.finish == "content_filter"
    assert getattr(came('{"error": {"code": 429, "message": "later"}}', 0.0), "kind", "") == "limited"
    got = came(json.dumps({"choices": [{"text": "", "finish_reason": "content_filter: PROHIBITED_CONTENT"}]}), 0.0)
    assert isinstance(got, Came) and got.finish == "content_filter"
