"""`make replay`: record the embedded models on the bundled samples, for the replay model and the default report.

Writes samples/replay/gemma3-270m.json.gz (every request of the sample tasks, English labels), of both models the
leaves below samples/outputs/thai_h6/ as 10_thai_h6 would have left them, and samples/replay/gemma3-270m-thaicli.json.gz
(the ThaiCLI samples' chosen and rejected answers).
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from thaikit import asking, inputs, replay
from thaikit.params import ModelEntry, expand, load
from thaikit.records import Run, root
from thaikit.tasks import evaluate, thaicli
from thaikit.tasks.score import Settings
from thaikit.tasks.thaicli_preference import Preferring

TASKS = "thai-h6-samples"
REPLAYED = {"gemma3-270m": "replay-gemma3-270m"}
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
    target = Path(__file__).parent / "samples" / "outputs" / "thai_h6" / name
    shutil.rmtree(target, ignore_errors=True)
    (target / "rows").mkdir(parents=True)
    shutil.copy(folder / "run.json", target / "run.json")
    for path in (folder / "rows").glob("*.parquet"):
        shutil.copy(path, target / "rows" / path.name)


if __name__ == "__main__":
    for model in MODELS:
        record(model)
    record_preference("gemma3-270m", kept_as="replay-gemma3-270m-thaicli")
