"""Weights on this machine, asked in rounds through the generator that runs shared beginnings once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from thaikit import ThaikitError
from thaikit.chat import Ask, Kept, Prompt, Reply, Sampling, Tell, Then, ended
from thaikit.rowlog import RowLog


@dataclass
class Weights:
    """A local model, asked in rounds: every open request, then the regenerations that their replies lead to."""

    model: Any
    batch_size: int = 0
    said: dict[Prompt, Reply] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The name of its parameter file."""
        return self.model.name

    @property
    def chat(self) -> bool:
        """Whether it can take a conversation: its tokenizer has a chat template."""
        return bool(self.model.loaded.tokenizer.chat_template)

    @property
    def ran(self) -> int:
        """Prompt tokens run so far."""
        return self.model.ran

    def facts(self) -> dict[str, Any]:
        """What run.json says of it."""
        return self.model.facts()

    def ask(
        self, asks: Iterable[Ask], *, sampling: Sampling, log: RowLog, tell: Tell, then: Then | None = None
    ) -> Iterator[tuple[Ask, Reply]]:
        """Yield each request with its reply, on disk by then; regenerations come in later rounds.

        A greedy model says the same to the same prompt: that reply is repeated and marked `cached`. ThaikitError where
        a prompt and its reply do not fit the window, or the sampling is not greedy.
        """
        if sampling.temperature > 0:
            raise ThaikitError(
                f"model {self.name}: temperature is {sampling.temperature}, and local weights answer greedily here; "
                "set temperature: 0, or serve the model and name the server in a file of kind: openai"
            )
        kept, queue = Kept.read(log), list(asks)
        while queue:
            waiting, follow = [], []
            for ask, reply in kept.replay(queue, then):
                if reply is None:
                    waiting.append(ask)
                else:
                    yield ask, reply
            for ask, reply in self.answers(waiting, sampling, tell):
                kept.keep(ask, reply)
                yield ask, reply
                more = then(ask, reply) if then is not None else None
                follow += [more] if more is not None else []
            queue = follow

    def answers(self, asks: Sequence[Ask], sampling: Sampling, tell: Tell) -> Iterator[tuple[Ask, Reply]]:
        """Replies of the model, the shared beginnings of their prompts run once."""
        fresh: dict[Any, list[Ask]] = {}
        for ask in asks:
            known = self.said.get(frozen(ask.prompt))
            if known is not None:
                yield ask, replace(known, cached=True, seconds=0.0)
            else:
                fresh.setdefault(frozen(ask.prompt), []).append(ask)
        first = [same[0] for same in fresh.values()]
        ids = [self.encode(ask, sampling) for ask in first]
        begun = time.monotonic()
        made = self.model.generate(
            ids, stops=sampling.stops, max_new_tokens=sampling.max_tokens, batch_size=self.batch_size, tell=tell
        )
        for index, written in made:
            reply = Reply(
                text=written.text, finish=written.finish, outcome=ended(written.text, written.finish), model=self.name,
                prompt_tokens=len(ids[index]), completion_tokens=len(written.ids), seconds=time.monotonic() - begun,
            )  # fmt: skip
            self.said[frozen(first[index].prompt)] = reply
            for place, ask in enumerate(fresh[frozen(first[index].prompt)]):
                yield ask, replace(reply, cached=place > 0)

    def encode(self, ask: Ask, sampling: Sampling) -> list[int]:
        """A request's token ids; a conversation goes through the chat template."""
        where = f"model {self.name}, item {ask.id}"
        if not isinstance(ask.prompt, str) and not self.chat:
            raise ThaikitError(
                f"{where}: a conversation is asked, but its tokenizer has no chat template; name one in the model "
                "file (chat_template: FILE) or choose a plain prompt"
            )
        prompt = ask.prompt if isinstance(ask.prompt, str) else list(ask.prompt)
        try:
            ids = self.model.encode_prompt(prompt, bos=self.model.bos or "auto")
        except ValueError as error:
            raise ThaikitError(f"{where}: {error}") from error
        if len(ids) + sampling.max_tokens > self.model.max_length:
            raise ThaikitError(
                f"{where}: {len(ids)} prompt tokens and {sampling.max_tokens} for the reply do not fit its window of "
                f"{self.model.max_length}; lower the reply's limit, or leave the item out"
            )
        return ids


def frozen(prompt: Prompt) -> Any:
    """A prompt as a dictionary key."""
    return prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False)
