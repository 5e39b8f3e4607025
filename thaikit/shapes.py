"""The shapes of further parameter files: prompts, judges, and task files whose answers are judged."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from thaikit.chat import Sampling
from thaikit.params import ModelEntry, Source, Strict, TaskSet, expand, load, locate, read_yaml
from thaikit.records import root

FORMATS = ("factoid", "instruction")
Theme = Literal["royal family", "religion", "culture", "economy", "humanity", "lifestyle", "politics"]
THEMES: tuple[str, ...] = Theme.__args__  # type: ignore[attr-defined]


class PromptEntry(Strict):
    """One prompt of params/prompts/: a system turn ("" for none) and a user turn with {PLACEHOLDERS}; `source` says
    where the wording stands.

    `form` raw is a plain text to continue: system, `shot` for each worked example, and user, joined as they stand. In
    a chat a worked example is a user and an assistant turn. `layout` inferred: the words are printed in the paper, the
    newlines between them are the kit's reading of it.
    """

    system: str = ""
    user: str = Field(min_length=1)
    source: str = ""
    form: Literal["chat", "raw"] = "chat"
    shot: str = ""
    layout: Literal["printed", "inferred"] = "printed"


def answer_prompt(model: str, prompt: str = "") -> str:
    """The prompt file that a model reads passages with: `prompt`, else the one its model file names, else the chat
    form for servers, recordings and chat templates, and for others A.1, which has labels but no markers of a family."""
    entry = load("models", model, ModelEntry)
    talks = entry.kind != "local" or bool(entry.chat_template)
    return prompt or entry.prompt or ("mrc-chat" if talks else "mrc-wangchanlion")


class SamplingEntry(Strict):
    """How replies are drawn: temperature 0 is greedy, `max_tokens` bounds a reply."""

    temperature: float = Field(default=0.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=1024, ge=1)
    seed: int | None = None
    stops: list[str] = []

    def drawn(self) -> Sampling:
        """The same as models take it."""
        return Sampling(self.temperature, self.top_p, self.max_tokens, self.seed, tuple(self.stops))


class JudgeEntry(Strict):
    """One judge of params/judges/: a model of params/models/, a prompt of params/prompts/, the rule that reads its
    replies, a variant of the prompt's filling, and how often it is asked at most (`tries`: one generation and the
    regenerations after it)."""

    model: str
    prompt: str
    rule: str = "paper"
    variant: str = ""
    sampling: SamplingEntry = SamplingEntry()
    tries: int = Field(default=17, ge=1, le=1000)
    note: str = ""


class CliSource(Strict):
    """The rows of one question format: where they are, which columns hold what, and what theme values mean."""

    source: Source
    fields: dict[Literal["id", "question", "chosen", "rejected", "answers", "theme"], str] = {}
    values: dict[Literal["theme"], dict[str, Theme]] = {}
    expected: dict[Theme, int] = {}


class CliSet(Strict):
    """A task file of the ThaiCLI kind: the rows of each question format, with the sizes of Table 3 to check against."""

    benchmark: Literal["thaicli"]
    name: str
    data: str = "samples:thaicli"
    formats: dict[Literal["factoid", "instruction"], CliSource]
    allow_size_mismatch: bool = False

    @model_validator(mode="after")
    def a_format_is_there(self) -> CliSet:
        """At least one format, each from a named place."""
        if not self.formats:
            raise ValueError(f"formats is empty; give {' or '.join(FORMATS)}, or both")
        for name, one in self.formats.items():
            if not one.source.files and not one.source.hub:
                raise ValueError(f"formats.{name}: source names neither files nor hub")
        return self

    def sources(self) -> dict[str, tuple[Source, ...]]:
        """Each format's sources, for whoever hashes them."""
        return {name: (one.source,) for name, one in self.formats.items()}


class JudgeColumns(Strict):
    """Where a label file holds judges' labels beside the people's: a path for each judge, or one path for the judge's
    name and one for its label. `swapped` is its label for the same pair shown in the other order."""

    names: dict[str, str] = {}
    name: str = ""
    label: str = ""
    swapped: str = ""


class LabelSet(Strict):
    """A label file of params/analyses/: where the rows are, and which columns hold item, annotators, questions, labels.

    Paths go into objects and lists as in task files (`results.0.winner`). Annotators are columns (`annotators`, name →
    path) or the values of one (`annotator`); questions are columns (`questions`, name → path), the values of one
    (`question`), or one nameless question. An annotator's path may hold {question}, any path {stack}: each name in
    `stack` then makes an item of its own (one row, answers of several systems). `values` says what a written value
    means, "" for no label; `labels` are all labels that can be given, `positive` the one that precision and recall are
    about ("" for none).
    """

    name: str
    data: str = ""
    source: Source
    item: str | list[str] = "item"
    stack: list[str] = []
    annotators: dict[str, str] = {}
    annotator: str = ""
    questions: dict[str, str] = {}
    question: str = ""
    label: str = ""
    judges: JudgeColumns = JudgeColumns()
    values: dict[str, str] = {}
    labels: list[str] = ["agree", "disagree"]
    positive: str = "agree"
    answer: str = ""
    references: str = ""
    split_references: str = ""
    note: str = ""

    @model_validator(mode="after")
    def people_are_there(self) -> LabelSet:
        """Annotators are named in one way, labels have a place, and what values mean is among the labels."""
        if bool(self.annotators) == bool(self.annotator):
            raise ValueError("give either annotators (columns) or annotator (the column with their names)")
        if not self.annotators and not self.label and not self.questions:
            raise ValueError("label is missing: name the column that holds it, or the questions' columns")
        unknown = [value for value in [*self.values.values(), self.positive] if value and value not in self.labels]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is none of labels ({', '.join(self.labels)})")
        return self


class MrcSet(Strict):
    """A task file of reading comprehension: rows in a SQuAD layout, and the one worked example of the 1-shot prompts
    (`exemplar`: a place such as samples:mrc/exemplar.json, an object with context, question and reference, or rows of
    which the first counts)."""

    benchmark: Literal["mrc"]
    name: str
    data: str = "samples:mrc"
    source: Source
    exemplar: str = "samples:mrc/exemplar.json"
    fields: dict[Literal["id", "title", "context", "question", "answers"], str] = {}
    expected_rows: int = Field(default=0, ge=0)
    allow_size_mismatch: bool = False

    def sources(self) -> dict[str, tuple[Source, ...]]:
        """The rows and the worked example, for whoever hashes them."""
        exemplar = (Source(files=str(expand(self.exemplar, base=root()))),) if self.exemplar else ()
        return {self.name: (self.source, *exemplar)}


# A task file's `benchmark` → its shape; without one: TaskSet.
KINDS: dict[str, type[Strict]] = {"thaicli": CliSet, "mrc": MrcSet}


def task_shape(name: str) -> type[Strict]:
    """The shape of the task file params/tasks/<name>.yaml (or path), by its `benchmark` key."""
    benchmark = read_yaml(locate("tasks", name)).get("benchmark", "")
    return KINDS.get(str(benchmark), TaskSet)


def load_tasks(name: str) -> Strict:
    """A task file in the shape of its benchmark; ThaikitError names the first fault."""
    return load("tasks", name, task_shape(name))
