"""ThaiCLI's answers: the question as the only user turn, greedy, one row an answer with its outcome; and answers read
back, from a leaf or a file, for whoever judges them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from thaikit import ThaikitError, chat, extract, money, reading, records
from thaikit.chat import OUTCOMES, Ask, Reply, Sampling
from thaikit.embedded import EMBEDDED
from thaikit.records import Run
from thaikit.tasks import answers, thaicli
from thaikit.tasks.thaicli import CliData, CliItem

PLAIN = "คำถาม: {question}\nคำตอบ:"  # for a model without a chat template
PLAIN_STOPS = ("\nคำถาม:",)  # a base model goes on to ask itself; the paper's answers end by themselves


@dataclass
class Answering:
    """A model's answers on their way into a leaf; the model is opened when the first answer is asked for."""

    run: Run
    model_name: str
    data: CliData
    max_new_tokens: int = 1024
    max_cost: float = 0.0
    batch_size: int = 0
    used: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def model(self) -> Any:
        """The model, ready to be asked."""
        shared: dict[str, Any] = {"suite_dir": self.run.purse, "closing": self.run.closing}
        return chat.open_chat(self.model_name, max_cost=self.max_cost, batch_size=self.batch_size, **shared)

    @property
    def plain(self) -> bool:
        """Whether the model has no chat template of its own and gets the plain form."""
        weights = getattr(self.model, "model", None)
        return not self.model.chat or (weights is not None and not own_template(weights))

    @property
    def sampling(self) -> Sampling:
        """Greedy, up to the limit of new tokens; the plain form ends at the next question label."""
        return Sampling(max_tokens=self.max_new_tokens, stops=PLAIN_STOPS if self.plain else ())

    def prompt(self, item: CliItem) -> chat.Prompt:
        """What the model is asked: the question as the only user turn, or the plain form."""
        if self.plain:
            return PLAIN.replace("{question}", item.question)
        return ({"role": "user", "content": item.question},)

    def asks(self) -> list[Ask]:
        """One request an item."""
        return [Ask(item.id, self.prompt(item)) for item in self.data.items]

    def cost(self) -> pd.DataFrame:
        """What is still to be paid before the first answer: requests, tokens, money where prices are known."""
        if self.run.closed:
            return pd.DataFrame([{"case": "none", "requests": 0, "basis": "the leaf is closed, nobody is asked"}])
        return money.plan(self.model, self.asks(), sampling=self.sampling, log=self.run.log("replies"))

    def answer(self) -> list[dict[str, Any]]:
        """Every item's row, in item order; each answer is on disk before the next one is used."""
        if self.run.closed:
            return records.read_rows(self.run.out_dir / "rows" / "answers.jsonl")
        log, replies = self.run.log("answers"), self.run.log("replies")
        by_id = {item.id: (index, item) for index, item in enumerate(self.data.items)}
        asks = self.asks()
        prompts = {ask.id: ask.prompt for ask in asks}
        tell = records.ticker(f"{self.model_name} answers")
        for ask, reply in self.model.ask(asks, sampling=self.sampling, log=replies, tell=tell):
            index, item = by_id[ask.id]
            if item.id not in log.ids:
                log.append(self.row(item, reply, index=index, prompt=prompts[item.id]))
        return log.rows()

    def row(self, item: CliItem, reply: Reply, *, index: int, prompt: chat.Prompt) -> dict[str, Any]:
        """One answer with its outcome. A server's refusal is the answer where no other text came."""
        text = extract.cut_at_stops(reply.text, self.sampling.stops) or reply.refusal
        return {
            **item.fields(), "index": index, "task": "thaicli", "answer": text, "outcome": reply.outcome,
            "finish": reply.finish, "refusal": reply.refusal, "error": reply.error, "for_good": reply.for_good,
            "new_tokens": reply.completion_tokens,
            "prompt_tokens": reply.prompt_tokens, "prompt_form": "plain" if self.plain else "chat",
            "prompt_sha256": chat.prompt_sha256(prompt), "model": reply.model, "seconds": reply.seconds,
            "our_tags": reading.count_tags(text), "thought": reading.without_thoughts(text)[0] != text,
        }  # fmt: skip

    def finish(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Close the leaf; returns run.json. The headline counts outcomes, a judge gives the score."""
        if self.run.closed:
            return self.run.record
        return self.run.finish(
            headline={"thaicli_answers": facts(rows)},
            model=self.model.facts(),
            sampling={"temperature": 0.0, "max_new_tokens": self.max_new_tokens, "stops": list(self.sampling.stops)},
            prompt_form="plain" if self.plain else "chat",
            **self.data.facts(),
        )


def own_template(model: Any) -> bool:
    """Whether local weights bring a chat template: recorded ones have none, nor those that the kit gave a template."""
    loaded = getattr(model, "loaded", None)
    if loaded is None or not loaded.tokenizer.chat_template:
        return False
    kind, _, name = loaded.entry.source.partition(":")
    given = kind == "embedded" and name in EMBEDDED and EMBEDDED[name].chat_template
    return not given or bool(loaded.entry.chat_template)


def facts(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts over answers: outcomes, limit hits and their share, empty ones, those that hold our tags or a thought."""
    return answers.counts(rows) | {
        "with_our_tags": sum(row["our_tags"] > 0 for row in rows),
        "with_thoughts": sum(bool(row["thought"]) for row in rows),
    }


def outcome_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A row for each format and one for both: answers, how many of each outcome, limit-hit rate in percent, empty."""
    lines = []
    for name in ("all", *dict.fromkeys(row["format"] for row in rows)):
        part = [row for row in rows if name in ("all", row["format"])]
        lines.append({"format": name} | answers.outcome_line(part))
    return pd.DataFrame(lines)


def warnings(rows: Sequence[Mapping[str, Any]], *, max_new_tokens: int) -> list[str]:
    """What must be said in words: answers cut off by the limit, answers that never came."""
    return [
        *answers.cut_off(rows, max_new_tokens=max_new_tokens, done="judged"),
        *answers.lost(rows, done="judged"),
    ]


# ------------------------------------------------------------------------------------------------- read back


def bundled(model: str, data: CliData) -> Path:
    """The bundled answers of a replay model, where none are named; ThaikitError for another model."""
    from thaikit import params

    entry = params.load("models", model, params.ModelEntry)
    path = params.expand(entry.source, base=records.root())
    if entry.kind != "replay" or not data.shipped or path.suffix != ".jsonl":
        raise ThaikitError(
            f"model {model}: name its answers (a leaf of 20_thaicli_answer or a file) as answers; only the written "
            "answers to the bundled samples are found without"
        )
    return path


def read_answers(place: Path | None, *, model: str, data: CliData) -> list[dict[str, Any]]:
    """Answer rows joined with their items, in item order: from a closed leaf, or a file of rows {id, answer or text,
    outcome, finish}. None means the bundled answers of a replay model.

    ThaikitError for an id that no item has, an unknown outcome, or texts that differ from the item's.
    """
    path = place or bundled(model, data)
    source = path / "rows" / "answers.jsonl" if path.is_dir() else path
    by_id = {item.id: (index, item) for index, item in enumerate(data.items)}
    found = [answer_row(row, by_id, f"{source.name}, row {n}") for n, row in enumerate(records.read_rows(source), 1)]
    ids = [row["item"] for row in found]
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        raise ThaikitError(f"{source}: item {twice[0]!r} is answered twice; one answer an item is allowed")
    if not found:
        raise ThaikitError(f"{source}: no answers; run 20_thaicli_answer first, or name another file")
    return sorted(found, key=lambda row: row["index"])


def answer_row(row: Mapping[str, Any], by_id: Mapping[str, tuple[int, CliItem]], where: str) -> dict[str, Any]:
    """One answer with its item's fields."""
    name = str(row.get("id"))
    if name not in by_id:
        raise ThaikitError(f"{where}: id {name!r} is none of the {len(by_id)} items; name the task file they come from")
    index, item = by_id[name]
    text = row.get("answer", row.get("text"))
    finish, refusal = str(row.get("finish") or "stop"), str(row.get("refusal") or "")
    outcome = row.get("outcome") or chat.ended(str(text), finish, refusal=refusal)
    if outcome not in OUTCOMES:
        raise ThaikitError(f"{where}: outcome is {outcome!r}; allowed are {', '.join(OUTCOMES)}")
    if not isinstance(text, str):
        raise ThaikitError(f"{where}: answer is {text!r}; a text is needed, empty where nothing came")
    if row.get("item_sha256", item.sha256()) != item.sha256():
        raise ThaikitError(f"{where}: item {name!r} has other texts than when it was answered; answer it anew")
    told = item.fields() | {"item": item.id, "index": index, "answer": text or refusal}
    return told | {"answer_outcome": outcome, "answer_finish": row.get("finish") or ""}


def item_table(rows: Sequence[Mapping[str, Any]], data: CliData, **options: bool) -> pd.DataFrame:
    """The first answers as a person reads them, the item's own two beside them (see `visible`)."""
    columns = ["id", "theme", "question", "answer", "chosen", "rejected", "outcome", "new_tokens"]
    return pd.DataFrame(list(visible(rows, data, **options)))[columns]


def visible(
    rows: Sequence[Mapping[str, Any]],
    data: CliData,
    *,
    gallery: bool = False,
    show_sensitive: bool = False,
    first: int = 8,
) -> Iterator[dict[str, Any]]:
    """Rows whose texts may be shown as they are: those of the bundled samples, or all with `gallery`; of a sensitive
    theme only with `show_sensitive`. Elsewhere each text is replaced by a dash, since test rows leak into training."""
    for row in list(rows)[:first]:
        hide = row["theme"] in thaicli.SENSITIVE and not show_sensitive
        hide = hide or not (data.shipped or gallery)
        yield {key: "–" if hide and key in TEXTS else value for key, value in row.items()}


def by_theme(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows with the first of each theme first, then the second of each, so that a short table holds every theme."""
    seen: Counter[str] = Counter()
    ranked = []
    for place, row in enumerate(rows):
        ranked.append((seen[row["theme"]], place))
        seen[row["theme"]] += 1
    return [rows[place] for _, place in sorted(ranked)]


TEXTS = ("question", "answer", "chosen", "rejected", "reply", "explanation", "refusal", "error")
