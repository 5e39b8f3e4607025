"""The notebooks' contract, read off their files, and each of them run with its defaults as a newcomer would."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from thaikit.plan import notebook_parameters
from thaikit.records import read_leaf, root

NOTEBOOKS = sorted((root() / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
PARAMETER = re.compile(r"[a-z_]+: (?:str|int|float|bool|list\[str\]|dict\[str, \w+\]) = [^=#]+  # [^=#]+")
BANNED = re.compile(r"(?<!Run\.)\bopen\(|sys\.exit|raises-exception|asyncio\.run|%run|os\.chdir|\bHTML\(|\bMarkdown\(")


def cells(path: Path, kind: str) -> list[dict]:
    """A notebook's cells of one kind."""
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def source(cell: dict) -> str:
    """A cell's text."""
    return "".join(cell["source"])


def test_there_are_notebooks() -> None:
    assert {"00_tour", "10_thai_h6", "90_report"} <= set(NAMES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_nothing_of_a_run_is_kept(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert set(notebook["metadata"]) <= {"kernelspec", "language_info"}
    for cell in cells(path, "code"):
        assert not cell["outputs"] and cell["execution_count"] is None
    options = ["--verify", "--extra-keys", "metadata.papermill cell.metadata.papermill cell.metadata.execution"]
    assert subprocess.run([sys.executable, "-m", "nbstripout", *options, str(path)], check=False).returncode == 0


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_the_title_says_what_is_read_and_written(path: Path) -> None:
    title = source(cells(path, "markdown")[0])
    assert title.startswith(f"# {path.stem[:2]} ") and "*Reads*" in title and "*Writes*" in title
    assert f"papermill notebooks/{path.name}" in title


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_one_parameters_cell_that_papermill_can_read(path: Path) -> None:
    tagged = [cell for cell in cells(path, "code") if "parameters" in cell["metadata"].get("tags", [])]
    assert tagged == cells(path, "code")[:1]
    lines = source(tagged[0]).splitlines()
    assert len(lines) <= 12
    for line in lines:
        assert PARAMETER.fullmatch(line), line
    found = notebook_parameters(path)
    assert list(found)[-1] == "out_dir" and found["out_dir"][1] == ""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_cells_call_and_show_and_hold_no_logic(path: Path) -> None:
    assert len(cells(path, "code")) <= 25
    for cell in cells(path, "code"):
        code = source(cell)
        assert len(code.splitlines()) <= 15, code
        assert not BANNED.search(code), code
        for node in ast.walk(ast.parse(code)):
            assert not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.While | ast.Try), code
            if isinstance(node, ast.For):
                assert not any(isinstance(inner, ast.If) for inner in ast.walk(node)), code


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_runs_with_its_defaults_in_its_own_folder_and_in_the_root(path: Path, tmp_path: Path) -> None:
    """Both at once, a core each."""
    begun = []
    for name, folder in (("own", path.parent), ("root", Path("/"))):
        leaf, executed, told = tmp_path / name, tmp_path / f"{name}.ipynb", tmp_path / f"{name}.log"
        command = [sys.executable, "-m", "papermill", str(path), str(executed), "-p", "out_dir", str(leaf)]
        with told.open("wb") as log:
            begun.append((leaf, executed, told, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)))
    for leaf, executed, told, process in begun:
        assert process.wait(timeout=600) == 0, told.read_text(encoding="utf-8")[-2000:]
        assert read_leaf(leaf).run["headline"]
        assert executed.stat().st_size < 2_000_000


@pytest.mark.slow
def test_a_notebook_hashes_the_inputs_that_its_suite_plans(tmp_path: Path) -> None:
    suite, each = tmp_path / "every.yaml", "each: {model: [replay-gemma3-270m]}"
    stages = "".join(f"  - {{notebook: {name}, {each}}}\n" for name in ("00_tour", "10_thai_h6"))
    suite.write_text(f"name: every\nstages:\n{stages}  - {{notebook: 90_report}}\n", encoding="utf-8")
    command = [sys.executable, "-m", "thaikit", "run", str(suite), "--outputs", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "3 done" in done.stdout, done.stdout


def test_the_replay_runs_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from thaikit import asking, params; from thaikit.tasks import build, score\n"
        "tasks = build.build_all(params.load('tasks', 'thai-h6-samples', params.TaskSet))\n"
        "model = asking.open_model('replay-gemma3-270m')\n"
        "rows = [score.one(task, model, index=i) for task in tasks for i in range(len(task.items))]\n"
        "print(len(rows), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.split() == ["248", "False"], done.stderr[-2000:]
