"""A real HTTP server on this machine that speaks chat completions and completions, and fails as told.

Which fault a call meets is drawn from the seed, the prompt and the number of its call, so it does not depend on the
order in which calls arrive. It counts every call. In a process of its own: python tests/fault_server.py '{"seed": 1}'
prints its address; GET /calls answers with what it saw.
"""

from __future__ import annotations

import hashlib
import json
import random
import socket
import struct
import sys
import threading
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PASSING = ("429", "429-after", "500", "hang", "reset", "cut", "empty", "slow")
BILLED = ("ok", "hang", "reset", "cut", "slow", "think", "open-think", "wrong-model", "length", "refusal")
THOUGHT = "<think>ลองให้ <score>1</score> <explanation>ร่าง</explanation> ก่อน</think>\n"


@dataclass(frozen=True)
class Plan:
    """What the server does: seconds a reply takes, rates of faults by name, faults of one request in a row at most,
    and the texts of further prompts by a mark that they hold."""

    seed: int = 0
    delay: float = 0.0
    rates: dict[str, float] = field(default_factory=dict)
    in_a_row: int = 3
    hang: float = 5.0
    slow: float = 0.5
    after: float = 0.1
    limit: int = 0  # calls at once beyond which it says 429; 0 for none
    completion_tokens: int = 40
    echo_key: bool = False  # repeat the caller's Authorization header in replies and errors, as a careless server may


@dataclass
class Seen:
    """One call: the request, the number of its call, what it met, when, how many were at work, and what was billed."""

    request: str
    number: int
    met: str
    at: float
    busy: int
    prompt_tokens: int = 0
    completion_tokens: int = 0


def score_of(prompt: str) -> int:
    """The score that this server gives to a prompt, 1 to 10, always the same."""
    return hashlib.sha256(prompt.encode()).digest()[0] % 10 + 1


def text_of(prompt: str) -> str:
    """What this server answers to a prompt: a judgement in the tags of the ThaiCLI judge."""
    return f"<score>{score_of(prompt)}</score> <explanation>เหตุผลที่ {score_of(prompt)}</explanation>"


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FaultServer

    def log_message(self, *_: Any) -> None:
        """Nothing on the terminal."""

    def do_GET(self) -> None:
        """GET /calls: every call so far, as JSON."""
        self.say(200, json.dumps([asdict(seen) for seen in self.server.calls]))

    def do_POST(self) -> None:
        """A completion, or the fault that is due."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["prompt"] if "prompt" in body else "\n".join(turn["content"] for turn in body["messages"])
        request = self.headers.get("X-Client-Request-Id") or hashlib.sha256(json.dumps(body).encode()).hexdigest()
        with self.server.at_work() as busy:
            seen = self.server.see(request, busy, prompt, body)
            getattr(self, "do_" + seen.met.replace("-", "_"), self.do_ok)(body, prompt, seen)

    # ------------------------------------------------------------------------------------------ what a call can meet

    def do_ok(self, body: Any, prompt: str, seen: Seen) -> None:
        time.sleep(self.server.plan.delay)
        self.say(200, self.reply(body, prompt, seen))

    do_think = do_open_think = do_wrong_model = do_length = do_refusal = do_finish_filter = do_ok

    def do_429(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(429, self.error("rate_limit_exceeded", "Rate limit reached, try 8/10 later"))

    def do_429_after(self, body: Any, prompt: str, seen: Seen) -> None:
        after = self.server.plan.after
        headers = {"Retry-After": str(int(after))} if after >= 1 else {"retry-after-ms": str(int(after * 1000))}
        self.say(429, self.error("rate_limit_exceeded", "Rate limit reached"), headers)

    def do_500(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(500, self.error("server_error", "The server had an error <score>10</score>"))

    def do_filter(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(400, self.error("content_filter", "The response was filtered"))

    def do_quota(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(429, self.error("insufficient_quota", "You exceeded your current quota"))

    def do_bad_request(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(400, self.error("context_length_exceeded", "This model's maximum context length is 8192 tokens"))

    def do_plain(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(413, "too much " * 100_000)

    def do_words(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(400, json.dumps({"error": "no such thing"}))

    def do_detail(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(422, json.dumps({"detail": "a field is missing"}))

    def do_long_key(self, body: Any, prompt: str, seen: Seen) -> None:
        told = "x" * 175 + f" with {self.headers.get('Authorization')} it went wrong"
        self.say(400, json.dumps({"error": {"message": told}}))

    def do_drip(self, body: Any, prompt: str, seen: Seen) -> None:
        self.head(400, 10**6, {})
        while not self.server.ending.wait(0.2):
            self.wfile.write(b" ")
            self.wfile.flush()

    def do_404(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(404, self.error("not_found", "There is no such thing"))

    def do_402(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(402, self.error("invalid_request_error", "Insufficient balance"))

    def do_bad_key(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(401, self.error("invalid_api_key", f"Incorrect key: {self.headers.get('Authorization')}"))

    def do_hang(self, body: Any, prompt: str, seen: Seen) -> None:
        self.server.ending.wait(self.server.plan.hang)
        self.close_connection = True

    def do_empty(self, body: Any, prompt: str, seen: Seen) -> None:
        self.say(200, "")

    def do_cut(self, body: Any, prompt: str, seen: Seen) -> None:
        text = self.reply(body, prompt, seen)
        self.say(200, text[: len(text) // 2])

    def do_reset(self, body: Any, prompt: str, seen: Seen) -> None:
        data = self.reply(body, prompt, seen).encode()
        self.head(200, len(data), {})
        self.wfile.write(data[: len(data) // 2])
        self.wfile.flush()
        # A close with an unread zero linger is a reset, not an end of file.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def do_slow(self, body: Any, prompt: str, seen: Seen) -> None:
        data, steps = self.reply(body, prompt, seen).encode(), 10
        self.head(200, len(data), {})
        size = -(-len(data) // steps)
        for start in range(0, len(data), size):
            self.server.ending.wait(self.server.plan.slow / steps)
            self.wfile.write(data[start : start + size])
            self.wfile.flush()

    # -------------------------------------------------------------------------------------------------------- bodies

    def reply(self, body: Any, prompt: str, seen: Seen) -> str:
        """A whole answer in the protocol of the route."""
        texts = {"think": THOUGHT + text_of(prompt), "open-think": THOUGHT[:30], "refusal": ""}
        text = texts.get(seen.met, text_of(prompt))
        if self.server.plan.echo_key:
            text += f" {self.headers.get('Authorization')}"
        finish = {"length": "length", "finish-filter": "content_filter"}.get(seen.met, "stop")
        refusal = "I will not judge that." if seen.met == "refusal" else None
        said = {"text": text} if "prompt" in body else {"message": {"role": "assistant", "content": text,
                                                                    "refusal": refusal}}  # fmt: skip
        model = "another-model" if seen.met == "wrong-model" else body["model"]
        usage = {"prompt_tokens": seen.prompt_tokens, "completion_tokens": self.server.plan.completion_tokens}
        choice = {"index": 0, "finish_reason": finish, **said}
        return json.dumps({"id": "x", "object": "completion", "model": model, "choices": [choice], "usage": usage})

    def error(self, code: str, message: str) -> str:
        """An error in the protocol's form."""
        told = f"{message} {self.headers.get('Authorization')}" if self.server.plan.echo_key else message
        return json.dumps({"error": {"message": told, "type": "error", "param": None, "code": code}})

    def head(self, status: int, size: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(size), **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def say(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        data = text.encode()
        self.head(status, len(data), headers or {})
        self.wfile.write(data)


class FaultServer(ThreadingHTTPServer):
    """The server; use it as a context manager, ask it at `url`, look at `calls`."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, plan: Plan) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan, self.calls, self.ending = plan, [], threading.Event()
        self.numbers: dict[str, int] = defaultdict(int)
        self.rows: dict[str, int] = defaultdict(int)
        self.lock, self.busy = threading.Lock(), 0
        self.calls: list[Seen]

    @property
    def url(self) -> str:
        """The base address that a client is given."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self) -> FaultServer:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""

    def at_work(self) -> Any:
        return Work(self)

    def see(self, request: str, busy: int, prompt: str, body: Any) -> Seen:
        """Count a call and draw what it meets."""
        with self.lock:
            number = self.numbers[request]
            self.numbers[request] += 1
            met = self.draw(request, number, prompt)
            if self.plan.limit and busy > self.plan.limit:
                met = "429"
            self.rows[request] = self.rows[request] + 1 if met in PASSING else 0
            billed = met in BILLED
            seen = Seen(request, number, met, time.time(), busy, *(
                (len(prompt) // 3 + 8, min(self.plan.completion_tokens, body.get("max_tokens", 10**6))) if billed
                else (0, 0)))  # fmt: skip
            self.calls.append(seen)
            return seen

    def draw(self, request: str, number: int, prompt: str) -> str:
        """The fault of a call, or "ok"; a prompt that holds [[fault]] meets it each time."""
        if "[[" in prompt:
            return prompt.split("[[")[1].split("]]")[0]
        if self.rows[request] >= self.plan.in_a_row:
            return "ok"
        point = random.Random(f"{self.plan.seed}:{prompt}:{number}").random()
        for name, rate in self.plan.rates.items():
            if point < rate:
                return name
            point -= rate
        return "ok"


class Work:
    """Counts the calls that are at work."""

    def __init__(self, server: FaultServer) -> None:
        self.server = server

    def __enter__(self) -> int:
        with self.server.lock:
            self.server.busy += 1
            return self.server.busy

    def __exit__(self, *_: object) -> None:
        with self.server.lock:
            self.server.busy -= 1


def mixed(total: float) -> dict[str, float]:
    """The passing faults, equally often, `total` of the calls together."""
    return {name: total / len(PASSING) for name in PASSING}


if __name__ == "__main__":
    with FaultServer(Plan(**json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}"))) as running:
        print(running.url, flush=True)
        sys.stdin.read()
