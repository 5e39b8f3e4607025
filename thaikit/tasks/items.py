"""The item, the worked examples before it, and the strings that a model is given."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Item:
    """One question. `queries` holds one query for all choices, or one for each (Winogrande's two contexts).

    `continuations` are scored after the delimiter; `choices` are what the length-normalised accuracies measure and a
    report shows (`shown` where the choices are bare letters). As a worked example the item reads `example_query` +
    delimiter + `answer`, or `example_query` alone where it holds the answer already.
    """

    id: str
    question: str
    queries: tuple[str, ...]
    example_query: str
    answer: str
    continuations: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    gold: int = -1
    reference: str = ""
    labels: tuple[int, ...] = ()
    first: int = 0
    subject: str = ""
    description: str = ""
    shown: tuple[str, ...] = ()

    def query(self, choice: int) -> str:
        """The query before a choice."""
        return self.queries[choice if len(self.queries) > 1 else 0]


def example(item: Item, delimiter: str) -> str:
    """An item as a worked example."""
    return item.example_query + delimiter + item.answer if item.answer else item.example_query


def context(item: Item, shots: Sequence[Item], *, delimiter: str, choice: int = 0) -> str:
    """Everything before a continuation: description, worked examples and the query, two newlines between them.

    Nothing is stripped (lm-evaluation-harness, `fewshot_context`).
    """
    head = item.description + "\n\n" if item.description else ""
    return head + "".join(example(shot, delimiter) + "\n\n" for shot in shots) + item.query(choice)


def messages(item: Item, shots: Sequence[Item], *, choice: int = 0) -> list[dict[str, str]]:
    """The same as a conversation: description as system turn, each worked example as a user and an assistant turn."""
    turns = [{"role": "system", "content": item.description}] if item.description else []
    for shot in shots:
        turns += [{"role": "user", "content": shot.example_query}, {"role": "assistant", "content": shot.answer}]
    return [*turns, {"role": "user", "content": item.query(choice)}]


def digest(text: str) -> str:
    """SHA-256 of a prompt, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()
