"""The keys of a model file that say where a server is, how it is asked, and what it costs."""

from __future__ import annotations

import re
from datetime import date
from fnmatch import fnmatchcase
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
OWN = ("model", "messages", "prompt", "stream", "n")  # keys of a request that are the kit's own to set


class ServerKeys(BaseModel):
    """What a model file of kind openai holds beside `source`, which is the model id that the server is asked for.

    `api_key_env` names the environment variable that holds the key, "" for a server without one. `inferred` marks an
    id that the paper does not print. `served_as` lists further ids that the server may answer with (`*` stands for
    any run of characters). `extra` goes into each request as it stands, `omit` leaves sampling keys out that a server
    refuses. Prices are US dollars a million tokens, `thb_rate` baht a dollar, both as of `price_date`; they ship
    empty. `timeout` and `backoff` are seconds: of one whole try, and the wait before the first repeat.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    base_url: str = ""
    api_key_env: str = ""
    inferred: bool = False
    served_as: list[str] = []
    tokenizer: str = ""
    extra: dict[str, Any] = {}
    omit: list[Literal["temperature", "top_p", "seed", "stop"]] = []
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    price_input: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    price_output: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    price_date: str = ""
    thb_rate: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    concurrency_start: int = Field(default=8, ge=1)
    concurrency_max: int = Field(default=64, ge=1, le=512)
    timeout: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    attempts: int = Field(default=8, ge=1, le=100)
    backoff: float = Field(default=0.5, gt=0, allow_inf_nan=False)

    @field_validator("api_key_env")
    @classmethod
    def a_name_and_no_key(cls, value: str) -> str:
        """The name of a variable; what was found is not shown, since it may be the key itself."""
        if value and not VARIABLE.fullmatch(value):
            raise ValueError(
                "found no name of an environment variable (capitals, digits and _, such as OPENAI_API_KEY); "
                "put the key into the environment and its variable's name here"
            )
        return value

    @field_validator("base_url")
    @classmethod
    def a_plain_address(cls, value: str) -> str:
        """http or https without user, query or fragment: keys travel there, and addresses are recorded."""
        parts = urlsplit(value)
        if value and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError("found no http or https address such as http://127.0.0.1:8000/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("the address holds a user, a query or a fragment; keys go through api_key_env only")
        return value.rstrip("/")

    @field_validator("price_date")
    @classmethod
    def a_day(cls, value: str) -> str:
        """A day written 2024-10-08, or nothing."""
        if value:
            try:
                date.fromisoformat(value)
            except ValueError as error:
                raise ValueError(f"found {value!r}; write the day of the prices as '2024-10-08', in quotes") from error
        return value

    @model_validator(mode="after")
    def the_keys_agree(self) -> ServerKeys:
        """A server has an address; no key stands in a place that the kit fills itself; the start is within the most."""
        kind = getattr(self, "kind", "openai")
        if kind == "openai" and not self.base_url:
            raise ValueError("kind openai needs base_url, the server's address, such as http://127.0.0.1:8000/v1")
        if kind != "openai" and self.base_url:
            raise ValueError(f"base_url is given, but kind is {kind}; a server is kind: openai")
        taken = [key for key in (*OWN, self.max_tokens_key) if key in self.extra]
        if taken:
            raise ValueError(f"extra holds {taken[0]!r}, which the kit sets itself; take it out")
        if self.concurrency_start > self.concurrency_max:
            raise ValueError(
                f"concurrency_start is {self.concurrency_start}, above concurrency_max, {self.concurrency_max}"
            )
        return self

    @property
    def priced(self) -> bool:
        """Whether money can be told: a price and the day it was read."""
        return bool(self.price_date) and self.price_input + self.price_output > 0

    def dollars(self, prompt_tokens: float, completion_tokens: float) -> float:
        """The price of so many tokens in US dollars; NaN without dated prices."""
        if not self.priced:
            return float("nan")
        return (prompt_tokens * self.price_input + completion_tokens * self.price_output) / 1e6

    def may_be_served_as(self, source: str, served: str) -> bool:
        """Whether a reply that names the model `served` answers a request for `source`; a server that names none is
        taken at its word."""
        return not served or served == source or any(fnmatchcase(served, pattern) for pattern in self.served_as)
