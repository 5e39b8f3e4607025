"""What asking a server will take, before the first call: tokens, US dollars and baht, low, likely and high."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from thaikit import ThaikitError
from thaikit.chat import Ask, Prompt, Sampling
from thaikit.ledger import Ledger
from thaikit.params import ModelEntry
from thaikit.rowlog import RowLog
from thaikit.transport import body_of, name_of

CASES = ("low", "likely", "high")
# Tokens a character, Thai and other, as measured on the tokenizers of Gemma 3 (low) and Qwen 2.5 (likely). High is the
# number of bytes, which no tokenizer that falls back to bytes can exceed.
RATES = {"low": (0.344, 0.21), "likely": (0.506, 0.22)}
TURN, REQUEST = 16, 64  # tokens that a server may add at most for each turn's marks, and for the whole


@dataclass(frozen=True)
class Counted:
    """Prompt tokens of one request, low, likely and high, and how they were counted."""

    low: float
    likely: float
    high: float


def texts_of(prompt: Prompt) -> list[str]:
    """A prompt's texts: itself, or its turns."""
    return [prompt] if isinstance(prompt, str) else [turn["content"] for turn in prompt]


def most_tokens(prompt: Prompt) -> int:
    """An upper bound of a prompt's tokens under any tokenizer: its UTF-8 bytes, and room for the turns' marks."""
    texts = texts_of(prompt)
    return sum(len(text.encode("utf-8", "replace")) for text in texts) + TURN * len(texts) + REQUEST


def by_characters(prompt: Prompt) -> Counted:
    """An estimate from the numbers of Thai and of other characters, for a tokenizer that is not public."""
    text = "".join(texts_of(prompt))
    thai = sum("\u0e00" <= char <= "\u0e7f" for char in text)
    low, likely = (thai * rate[0] + (len(text) - thai) * rate[1] for rate in RATES.values())
    return Counted(low, likely, most_tokens(prompt))


def counter_of(entry: ModelEntry, name: str) -> tuple[Callable[[Prompt], Counted], str]:
    """(how a model's prompt tokens are counted, the words for it): by its tokenizer, else by characters.

    `tokenizer` in the model file is `tiktoken:NAME`, `embedded:NAME`, a hub id or a folder. ThaikitError where it is
    named and cannot be had.
    """
    if not entry.tokenizer:
        return by_characters, "estimate from characters (no tokenizer is named)"
    encode = encoder_of(entry.tokenizer, f"model {name}: tokenizer {entry.tokenizer!r}")

    def exactly(prompt: Prompt) -> Counted:
        texts = texts_of(prompt)
        tokens = sum(encode(text) for text in texts)
        return Counted(tokens, tokens + 4 * len(texts), tokens + TURN * len(texts) + REQUEST)

    return exactly, f"counted by {entry.tokenizer}"


def encoder_of(tokenizer: str, where: str) -> Callable[[str], int]:
    """A function from a text to its number of tokens."""
    kind, _, rest = tokenizer.partition(":")
    if kind == "tiktoken":
        if importlib.util.find_spec("tiktoken") is None:
            raise ThaikitError(
                f"{where}: the library tiktoken is not installed; pip install tiktoken, or leave it empty"
            )
        import tiktoken

        coding = tiktoken.get_encoding(rest)
        return lambda text: len(coding.encode(text, disallowed_special=()))
    from transformers import AutoTokenizer

    from thaikit import embedded

    try:
        made = AutoTokenizer.from_pretrained(str(embedded.folder(rest)) if kind == "embedded" else tokenizer)
    except (OSError, ValueError) as error:
        told = " ".join(str(error).split())[:200]
        raise ThaikitError(f"{where}: cannot be had ({told}); correct it, or leave it empty for an estimate") from error
    return lambda text: len(made(text, add_special_tokens=False)["input_ids"])


def plan(
    chat: Any, asks: Iterable[Ask], *, sampling: Sampling, log: RowLog | None = None, tries: int = 1
) -> pd.DataFrame:
    """Rows low, likely and high of what `chat.ask(asks)` will still take: requests, prompt and reply tokens and, where
    the model file has dated prices, `usd` (and `thb`, given a rate).

    Requests that log or ledger already answer are left out. Low: one try, short replies (the pilot's lower tenth, one
    token without a pilot). Likely: one try, replies as long as the pilot's mean, NaN without one. High: all `tries`,
    each as long as `sampling.max_tokens`. The pilot are the model's replies in the suite's ledger so far. `basis` says
    how each row was made. For weights on this machine and recordings there is one row: nothing is paid.
    """
    entry = getattr(chat, "entry", None)
    if getattr(chat, "closing", False):
        told = "the leaf is being closed with what is there, nobody is asked"
        return pd.DataFrame([{"case": "none", "requests": 0, "basis": told}])
    if getattr(entry, "kind", "local") != "openai":
        return pd.DataFrame([{"case": "none", "requests": 0, "basis": "no server is asked, nothing is paid"}])
    left, pilot = open_requests(chat, list(asks), sampling, log)
    count, words = counter_of(entry, chat.name)
    counted = [count(ask.prompt) for ask in left]
    length, lengths = lengths_of(pilot, sampling.max_tokens)
    rows = []
    for case in CASES:
        each = tries if case == "high" else 1
        prompt = sum(getattr(one, case) for one in counted) * each
        reply = length[case] * len(left) * each
        row = {"case": case, "requests": len(left) * each, "prompt_tokens": round(prompt), "reply_tokens": reply}
        if entry.priced:
            row["usd"] = entry.dollars(prompt, reply)
            if entry.thb_rate:
                row["thb"] = row["usd"] * entry.thb_rate
        priced = f"prices of {entry.price_date}" if entry.priced else "no dated prices: tokens, not money"
        rows.append({**row, "basis": f"prompts: {words}; replies: {lengths[case]}; {priced}"})
    return pd.DataFrame(rows)


def open_requests(chat: Any, asks: list[Ask], sampling: Sampling, log: RowLog | None) -> tuple[list[Ask], list[int]]:
    """(the requests that neither the log nor the ledger answers, the lengths of the model's replies so far)."""
    place = chat.place(log) if log is not None else (chat.suite_dir / "ledger.sqlite" if chat.suite_dir else None)
    known: set[str] = set()
    pilot: list[int] = []
    if place is not None and place.exists():
        ledger = Ledger(place)
        known = ledger.known()
        pilot = [reply["completion_tokens"] for reply in ledger.replies(chat.name) if reply["completion_tokens"]]
        ledger.close()
    done = log.ids if log is not None else set()
    left: dict[str, Ask] = {}
    for ask in asks:
        name = name_of(chat.entry, ask, body_of(chat.entry, ask.prompt, sampling))
        if ask.key not in done and name not in known:
            left.setdefault(name, ask)
    return list(left.values()), pilot


def lengths_of(pilot: Sequence[int], most: int) -> tuple[dict[str, float], dict[str, str]]:
    """Reply tokens of each case, and the words for them."""
    if not pilot:
        told = {"low": "one token", "likely": "unknown, no reply so far: ask a few first", "high": f"all of {most}"}
        return {"low": 1.0, "likely": float("nan"), "high": float(most)}, told
    ordered = sorted(pilot)
    words = f"of {len(pilot)} replies so far"
    told = {"low": f"the lower tenth {words}", "likely": f"the mean {words}", "high": f"all of {most}"}
    return {"low": float(ordered[len(ordered) // 10]), "likely": statistics.fmean(pilot), "high": float(most)}, told
