"""What a tokenizer spends on Thai: vocabulary entries that hold Thai, tokens a Thai word, Thai against English text.

A Thai letter is any code point from U+0E01 to U+0E5B: consonants, vowel and tone marks, ฿, Thai digits and signs. An
entry of the vocabulary holds Thai if it holds at least one whole letter once its bytes are read as UTF-8. An entry
that holds none, but bytes that can be a part of one, is a piece of a Thai character and is counted apart; bytes that
Thai shares with other scripts (E0, and what follows it) count there, for nobody can tell whom they were learnt from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thaikit import resampling
from thaikit.stats import Estimate

Entry = str | bytes
THAI = re.compile("[\u0e01-\u0e5b]")
PROBE = "กา"
UNKNOWN_ALLOWED = 0.01  # of a text's tokens: beyond that a short count means lost text, not a good tokenizer
_BYTE_ENTRY = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_PRINTED = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_HIDDEN = [byte for byte in range(256) if byte not in _PRINTED]
# Byte-level BPE writes each byte as one visible character: itself where it can be seen, else one from U+0100 on.
BYTE_OF = {byte: byte for byte in _PRINTED} | {0x100 + place: byte for place, byte in enumerate(_HIDDEN)}
_STAND_IN = {byte: chr(code) for code, byte in BYTE_OF.items()}
_HIGH = re.compile("[" + "".join(_STAND_IN[byte] for byte in (0xE0, *range(0x80, 0xC0))) + "]")
# Bytes that are no UTF-8 come out of `surrogateescape` as U+DC00 + byte. The third byte of a Thai letter is one of
# 81 to BA and BF after B8, one of 80 to 9B after B9.
_TAIL = "(?:\udcb8?[\udc81-\udcba\udcbf]|\udcb9?[\udc80-\udc9b])"
_PIECE = re.compile(f"(?:{_TAIL})?(?:\udce0[\udcb8\udcb9]?)?")
_LOOSE = re.compile("[\udc80-\udcff]+")


@dataclass(frozen=True)
class Entries:
    """Counts over a vocabulary: all entries, those with a whole Thai letter, those with only a piece of one."""

    vocabulary: int
    thai: int
    pieces: int


@dataclass(frozen=True)
class Counted:
    """One sentence in both languages: tokens without special ones, the Thai text's words and characters (code points
    without white space), and how many of its tokens stand for text that the tokenizer does not know."""

    thai: int
    english: int
    words: int
    characters: int
    unknown: int = 0


def writes_bytes(pieces: Iterable[Entry]) -> bool:
    """Whether entries are written in the byte alphabet, told from the entries into which `PROBE` is cut."""
    written = "".join(piece for piece in pieces if isinstance(piece, str))
    return "".join(_STAND_IN[byte] for byte in PROBE.encode()) in written


def entry_bytes(entry: Entry, *, byte_level: bool) -> bytes:
    """The bytes for which an entry stands: through the byte alphabet, of one byte written <0xE0>, else its own text.

    An entry that is not in the byte alphabet, as a token added later, is its own text in any vocabulary.
    """
    if isinstance(entry, bytes):
        return entry
    if byte_level:
        if all(ord(char) in BYTE_OF for char in entry):
            return bytes(BYTE_OF[ord(char)] for char in entry)
    elif found := _BYTE_ENTRY.fullmatch(entry):
        return bytes([int(found[1], 16)])
    return entry.encode("utf-8", "surrogatepass")


def kind_of(entry: Entry, *, byte_level: bool) -> str:
    """ "thai", "piece" or "" for one entry of a vocabulary (see the module's first lines)."""
    if isinstance(entry, str):
        if THAI.search(entry):
            return "thai"
        if not (_HIGH.search(entry) if byte_level else entry.startswith("<0x")):
            return ""
    read = entry_bytes(entry, byte_level=byte_level).decode("utf-8", "surrogateescape")
    if THAI.search(read):
        return "thai"
    return "piece" if any(_PIECE.fullmatch(loose[0]) for loose in _LOOSE.finditer(read)) else ""


def count_entries(entries: Collection[Entry], *, byte_level: bool, added: Collection[Entry] = ()) -> Entries:
    """The counts over a vocabulary's entries. `added` are those among them that are written as they are read, which is
    how tokens added to a finished vocabulary stand in it; special tokens are entries like all others."""
    literal = set(added) if byte_level else set()
    kinds = [kind_of(entry, byte_level=byte_level and entry not in literal) for entry in entries]
    return Entries(len(kinds), kinds.count("thai"), kinds.count("piece"))


def count_sentence(
    thai: str, english: str, *, words: int, encode: Callable[[str], Sequence[int]], special: Collection[int],
    unknown: Collection[int] = (),
) -> Counted:  # fmt: skip
    """One sentence's counts. `encode` gives token ids, from which those of `special` are left out; those of `unknown`
    stand for text and are counted."""
    left_out = set(special) - set(unknown)
    mine, other = ([token for token in encode(text) if token not in left_out] for text in (thai, english))
    characters = sum(not char.isspace() for char in thai)
    return Counted(len(mine), len(other), words, characters, sum(token in set(unknown) for token in mine))


def rates(counted: Sequence[Counted], *, rng: np.random.Generator) -> dict[str, Estimate]:
    """Tokens for a Thai word, tokens for a Thai character, and the Thai tax: tokens of the Thai text over tokens of the
    English text that says the same. Each is a ratio of sums with the bootstrap interval over sentences.

    NaN and the reason where more than 1 % of the Thai text's tokens are unknown ones: that text is lost, and a count of
    what is left says nothing.
    """
    wanted = {"per_word": "words", "per_character": "characters", "tax": "english"}
    tokens, unknown = sum(one.thai for one in counted), sum(one.unknown for one in counted)
    if unknown > UNKNOWN_ALLOWED * tokens:
        why = f"none: {unknown} of {tokens} tokens are unknown ones, so that text is lost"
        return dict.fromkeys(wanted, Estimate(math.nan, math.nan, math.nan, len(counted), why))
    found = {}
    for name, below in wanted.items():
        pairs = np.array([[one.thai, getattr(one, below)] for one in counted], dtype=float).reshape(-1, 2)
        found[name] = resampling.bootstrap_interval(pairs, rng=rng, statistic=ratio_of_sums)
    return found


def ratio_of_sums(pairs: np.ndarray, axis: int) -> Any:
    """Sum of the first column over sum of the second, along the sentences' axis; NaN where the second is nought."""
    sums = pairs.sum(axis=axis)
    above, below = sums[..., 0], sums[..., 1]
    return np.divide(above, below, out=np.full_like(above, math.nan), where=below > 0)
