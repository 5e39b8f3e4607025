"""A suite → its leaves, all checked before anything starts: one line of the plan is one notebook run in one folder."""

from __future__ import annotations

import ast
import hashlib
import io
import itertools
import json
import re
import tokenize
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thaikit import ThaikitError, inputs
from thaikit.params import Stage, Suite, TaskSet, changed, check_notebook_params, expand, load, nearest, shown
from thaikit.records import State, input_hash, root, state_of
from thaikit.shapes import task_shape

ANNOTATIONS = ("str", "int", "float", "bool", "list", "dict")
FIRST = ("model", "judge")  # come first in a leaf's name, in this order
Parameter = tuple[str, Any, str]  # annotation, default, help


@dataclass(frozen=True)
class Leafplan:
    """One notebook run: `params` are those that the suite sets, `defaults` those of the notebook, `folder` the leaf."""

    stage: str
    notebook: Path
    params: Mapping[str, Any]
    defaults: Mapping[str, Any]
    folder: Path
    name: str
    order: int
    timeout: int = 0

    def digest(self) -> str:
        """The leaf's input hash as things are now: it changes when an earlier stage writes what this one reads."""
        everything = {**self.defaults, **self.params}
        return input_hash(everything, inputs.inputs_of(self.stage, everything))

    def state(self) -> State:
        """What is on disk of the leaf, against its inputs as they are now."""
        return state_of(self.folder, name=self.name, digest=self.digest())


def read_suite(name: str) -> Suite:
    """The suite of params/suites/<name>.yaml, or of a path."""
    return load("suites", name, Suite)


def plan(suite: Suite, *, outputs: Path | None = None) -> list[Leafplan]:
    """The leaves of a suite below `outputs`/<suite>/, in stage order. ThaikitError names the first fault of the suite.

    Checked are the notebooks, the names and types of their parameters, and that every file they name is there and
    valid. Nothing is written.
    """
    base = (outputs or root() / "outputs").resolve() / suite.name
    leaves = [leaf for order, stage in enumerate(suite.stages) for leaf in stage_leaves(stage, base, order)]
    names = [leaf.name for leaf in leaves]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ThaikitError(f"suite {suite.name}: two runs would write the leaf {twice[0]}; give one stage a variant")
    for leaf in leaves:
        check_awaited(leaf, [other for other in leaves if other.order < leaf.order], f"suite {suite.name}")
    return leaves


def check_awaited(leaf: Leafplan, earlier: Sequence[Leafplan], where: str) -> None:
    """ThaikitError where `answers` names a leaf of this suite that neither is there nor comes from an earlier stage."""
    path = inputs.awaited({**leaf.defaults, **leaf.params})
    if path and path not in [other.folder for other in earlier]:
        known = [str(other.folder) for other in earlier if other.stage in (made for made, _ in inputs.ANSWERS.values())]
        raise ThaikitError(
            f"{where}, stage {leaf.notebook.stem}: answers {str(path)!r}: neither a closed leaf nor written by an "
            f"earlier stage{nearest(str(path), known)}; name one that exists or will"
        )


def stage_leaves(stage: Stage, base: Path, order: int) -> Iterator[Leafplan]:
    """The leaves of one stage: one for each combination of the values in `each`."""
    path = find_notebook(stage.notebook)
    where = f"suite {base.name}, stage {path.stem}"
    known = notebook_parameters(path)
    short = slug(re.sub(r"^\d+_", "", path.stem))
    both = sorted(set(stage.each) & set(stage.params))
    if both:
        raise ThaikitError(f"{where}: {both[0]!r} stands in each and in params; keep one of them")
    if "out_dir" not in known or "out_dir" in {**stage.each, **stage.params}:
        told = "is set by the runner, take it out of the suite" if "out_dir" in known else "is missing in its notebook"
        raise ThaikitError(f"{where}: the parameter out_dir {told}")
    for values in itertools.product(*stage.each.values()):
        chosen = dict(zip(stage.each, values, strict=True))
        params = {**stage.params, **chosen}
        if "suite" in known:
            params.setdefault("suite", str(base))
        check_notebook_params(params, {key: found[:2] for key, found in known.items()}, where=where)
        name = "/".join(part for part in (short, leaf_name(chosen, stage.variant)) if part)
        defaults = {key: found[1] for key, found in known.items()}
        leaf = Leafplan(short, path, params, defaults, base / name, name, order, stage.timeout)
        check_files(leaf, where)
        yield leaf


def waits_for(leaf: Leafplan, other: Leafplan) -> bool:
    """Whether a leaf may read what another one of its suite writes: of an earlier stage, a judge the answers of its own
    model or the leaves that it names, other stages all there is."""
    if other.order >= leaf.order or leaf.stage in inputs.READ_NO_LEAF:
        return False
    given = {**leaf.defaults, **leaf.params}
    if leaf.stage not in inputs.ANSWERS:
        return True
    named = [given.get("answers"), given.get("judgements"), *(given.get("against") or ())]
    paths = [expand(str(place), base=root()).resolve() for place in named if place]
    if any(path.is_relative_to(other.folder) for path in paths):
        return True
    if given.get("answers"):
        return False
    made_by, keys = inputs.ANSWERS[leaf.stage]
    theirs = {**other.defaults, **other.params}
    return other.stage == made_by and all(not given.get(key) or given[key] == theirs.get(key) for key in keys)


def check_files(leaf: Leafplan, where: str) -> None:
    """Have every file that the leaf's parameters name read or hashed once, and every setting checked that has a list
    of allowed values; ThaikitError in the suite's words."""
    try:
        leaf.digest()
        check_settings({**leaf.defaults, **leaf.params})
    except ThaikitError as error:
        raise ThaikitError(f"{where}: {error}") from error


def check_settings(given: Mapping[str, Any]) -> None:
    """How a task file is asked: `overlength`, `kernel`, `profile` and `labels`; ThaikitError names what is allowed."""
    from thaikit.tasks.score import Settings

    Settings(**{name: given[name] for name in ("overlength", "kernel") if name in given})
    inputs.check_limit(given)
    if given.get("tasks") and task_shape(str(given["tasks"])) is TaskSet:
        changes = {name: given[name] for name in ("profile", "labels") if given.get(name)}
        changed(load("tasks", str(given["tasks"]), TaskSet), changes, where=f"tasks {given['tasks']}")


def leaf_name(chosen: Mapping[str, Any], variant: str) -> str:
    """<model>[--<judge>][--<data set>-<shots>shot][--<variant>], "" for a stage that varies nothing."""
    parts = [slug(str(chosen[key])) for key in FIRST if key in chosen]
    middle = [slug(str(value)) for key, value in chosen.items() if key not in (*FIRST, "shots")]
    middle += [f"{chosen['shots']}shot"] if "shots" in chosen else []
    return "--".join(part for part in (*parts, "-".join(middle), slug(variant) if variant else "") if part)


def slug(value: str) -> str:
    """A value as part of a folder name, ASCII only: org/name → org--name, a parameter file's path → its stem."""
    if value.endswith((".yaml", ".yml")):
        value = Path(value).stem
    plain = unicodedata.normalize("NFKD", value).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", plain.replace("/", "--")).strip("-.")
    lost = not value.isascii() or not plain
    return plain + ("-" if lost and plain else "") + (hashlib.sha256(value.encode()).hexdigest()[:8] if lost else "")


def find_notebook(name: str) -> Path:
    """A notebook by its name in notebooks/ or by its path; ThaikitError with the nearest name."""
    path = Path(name).expanduser() if name.endswith(".ipynb") else root() / "notebooks" / f"{name}.ipynb"
    if path.is_file():
        return path.resolve()
    known = sorted(found.stem for found in (root() / "notebooks").glob("*.ipynb"))
    raise ThaikitError(f"no notebook {name!r}{nearest(name, known)}; there are {', '.join(known) or 'none'}")


def notebook_parameters(path: Path) -> dict[str, Parameter]:
    """name → (annotation, default, help) of a notebook's one cell tagged `parameters`, read without running it."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError) as error:
        raise ThaikitError(f"{shown(path)}: not a notebook ({error})") from error
    tagged = [cell for cell in cells if "parameters" in cell.get("metadata", {}).get("tags", [])]
    if len(tagged) != 1:
        raise ThaikitError(f"{shown(path)}: {len(tagged)} cells are tagged parameters; there must be exactly one")
    return dict(read_parameters("".join(tagged[0]["source"]), shown(path)))


def read_parameters(source: str, where: str) -> Iterator[tuple[str, Parameter]]:
    """The lines `name: type = literal  # help` of a parameters cell."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
        body = ast.parse(source).body
    except (SyntaxError, tokenize.TokenError) as error:
        raise ThaikitError(f"{where}: the parameters cell is not valid Python ({error})") from error
    helps = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    for line in body:
        try:
            if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name) or line.value is None:
                raise ValueError("no annotated literal")
            annotation, default = ast.unparse(line.annotation), ast.literal_eval(line.value)
            if annotation.split("[")[0] not in ANNOTATIONS:
                raise ValueError("an annotation that papermill cannot read")
        except ValueError as error:
            told = f"`{ast.unparse(line)}` ({error}); each line is `name: type = literal  # help`"
            raise ThaikitError(f"{where}: the parameters cell has {told}, types {', '.join(ANNOTATIONS)}") from error
        yield line.target.id, (annotation, default, helps.get(line.end_lineno or 0, ""))
