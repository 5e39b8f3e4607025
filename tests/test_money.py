"""Tokens and money before the first call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer, Plan

from thaikit import ThaikitError, money
from thaikit.chat import Ask, Sampling
from thaikit.params import ModelEntry
from thaikit.rowlog import RowLog
from thaikit.server import Server

PRICES = {"price_input": 5.0, "price_output": 15.0, "price_date": "2024-10-08", "thb_rate": 30.0}


def chat_of(url: str = "http://127.0.0.1:1/v1", folder: Path | None = None, **more: Any) -> Server:
    entry = ModelEntry.model_validate({"kind": "openai", "source": "m", "base_url": url, **more})
    return Server("m", entry, suite_dir=folder)


def rows(chat: Any, asks: list[Ask], **more: Any) -> dict[str, dict[str, Any]]:
    frame = money.plan(chat, asks, **{"sampling": Sampling(max_tokens=100), **more})
    return {row["case"]: row for row in frame.to_dict("records")}


def test_an_estimate_by_characters_with_dated_prices_by_hand() -> None:
    asks = [Ask("a", "ก" * 1000), Ask("b", "x" * 500)]
    plan = rows(chat_of(**PRICES), asks, tries=17)
    assert plan["low"]["prompt_tokens"] == 449 and plan["likely"]["prompt_tokens"] == 616  # 344 + 105, 506 + 110
    most = 3000 + 500 + 2 * (16 + 64)
    assert plan["high"]["prompt_tokens"] == most * 17 and plan["high"]["requests"] == 34
    assert plan["high"]["reply_tokens"] == 2 * 17 * 100
    assert plan["high"]["usd"] == pytest.approx((most * 17 * 5 + 3400 * 15) / 1e6)
    assert plan["high"]["thb"] == pytest.approx(plan["high"]["usd"] * 30)
    assert plan["low"]["usd"] == pytest.approx((449 * 5 + 2 * 15) / 1e6)
    assert plan["likely"]["usd"] != plan["likely"]["usd"], "no pilot: no likely sum"
    assert "estimate from characters" in plan["low"]["basis"] and "2024-10-08" in plan["low"]["basis"]


def test_without_a_date_tokens_and_no_money() -> None:
    for prices in ({}, {**PRICES, "price_date": ""}):
        plan = rows(chat_of(**prices), [Ask("a", "ก")])
        assert "usd" not in plan["high"] and "thb" not in plan["high"] and "tokens, not money" in plan["high"]["basis"]
    assert "thb" not in rows(chat_of(**{**PRICES, "thb_rate": 0.0}), [Ask("a", "ก")])["high"]


def test_replies_so_far_are_the_pilot_and_are_not_asked_again(tmp_path: Path) -> None:
    asks = [Ask(str(n), f"ข้อ {n}") for n in range(10)]
    with FaultServer(Plan(completion_tokens=40)) as server:
        chat, log = chat_of(server.url, tmp_path / "suite", **PRICES), RowLog(tmp_path / "replies.jsonl")
        drawn = Sampling(max_tokens=100)
        list(chat.ask(asks[:4], sampling=drawn, log=log, tell=lambda _: None))
        plan = rows(chat, asks, log=log)
        assert plan["likely"]["requests"] == 6 and plan["likely"]["reply_tokens"] == 240
        assert "mean of 4 replies so far" in plan["likely"]["basis"] and plan["high"]["reply_tokens"] == 600
        other = RowLog(tmp_path / "other.jsonl")
        assert rows(chat, asks, log=other)["high"]["requests"] == 6, "the suite's ledger knows them too"
        assert rows(chat, asks, log=other, sampling=Sampling(max_tokens=50))["high"]["requests"] == 10
        assert rows(chat, asks + asks, log=log)["high"]["requests"] == 6
        before = chat.facts()["usd"]
    assert before <= plan["high"]["usd"] and not list(tmp_path.glob("*.sqlite"))


def test_a_tokenizer_counts_exactly_and_its_lack_is_told(tmp_path: Path, tiny_folder: Path) -> None:
    from transformers import AutoTokenizer

    made = AutoTokenizer.from_pretrained(str(tiny_folder))
    asks = [Ask("a", ({"role": "user", "content": "สวัสดี"},))]
    plan = rows(chat_of(tokenizer=str(tiny_folder)), asks)
    exact = len(made("สวัสดี", add_special_tokens=False)["input_ids"])
    assert plan["low"]["prompt_tokens"] == exact and plan["high"]["prompt_tokens"] == exact + 80
    assert str(tiny_folder) in plan["low"]["basis"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ThaikitError, match="leave it empty for an estimate"):
        rows(chat_of(tokenizer=str(tmp_path / "empty")), asks)


def test_what_is_reserved_bounds_what_any_tokenizer_counts() -> None:
    """One token a byte is the worst that a tokenizer with a byte fallback does."""
    for text in ("น้ำใจ", "hello", "😀" * 9, "\ud83d", ""):
        assert money.most_tokens(text) >= len(text.encode("utf-8", "replace")) + 80
        turns = ({"role": "system", "content": text}, {"role": "user", "content": text})
        assert money.most_tokens(turns) >= 2 * len(text.encode("utf-8", "replace"))


def test_nothing_is_paid_where_no_server_is_asked() -> None:
    class Weights:
        name = "gemma"

    frame = money.plan(Weights(), [Ask("a", "ก")], sampling=Sampling())
    assert frame.to_dict("records") == [
        {"case": "none", "requests": 0, "basis": "no server is asked, nothing is paid"}
    ]  # fmt: skip
