"""ThaiCLI without a judge: is the chosen answer likelier than the rejected one under the model (ThaiCLI paper, section
4.4), summed over its tokens and by character, with the scoring kernel of Thai-H6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from thaikit import ThaikitError, asking, params, records, stats
from thaikit.encoding import Encoded
from thaikit.records import Run
from thaikit.shapes import FORMATS, THEMES
from thaikit.tasks import thaicli_answer
from thaikit.tasks.items import digest
from thaikit.tasks.labels import PROFILES
from thaikit.tasks.thaicli import CliData, CliItem
from thaikit.tasks.thaicli_answer import PLAIN, by_theme, own_template  # noqa: F401 - by_theme is part of this API

PROFILE = PROFILES["thai-h6"]
ANSWERS = ("chosen", "rejected")
METRICS = ("sum", "per_char")  # the first is the paper's: the probability that the model would generate the answer
SIGNATURES = {
    "sum": "preference|version:1|log P(chosen) > log P(rejected)|sum over tokens|equal counts half",
    "per_char": "preference|version:1|log P(chosen) > log P(rejected)|by character|equal counts half",
}


@dataclass
class Preferring:
    """A model's log-probabilities of both answers on their way into a leaf."""

    run: Run
    model_name: str
    data: CliData
    form: str = "auto"
    kernel: str = "tree"
    batch_size: int = 0

    @cached_property
    def model(self) -> Any:
        """The model, ready to be asked; ThaikitError for one that gives no log-probabilities of a given text."""
        entry = params.load("models", self.model_name, params.ModelEntry)
        if entry.kind == "openai" or (entry.kind == "replay" and not entry.source.endswith(".gz")):
            raise ThaikitError(
                f"model {self.model_name}: kind is {entry.kind}, which gives no log-probabilities of a given answer; "
                "choose local weights, or recorded log-probabilities"
            )
        return asking.open_model(self.model_name)

    @property
    def chat(self) -> bool:
        """Whether the question goes through a chat template: with form auto where the model brings one of its own."""
        if self.form not in ("auto", "chat", "plain"):
            raise ThaikitError(f"form is {self.form!r}; allowed are auto, chat, plain")
        return own_template(self.model) if self.form == "auto" else self.form == "chat"

    def requests(self) -> list[Encoded]:
        """Two requests an item, chosen then rejected; ThaikitError where one does not fit the model's window."""
        found = [self.encode(item, getattr(item, source)) for item in self.data.items for source in ANSWERS]
        for place, request in enumerate(found):
            if request.length - 1 > self.model.max_length:
                item = self.data.items[place // 2]
                raise ThaikitError(
                    f"item {item.id}: {request.length - 1} tokens with its {ANSWERS[place % 2]} answer, the window of "
                    f"{self.model_name} has {self.model.max_length}; choose another model, or leave the item out"
                )
        return found

    def encode(self, item: CliItem, answer: str) -> Encoded:
        """The question as context and an answer as what is scored: after the template as it is, else after a space."""
        rules = {"bos": self.model.bos or PROFILE.bos, "boundary": PROFILE.boundary, "prefix": PROFILE.prefix}
        try:
            if self.chat:
                return self.model.encode_pair([{"role": "user", "content": item.question}], answer, **rules)
            return self.model.encode_pair(self.prompt(item), " " + answer, **rules)
        except ValueError as error:
            raise ThaikitError(f"item {item.id}: {error}") from error

    def prompt(self, item: CliItem) -> str:
        """What stands before the answer, as text."""
        if self.chat:
            return self.model.render([{"role": "user", "content": item.question}])
        return PLAIN.replace("{question}", item.question)

    def score(self) -> list[dict[str, Any]]:
        """Every item's row, in item order, on disk as soon as both answers are scored."""
        if self.run.closed:
            return records.read_rows(self.run.out_dir / "rows" / "preference.jsonl")
        log, tell = self.run.log("preference"), records.ticker(f"{self.model_name} preference")
        requests = self.requests()
        waiting = [index for index, item in enumerate(self.data.items) if item.id not in log.ids]
        asked = [request for index in waiting for request in requests[2 * index : 2 * index + 2]]
        pairs: dict[int, dict[int, Any]] = {}
        options = {"batch_size": self.batch_size, "tell": tell, "kernel": self.kernel}
        for place, scored in self.model.score(asked, **options):
            index = waiting[place // 2]
            pairs.setdefault(index, {})[place % 2] = scored
            if len(pairs[index]) == 2:
                both = pairs.pop(index)
                log.append(self.row(index, [both[0], both[1]]))
        return log.rows()

    def row(self, index: int, scored: Sequence[Any]) -> dict[str, Any]:
        """One item: both log-probabilities, their lengths, and whether the chosen answer is likelier (equal: half)."""
        item = self.data.items[index]
        ll, chars = [one.ll for one in scored], [len(getattr(item, source)) for source in ANSWERS]
        found = {
            **item.fields(), "index": index, "task": "thaicli_preference", "prompt_sha256": digest(self.prompt(item)),
            "prompt_form": "chat" if self.chat else "plain", "ll_chosen": ll[0], "ll_rejected": ll[1],
            "chars_chosen": chars[0], "chars_rejected": chars[1], "tokens_chosen": len(scored[0].logprobs),
            "tokens_rejected": len(scored[1].logprobs),
        }  # fmt: skip
        if any(value != value or abs(value) == float("inf") for value in ll):
            return found | {"outcome": "failed", "error": "a log-probability is not finite (dtype too narrow?)"}
        margins = {"sum": ll[0] - ll[1], "per_char": ll[0] / chars[0] - ll[1] / chars[1]}
        right = {name: 0.5 + 0.5 * ((gap > 0) - (gap < 0)) for name, gap in margins.items()}
        told = {f"margin_{name}": gap for name, gap in margins.items()}
        return found | {"outcome": "ok", **right, **told, "score": right["sum"], "metric": "sum"}

    def finish(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Close the leaf; returns run.json."""
        if self.run.closed:
            return self.run.record
        return self.run.finish(
            headline={"thaicli_preference": headline(rows)}, model=self.model.facts(), signatures=SIGNATURES,
            prompt_form="chat" if self.chat else "plain", profile=PROFILE.name,
            cells=cells(rows), **self.data.facts(),
        )  # fmt: skip


def headline(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Accuracy of each format and their mean, by the summed log-probability and by character (`…_per_char`)."""
    told = {}
    for metric, suffix in zip(METRICS, ("", "_per_char"), strict=True):
        each = [accuracy([row for row in rows if row["format"] == name], metric) for name in FORMATS]
        whole = stats.average_interval(each)
        named = {"average": whole, **dict(zip(FORMATS, each, strict=True))}
        told |= {name + suffix: one.as_dict() for name, one in named.items()}
    return told


def accuracy(rows: Sequence[Mapping[str, Any]], metric: str) -> stats.Estimate:
    """The share of items whose chosen answer is likelier, the interval clustered by theme where there are several."""
    scored = [row for row in rows if row["outcome"] == "ok"]
    values, themes = [row[metric] for row in scored], [row["theme"] for row in scored]
    if len(set(themes)) < 2:
        return stats.mean_interval(values)
    return stats.clustered_interval(values, themes)


def cells(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A line for each format and theme, and for each format over its themes ("all"): both accuracies with intervals."""
    lines = []
    for name in FORMATS:
        for theme in ("", *THEMES):
            part = [row for row in rows if row["format"] == name and theme in ("", row["theme"])]
            if part:
                line: dict[str, Any] = {"format": name, "theme": theme or "all", "n": len(part)}
                for metric in METRICS:
                    found = accuracy(part, metric).as_dict()
                    line |= {metric: found["value"], f"{metric}_low": found["low"], f"{metric}_high": found["high"]}
                longer = sum(row["chars_chosen"] > row["chars_rejected"] for row in part)
                lines.append(line | {"chosen_longer": longer / len(part)})
    return lines


def score_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The headline in percent: format by metric, interval, n, and what guessing gives."""
    lines = []
    for name, one in headline(rows).items():
        metric = "per_char" if name.endswith("_per_char") else "sum"
        told = {key: 100 * one[key] for key in ("value", "low", "high")}
        lines.append({"score": name.removesuffix("_per_char"), "metric": metric, **told, "n": one["n"], "chance": 50.0,
                      "method": one["method"]})  # fmt: skip
    return pd.DataFrame(lines)


def item_table(rows: Sequence[Mapping[str, Any]], data: CliData, **options: Any) -> pd.DataFrame:
    """Items as a person reads them: question, both answers, their log-probabilities, which is likelier."""
    shown = list(thaicli_answer.visible(rows, data, **options))
    columns = ["id", "theme", "question", "chosen", "rejected", "ll_chosen", "ll_rejected", "sum", "per_char"]
    return pd.DataFrame(shown).reindex(columns=columns)
