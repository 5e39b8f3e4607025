"""The export: field by field what lm-evaluation-harness writes with --log_samples, or one sentence why not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from thaikit import ThaikitError
from thaikit.__main__ import main
from thaikit.records import Run, read_rows, root
from thaikit.tasks import evaluate
from thaikit.tasks.export import export_leaf

FIELDS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash",
          "prompt_hash", "target_hash"}  # fmt: skip
NAMES = ["arc", "hellaswag", "mmlu", "truthfulqa_mc1", "truthfulqa_mc2", "winogrande", "gsm8k"]


def close(folder: Path, **given: Any) -> Path:
    """A leaf of recorded answers, as 10_thai_h6 leaves it."""
    chosen = {"model": "replay-gemma3-270m", "tasks": "thai-h6-samples", "limit": 2, **given}
    run = Run.open("thai_h6", params=chosen, out_dir=str(folder))
    found = evaluate.load(run, **chosen)
    found.finish(found.score())
    return folder


@pytest.fixture(scope="module")
def leaf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return close(tmp_path_factory.mktemp("leaf"))


def test_each_line_has_the_harness_fields(leaf: Path, tmp_path: Path) -> None:
    lm_eval = pytest.importorskip("lm_eval.utils")
    *files, told = export_leaf(leaf, tmp_path)
    assert [path.name for path in files] == [f"samples_{name}.jsonl" for name in NAMES] and told.name == "results.json"
    for path in files:
        lines = read_rows(path)
        assert len(lines) == (4 if "gsm8k" in path.name else 2)
        for line in lines:
            assert set(line) == FIELDS | set(line["metrics"]) and line["metrics"]
            assert line["resps"] == lm_eval.sanitize_list(line["resps"])
            assert line["filtered_resps"] == lm_eval.sanitize_list(line["filtered_resps"])
            assert len(line["arguments"]) == len(line["resps"]) == len(line["filtered_resps"])
            doc = json.dumps(line["doc"], indent=2, ensure_ascii=False)
            asked = line["arguments"]["gen_args_0"]["arg_0"]
            assert line["doc_hash"] == lm_eval.hash_string(doc) and isinstance(line["target"], str)
            assert line["prompt_hash"] == lm_eval.hash_string(asked)
            assert line["target_hash"] == lm_eval.hash_string(line["target"])


def test_values_are_those_of_the_rows(leaf: Path, tmp_path: Path) -> None:
    export_leaf(leaf, tmp_path)
    (row, *_), (first, *_), (second, *_) = (
        read_rows(path)
        for path in (
            leaf / "rows/truthfulqa.jsonl", tmp_path / "samples_truthfulqa_mc1.jsonl",
            tmp_path / "samples_truthfulqa_mc2.jsonl",
        )
    )  # fmt: skip
    assert [pair for (pair,) in second["resps"]] == [[str(a), str(b)] for a, b in zip(row["ll"], row["greedy"])]  # noqa: B905
    assert [pair[0] for pair in first["filtered_resps"]] == [str(value) for value in row["mc1_ll"]]
    assert (first["acc"], second["acc"]) == (row["mc1"], row["mc2"])
    strict, flexible, *_ = read_rows(tmp_path / "samples_gsm8k.jsonl")
    (made, *_) = read_rows(leaf / "rows/gsm8k.jsonl")
    assert (strict["filter"], flexible["filter"]) == ("strict-match", "flexible-extract")
    assert strict["filtered_resps"] == [made["answers"]["strict"] or "[invalid]"]
    assert strict["exact_match"] == made["strict"] and strict["target"].splitlines()[-1].startswith("#### ")


def test_what_cannot_be_exported_is_one_sentence(leaf: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["export", str(root() / "thaikit/samples/outputs/thai_h6/gemma3-270m")]) == 2
    assert "no rows/*.jsonl of 10_thai_h6" in capsys.readouterr().err
    changed = Path(shutil.copytree(leaf, tmp_path / "leaf"))
    record = json.loads((changed / "run.json").read_text())
    for keys, told in (({"stage": "report"}, "name a leaf thai_h6"), ({"params": record["params"] | {"labels": "th"}},
                       "its prompt is no longer the one scored")):  # fmt: skip
        (changed / "run.json").write_text(json.dumps(record | keys))
        with pytest.raises(ThaikitError, match=told):
            export_leaf(changed, tmp_path / "out")
    record["tasks"]["arc"]["chat"] = True
    (changed / "run.json").write_text(json.dumps(record))
    with pytest.raises(ThaikitError, match="task arc was asked through a chat template"):
        export_leaf(changed, tmp_path / "out")
