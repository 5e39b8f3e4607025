"""Reading comprehension asked: prompts of appendix A by model family or the chat form, 0- and 1-shot, greedy, one row
an answer with its outcome (WangchanLion paper, section 3.1 and appendix A)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from thaikit import ThaikitError, chat, params, reading, records
from thaikit.chat import Ask, Prompt, Reply, Sampling
from thaikit.records import Run
from thaikit.shapes import PromptEntry, answer_prompt
from thaikit.tasks import answers
from thaikit.tasks.mrc import DASH, Exemplar, MrcData, MrcItem


def choose_prompt(model: str, prompt: str = "") -> tuple[str, PromptEntry]:
    """The name and the content of the prompt that a model is asked with (`shapes.answer_prompt`); ThaikitError for one
    that cannot be filled."""
    name = answer_prompt(model, prompt)
    found = params.load("prompts", name, PromptEntry)
    probe = MrcItem("", "", "ก", "ข", ("ค",))
    try:
        render(found, probe, Exemplar("ก", "ข", "ค") if found.shot or found.form == "chat" else None)
    except ValueError as error:
        raise ThaikitError(f"prompt {name}: {error}") from error
    return name, found


def render(prompt: PromptEntry, item: MrcItem, exemplar: Exemplar | None = None) -> Prompt:
    """What a model is asked about an item: a text to continue, or a conversation; every place filled in one pass.

    ValueError where the prompt has no place for passage, question or, with an exemplar, reference.
    """
    asked = reading.fill(prompt.user, {"context": item.context, "question": item.question})
    shown = {"context": exemplar.context, "question": exemplar.question} if exemplar else {}
    if prompt.form == "raw":
        if exemplar and not prompt.shot:
            raise ValueError("it has no shot, the form of a worked example; it can be asked without one only.")
        worked = reading.fill(prompt.shot, {**shown, "reference": exemplar.reference}) if exemplar else ""
        return prompt.system + worked + asked
    turns = [{"role": "system", "content": prompt.system}] if prompt.system else []
    if exemplar:
        turns.append({"role": "user", "content": reading.fill(prompt.user, shown)})
        turns.append({"role": "assistant", "content": exemplar.reference})
    return (*turns, {"role": "user", "content": asked})


def told(prompt: Prompt) -> str:
    """A prompt as one text: what is hashed, and what a notebook shows."""
    return prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False, sort_keys=True)


@dataclass
class Answering:
    """A model's answers on their way into a leaf; the model is opened when the first answer is asked for."""

    run: Run
    model_name: str
    data: MrcData
    prompt_name: str
    prompt: PromptEntry
    shots: int = 0
    max_new_tokens: int = 512
    max_cost: float = 0.0
    batch_size: int = 0

    @cached_property
    def model(self) -> Any:
        """The model, ready to be asked."""
        shared: dict[str, Any] = {"suite_dir": self.run.purse, "closing": self.run.closing}
        return chat.open_chat(self.model_name, max_cost=self.max_cost, batch_size=self.batch_size, **shared)

    @property
    def sampling(self) -> Sampling:
        """Greedy, up to the limit of new tokens."""
        return Sampling(max_tokens=self.max_new_tokens)

    def ask_of(self, item: MrcItem) -> Prompt:
        """The prompt of an item, with the worked example where there is one."""
        return render(self.prompt, item, self.data.exemplar if self.shots else None)

    def example(self, *, gallery: bool = False) -> str:
        """The first item's whole prompt, as it is sent or as its turns; for other data than the samples only with
        `gallery`, else with its places unfilled."""
        item = self.data.items[0]
        if not self.data.shipped and not gallery:
            item = MrcItem(item.id, "", "{context}", "{question}", item.references)
        prompt = self.ask_of(item)
        if isinstance(prompt, str):
            return prompt
        return "\n\n".join(f"[{turn['role']}]\n{turn['content']}" for turn in prompt)

    def answer(self) -> list[dict[str, Any]]:
        """Every item's row, in item order; each answer is on disk before the next one is used."""
        if self.run.closed:
            return records.read_rows(self.run.out_dir / "rows" / "answers.jsonl")
        log, replies = self.run.log("answers"), self.run.log("replies")
        places = {item.id: (index, item) for index, item in enumerate(self.data.items)}
        asks = [Ask(item.id, self.ask_of(item)) for item in self.data.items]
        tell = records.ticker(f"{self.model_name} answers")
        for ask, reply in self.model.ask(asks, sampling=self.sampling, log=replies, tell=tell):
            if ask.id not in log.ids:
                index, item = places[ask.id]
                log.append(self.row(item, reply, index=index, prompt=ask.prompt))
        return log.rows()

    def row(self, item: MrcItem, reply: Reply, *, index: int, prompt: Prompt) -> dict[str, Any]:
        """One answer with its outcome: what follows a finished thought block, outer white space off (the reply as it
        came is in rows/replies). A server's refusal is the answer where no other text came."""
        text, _ = reading.without_thoughts(reply.text or reply.refusal)
        return {
            **item.fields(), "index": index, "task": self.data.name, "shots": self.shots, "answer": text.strip(),
            "outcome": reply.outcome, "finish": reply.finish, "refusal": reply.refusal, "error": reply.error,
            "for_good": reply.for_good,
            "new_tokens": reply.completion_tokens, "prompt_tokens": reply.prompt_tokens,
            "prompt": self.prompt_name, "prompt_sha256": chat.prompt_sha256(prompt), "model": reply.model,
            "seconds": reply.seconds,
        }  # fmt: skip

    def finish(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Close the leaf; returns run.json. The headline counts outcomes: 31_mrc_f1 and 32_mrc_judge give scores."""
        if self.run.closed:
            return self.run.record
        whole = {key: getattr(self.prompt, key) for key in ("system", "shot", "user")}
        return self.run.finish(
            headline={"mrc_answers": answers.counts(rows)},
            model=self.model.facts(),
            sampling={"temperature": 0.0, "max_new_tokens": self.max_new_tokens, "stops": []},
            shots=self.shots,
            prompt={"name": self.prompt_name, "form": self.prompt.form, "layout": self.prompt.layout,
                    "source": self.prompt.source, "sha256": records.sha256_json(whole)},
            **self.data.facts(),
        )  # fmt: skip


def prepare(
    run: Run,
    *,
    model: str,
    data: MrcData,
    shots: int = 0,
    prompt: str = "",
    max_new_tokens: int = 512,
    max_cost: float = 0.0,
    batch_size: int = 0,
) -> Answering:
    """The answers of a model on a set, ready to be asked; ThaikitError for shots other than 0 and 1, or 1 without a
    worked example."""
    if shots not in (0, 1):
        raise ThaikitError(f"shots is {shots}; 0 and 1 are allowed, one worked example is all there is")
    if max_new_tokens < 1:
        raise ThaikitError(f"max_new_tokens is {max_new_tokens}; at least 1 is needed")
    if shots and data.exemplar is None:
        raise ThaikitError(f"tasks {data.name}: shots is 1 but the file names no exemplar; name one, or set shots to 0")
    name, entry = choose_prompt(model, prompt)
    if shots and entry.form == "raw" and not entry.shot:
        raise ThaikitError(f"prompt {name}: shots is 1 but it has no shot, the form of a worked example; add one")
    return Answering(run, model, data, name, entry, shots, max_new_tokens, max_cost, batch_size)


def outcome_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row: answers, how many of each outcome, limit-hit rate in percent, empty answers."""
    return pd.DataFrame([answers.outcome_line(rows)])


def warnings(rows: Sequence[Mapping[str, Any]], *, max_new_tokens: int) -> list[str]:
    """What must be said in words: answers cut off by the limit, empty ones, answers that never came."""
    empty = answers.counts(rows)["empty"]
    return [
        *answers.cut_off(rows, max_new_tokens=max_new_tokens, done="scored"),
        *([f"{empty} of {len(rows)} answers are empty and score 0."] if empty else []),
        *answers.lost(rows, done="scored"),
    ]


def answer_table(
    rows: Sequence[Mapping[str, Any]], data: MrcData, *, gallery: bool = False, first: int = 8
) -> pd.DataFrame:
    """The first answers as a person reads them; texts of other data than the samples only with `gallery`."""
    lines = []
    for row in list(rows)[:first]:
        texts = {"question": row["question"], "references": " / ".join(row["references"]), "answer": row["answer"]}
        shown = texts if data.shipped or gallery else dict.fromkeys(texts, DASH)
        lines.append({"id": row["id"], **shown, "outcome": row["outcome"], "new_tokens": row["new_tokens"]})
    return pd.DataFrame(lines)
