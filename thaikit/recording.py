"""`make replay`: record the embedded models on the bundled samples, for the replay model and the default report.

Writes samples/replay/gemma3-270m.json.gz (every request of the sample tasks, English labels), of both models the
leaves below samples/outputs/thai_h6/ as 10_thai_h6 would have left them, and samples/replay/gemma3-270m-thaicli.json.gz
(the ThaiCLI samples' chosen and rejected answers). Then the written replies of the other
samples are tied to their texts (`recording_texts`). `python -m thaikit.recording facts` runs no model: it counts the
tokenizers anew and nothing else, for when the parallel text changes.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from thaikit import asking, inputs, models, recording_texts, replay, thai_facts
from thaikit.params import ModelEntry, expand, load
from thaikit.records import Run, finite, root, write_atomic
from thaikit.tasks import evaluate, thaicli
from thaikit.tasks.score import Settings
from thaikit.tasks.thaicli_preference import Preferring

TASKS = "thai-h6-samples"
REPLAYED = {"gemma3-270m": "replay-gemma3-270m"}
PREFERRING = {"gemma3-270m": "replay-gemma3-270m-thaicli"}
LEAVES = Path(__file__).parent / "samples" / "outputs" / "thai_h6"
MODELS = ("gemma3-270m", "smollm2-135m-instruct")


def record(name: str) -> None:
    """Score the sample tasks with one model and keep its leaf, and its answers where a replay model repeats them."""
    given = {"model": name, "tasks": TASKS, "data": "", "only": [], "limit": 0}
    settings = Settings()
    with tempfile.TemporaryDirectory() as folder:
        run = Run.open("thai_h6", params=given, inputs=inputs.inputs_of("thai_h6", given), out_dir=folder)
        evaluation = evaluate.load(run, model=name, tasks=TASKS, settings=settings)
        recorder = replay.record(asking.open_model(name))
        evaluation.__dict__["model"] = recorder
        evaluation.finish(evaluation.score())
        keep_leaf(Path(folder), name)
    if name in REPLAYED:
        entry = load("models", REPLAYED[name], ModelEntry)
        replay.save(recorder, expand(entry.source, base=root()))


def count_again(name: str) -> None:
    """Put what a model's tokenizer spends on Thai into its leaf and its recorded answers, all else as it is."""
    entry = load("models", name, ModelEntry)
    source, local = models.locate(entry, name)
    tokenizer = models.read_tokenizer(entry, source, local, "")
    path = LEAVES / name / "run.json"
    leaf = json.loads(path.read_text(encoding="utf-8"))
    leaf["model"] = with_thai(leaf["model"], tokenizer)
    write_atomic(path, json.dumps(finite(leaf), ensure_ascii=False, indent=1) + "\n")
    for kept_as in (kept[name] for kept in (REPLAYED, PREFERRING) if name in kept):
        path = expand(load("models", kept_as, ModelEntry).source, base=root())
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            records = json.load(stream)
        records["model"] = with_thai(records["model"], tokenizer)
        replay.save(replay.Recorder(None, records), path)


def with_thai(facts: dict[str, Any], tokenizer: Any) -> dict[str, Any]:
    """A model's facts with those of its tokenizer where `LocalModel.facts` puts them."""
    told = thai_facts.thai_facts(tokenizer, window=facts["max_length"])
    bare = {key: value for key, value in facts.items() if key != "thai"}
    place = list(bare).index("versions")
    lines = list(bare.items())
    return dict([*lines[:place], ("thai", told), *lines[place:]])


def record_preference(name: str, *, kept_as: str) -> None:
    """Score the chosen and rejected answers of the ThaiCLI samples with one model and keep its log-probabilities."""
    given = {"model": name, "tasks": "thaicli-samples"}
    with tempfile.TemporaryDirectory() as folder:
        run = Run.open("thaicli_preference", params=given, out_dir=folder)
        preferring = Preferring(run, name, thaicli.load("thaicli-samples"))
        recorder = replay.record(asking.open_model(name))
        preferring.__dict__["model"] = recorder
        preferring.score()
    replay.save(recorder, expand(load("models", kept_as, ModelEntry).source, base=root()))


def keep_leaf(folder: Path, name: str) -> None:
    """run.json and the Parquet rows of a leaf, below the samples."""
    target = LEAVES / name
    shutil.rmtree(target, ignore_errors=True)
    (target / "rows").mkdir(parents=True)
    shutil.copy(folder / "run.json", target / "run.json")
    for path in (folder / "rows").glob("*.parquet"):
        shutil.copy(path, target / "rows" / path.name)


if __name__ == "__main__":
    for model in MODELS:
        if sys.argv[1:] == ["facts"]:
            count_again(model)
        else:
            record(model)
            if model in PREFERRING:
                record_preference(model, kept_as=PREFERRING[model])
    if sys.argv[1:] != ["facts"]:
        recording_texts.tie()
