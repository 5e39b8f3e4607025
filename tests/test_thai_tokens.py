"""What a tokenizer spends on Thai: counts worked by hand, and tokenizers that do not behave."""

from __future__ import annotations

import json
import math
import time
import unicodedata
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fake_leaves
import numpy as np
import pytest

from thaikit import embedded, report, report_thai, text, thai_facts, thai_tokens
from thaikit.model_facts import SERVED
from thaikit.records import Leaf, leaves, root
from thaikit.thai_tokens import Counted, count_entries, entry_bytes, kind_of, rates

SAMPLES = root() / "thaikit" / "samples"
STAND_IN = {byte: chr(code) for code, byte in thai_tokens.BYTE_OF.items()}


def written(data: bytes) -> str:
    """Bytes as byte-level BPE writes them."""
    return "".join(STAND_IN[byte] for byte in data)


# ------------------------------------------------------------------------------------------- the vocabulary


def test_the_byte_alphabet_is_gpt_2s() -> None:
    assert len(thai_tokens.BYTE_OF) == len(set(thai_tokens.BYTE_OF.values())) == 256
    assert written(b" the\n") == "ĠtheĊ" and written("ก".encode()) == "à¸ģ"
    assert entry_bytes("ĠtheĊ", byte_level=True) == b" the\n"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("ที่".encode(), "thai"),
        (b" \xe0\xb8\x81\xe0\xb8", "thai"),  # a whole letter and the start of the next
        ("฿".encode(), "thai"),
        (b"\xe0\xb9\x9b", "thai"),  # U+0E5B, the last
        (b"\xe0\xb8\x80", ""),  # U+0E00 is no letter
        (b"\xe0\xb9\x9c", ""),  # nor U+0E5C
        (b" \xe0\xb8", "piece"),
        (b"\x81\xe0\xb9", "piece"),  # the end of one and the start of the next
        (b"\xb8\x81", "piece"),
        (b"\xe0", "piece"),
        (b"\xb9\xbf", ""),  # after B9 nothing above 9B is Thai
        (b"\xbb", ""),
        (b"\xe0\xa4", ""),  # Devanagari
        ("กั".encode()[1:4], "piece"),  # B8 81 E0
        (b"the", ""),
        ("é".encode(), ""),
    ],
)
def test_an_entry_in_the_byte_alphabet(data: bytes, kind: str) -> None:
    assert kind_of(written(data), byte_level=True) == kind
    assert kind_of(data, byte_level=True) == kind  # vocabularies of bytes, as tiktoken's


def test_entries_of_sentencepiece_with_byte_fallback() -> None:
    entries = ["▁ที่", "ก", "▁the", "<0xE0>", "<0xB8>", "<0xbb>", "<0x41>", "<0xE0", "à¸ģ", "<pad>"]
    found = count_entries(entries, byte_level=False)
    assert (found.vocabulary, found.thai, found.pieces) == (10, 2, 2)


def test_added_tokens_are_read_as_they_are_written() -> None:
    added = ["<|ไทย|>", "à¸ģ"]  # the second looks like ก in bytes, but was added as it stands
    assert count_entries([*added, written("ข".encode())], byte_level=True, added=added).thai == 2
    assert entry_bytes("<|ไทย|>", byte_level=True).decode() == "<|ไทย|>"


def test_a_vocabulary_of_262_144_entries_takes_under_a_second() -> None:
    entries = [written(f"{n}ทดสอบ".encode()[: 3 + n % 12]) for n in range(262_144)]
    begun = time.process_time()
    assert count_entries(entries, byte_level=True).thai > 100_000
    assert time.process_time() - begun < 2


# ------------------------------------------------------------------------------------------- the rates


def test_rates_are_ratios_of_sums() -> None:
    found = rates([Counted(10, 5, 4, 20), Counted(20, 10, 6, 40)], rng=np.random.default_rng(0))
    assert [round(found[name].value, 9) for name in ("per_word", "per_character", "tax")] == [3.0, 0.5, 2.0]
    assert found["per_word"].low == 2.5 and math.isclose(found["per_word"].high, 20 / 6)
    assert math.isnan(found["tax"].low) and "no spread" in found["tax"].method


def test_a_tokenizer_that_loses_the_text_has_no_rate() -> None:
    found = rates([Counted(3, 5, 4, 20, unknown=3)] * 5, rng=np.random.default_rng(0))
    assert math.isnan(found["tax"].value) and "15 of 15 tokens are unknown" in found["tax"].method
    assert math.isnan(rates([], rng=np.random.default_rng(0))["tax"].value)


def test_special_tokens_are_never_counted_and_unknown_ones_are() -> None:
    def encode(text: str) -> list[int]:
        return [1, *(0 if char == "ฃ" else 9 for char in text), 2]

    found = thai_tokens.count_sentence("กฃ ค", "a b", words=2, encode=encode, special=[0, 1, 2], unknown=[0])
    assert found == Counted(4, 3, 2, 3, unknown=1)


# ------------------------------------------------------------------------------------------- the parallel text


def test_the_parallel_text_is_clean_thai_and_english() -> None:
    rows = thai_facts.sentences()
    assert len(rows) >= 40 and len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert set(row) == {"id", "th", "en", "words"} and row["en"].isascii()
        assert unicodedata.normalize("NFC", row["th"]) == row["th"] and not any(text.audit(row["th"]).values())
        assert sum("ก" <= char <= "๛" for char in row["th"]) > len(row["th"]) / 2


def test_its_words_are_the_segmenters() -> None:
    if f"pythainlp:{version('pythainlp')}|" not in thai_facts.WORDS:
        pytest.skip(f"counted once by {thai_facts.WORDS}")
    assert text.words_signature() == thai_facts.WORDS
    assert [row["words"] for row in thai_facts.sentences()] == [
        len(text.words(r["th"])) for r in thai_facts.sentences()
    ]


# ------------------------------------------------------------------------------------------- tokenizers


class Slow:
    """A slow character tokenizer: no backend, no offsets, special tokens whether wanted or not, no way to decode."""

    unk_token_id, all_special_ids = None, [0, 1]

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [0, *map(ord, text), 1]}

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [chr(one) for one in ids]

    def get_vocab(self) -> dict[str, int]:
        return {chr(code): code for code in range(0xE00, 0xE60)}

    def get_added_vocab(self) -> dict[str, int]:
        return {}

    def decode(self, *_: Any, **__: Any) -> str:
        raise UnicodeDecodeError("utf-8", b"\xe0", 0, 1, "nothing decodes")


def test_a_slow_tokenizer_that_cannot_decode_is_counted() -> None:
    found = thai_facts.thai_facts(Slow(), window=1000)
    characters = sum(len(row["th"]) for row in thai_facts.sentences())
    assert found["tokens"]["thai"] == characters and found["thai_entries"] == 0x5B and found["alphabet"] == "characters"
    assert found["window_words"] == int(1000 * found["thai_words"] / characters)
    assert json.loads(json.dumps(found)) == found


def test_a_tokenizer_that_fails_loses_no_run() -> None:
    class Broken(Slow):
        def get_vocab(self) -> dict[str, int]:
            raise NotImplementedError

    assert "NotImplementedError" in thai_facts.thai_facts(Broken(), window=10)["why"]


def test_a_byte_level_tokenizer_of_transformers(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {STAND_IN[byte]: byte for byte in range(256)} | {written("กา".encode()[:2]): 256}
    backend = Tokenizer(models.BPE(vocabulary, [("à", "¸")]))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>")
    tokenizer.add_tokens(["สวัสดี"])
    found = thai_facts.thai_facts(tokenizer, window=100)
    assert found["alphabet"] == "bytes" and found["vocabulary"] == 259
    assert found["thai_entries"] == 1 and found["thai_pieces"] == 62  # E0, 81 to BA and BF, 80, and E0 B8
    english = sum(len(row["en"].encode()) for row in thai_facts.sentences())
    assert found["tokens"]["english"] == english and found["tax"]["value"] > 1.5


def test_the_recorded_facts_are_those_of_the_embedded_tokenizer() -> None:
    name = "smollm2-135m-instruct"
    if not embedded.available(name):
        pytest.skip(f"{name} is not in the cache")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(embedded.folder(name))
    recorded = leaves(SAMPLES / "outputs", stage="thai_h6")
    model = next(leaf.run["model"] for leaf in recorded if leaf.name == name)
    assert thai_facts.thai_facts(tokenizer, window=model["max_length"]) == model["thai"]


# ------------------------------------------------------------------------------------------- the report


def leaf(model: dict[str, Any]) -> Leaf:
    return Leaf(Path("nowhere"), {"model": model})


def told(tax: float = 2.0, **changes: Any) -> dict[str, Any]:
    rate = {"value": tax, "low": tax - 0.5, "high": tax + 0.5, "n": 48, "method": "bootstrap"}
    found = {"vocabulary": 1000, "thai_entries": 10, "thai_pieces": 60, "tokens": {"thai": 200, "english": 100}}
    found |= {"window_words": 1234, "per_word": rate, "per_character": rate, "tax": rate}
    return found | changes


def test_a_row_for_each_tokenizer_and_a_reason_for_the_others() -> None:
    a = {"name": "a", "thai": told(), "max_length": 4096, "tokenizer_sha256": "1"}
    part = report_thai.section(
        [leaf(a), leaf(a), leaf({"name": "wire", "thai": {"why": SERVED}}), leaf({"name": "old"})]
    )
    assert part is not None and [row["model"] for row in part["rows"]] == ["a"]
    assert part["rows"][0]["share"] == "1.00 %" and part["rows"][0]["words"] == "1,234"
    assert dict(part["bare"])["wire"] == SERVED.removeprefix("none: ") and "did not count" in dict(part["bare"])["old"]
    assert part["costs"] == [
        "a takes 200 tokens for the Thai text and 100 for the same in English. Where tokens are paid for, Thai costs "
        "2.00 times as much, and its window of 4,096 tokens holds about 1,234 Thai words."
    ]
    assert part["sea_lion"] == "10,652"
    assert report_thai.section([leaf({"name": "old"})]) is None and report_thai.section([]) is None


def test_a_tax_that_is_not_there_is_a_dash_with_its_reason() -> None:
    none = {"value": None, "low": None, "high": None, "n": 48, "method": "none: 15 of 15 tokens are unknown ones"}
    part = report_thai.section([leaf({"name": "a", "thai": told(tax=2) | {"tax": none}})])
    assert part is not None and part["rows"][0]["cells"][2] == {
        "value": "–", "interval": "–", "n": "", "why": "none: 15 of 15 tokens are unknown ones"
    }  # fmt: skip
    assert part["drawn"] == [] and part["costs"] == []


def test_hostile_names_stay_text_in_the_page_and_its_figure(tmp_path: Path) -> None:
    made = fake_leaves.write_leaf(tmp_path / "suite", "one", tasks=("arc",), items=5)
    path = made / "run.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    run["model"] |= {"name": "<b>a|b$x_1$</b> हि 漢" + "x" * 80, "thai": told(), "max_length": 100}
    path.write_text(json.dumps(run), encoding="utf-8")
    page = report.build(tmp_path / "suite", out_path=tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Thai in tokens" in page and "&lt;b&gt;a|b$x_1$" in page and "<b>a" not in page and "10,652" in page
