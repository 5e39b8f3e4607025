"""One try of one request: the official client sends it, and what came back is a reply, or a fault with its meaning.

The client's own retries are off and only its transport is used: the body is read here, within one deadline for the
whole try, and as plain JSON, because servers differ in what their replies hold. Nothing is ever read from words: what
counts are the status, the error's code, and the fields of the protocol.
"""

from __future__ import annotations

import email.utils
import importlib
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from thaikit import ThaikitError, rowlog
from thaikit.chat import Ask, Prompt, Sampling
from thaikit.params import ModelEntry
from thaikit.records import sha256_json

FILTER_CODES = {
    "content_filter", "content_policy_violation", "content_filtered", "responsibleaipolicyviolation",
    "data_inspection_failed", "prohibited_content", "safety",
}  # fmt: skip
NO_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
UNFINISHED = {"error", "abort", "aborted", "cancelled"}  # a finish that says that the server broke off
UNBILLED = {500, 501, 503, 529}  # other 5xx come from between client and server, which may have billed
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
LARGEST = 32 << 20  # bytes of one body; more is no reply
TOLD = 210  # characters of a server's sentence that are kept, cut when the key is out of it: a cut key is one too
SECRET = 8  # characters; a shorter "key", such as EMPTY or none, is a word that any text may hold


@dataclass(frozen=True)
class Came:
    """A reply as the server gave it. `told` holds the server's sentence where it filtered the request."""

    text: str = ""
    finish: str = ""
    refusal: str = ""
    model: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    thoughts: str = ""
    told: str = ""
    seconds: float = 0.0


@dataclass(eq=False)
class Fault(Exception):
    """Why a try gave no reply. `kind`: limited (429), broken (may pass: 5xx, time-out, connection, half a body),
    rejected (the server takes this very request for a bad one), fatal (no request will pass). `after` is the server's
    Retry-After in seconds; `billed` says whether it may have cost something all the same."""

    kind: Literal["limited", "broken", "rejected", "fatal"]
    told: str
    after: float = 0.0
    billed: bool = False


class Clients:
    """The official client for a server, one for each thread that asks, and none holds a key: each try brings its own.
    ThaikitError without the library, and where the environment names certificates or a proxy that cannot be used.

    One for all would share one pool of connections, which looks at every connection twice for each request: a fifth of
    the processor's time of a call at 64 at once.
    """

    def __init__(self, entry: ModelEntry) -> None:
        try:
            import openai  # noqa: F401
        except ImportError as error:
            raise ThaikitError("kind openai needs the library openai; pip install openai") from error
        self.entry, self.tls, self.own = entry, certificates(), threading.local()
        self.made()  # what is wrong with the environment shows before anything is asked

    def mine(self) -> Any:
        """This thread's client; it ends with the thread."""
        if not hasattr(self.own, "client"):
            self.own.client = self.made()
        return self.own.client

    def made(self) -> Any:
        """A new client with a pool of its own; reading the certificates, the costly part, is shared."""
        import openai

        seconds = self.entry.timeout
        timeout = openai.Timeout(seconds, connect=min(10.0, seconds), pool=None)
        hooks: Any = {"response": [bounded(seconds)]}
        try:
            http = openai.DefaultHttpxClient(timeout=timeout, verify=self.tls, event_hooks=hooks)
        except (ValueError, ImportError, wire().InvalidURL) as error:  # its words may hold the proxy's password
            raise ThaikitError(
                f"the environment's proxy for {self.entry.base_url} cannot be used ({type(error).__name__}); see to "
                "HTTP_PROXY, HTTPS_PROXY and ALL_PROXY: http://host:port (socks5:// needs the library socksio)"
            ) from None
        told: Any = {"base_url": self.entry.base_url, "max_retries": 0, "timeout": timeout, "http_client": http}
        client = openai.OpenAI(api_key="none", **told)
        weakref.finalize(client, http.close).atexit = False  # as the official client does with one of its own
        return client


def certificates() -> Any:
    """The TLS settings of all clients, with the certificates of this machine or those that the environment names."""
    try:
        return wire().create_ssl_context()
    except OSError as error:  # SSLError is one
        named = [f"{name} is {os.environ[name]!r}" for name in CERTIFICATES if os.environ.get(name)]
        raise ThaikitError(
            f"no certificates can be read ({' and '.join(named) or 'none are named'}: {error.strerror or error}); set "
            "SSL_CERT_FILE to a file of PEM certificates that is there, or to nothing"
        ) from error


def bounded(seconds: float) -> Callable[[Any], None]:
    """A hook that ends a body that drips on for more than so many seconds, or is too large to be one. The official
    client reads the bodies of errors itself, and waits for each part anew."""
    http = wire()

    class Bounded(http.SyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, parts: Any) -> None:
            self.parts, self.deadline = parts, time.monotonic() + seconds

        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for part in self.parts:
                size += len(part)
                if size > LARGEST or time.monotonic() > self.deadline:
                    raise http.ReadTimeout("the body of an error is too long or too slow")
                yield part

        def close(self) -> None:
            self.parts.close()

    def hook(response: Any) -> None:
        if response.status_code >= 400:
            response.stream = Bounded(response.stream)

    return hook


def key_of(entry: ModelEntry, name: str) -> str:
    """The key from the environment, read anew for each try; "none" for a server that wants none."""
    if not entry.api_key_env:
        return "none"
    key = os.environ.get(entry.api_key_env, "").strip()
    if not key or not (key.isascii() and key.isprintable()):
        found = "holds characters that no key has" if key else "is not set"
        raise ThaikitError(f"model {name}: the environment variable {entry.api_key_env} {found}; set it to your key")
    return key


def body_of(entry: ModelEntry, prompt: Prompt, sampling: Sampling) -> dict[str, Any]:
    """A request's body: prompt or conversation, sampling without what the file omits, then the file's `extra`."""
    asked = {"prompt": rowlog.whole(prompt)} if isinstance(prompt, str) else {"messages": rowlog.whole(list(prompt))}
    drawn = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "stop": list(sampling.stops) or None,
    }
    kept = {key: value for key, value in drawn.items() if value is not None and key not in entry.omit}
    return {"model": entry.source, **asked, entry.max_tokens_key: sampling.max_tokens, **kept, **entry.extra}


def name_of(entry: ModelEntry, ask: Ask, body: Mapping[str, Any]) -> str:
    """A request's name by content: all that can change its reply, and what sets equal requests apart on purpose."""
    apart = {"attempt": ask.attempt, "repeat": ask.repeat, "run": ask.run}
    return sha256_json({"endpoint": entry.base_url, "body": body, **apart})


def send(client: Any, entry: ModelEntry, body: Mapping[str, Any], *, name: str, key: str) -> Came:
    """One try. Raises `Fault`, its text free of the key, where no whole reply came within entry.timeout seconds."""
    secret = key_of(entry, name)
    headers = {"Authorization": f"Bearer {secret}", "X-Client-Request-Id": key}
    route, begun = "/completions" if "prompt" in body else "/chat/completions", time.monotonic()
    import openai

    http = wire()
    try:
        options: Any = {"headers": headers}
        response = client.post(route, body=dict(body), cast_to=http.Response, options=options, stream=True)
        try:
            data = read(response, begun + entry.timeout)
        finally:
            response.close()
        return without(secret, came(data.decode("utf-8", "replace"), round(time.monotonic() - begun, 3)))
    except openai.APIStatusError as error:
        return without(secret, status(error, round(time.monotonic() - begun, 3)))
    except (openai.APIError, http.HTTPError, http.StreamError) as error:
        cause = error.__cause__ or error
        unsent = isinstance(cause, http.ConnectError | http.ConnectTimeout | http.ProxyError)
        seconds = time.monotonic() - begun
        raise Fault("broken", f"{type(cause).__name__} after {seconds:.1f} s", billed=not unsent) from None


def wire() -> Any:
    """The HTTP library below the official client, which is httpx or, in newer ones, httpx2."""
    import openai

    return importlib.import_module(openai.DefaultHttpxClient.__mro__[1].__module__.split(".")[0])


def read(response: Any, deadline: float) -> bytes:
    """A whole body. The client's time-out is for one read, and a server may drip; this one is for all."""
    parts, size = [], 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > LARGEST:
            raise Fault("broken", f"a body of more than {LARGEST >> 20} MB", billed=True)
        if time.monotonic() > deadline:
            raise Fault("broken", "time-out in mid-body", billed=True)
    return b"".join(parts)


def came(text: str, seconds: float) -> Came | Fault:
    """The reply that a body holds, or a Fault where it holds none, which a repeat may mend."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return Fault("broken", "half a body" if text.strip() else "an empty body", billed=True)
    if isinstance(body, dict) and body.get("error") and not body.get("choices"):
        return refused_request(200, body["error"], seconds, 0.0)
    choices = body.get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return Fault("broken", "a body without choices", billed=True)
    finish = written(choices[0].get("finish_reason")).lower()
    if finish in UNFINISHED:
        return Fault("broken", f"finish_reason {finish!r}", billed=True)
    message = choices[0].get("message")
    said: dict[str, Any] = message if isinstance(message, dict) else choices[0]
    usage = body.get("usage") if isinstance(body.get("usage"), dict) else {}
    refusal = written(said.get("refusal")) or ("refusal" if finish == "refusal" else "")
    return Came(
        text=written(said.get("content", said.get("text"))),
        finish="content_filter" if finish.startswith("content_filter") else finish,
        refusal=refusal,
        model=written(body.get("model")),
        prompt_tokens=whole(usage.get("prompt_tokens")),
        completion_tokens=whole(usage.get("completion_tokens")),
        thoughts=written(said.get("reasoning_content") or said.get("reasoning")),
        seconds=seconds,
    )


def status(error: Any, seconds: float) -> Came | Fault:
    """What a status of 400 and more means; a content filter is a reply, all else is a Fault."""
    told = error.body if isinstance(error.body, Mapping) else {"message": error.body}
    inner = told.get("error") if isinstance(told.get("error"), Mapping) else told
    return refused_request(error.status_code, inner, seconds, retry_after(error.response.headers))


def refused_request(code: int, error: Any, seconds: float, after: float) -> Came | Fault:
    """What an error object of the protocol means, by status and code only."""
    error = error if isinstance(error, Mapping) else {"message": error}
    inner = error.get("innererror")
    marks = [error.get("code"), error.get("type"), error.get("status")]
    marks += [inner.get("code")] if isinstance(inner, Mapping) else []
    marks = [written(mark).lower() for mark in marks]
    code = int(marks[0]) if code == 200 and marks[0].isdecimal() and len(marks[0]) == 3 else code
    words = " ".join(written(error.get("message") or error.get("detail")).split())
    told = f"HTTP {code}{': ' if words else ''}{words}"
    if FILTER_CODES & set(marks) and code not in (408, 409, 429) and code < 500:
        return Came(finish="content_filter", told=told, seconds=seconds)
    if code in (401, 403):
        return Fault("fatal", f"HTTP {code}")  # its words may hold a part of the key
    if NO_QUOTA & set(marks) or code in (402, 404):  # 404: most likely the model, `flow` knows better
        return Fault("fatal", told)
    if code == 429:
        return Fault("limited", told, after)
    if code in (200, 408, 409) or code >= 500:
        return Fault("broken", told, after, billed=code not in UNBILLED)
    return Fault("rejected", told)


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that the server asks to wait: retry-after-ms, or Retry-After in seconds or as a date; 0 for neither."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
            return seconds if 0 < seconds < float("inf") else 0.0
        except ValueError:
            continue
    try:
        moment = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, moment.timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def written(value: Any) -> str:
    """A field as text: "" for null, the joined texts of a list of parts."""
    if isinstance(value, list):
        return "".join(written(part.get("text")) for part in value if isinstance(part, Mapping))
    return value if isinstance(value, str) else "" if value is None else str(value)


def whole(value: Any) -> int | None:
    """A count of tokens, None where the server gave none that can be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def without(secret: str, got: Came | Fault) -> Came:
    """The reply with the key out of its texts, should a server repeat it; a Fault is raised, clean as well."""
    if isinstance(got, Fault):
        raise Fault(got.kind, scrub(got.told, secret)[:TOLD], got.after, got.billed) from None
    found = {name: getattr(got, name) for name in ("text", "finish", "refusal", "model", "thoughts", "told")}
    clean = {name: scrub(text, secret) for name, text in found.items() if secret in text}
    return replace(got, **{**clean, "told": clean.get("told", got.told)[:TOLD]})


def scrub(text: str, secret: str) -> str:
    """The text without the key."""
    return text.replace(secret, "[key]") if len(secret) >= SECRET else text
