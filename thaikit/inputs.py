"""What decides a leaf, by content: the one list of input hashes that the notebook and the runner both compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from thaikit import ThaikitError
from thaikit.explore_rows import SAMPLES, find
from thaikit.params import ModelEntry, Source, TaskSet, expand, file_inputs, load, nearest, shown
from thaikit.records import Leaf, leaves, root, sha256_file, sha256_json
from thaikit.shapes import JudgeEntry, LabelSet, answer_prompt, load_tasks
from thaikit.tasks.load import match

FILES = {"model": "models", "judge": "judges", "tasks": "tasks", "panel": "panels"}  # parameter → folder of params/
# Stages that read nothing that a suite writes: one that takes a suite shares the suite's cost ledger only.
READ_NO_LEAF = ("thai_h6", "thaicli_answer", "thaicli_preference", "mrc_answer")
READS_ALL = ("report",)  # reads the other stages over a whole suite too; those read the leaves of models only
ENGLISH = "english.jsonl"  # beside the rows of a task file: their answers in English, for the judge bench
LABELS = ("annotations", "votes", "judgements")  # parameters that name files of labels
# Stages that read one leaf of answers: its stage, and the parameters in which both must agree.
ANSWERS = {
    "thaicli_judge": ("thaicli_answer", ("model", "tasks")),
    "mrc_f1": ("mrc_answer", ("model", "tasks", "shots")),
    "mrc_judge": ("mrc_answer", ("model", "tasks", "shots")),
}
CARRIED = ("mrc_f1", "mrc_judge")  # the answers' rows carry their items, so the data itself is not read again


def inputs_of(stage: str, params: Mapping[str, Any]) -> dict[str, str]:
    """The files that decide a leaf of `stage` with these notebook parameters: shown name → SHA-256 of the content.

    Read are the parameters `model`, `judge` and `tasks` (parameter files), `data` and `only` (which override the task
    file), and `suite` (an output folder: its other closed leaves count by their run.json). Hub data sets count by id
    and revision, weights in a folder by the names, sizes and times of their files. ThaikitError names a missing file.
    """
    named = {kind: str(params[name]) for name, kind in FILES.items() if params.get(name)}
    found = file_inputs(**named)
    if "models" in named:
        found |= model_inputs(load("models", named["models"], ModelEntry), named["models"])
    if "judges" in named:
        found |= judge_inputs(named["judges"])
    if stage == "mrc_answer":
        found |= file_inputs(prompts=answer_prompt(named["models"], str(params.get("prompt") or "")))
    if "tasks" in named and stage not in CARRIED:
        tasks = load_tasks(named["tasks"])
        found |= data_inputs(tasks, data=str(params.get("data") or ""), only=params.get("only") or ())
    if stage == "mrc_f1" and reads_every_answer(params):
        found |= {f"answers/{leaf.name}": sha256_file(leaf.path / "run.json") for leaf in answer_leaves(stage, params)}
    elif stage in ANSWERS:
        path = answers_path(stage, params, missing_ok=True)
        found |= {"answers": sha256_file(path / "run.json" if path.is_dir() else path)} if path else {}
        found |= against_inputs(params.get("against") or ())
    elif stage == "judge_bench":
        found |= bench_inputs(params)
    elif params.get("suite") and stage not in READ_NO_LEAF:
        found |= suite_inputs(stage, Path(str(params["suite"])))
    if stage == "explore":
        found |= explored_inputs(params)
    return dict(sorted((found | label_inputs(stage, params)).items()))


def answers_path(stage: str, params: Mapping[str, Any], *, missing_ok: bool = False) -> Path | None:
    """What a stage of `ANSWERS` reads: the leaf or file that `answers` names, else the one closed leaf of the suite
    whose parameters agree with these; None where neither is given, which means the bundled answers.

    ThaikitError where there is no such file or leaf, or several; with `missing_ok` none is None, as is a leaf below the
    suite that is named and has still to be written.
    """
    if params.get("answers"):
        path = expand(str(params["answers"]), base=root())
        if (path / "run.json").is_file() or path.is_file():
            return path
        if missing_ok and awaited(params):
            return None
        raise ThaikitError(f"answers {str(path)!r}: neither a file nor a closed leaf; name one that exists")
    if not params.get("suite"):
        return None
    made_by, keys = ANSWERS[stage]
    wanted = {key: params[key] for key in keys if key in params}
    there = leaves(Path(str(params["suite"])), stage=made_by)
    found = [leaf.path for leaf in there if all(leaf.run["params"].get(k) == v for k, v in wanted.items())]
    if len(found) == 1 or (missing_ok and not found):
        return found[0] if found else None
    told = ", ".join(f"{key} {value!r}" for key, value in wanted.items())
    raise ThaikitError(
        f"suite {params['suite']}: {len(found)} closed leaves of {made_by} have {told}; name one of them as answers"
    )


def awaited(params: Mapping[str, Any]) -> Path | None:
    """The leaf that `answers` names below the leaf's own suite where it is not there yet, so that a stage of the suite
    may write it; else None."""
    if not params.get("answers") or not params.get("suite"):
        return None
    path = expand(str(params["answers"]), base=root()).resolve()
    there = path.is_file() or (path / "run.json").is_file()
    return path if not there and path.is_relative_to(Path(str(params["suite"])).resolve()) else None


def reads_every_answer(params: Mapping[str, Any]) -> bool:
    """Whether a stage of `ANSWERS` reads all leaves of answers in its suite: it names neither one nor a model."""
    return bool(params.get("suite")) and not params.get("answers") and not params.get("model")


def answer_leaves(stage: str, params: Mapping[str, Any]) -> list[Leaf]:
    """The closed leaves of answers in a suite, by name."""
    return leaves(Path(str(params["suite"])), stage=ANSWERS[stage][0])


def bench_inputs(params: Mapping[str, Any]) -> dict[str, str]:
    """What the judge bench reads beside the task file's rows: a leaf or file of answers, and the rows in English."""
    found, named = {}, str(params.get("answers") or "")
    if named:
        path = answers_path("judge_bench", params, missing_ok=True)
        found |= {"answers": sha256_file(path / "run.json" if path.is_dir() else path)} if path else {}
    place = str(params.get("data") or getattr(load_tasks(str(params["tasks"])), "data", ""))
    english = expand(place, base=root()) / ENGLISH
    return found | ({f"data/{ENGLISH}": sha256_file(english)} if english.is_file() else {})


def label_inputs(stage: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Files of labels, votes and judges' replies that a notebook names: a file of rows by its content, a leaf by its
    run.json, a file of params/analyses/ with the rows that it points at. What does not exist is the reader's to say.
    """
    names = [*LABELS, *([] if stage in ANSWERS else ["answers"])]
    found: dict[str, str] = {}
    for name in names:
        value = str(params.get(name) or "")
        if not value:
            continue
        if not Path(value).suffix and ":" not in value and "/" not in value:
            spec = load("analyses", value, LabelSet)
            found |= file_inputs(analyses=value)
            found |= source_inputs(spec.source, expand(spec.data, base=root()), where=f"analyses {value}")
            continue
        path = expand(value, base=root())
        path = path / "run.json" if path.is_dir() else path
        found |= {f"{name}/{path.name}": sha256_file(path)} if path.is_file() else {}
    return found


def explored_inputs(params: Mapping[str, Any]) -> dict[str, str]:
    """The leaves that are looked at: a closed one by its run.json, an open one by its rows so far; without any those
    that come with the kit."""
    given = [str(params[name]) for name in ("leaf", "other") if params.get(name)]
    paths = [find(place) for place in given or SAMPLES]
    done = {f"{path.parent.name}/{path.name}": path / "run.json" for path in paths if (path / "run.json").is_file()}
    begun = [one for path in paths if not (path / "run.json").is_file() for one in (path / "rows").glob("*.jsonl")]
    done |= {f"{path.parts[-3]}/{path.name}": path for path in begun}
    return {name: sha256_file(path) for name, path in done.items()}


def against_inputs(places: Sequence[str]) -> dict[str, str]:
    """Closed leaves that a leaf is compared with; ThaikitError where one is not closed."""
    paths = [expand(place, base=root()) / "run.json" for place in places]
    missing = [path.parent for path in paths if not path.is_file()]
    if missing:
        raise ThaikitError(f"against {str(missing[0])!r}: no closed leaf; name the folder of one, with its run.json")
    return {f"against/{path.parent.name}": sha256_file(path) for path in paths}


def model_inputs(entry: ModelEntry, name: str) -> dict[str, str]:
    """What a model entry points at on this machine: recorded answers, a template file, folders of weights."""
    found = {}
    if entry.kind == "replay":
        path = expand(entry.source, base=root())
        if not path.is_file():
            raise ThaikitError(f"model {name}: no recorded answers at {path}; run make replay, or choose another model")
        found[f"records/{path.name}"] = sha256_file(path)
    if isinstance(entry.chat_template, str):
        path = Path(entry.chat_template).expanduser()
        if not path.is_file():
            raise ThaikitError(f"model {name}: chat_template names {path}, which is no file")
        found[f"chat_template/{path.name}"] = sha256_file(path)
    for key in ("source", "adapter"):
        named = getattr(entry, key)
        folder = Path(named).expanduser()
        if named and folder.is_dir():
            found[f"{key}/{folder.name}"] = fingerprint(folder)
    return found


def fingerprint(folder: Path) -> str:
    """A hash of the names, sizes and times of a folder's files: weights are too large to read before each run."""
    facts = [(path.name, path.stat().st_size, int(path.stat().st_mtime)) for path in folder.iterdir() if path.is_file()]
    return sha256_json(sorted(facts))


def check_limit(params: Mapping[str, Any]) -> None:
    """Refuse a limit in money without prices to go by, before anything is run; ThaikitError as when it is opened."""
    from thaikit.server import open_server

    asked = load("judges", str(params["judge"]), JudgeEntry).model if params.get("judge") else params.get("model")
    entry = load("models", str(asked), ModelEntry) if asked and params.get("max_cost") else None
    if entry and entry.kind == "openai":
        open_server(str(asked), entry, max_cost=float(params["max_cost"]))


def judge_inputs(name: str) -> dict[str, str]:
    """What a judge file points at: its prompt, its model, and what that points at."""
    entry = load("judges", name, JudgeEntry)
    found = file_inputs(prompts=entry.prompt, models=entry.model)
    return found | model_inputs(load("models", entry.model, ModelEntry), entry.model)


def data_inputs(tasks: Any, *, data: str = "", only: Sequence[str] = ()) -> dict[str, str]:
    """The row and exemplar files of a task file's tasks; ThaikitError where a pattern matches nothing."""
    sources = tasks_sources(tasks)
    unknown = [name for name in only if name not in sources]
    if unknown:
        known = list(sources)
        hint = nearest(unknown[0], known)
        raise ThaikitError(f"task file {tasks.name}: no task {unknown[0]!r}{hint}; it has {', '.join(known)}")
    base = expand(data or tasks.data, base=root())
    found: dict[str, str] = {}
    for name, places in sources.items():
        if not only or name in only:
            for source in places:
                found |= source_inputs(source, base, where=f"tasks {tasks.name}, task {name}")
    return found


def tasks_sources(tasks: Any) -> dict[str, tuple[Source, ...]]:
    """Each task's sources, of a task file of any kind."""
    if not isinstance(tasks, TaskSet):
        return tasks.sources()
    both = {name: (spec.source, spec.exemplars) for name, spec in tasks.tasks.items()}
    return {name: tuple(source for source in pair if source) for name, pair in both.items()}


def source_inputs(source: Source, base: Path, *, where: str) -> dict[str, str]:
    """The files of one source; a hub data set by id and revision."""
    if source.hub:
        parts = "/".join(part for part in (source.hub, source.config, source.split) if part)
        return {f"hub/{parts}": sha256_json(source.revision)}
    found: dict[str, str] = {}
    for pattern in [source.files] if isinstance(source.files, str) else source.files:
        if pattern:
            if not base.is_dir() and not Path(pattern).expanduser().is_absolute():
                raise ThaikitError(f"{where}: data {str(base)!r} is no folder; name the folder that holds the rows")
            paths = [path for path, _ in match(base, pattern)]
            if not paths:
                raise ThaikitError(f"{where}: no file matches {pattern!r} below {base}; check the folder and the name")
            found |= {f"data/{shown_below(path, base)}": sha256_file(path) for path in paths}
    return found


def shown_below(path: Path, base: Path) -> str:
    """A data file's name as records show it."""
    return str(path.relative_to(base)) if path.is_relative_to(base) else shown(path)


def suite_inputs(stage: str, suite: Path) -> dict[str, str]:
    """The run.json files of a suite folder that a stage over the whole suite reads: never its own."""
    if not suite.is_dir():
        return {}
    below = {leaf.path.relative_to(suite): leaf.path for leaf in leaves(suite)}
    read = {name: path for name, path in below.items() if name.parts[0] != stage}
    if stage not in READS_ALL:
        read = {name: path for name, path in read.items() if len(name.parts) > 1}
    return {f"{name.as_posix()}/run.json": sha256_file(path / "run.json") for name, path in read.items()}
