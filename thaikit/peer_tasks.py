"""Source rows → lm-evaluation-harness tasks: the harness's own task YAML over a file of the rows we score.

The rows are read again from the source through the task's field map and written in the schema that the harness's own
task expects. Nothing of the kit's prompts goes in, so equal prompts mean that two programs agree.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from thaikit import ThaikitError
from thaikit.params import TaskSet, expand
from thaikit.records import root
from thaikit.tasks import build, h6
from thaikit.tasks.build import Task
from thaikit.tasks.labels import LETTERS
from thaikit.tasks.load import Row, read_source

# kind → the harness's task files, the split its exemplars come from, the split it scores
HOMES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "arc": (("arc/arc_challenge.yaml",), "train", "test"),
    "hellaswag": (("hellaswag/hellaswag.yaml",), "train", "validation"),
    "mmlu": (("mmlu/default/mmlu_{subject}.yaml",), "dev", "test"),
    "truthfulqa": (("truthfulqa/truthfulqa_mc1.yaml", "truthfulqa/truthfulqa_mc2.yaml"), "", "validation"),
    "winogrande": (("winogrande/default.yaml",), "train", "validation"),
    "gsm8k": (("gsm8k/gsm8k.yaml",), "train", "test"),
}
# The harness computes all three for these tasks when asked; the third is not in its files.
NORMS = ("acc", "acc_norm", "acc_bytes")


@dataclass(frozen=True)
class PeerTask:
    """One harness task: the name in its file, and the places in the kit's task of the items that it scores."""

    name: str
    places: tuple[int, ...]


@dataclass(frozen=True)
class Rows:
    """A task's source rows in the harness's schema, with each row's subject: scored ones in item order, exemplars."""

    scored: tuple[tuple[str, dict[str, Any]], ...]
    exemplars: tuple[tuple[str, dict[str, Any]], ...]


def arc(reader: h6.Reader, row: Row) -> dict[str, Any]:
    """ARC's English schema."""
    labels = [str(label) for label in reader.get(row, "labels")]
    choices = {"text": list(reader.get(row, "choices")), "label": labels}
    return {"question": reader.get(row, "question"), "choices": choices, "answerKey": str(reader.get(row, "answer"))}


def hellaswag(reader: h6.Reader, row: Row) -> dict[str, Any]:
    """HellaSwag's English schema; a merged context goes into `ctx_a` and leaves `ctx_b` empty."""
    merged = "ctx" in reader.fields
    ctx_a = reader.get(row, "ctx" if merged else "ctx_a")
    ctx_b = "" if merged else reader.get(row, "ctx_b")
    return {
        "activity_label": reader.get(row, "activity_label"), "ctx_a": ctx_a, "ctx_b": ctx_b,
        "endings": list(reader.get(row, "endings")), "label": str(reader.get(row, "label")),
    }  # fmt: skip


def mmlu(reader: h6.Reader, row: Row) -> dict[str, Any]:
    """MMLU's English schema: the answer as an index."""
    answer = str(reader.get(row, "answer"))
    index = LETTERS.index(answer) if answer in LETTERS else int(answer)
    return {"question": reader.get(row, "question"), "choices": list(reader.get(row, "choices")), "answer": index}


def truthfulqa(reader: h6.Reader, row: Row) -> dict[str, Any]:
    """TruthfulQA's English schema; a source without mc1 gets an empty one."""
    found: dict[str, Any] = {"question": reader.get(row, "question")}
    for part in ("mc1", "mc2"):
        there = bool(reader.fields[f"{part}_choices"])
        choices, labels = (reader.get(row, f"{part}_{key}") if there else [] for key in ("choices", "labels"))
        found[f"{part}_targets"] = {"choices": list(choices), "labels": list(labels)}
    return found


def winogrande(reader: h6.Reader, row: Row) -> dict[str, Any]:
    """Winogrande's English schema."""
    found = {field: reader.get(row, field) for field in ("sentence", "option1", "option2")}
    return found | {"answer": str(reader.get(row, "answer"))}


def gsm8k(reader: h6.Reader, row: Row) -> dict[str, Any]:
    """GSM8K's English schema."""
    return {"question": reader.get(row, "question"), "answer": reader.get(row, "answer")}


SCHEMAS: dict[str, Callable[[h6.Reader, Row], dict[str, Any]]] = {
    "arc": arc, "hellaswag": hellaswag, "mmlu": mmlu, "truthfulqa": truthfulqa, "winogrande": winogrande,
    "gsm8k": gsm8k,
}  # fmt: skip


def source_rows(task: Task, tasks: TaskSet) -> Rows:
    """The rows behind a task's items and exemplars, read from the source again, in the harness's schema.

    ThaikitError for a kind that the harness has no task for.
    """
    spec = task.spec
    if spec.kind not in SCHEMAS:
        raise ThaikitError(f"task {task.name}: kind {spec.kind!r} has no peer; those with one are {', '.join(SCHEMAS)}")
    reader = h6.Reader(spec, {**h6.FIELDS[spec.kind], **spec.fields}, task.profile, task.language)
    shots_reader = replace(reader, fields={**reader.fields, **spec.exemplar_fields})
    base = expand(tasks.data, base=root())
    scored, exemplars, _ = build.split(spec, read_source(spec.source, base), base, reader)
    by_id = {build.item_id(reader, row): row for row in scored}
    schema = SCHEMAS[spec.kind]
    return Rows(
        tuple((item.subject, schema(reader, by_id[item.id])) for item in task.items),
        tuple((h6.subject_of(shots_reader, row), schema(shots_reader, row)) for row in exemplars),
    )


def write(task: Task, rows: Rows, folder: Path, *, new_tokens: int) -> list[PeerTask]:
    """Write row files and task YAMLs for lm-evaluation-harness into a folder; its tasks, in the order of requests.

    Rows go to Parquet, which keeps every text as it stands (a JSON reader may turn a date into a time stamp).
    """
    files, _, _ = HOMES[task.spec.kind]
    subjects = list(dict.fromkeys(subject for subject, _ in rows.scored)) if task.spec.kind == "mmlu" else [""]
    made = []
    for subject in subjects:
        places = tuple(n for n, (name, _) in enumerate(rows.scored) if subject in ("", name))
        parts = {
            "scored": [rows.scored[n][1] for n in places],
            "exemplars": [row for name, row in rows.exemplars if subject in ("", name)],
        }
        for file in files if task.items[0].first or task.spec.kind != "truthfulqa" else files[1:]:
            name = f"parity_{Path(file).stem.format(subject=subject)}"
            config = task_config(task, name, file.format(subject=subject), write_rows(folder, name, parts), new_tokens)
            config["dataset_kwargs"]["cache_dir"] = str(folder / "cache")
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
            made.append(PeerTask(name, places))
    return made


def write_rows(folder: Path, name: str, parts: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """One Parquet file a part that has rows; their paths."""
    import pyarrow
    from pyarrow import parquet

    found = {}
    for part, lines in parts.items():
        if lines:
            found[part] = str(folder / f"{name}-{part}.parquet")
            parquet.write_table(pyarrow.Table.from_pylist(list(lines)), found[part])
    return found


def task_config(task: Task, name: str, file: str, paths: Mapping[str, str], new_tokens: int) -> dict[str, Any]:
    """A task YAML that takes the harness's own file and changes where rows come from, and how many are shown before."""
    _, shown, scored = HOMES[task.spec.kind]
    splits = {scored: paths["scored"]} | ({shown: paths["exemplars"]} if shown else {})
    config: dict[str, Any] = {
        "include": str(harness_file(file)), "task": name, "dataset_path": "parquet", "dataset_name": None,
        "dataset_kwargs": {"data_files": splits}, "num_fewshot": task.spec.shots,
    }  # fmt: skip
    if shown:
        config |= {"fewshot_split": shown, "fewshot_config": {"sampler": "first_n"}}
    if task.spec.kind in ("arc", "hellaswag"):
        config["metric_list"] = [{"metric": n, "aggregation": "mean", "higher_is_better": True} for n in NORMS]
    if task.generates:
        own = yaml.safe_load(harness_file(file).read_text(encoding="utf-8"))["generation_kwargs"]
        config["generation_kwargs"] = own | {"max_gen_toks": new_tokens}
    return config


def harness_file(file: str) -> Path:
    """A task file of the installed harness; ThaikitError where the harness or the file is not there."""
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or not spec.submodule_search_locations:
        raise ThaikitError("lm-evaluation-harness is not installed; pip install -e '.[parity]' brings it")
    path = Path(next(iter(spec.submodule_search_locations))) / "tasks" / file
    if not path.exists():
        raise ThaikitError(f"lm-evaluation-harness has no task file {file}; a subject of MMLU needs its English name")
    return path
