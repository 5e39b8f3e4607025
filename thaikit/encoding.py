"""Strings → token ids for scoring: context and continuation are encoded together, as the model will see them.

Sources: lm-evaluation-harness 0.4.13 (`TemplateLM._encode_pair`) for the joint encoding and its naive slice; the offset
rule, the BOS check and the boundary count are this kit's answer to what the slice gets wrong in Thai.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

INTS = tuple(range(2**18))  # one object an id: contexts of a whole benchmark then hold eight bytes a token
ANCHOR = 8  # context tokens that a continuation is decoded after
HALF = "\ufffd"


@dataclass(frozen=True, slots=True)
class Encoded:
    """A scoring request. `context` is never empty; `boundary` says that the join fell inside a token."""

    context: tuple[int, ...]
    continuation: tuple[int, ...]
    boundary: bool = False

    @property
    def length(self) -> int:
        """Token ids in all."""
        return len(self.context) + len(self.continuation)


def encode(tokenizer: Any, text: str, *, bos: str = "auto") -> list[int]:
    """Token ids of a text with the BOS policy applied: `auto` the tokenizer's own, `always` exactly one, `never` none.

    A text that begins with the BOS string is not given another. A trailing EOS that the tokenizer appends is dropped,
    for the model would be conditioned on an ended text. ValueError where the policy cannot be kept.
    """
    bos_id, eos_id = tokenizer.bos_token_id, tokenizer.eos_token_id
    written = bool(tokenizer.bos_token) and text.startswith(tokenizer.bos_token)
    ids = list(tokenizer(text, add_special_tokens=bos != "never" and not written, verbose=False)["input_ids"])
    if eos_id is not None and ids and ids[-1] == eos_id and not text.endswith(tokenizer.eos_token):
        ids.pop()
    count = leading(ids, bos_id)
    if bos == "always" and count == 0:
        if bos_id is None:
            raise ValueError("bos 'always': the tokenizer has no BOS token; allowed are 'auto' and 'never'")
        ids, count = [bos_id, *ids], 1
    if count > 1 or (bos == "never" and count and not written):
        raise ValueError(f"bos {bos!r}: the encoded text begins with {count} BOS ids; check the tokenizer's template")
    return ids


def leading(ids: Sequence[int], token: int | None) -> int:
    """How many times the token stands at the start."""
    count = 0
    while token is not None and count < len(ids) and ids[count] == token:
        count += 1
    return count


def encode_pair(
    tokenizer: Any,
    context: str,
    continuation: str,
    *,
    bos: str = "auto",
    boundary: str = "offsets",
    prefix: str = "",
    move_space: bool = True,
    known: dict[str, tuple[int, ...]] | None = None,
) -> Encoded:
    """The ids that condition and the ids that are scored, from one joint encoding of `context + continuation`.

    White space at the end of the context moves to the front of the continuation (`move_space=False` for the newlines
    that a chat template writes: they belong to the context, or longer choices would pay less for them). Where the
    context's own ids do not begin the joint ids, a token spans the join: `boundary="offsets"` splits at the first token
    that ends beyond the context's characters (it counts as continuation), `"naive"` slices by the context's count as
    the harness does (ValueError if nothing is left). `prefix="eos"` takes EOS for an empty context, as the
    leaderboard's commit did.
    """
    if not continuation:
        raise ValueError("the continuation is empty; there is nothing to score")
    kept = context.rstrip() if move_space else context
    context, continuation = kept, context[len(kept) :] + continuation
    if not context:
        return encode_without_context(tokenizer, continuation, prefix=prefix)
    whole = encode(tokenizer, context + continuation, bos=bos)
    head = context_ids(tokenizer, context, bos, known)
    if tuple(whole[: len(head)]) == head and len(whole) > len(head):
        return Encoded(head, tuple(whole[len(head) :]))
    if boundary == "naive":
        if len(whole) <= len(head):
            raise ValueError(f"a token spans the join of {context[-20:]!r} and {continuation[:20]!r}: nothing is left")
        return Encoded(head, tuple(whole[len(head) :]), boundary=True)
    start = split_by_offsets(tokenizer, context, continuation, whole)
    if start == 0:
        raise ValueError(f"the first token spans the join of {context[-20:]!r} and {continuation[:20]!r}; set a BOS")
    return Encoded(tuple(whole[:start]), tuple(whole[start:]), boundary=True)


def context_ids(tokenizer: Any, context: str, bos: str, known: dict[str, tuple[int, ...]] | None) -> tuple[int, ...]:
    """A context's own ids, kept while the next request has the same one (the caller's dict serves one BOS policy)."""
    found = known.get(context) if known is not None else None
    if found is None:
        found = tuple(INTS[token] if token < len(INTS) else token for token in encode(tokenizer, context, bos=bos))
        if known is not None:
            known.clear()
            known[context] = found
    return found


def split_by_offsets(tokenizer: Any, context: str, continuation: str, whole: Sequence[int]) -> int:
    """Index of the first token that ends beyond the context, by the fast tokenizer's character offsets."""
    plain = tokenizer(context + continuation, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    shift = len(whole) - len(plain["input_ids"])
    if shift < 0:  # the tokenizer's own EOS was dropped from `whole`
        shift = 0
    for index, (_, end) in enumerate(plain["offset_mapping"]):
        if end > len(context):
            return index + shift
    raise ValueError(f"no token ends beyond the context's {len(context)} characters; the tokenizer drops text")


def encode_without_context(tokenizer: Any, continuation: str, *, prefix: str = "") -> Encoded:
    """Empty context: BOS if there is one, else EOS, conditions; not doubled where the text already begins with it."""
    first = tokenizer.eos_token_id if prefix == "eos" or tokenizer.bos_token_id is None else tokenizer.bos_token_id
    if first is None:
        raise ValueError("empty context: the tokenizer has neither BOS nor EOS to condition on")
    ids = list(tokenizer(continuation, add_special_tokens=False, verbose=False)["input_ids"])
    if ids and ids[0] == first:
        ids = ids[1:]
    if not ids:
        raise ValueError(f"the continuation {continuation[:20]!r} has no tokens; there is nothing to score")
    return Encoded((first,), tuple(ids))


def cut_left(request: Encoded, max_length: int) -> tuple[Encoded, int]:
    """The request kept to its last `max_length + 1` ids (the final one is only a target), and how many were cut.

    ValueError where the continuation alone is longer than the model's window.
    """
    if len(request.continuation) > max_length:
        raise ValueError(f"the continuation has {len(request.continuation)} tokens, the model's window is {max_length}")
    cut = max(0, request.length - (max_length + 1))
    return Encoded(request.context[cut:], request.continuation, request.boundary), cut


def pieces(tokenizer: Any, request: Encoded) -> list[str]:
    """The text that each continuation token adds, one a token; together they are the continuation.

    A token that ends inside a character (Thai letters are three bytes, which many vocabularies split) adds "", and the
    character stands at the token that completes it. Bytes that never make one are U+FFFD at the last token.
    """

    def text(ids: Sequence[int]) -> str:
        told = tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return str(told)

    for begin in (max(0, len(request.context) - ANCHOR), 0):  # a decoder drops white space at a text's very start
        anchor = request.context[begin:]
        said = text(anchor)
        if not said.endswith(HALF):
            break
    said = said.rstrip(HALF)
    found, ids = [], list(anchor)
    for place, token in enumerate(request.continuation, 1):
        ids.append(token)
        now = text(ids)
        if place < len(request.continuation):
            now = now.rstrip(HALF)
        new = now[len(said) :] if now.startswith(said) else ""
        said = now if new else said
        found.append(new)
    return found
