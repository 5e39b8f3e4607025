"""Where a context ends and a continuation begins in token ids: one BOS, no lost token, the joins that Thai breaks."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import pytest
from conftest import TEXT
from kit import tokenizer_of

from thaikit.encoding import Encoded, cut_left, encode, encode_pair, leading
from thaikit.models import LocalModel

THAI = [
    "น้ำแข็งละลายเมื่ออุณหภูมิสูงกว่า 0 องศา",
    "ปู่ย่าตายายนั่งกินข้าวเหนียวมะม่วงที่ระเบียงบ้าน",
    "ผู้ชายใช้ iPhone ถ่ายรูปวัดพระแก้ว (Bangkok) ปี 2566",
    "เพื่อนๆ ไปเที่ยวเชียงใหม่ช่วงสงกรานต์ ๒๕๖๗",
    "พ.ศ. ๒๔๗๕ เปลี่ยนแปลงการปกครอง\nจากนั้น…",
]
OTHERS = {"qwen": "THAIKIT_QWEN_TOKENIZER", "tekken": "THAIKIT_TEKKEN_TOKENIZER"}
BOUNDARIES = [
    ("gemma", "ตำรวจจับโจรเพราะตำรวจ", " เห็นโจร", 6, 3, True),
    ("gemma", "ประเทศไท", "ย", 3, -2, False),
    ("gemma", "เขาซื้อข้าวเห", "นียว", 4, 1, False),
    ("qwen", "ตำรวจจับโจรเพราะตำรวจ", " เห็นโจร", 7, 5, True),
    ("qwen", "ประเทศไท", "ย", 2, -1, False),
    ("qwen", "เขาซื้อข้าวเห", "นียว", 9, 1, False),
    ("tekken", "ตำรวจจับโจรเพราะตำรวจ", " เห็นโจร", 18, 6, True),
    ("tekken", "ประเทศไท", "ย", 3, -1, False),
]
# Lines of tokenizers that no package ships are run where their folder is named, and are no tests elsewhere.
HERE = [line for line in BOUNDARIES if line[0] == "gemma" or os.environ.get(OTHERS[line[0]])]


@pytest.fixture(scope="module")
def gemma_tokens() -> Any:
    return tokenizer_of("gemma3-270m")


@pytest.fixture(scope="module")
def smollm_tokens() -> Any:
    return tokenizer_of("smollm2-135m-instruct")


def named(request: pytest.FixtureRequest, name: str) -> Any:
    if name == "gemma":
        return request.getfixturevalue("gemma_tokens")
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(os.environ[OTHERS[name]], local_files_only=True)


class Letters:
    """A tokenizer of single characters that puts as many BOS before and EOS after as it is told."""

    def __init__(self, *, bos: str | None = None, eos: str | None = "</s>", before: int = 0, after: int = 0) -> None:
        self.bos_token, self.eos_token, self.before, self.after = bos, eos, before, after
        self.bos_token_id, self.eos_token_id = (1 if bos else None), (2 if eos else None)

    def __call__(self, text: str, *, add_special_tokens: bool = True, **_: Any) -> dict[str, list[Any]]:
        for special, number in ((self.bos_token, 1), (self.eos_token, 2)):
            if special:
                text = text.replace(special, chr(number))
        ids = [ord(c) for c in text]
        if add_special_tokens:
            ids = [1] * self.before + ids + [2] * self.after
        return {"input_ids": ids, "offset_mapping": [(n, n + 1) for n in range(len(ids))]}


@pytest.mark.parametrize(("name", "context", "continuation", "head", "more", "holds"), HERE)
def test_boundary_vectors(
    request: pytest.FixtureRequest, name: str, context: str, continuation: str, head: int, more: int, holds: bool
) -> None:
    tokenizer = named(request, name)
    first = encode(tokenizer, context, bos="never")
    whole = encode(tokenizer, context + continuation, bos="never")
    assert (len(first), len(whole) - len(first), whole[: len(first)] == first) == (head, more, holds)
    found = encode_pair(tokenizer, context, continuation)
    assert [*found.context, *found.continuation] == encode(tokenizer, context + continuation)
    assert found.boundary is not holds
    if more < 1:
        with pytest.raises(ValueError, match="a token spans the join"):
            encode_pair(tokenizer, context, continuation, bos="never", boundary="naive")
    else:
        naive = encode_pair(tokenizer, context, continuation, bos="never", boundary="naive")
        assert naive == Encoded(tuple(first), tuple(whole[head:]), boundary=not holds)


@pytest.mark.parametrize("which", ["gemma", "smollm", "tiny"])
@pytest.mark.parametrize("boundary", ["offsets", "naive"])
def test_trailing_space_moves_to_the_continuation(request: pytest.FixtureRequest, which: str, boundary: str) -> None:
    tokenizer = pick(request, which)
    moved = encode_pair(tokenizer, "น้ำเดือดที่เท่าไร\nคำตอบ: ", "100 องศา", boundary=boundary)
    assert moved == encode_pair(tokenizer, "น้ำเดือดที่เท่าไร\nคำตอบ:", " 100 องศา", boundary=boundary)
    assert not moved.boundary


def pick(request: pytest.FixtureRequest, which: str) -> Any:
    return request.getfixturevalue("tiny").tokenizer if which == "tiny" else request.getfixturevalue(f"{which}_tokens")


@pytest.mark.parametrize("space", ["\n", "\n\n", " \t", "\u00a0", "\u2028"])
def test_every_unicode_space_moves(tiny: LocalModel, space: str) -> None:
    whole = encode_pair(tiny.tokenizer, "คำตอบ:" + space, "ใช่")
    assert whole == encode_pair(tiny.tokenizer, "คำตอบ:", space + "ใช่")
    kept = encode_pair(tiny.tokenizer, "คำตอบ:" + space, "ใช่", move_space=False)
    assert len(kept.context) > len(whole.context) and len(kept.continuation) < len(whole.continuation)


def test_zero_width_space_is_no_space(tiny: LocalModel) -> None:
    found = encode_pair(tiny.tokenizer, "คำตอบ:\u200b", "ใช่")
    assert found.context == tuple(encode(tiny.tokenizer, "คำตอบ:\u200b"))


@pytest.mark.parametrize("which", ["gemma", "smollm", "tiny"])
def test_offsets_always_rejoin_to_the_whole(request: pytest.FixtureRequest, which: str) -> None:
    """Any cut of any Thai string: what conditions and what is scored are together the string's own encoding."""
    tokenizer, rng, crossed = pick(request, which), random.Random(0), 0
    for _ in range(400):
        text = "".join(rng.choice(THAI + TEXT) for _ in range(rng.randint(1, 3)))
        cut = rng.randint(4, len(text) - 1)
        try:
            found = encode_pair(tokenizer, text[:cut], text[cut:], bos="auto")
        except ValueError as error:
            assert "first token spans the join" in str(error) or "nothing to score" in str(error), text[:cut]
            continue
        assert [*found.context, *found.continuation] == encode(tokenizer, text), (text[:cut], text[cut:])
        assert found.context and found.continuation
        head = encode(tokenizer, text[:cut].rstrip())
        assert found.boundary == ([*found.context][: len(head)] != head or len(found.context) != len(head))
        if found.boundary:
            crossed += 1
            assert tokenizer.decode(found.context, skip_special_tokens=True).rstrip("\ufffd") in text[:cut]
    assert crossed or which != "gemma"


def test_offsets_equal_naive_where_the_prefix_holds(gemma_tokens: Any) -> None:
    rng = random.Random(1)
    for _ in range(100):
        text = rng.choice(THAI) + " " + rng.choice(THAI)
        cut = text.index(" ")
        both = [encode_pair(gemma_tokens, text[:cut], text[cut:], boundary=rule) for rule in ("offsets", "naive")]
        assert both[0] == both[1] and not both[0].boundary


@pytest.mark.parametrize("which", ["gemma", "tiny"])
def test_bos_is_never_doubled(request: pytest.FixtureRequest, which: str) -> None:
    tokenizer = pick(request, which)
    bos = tokenizer.bos_token_id
    for rule in ("auto", "always"):
        for text in ("คำถาม", tokenizer.bos_token + "คำถาม"):
            assert leading(encode(tokenizer, text, bos=rule), bos) == 1
    assert leading(encode(tokenizer, "คำถาม", bos="never"), bos) == 0
    assert leading(encode(tokenizer, tokenizer.bos_token + "คำถาม", bos="never"), bos) == 1
    pair = encode_pair(tokenizer, tokenizer.bos_token + "คำถาม:", " ใช่", bos="always")
    assert leading(pair.context, bos) == 1 and bos not in pair.continuation


def test_bos_policies_without_help_from_the_tokenizer() -> None:
    assert encode(Letters(bos="<s>"), "กข", bos="auto") == [ord("ก"), ord("ข")]
    assert encode(Letters(bos="<s>"), "กข", bos="always") == [1, ord("ก"), ord("ข")]
    with pytest.raises(ValueError, match="has no BOS"):
        encode(Letters(), "กข", bos="always")
    with pytest.raises(ValueError, match="begins with 2 BOS"):
        encode(Letters(bos="<s>", before=2), "กข", bos="auto")


def test_offsets_rule_knows_an_added_bos() -> None:
    found = encode_pair(Merging(), "กข", "คง", bos="always")
    assert found == Encoded((1, ord("ก")), (999, ord("ง")), boundary=True)


class Merging(Letters):
    """Reads ขค as one token, so that a cut between the two falls inside it."""

    def __init__(self) -> None:
        super().__init__(bos="<s>")

    def __call__(self, text: str, *, add_special_tokens: bool = True, **_: Any) -> dict[str, list[Any]]:
        ids, offsets, place = [], [], 0
        while place < len(text):
            size = 2 if text[place : place + 2] == "ขค" else 1
            ids.append(999 if size == 2 else ord(text[place]))
            offsets.append((place, place + size))
            place += size
        return {"input_ids": ids, "offset_mapping": offsets}


def test_trailing_eos_is_dropped() -> None:
    tokenizer = Letters(bos="<s>", before=1, after=1)
    assert encode(tokenizer, "กข") == [1, ord("ก"), ord("ข")]
    assert encode_pair(tokenizer, "กข", "ค") == Encoded((1, ord("ก"), ord("ข")), (ord("ค"),))
    assert encode(Letters(eos="</s>"), "ก</s>")[-1] == 2  # written by the text itself: it stays


def test_empty_context_takes_bos_else_eos(gemma_tokens: Any, smollm_tokens: Any) -> None:
    assert encode_pair(gemma_tokens, "", "สวัสดี").context == (gemma_tokens.bos_token_id,)
    assert encode_pair(gemma_tokens, "", "สวัสดี", prefix="eos").context == (gemma_tokens.eos_token_id,)
    assert encode_pair(Letters(), "", "กข") == Encoded((2,), (ord("ก"), ord("ข")))
    assert encode_pair(Letters(bos="<s>"), "", "<s>กข") == Encoded((1,), (ord("ก"), ord("ข")))
    assert encode_pair(Letters(), " \n", "ก") == Encoded((2,), (ord(" "), ord("\n"), ord("ก")))
    with pytest.raises(ValueError, match="neither BOS nor EOS"):
        encode_pair(Letters(eos=None), "", "ก")
    with pytest.raises(ValueError, match="nothing to score"):
        encode_pair(Letters(bos="<s>"), "", "<s>")


def test_nothing_to_score_is_refused(tiny: LocalModel) -> None:
    with pytest.raises(ValueError, match="continuation is empty"):
        encode_pair(tiny.tokenizer, "คำตอบ:", "")


def test_truncation_vector() -> None:
    kept, cut = cut_left(Encoded((10, 11, 12, 13, 14), (20, 21, 22)), 6)
    assert (kept.context, kept.continuation, cut) == ((11, 12, 13, 14), (20, 21, 22), 1)
    feed = (*kept.context, *kept.continuation[:-1])
    assert feed == (11, 12, 13, 14, 20, 21)
    assert list(range(len(feed)))[len(feed) - len(kept.continuation) :] == [3, 4, 5]


@pytest.mark.parametrize(("window", "context", "cut"), [(7, 5, 0), (6, 4, 1), (4, 2, 3), (3, 1, 4)])
def test_truncation_keeps_the_continuation_whole(window: int, context: int, cut: int) -> None:
    kept, gone = cut_left(Encoded((10, 11, 12, 13, 14), (20, 21, 22), boundary=True), window)
    assert (len(kept.context), gone, kept.boundary) == (context, cut, True)
    assert kept.continuation == (20, 21, 22) and kept.length - 1 <= window


def test_a_continuation_longer_than_the_window_is_refused() -> None:
    with pytest.raises(ValueError, match="the continuation has 3 tokens, the model's window is 2"):
        cut_left(Encoded((10, 11), (20, 21, 22)), 2)


def test_a_join_inside_the_first_token_leaves_no_context() -> None:
    with pytest.raises(ValueError, match="first token spans the join"):
        encode_pair(First(), "ก", "ข")


class First(Letters):
    """One token for everything."""

    def __call__(self, text: str, *, add_special_tokens: bool = True, **_: Any) -> dict[str, Sequence[Any]]:
        return {"input_ids": [len(text) + 10], "offset_mapping": [(0, len(text))]}


def test_chat_newlines_stay_in_the_context(smollm_tokens: Any) -> None:
    turns = [{"role": "user", "content": "ท้องฟ้าสีอะไร"}]
    told = smollm_tokens.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert told.endswith("\n")
    found = encode_pair(smollm_tokens, told, "ฟ้า", bos="never", move_space=False)
    assert list(found.context) == encode(smollm_tokens, told, bos="never") and not found.boundary
    assert smollm_tokens.decode(found.continuation) == "ฟ้า"
