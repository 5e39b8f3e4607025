"""YAML parameter files → checked values. A fault is one sentence: file, key, what was found, what is allowed."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from thaikit import ThaikitError
from thaikit.endpoint import ServerKeys
from thaikit.records import root, sha256_file

Value = str | int | float | bool | list[Any] | dict[str, Any]
T = TypeVar("T", bound="Strict")
FULL_COMMIT = re.compile(r"[0-9a-f]{40}")


class Strict(BaseModel):
    """A structure without room for misspelt keys or guessed types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ModelEntry(ServerKeys, Strict):
    """One model of params/models/. `source` is a hub id, a folder, `embedded:NAME`, `samples:FILE` for a replay, or the
    id that a server knows; what a server needs beside it is in `endpoint.ServerKeys`."""

    kind: Literal["local", "openai", "replay"] = "local"
    source: str
    revision: str = ""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    device_map: str = ""
    quantisation: Literal["", "8bit", "4bit"] = ""
    adapter: str = ""
    chat_template: bool | str = False
    trust_remote_code: bool = False
    allow_pickle: bool = False
    max_length: int = Field(default=0, ge=0)
    bos: Literal["", "auto", "always", "never"] = ""
    attention: Literal["", "sdpa", "eager", "flash_attention_2"] = ""
    rehearsal: bool = False
    prompt: str = ""  # a file of params/prompts, for reading comprehension
    note: str = ""
    licence: str = ""
    parameters: float = 0.0
    region: str = ""

    @model_validator(mode="after")
    def dangerous_things_are_pinned(self) -> ModelEntry:
        """Remote code and pickled weights run code of others: only with a full commit, or from a local folder."""
        opened = [key for key in ("trust_remote_code", "allow_pickle") if getattr(self, key)]
        pinned = FULL_COMMIT.fullmatch(self.revision) or Path(self.source).expanduser().is_dir()
        if opened and not pinned:
            raise ValueError(f"{opened[0]} is on, so revision must be a full 40-digit commit, found {self.revision!r}")
        return self


class Source(Strict):
    """Where rows come from: files below the task file's `data` folder, or a hub data set; with one subset of them."""

    files: str | list[str] = ""
    hub: str = ""
    config: str = ""
    split: str = ""
    revision: str = ""
    first: int = Field(default=0, ge=0)
    last: int = Field(default=0, ge=0)
    where: dict[str, str | int | bool] = {}

    @model_validator(mode="after")
    def one_source(self) -> Source:
        """Exactly one of files and hub where a place is named; a hub data set with its revision."""
        if self.files and self.hub:
            raise ValueError("files and hub are both given; give one of them")
        if self.hub and not self.revision:
            raise ValueError(f"hub {self.hub!r} is given without revision; name the commit that you mean")
        return self


class TaskSpec(Strict):
    """One benchmark of a task file: its rows, exemplars, field map, and for sets of another kind its templates."""

    kind: Literal["arc", "hellaswag", "mmlu", "truthfulqa", "winogrande", "gsm8k", "multiple_choice", "numeric"]
    source: Source
    exemplars: Source | None = None
    shots: int = Field(default=0, ge=0)
    fields: dict[str, str | list[str]] = {}
    exemplar_fields: dict[str, str | list[str]] = {}
    values: dict[str, dict[str, str | int | float]] = {}
    expected_rows: int | dict[str, int] = 0
    subjects: list[str] = []
    delimiter: str = " "
    title_marks: list[str] = [" [title]"]
    empty_tail: Literal["error", "sentence", "skip"] = "error"
    description: str = ""
    query: str = ""
    choices: str | list[str] = []
    answer: str = ""
    gold: str = ""
    gold_pattern: str = ""
    answer_pattern: str = ""
    exemplar: str = ""
    metric: str = ""
    stops: list[str] = []
    max_new_tokens: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def templates_are_there(self) -> TaskSpec:
        """A set of another kind says how to ask and where the right answer is; exemplars are there for the shots."""
        needed = {"multiple_choice": ("query", "choices", "gold"), "numeric": ("query", "answer", "gold")}
        missing = [key for key in needed.get(self.kind, ()) if not getattr(self, key)]
        if missing:
            raise ValueError(f"kind {self.kind} needs the key {missing[0]}")
        if self.shots and self.exemplars is None:
            raise ValueError(f"shots is {self.shots} but exemplars is missing")
        return self


class TaskSet(Strict):
    """A task file: benchmarks that are scored in one go, with the settings they share."""

    name: str
    data: str = "samples:thai_h6"
    profile: Literal["v1", "harness-0.4", "thai-h6"] = "thai-h6"
    labels: Literal["en", "th"] = "en"
    sampler: Literal["", "first_n"] = ""
    allow_size_mismatch: bool = False
    average: bool = True
    tasks: dict[str, TaskSpec]


class Stage(Strict):
    """One line of a suite: a notebook, parameters by value, and `each`: parameters of which it takes every value."""

    notebook: str
    each: dict[str, list[str | int | float | bool]] = {}
    params: dict[str, Value] = {}
    variant: str = ""
    timeout: int = Field(default=0, ge=0)


class Suite(Strict):
    """A grid of runs, in order: a stage starts when those before it are done."""

    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    stages: list[Stage]


def load(kind: str, name: str, shape: type[T]) -> T:
    """The parameter file params/<kind>/<name>.yaml (or the path `name`), checked against `shape`."""
    path = locate(kind, name)
    data = read_yaml(path)
    try:
        return shape.model_validate(data)
    except ValidationError as error:
        raise ThaikitError(f"{shown(path)}: {first_fault(error, shape)}") from error


def changed(entry: T, changes: Mapping[str, Any], *, where: str) -> T:
    """A parameter structure with some values set anew, checked as the file was."""
    try:
        return type(entry).model_validate({**entry.model_dump(), **changes})
    except ValidationError as error:
        raise ThaikitError(f"{where}: {first_fault(error, type(entry))}") from error


def locate(kind: str, name: str) -> Path:
    """The path of a parameter file given by its name or as a path; ThaikitError with the nearest name."""
    direct = Path(name).expanduser()
    if name.endswith((".yaml", ".yml")) and direct.exists():
        return direct.resolve()
    path = root() / "params" / kind / f"{name}.yaml"
    if path.exists() and "/" not in name:
        return path
    known = sorted(found.stem for found in path.parent.glob("*.yaml"))
    raise ThaikitError(f"params/{kind}: no file {name!r}{nearest(name, known)}; there are {', '.join(known) or 'none'}")


def nearest(name: str, known: list[str]) -> str:
    """A hint ` (did you mean 'x'?)` for a misspelt name, or nothing."""
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


class UniqueLoader(yaml.SafeLoader):
    """A YAML loader that refuses a key given twice, where plain YAML keeps the last in silence."""


def unique_mapping(loader: UniqueLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    """A mapping node as a dict; ThaikitError on a repeated key."""
    loader.flatten_mapping(node)
    keys = [loader.construct_object(key) for key, _ in node.value]
    twice = {str(key) for key in keys if keys.count(key) > 1}
    if twice:
        mark = node.start_mark
        raise ThaikitError(f"{mark.name}, line {mark.line + 1}: key {min(twice)!r} is given twice; keep one of them")
    return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value, strict=True)}


UniqueLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, unique_mapping)


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file's mapping; ThaikitError with file and line where it is none."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            data = yaml.load(stream, UniqueLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ThaikitError(f"{shown(path)}: not readable as YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise ThaikitError(f"{shown(path)}: found {type(data).__name__}, a parameter file is a mapping of keys")
    return data


def shown(path: Path) -> str:
    """A path as messages and records show it: relative to the kit where it lies inside."""
    return str(path.relative_to(root())) if path.is_relative_to(root()) else str(path)


def first_fault(error: ValidationError, shape: type[BaseModel]) -> str:
    """pydantic's first fault as one sentence: key, what was found, what is allowed."""
    fault = error.errors()[0]
    where = ".".join(str(part) for part in fault["loc"] if part not in ("str", "list[str]", "function-after"))
    if fault["type"] == "extra_forbidden":
        known = fields_at(shape, fault["loc"][:-1])
        return f"unknown key {where!r}{nearest(str(fault['loc'][-1]), known)}; allowed here: {', '.join(known)}"
    if fault["type"] == "missing":
        return f"key {where!r} is missing"
    if fault["type"] == "value_error":
        return f"{where + ': ' if where else ''}{fault['ctx']['error']}"
    return f"key {where!r} is {fault['input']!r}: {fault['msg'][:1].lower()}{fault['msg'][1:]}"


def fields_at(shape: Any, loc: tuple[Any, ...]) -> list[str]:
    """The field names allowed at a place inside nested shapes."""
    here = shape
    for part in loc:
        kinds = getattr(here, "model_fields", {})
        annotation = kinds[part].annotation if part in kinds else here
        options = [annotation, *getattr(annotation, "__args__", ())]
        here = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), annotation)
    return sorted(getattr(here, "model_fields", {}))


def expand(place: str, *, base: Path) -> Path:
    """A data place as a path: `samples:NAME`, $VARIABLE/…, ~, absolute, or relative to `base`."""
    if place.startswith("samples:"):
        return Path(__file__).parent / "samples" / place.removeprefix("samples:")
    missing = [name for name in re.findall(r"\$\{?(\w+)", place) if name not in os.environ]
    if missing:
        raise ThaikitError(f"data {place!r}: the environment variable {missing[0]} is not set; set it to the folder")
    path = Path(os.path.expandvars(place)).expanduser()
    return path if path.is_absolute() else base / path


def file_inputs(**names: str) -> dict[str, str]:
    """Content hashes of parameter files, by `kind=name` (models="gemma3-270m"), for a leaf's inputs."""
    found = {f"{kind}/{name}": locate(kind, name) for kind, name in names.items() if name}
    return {key: sha256_file(path) for key, path in found.items()}


def check_notebook_params(given: Mapping[str, Any], allowed: Mapping[str, tuple[str, Any]], *, where: str) -> None:
    """Check a notebook's parameters by name and type (allowed: name → (annotation, default)); ThaikitError if not."""
    types = {"str": str, "int": int, "float": (int, float), "bool": bool, "list": list, "dict": dict}
    for name, value in given.items():
        if name not in allowed:
            known = sorted(allowed)
            raise ThaikitError(f"{where}: unknown parameter {name!r}{nearest(name, known)}; it has {', '.join(known)}")
        annotation = allowed[name][0]
        wanted = types[annotation.split("[")[0]]
        if not isinstance(value, wanted) or (isinstance(value, bool) and annotation != "bool"):
            raise ThaikitError(f"{where}: parameter {name!r} is {value!r}, it must be of type {annotation}")
