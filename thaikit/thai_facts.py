"""A loaded tokenizer → what run.json says of it under `model.thai`: its vocabulary and what Thai costs in tokens."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from thaikit import thai_tokens
from thaikit.records import sha256_file
from thaikit.thai_tokens import PROBE

TEXT = Path(__file__).resolve().parent / "samples" / "parallel.jsonl"
WORDS = "words:newmm|pythainlp:5.4.0|dictionary:default|space:dropped"  # by which TEXT's words were counted, once
SEED = 1234  # of the resamples


@cache
def sentences() -> tuple[dict[str, Any], ...]:
    """The kit's parallel text: id, th, en (the same meaning) and words, the number of words of `th`.

    The words are part of the text, so that leaves of different years divide by the same number.
    """
    lines = TEXT.read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines if line.strip())


def thai_facts(tokenizer: Any, *, window: int) -> dict[str, Any]:
    """Vocabulary, entries with Thai, pieces of Thai characters, tokens a Thai word and character, Thai tax, and how
    many Thai words fit a window of `window` tokens; {"why": …} where a tokenizer does not let itself be counted.

    Takes a second or less for 262,144 entries: each entry is looked at once and nothing is decoded by the tokenizer.
    """
    try:
        return measured(tokenizer, window=window)
    except Exception as error:  # a tokenizer may be anybody's code, and a count is no reason to lose a run
        return {"why": f"none: the tokenizer does not let itself be counted ({type(error).__name__})"}


def measured(tokenizer: Any, *, window: int) -> dict[str, Any]:
    """The facts of `thai_facts`, faults and all."""

    def encode(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    unknown = {tokenizer.unk_token_id} - {None}
    pairs = [
        thai_tokens.count_sentence(
            line["th"], line["en"], words=line["words"], encode=encode, special=tokenizer.all_special_ids,
            unknown=unknown,
        )
        for line in sentences()
    ]  # fmt: skip
    byte_level = thai_tokens.writes_bytes(tokenizer.convert_ids_to_tokens(encode(PROBE)))
    entries = thai_tokens.count_entries(
        tokenizer.get_vocab(), byte_level=byte_level, added=list(tokenizer.get_added_vocab())
    )
    found = thai_tokens.rates(pairs, rng=np.random.default_rng(SEED))
    per_word = found["per_word"].value
    return {
        "vocabulary": entries.vocabulary, "thai_entries": entries.thai, "thai_pieces": entries.pieces,
        "alphabet": "bytes" if byte_level else "characters",
        **{name: one.as_dict() for name, one in found.items()},
        "tokens": {"thai": sum(one.thai for one in pairs), "english": sum(one.english for one in pairs)},
        "thai_words": sum(one.words for one in pairs), "thai_characters": sum(one.characters for one in pairs),
        "unknown": sum(one.unknown for one in pairs), "window_words": int(window / per_word) if per_word > 0 else None,
        "words": WORDS, "text": f"samples/{TEXT.name}", "text_sha256": sha256_file(TEXT), "seed": SEED,
    }  # fmt: skip
