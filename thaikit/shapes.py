"""The shapes of further parameter files: prompts, judges, and task files whose answers are judged."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from thaikit.params import Source, Strict, TaskSet, load, locate, read_yaml

FORMATS = ("factoid", "instruction")
Theme = Literal["royal family", "religion", "culture", "economy", "humanity", "lifestyle", "politics"]
THEMES: tuple[str, ...] = Theme.__args__  # type: ignore[attr-defined]


class PromptEntry(Strict):
    """One prompt of params/prompts/: a system turn ("" for none) and a user turn with {PLACEHOLDERS}; `source` says
    where the wording stands."""

    system: str = ""
    user: str = Field(min_length=1)
    source: str = ""


class SamplingEntry(Strict):
    """How replies are drawn: temperature 0 is greedy, `max_tokens` bounds a reply."""

    temperature: float = Field(default=0.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=1024, ge=1)
    seed: int | None = None
    stops: list[str] = []


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


KINDS: dict[str, type[Strict]] = {"thaicli": CliSet}  # a task file's `benchmark` → its shape; without one: TaskSet


def task_shape(name: str) -> type[Strict]:
    """The shape of the task file params/tasks/<name>.yaml (or path), by its `benchmark` key."""
    benchmark = read_yaml(locate("tasks", name)).get("benchmark", "")
    return KINDS.get(str(benchmark), TaskSet)


def load_tasks(name: str) -> Strict:
    """A task file in the shape of its benchmark; ThaikitError names the first fault."""
    return load("tasks", name, task_shape(name))
