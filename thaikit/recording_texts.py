"""Tie the bundled replies to the texts they were written for: `make replay`, or python -m thaikit.recording_texts.

Every recording of samples/thaicli and samples/mrc is asked through the kit's own code, with the settings of notebooks
20 to 23, 30 (without and with a worked example) and 32, and each row gets the hash of what was asked (`prompt_sha256`).
To be run when an item, an answer or a prompt was reworded, after the replies to it were read again.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thaikit import chat, judge_bench
from thaikit.chat_replay import Recorded
from thaikit.records import Run, write_atomic
from thaikit.tasks import mrc, mrc_answer, mrc_judging, thaicli, thaicli_answer, thaicli_judge

CLI, MRC = "thaicli-samples", "mrc-samples"
CLI_MODELS = ("replay-thaicli-answers", "replay-thaicli-answers-b")
MRC_MODELS = ("replay-mrc-answers", "replay-mrc-answers-long")
CLI_JUDGE, MRC_JUDGE = "replay-thaicli-judge", "replay-mrc-judge"


@dataclass
class Heard:
    """What was asked of each recording: file → id → hashes."""

    hashes: dict[Path, dict[str, set[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))

    def open(self, name: str) -> Recorded:
        """A recording that answers whatever it is asked under a known id."""
        model = chat.open_chat(name)
        model.prompts = {}
        return model

    def note(self, model: Recorded) -> None:
        """Take over what a recording was asked."""
        for key, found in model.asked.items():
            self.hashes[model.path][key].add(found)


def run_of(folder: Path, stage: str, **given: Any) -> Run:
    """An open leaf in a folder of its own."""
    return Run.open(
        stage, params=given, out_dir=str(folder / stage / "-".join(map(str, given.values())).replace("/", "-"))
    )


def thaicli_flow(folder: Path, heard: Heard) -> None:
    """Answers of both models, judged with the gate, and the bench."""
    data = thaicli.load(CLI)
    for name in CLI_MODELS:
        answering = thaicli_answer.Answering(run_of(folder, "thaicli_answer", model=name), name, data)
        answering.__dict__["model"] = heard.open(name)
        answering.finish(answering.answer())
        heard.note(answering.model)
        given = {"model": name, "judge": CLI_JUDGE, "tasks": CLI}
        run = run_of(folder, "thaicli_judge", **given)
        run.params["answers"] = str(answering.run.out_dir)
        judging = thaicli_judge.start(run, gate=True, **given)
        judging.__dict__["asked"] = heard.open(judging.judge.entry.model)
        judging.score()
        heard.note(judging.asked)
    choice = {"judge": CLI_JUDGE, "tasks": CLI, "panel": CLI, "repeat_items": 28}  # repeats of every answer
    bench = judge_bench.load(run_of(folder, "judge_bench", **choice), **choice)
    bench.__dict__["model"] = heard.open(bench.judge.entry.model)
    bench.judged()
    heard.note(bench.model)


def mrc_flow(folder: Path, heard: Heard) -> None:
    """Answers of both models after no and one worked example, and the four questions."""
    data = mrc.load(MRC)
    for name in MRC_MODELS:
        for shots in (0, 1):
            run = run_of(folder, "mrc_answer", model=name, tasks=MRC, shots=shots)
            asking = mrc_answer.prepare(run, model=name, data=data, shots=shots)
            asking.__dict__["model"] = heard.open(name)
            asking.finish(asking.answer())
            heard.note(asking.model)
        run = run_of(folder, "mrc_judge", model=name, tasks=MRC)
        run.params["answers"] = str(asking.run.out_dir)
        judging = mrc_judging.start(run, judge=MRC_JUDGE)
        judging.__dict__["asked"] = heard.open(judging.judge.entry.model)
        judging.score()
        heard.note(judging.asked)


def write(path: Path, hashes: dict[str, set[str]]) -> int:
    """Put the hashes into a recording's rows; how many rows nobody asked for, which lose theirs."""
    lines, untied = [], 0
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line:
            row = json.loads(line)
            row.pop("prompt_sha256", None)
            found = sorted(hashes.get(row["id"], ()))
            untied += not found
            told = {"prompt_sha256": found[0] if len(found) == 1 else found} if found else {}
            lines.append(json.dumps(row | told, ensure_ascii=False))
    write_atomic(path, "".join(line + "\n" for line in lines))
    return untied


def tie() -> None:
    """Ask every bundled recording and write the hashes."""
    heard = Heard()
    with tempfile.TemporaryDirectory() as folder:
        thaicli_flow(Path(folder), heard)
        mrc_flow(Path(folder), heard)
    for path, hashes in sorted(heard.hashes.items()):
        print(f"{path.parent.name}/{path.name}: {len(hashes)} replies tied, {write(path, hashes)} left without a text")


if __name__ == "__main__":
    tie()
