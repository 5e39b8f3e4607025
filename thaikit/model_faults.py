"""The many ways in which a model does not load → one sentence each: what it means and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from thaikit import ThaikitError


def ask(where: str, call: Callable[[], Any]) -> Any:
    """What `call` returns; the many ways in which loading fails become one sentence each."""
    import httpx
    from safetensors import SafetensorError

    try:
        return call()
    except (OSError, ValueError, ImportError, KeyError, RuntimeError, SafetensorError, httpx.HTTPError) as error:
        raise ThaikitError(f"{where}: {explain(error)}") from error


REASONS = (
    (
        r"no file named model\.safetensors|cannot be loaded with `safetensors`",
        "there are no safetensors weights, and pickled ones can run code when read; convert them or, trusting them, "
        "set allow_pickle: true (with a full 40-digit revision for a hub model)",
    ),
    (
        r"trust_remote_code|contains custom code",
        "the model brings code of its own; read it, then set trust_remote_code: true (with a full 40-digit revision "
        "for a hub model)",
    ),
    (r"gated repo|restricted|\b403\b", "it is gated: accept its terms on its page, then log in with `hf auth login`"),
    (
        r"couldn't connect|offline|connection|connect|timed? ?out|name resolution|local_?files_?only|proxy",
        "the hub cannot be reached and the model is not in the local cache; fetch it where there is a network, or name "
        "a folder as source",
    ),
    (
        r"not a valid model identifier|not a valid git identifier|\b40[14]\b|repository not found|revision not found",
        "the hub has no such model or revision, or it is private; check both, or log in with `hf auth login`",
    ),
    (
        r"out of memory",
        "it does not fit the device; set device_map: auto, a smaller dtype, or quantisation: 8bit or 4bit",
    ),
)


def explain(error: Exception) -> str:
    """One sentence for a loading fault: what it means and what to do, else the library's own words, shortened."""
    text = " ".join(str(error).split())
    for pattern, sentence in REASONS:
        if re.search(pattern, text, re.IGNORECASE):
            return sentence
    return f"{type(error).__name__}: {text[:300]}"
