"""The house: who may import whom, how large files and functions are, and that both set-ups install the same."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from thaikit.records import root

PACKAGE = root() / "thaikit"
KERNELS = {
    "text": {"numpy", "pythainlp"},
    "f1": {"numpy"},
    "stats": {"numpy", "scipy", "statsmodels", "sklearn", "krippendorff"},
    "agreement": {"numpy", "scipy", "statsmodels", "sklearn", "krippendorff"},
    "prf": {"numpy"},
    "correction": {"numpy", "scipy"},
    "preference": {"numpy", "scipy"},
    "verdicts": set(),
    "counts": {"numpy"},
    "matched": {"numpy", "scipy"},
    "ranks": {"numpy", "scipy"},
    "shifts": set(),
    "bias": {"numpy", "scipy"},
    "reading": set(),
    "thai_tokens": {"numpy"},
    "resampling": {"numpy"},
    "analysis_stats": {"numpy", "scipy"},
    "extract": {"numpy"},
    "metrics": {"numpy"},
    "encoding": {"numpy"},
    "fewshot": {"numpy"},
    "trie": {"numpy"},
    "loglikelihood": {"numpy", "torch"},
    "generation": {"numpy", "torch"},
    "cascade": {"torch"},
    "split": {"torch"},
    "shelved": {"numpy", "torch"},
    "tree": {"numpy", "torch"},
    "memory": {"torch"},
}
PEER = {"peer", "peer_tasks", "parity", "parity_items", "bench", "recording"}  # may ask lm_eval
WORLD = {"params", "records", "leaves", "rowlog", "inputs", "models", "model_facts", "embedded", "asking", "replay"}
WORLD |= {"model_faults", "judge", "judging", "published", "tuning", *PEER}
WORLD |= {"table_text", "analysis", "analysis_pairs", "own"}
WORLD |= {"audit", "audit_claims", "audit_h6", "audit_cli", "audit_groups", "audit_mrc", "audit_judge"}
WORLD |= {"chat", "chat_local", "chat_replay", "closing", "recording_texts", "shapes"}
WORLD |= {"thai_facts"}
WORLD |= {"judge_bench", "bench_card", "panels"}
EXPLORED = {"explore_rows", "explore_view", "explore_prompt"}  # what the explorer shows, as data
WORLD |= EXPLORED
WORLD |= {"endpoint", "server", "flow", "pace", "ledger", "money", "transport"}
SHOW = {"figures", "figures_text", "figures_labels", "figures_analysis", "figures_groups", "figures_bench"}
SHOW |= {"figures_thaicli", "figures_mrc", "figures_ranks", "report", "report_items", "report_parts", "report_thaicli"}
SHOW |= {"figures_thai", "report_thai", "figures_mosaic", "report_mosaic", "report_summary", "report_words"}
SHOW |= {"explore", "explore_card"}
SHOW |= {"report_links", "report_columns", "report_rows", "report_latex", "report_limits", "report_page"}
SHOW |= {"report_board", "report_board_tables", "report_lengths", "report_mrc", "report_mrc_items", "report_pairs"}
HALL = {"run", "plan", "execute", "__main__"}
RECORDS = {"records", "leaves", "rowlog", "table_text"}
HEAVY = {"torch", "transformers", "tokenizers", "safetensors", "peft", "gguf", "openai", "datasets", "huggingface_hub"}
NEVER_IN_WORLD = {"IPython", "papermill", "matplotlib", "jupyter_client", "nbclient", "nbconvert"}
HALL_MAY = {"papermill", "jupyter_client", "nbclient", "ray", "tqdm", "rich"}
IN_FUNCTIONS = {"tasks", "models", "embedded", "judge"}  # the hall, where it plans and fetches


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """(module, whether at the top of the file) of every import; the kit's own as thaikit.<module>."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in tree.body) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}, line {node.lineno}: a relative import"
            inner = node.module in ("thaikit", "thaikit.tasks")
            for alias in node.names:
                yield (f"{node.module}.{alias.name}" if inner else str(node.module)), node in tree.body


def split(path: Path) -> tuple[set[str], set[str], set[str], set[str]]:
    """Kit modules at the top and inside functions, libraries at the top and inside, without the standard library."""
    found: list[set[str]] = [set(), set(), set(), set()]
    for module, top in imports(path):
        parts = module.split(".")
        if parts[0] == "thaikit":
            inner = ".".join(parts[1:])
            if inner and (PACKAGE / inner.replace(".", "/")).with_suffix(".py").exists() or inner.startswith("tasks"):
                found[0 if top else 1].add(inner)
            else:
                found[0 if top else 1].add("")  # ThaikitError, __version__
        elif parts[0] not in sys.stdlib_module_names:
            found[2 if top else 3].add(parts[0])
    return found[0], found[1], found[2], found[3]


def room(name: str) -> str:
    if name.startswith("tasks") or name.startswith("building") or name in WORLD:
        return "world"
    rooms = {"kernels": KERNELS, "show": SHOW, "hall": HALL, "door": {"__init__"}}
    return next((room for room, names in rooms.items() if name in names), "")


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_keep_to_the_rooms(path: Path) -> None:
    name = name_of(path)
    top, inside, libraries, inner_libraries = split(path)
    own, used = (top | inside) - {""}, libraries | inner_libraries
    assert room(name), f"{name} belongs to no room: give it one in tests/test_rooms.py"
    if room(name) == "kernels":
        assert own <= set(KERNELS), f"{name} may import kernels only"
        assert "" not in top | inside, f"{name} is a kernel and raises ValueError"
        assert used <= KERNELS[name]
    elif room(name) == "world":
        assert not [other for other in own if room(other) in ("show", "hall")]
        assert not used & NEVER_IN_WORLD
        assert not libraries & HEAVY, f"{name} must import {libraries & HEAVY} inside a function"
        assert name in PEER or "lm_eval" not in used
        assert "lm_eval" not in libraries
    elif room(name) == "show":
        assert own <= RECORDS | SHOW | EXPLORED | {"published", "stats", "matched", "ranks", "reading"}
        assert not used & HEAVY
    elif room(name) == "hall":
        assert top - {""} <= RECORDS | HALL | {"params", "inputs", "shapes", "report"}
        assert {part.split(".")[0] for part in inside - {""}} <= RECORDS | HALL | IN_FUNCTIONS | {"params", "inputs"}
        assert used <= HALL_MAY
    else:
        assert not own | used


def test_kernels_open_no_files_and_keep_no_random_state() -> None:
    for name in KERNELS:
        tree = ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called != "open" and ".random.seed" not in called, f"{name}, line {node.lineno}"
                assert not called.startswith("np.random.") or called == "np.random.default_rng", f"{name}: {called}"


def test_nobody_imports_the_hall() -> None:
    for path in modules():
        if room(name_of(path)) != "hall":
            assert not {other for part in split(path)[:2] for other in part} & HALL, name_of(path)


def test_no_notebook_imports_the_hall() -> None:
    for path in sorted((root() / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code":
                for node in ast.walk(ast.parse(source)):
                    if isinstance(node, ast.ImportFrom) and node.module == "thaikit":
                        assert not {alias.name for alias in node.names} & HALL, path.name
                    if isinstance(node, ast.ImportFrom | ast.Import):
                        assert not [hall for hall in HALL if f"thaikit.{hall}" in ast.unparse(node)], path.name


def fresh(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_the_package_imports_fast_and_loads_nothing() -> None:
    code = "import time, sys; t = time.perf_counter(); import thaikit; print(time.perf_counter() - t, *sys.modules)"
    seconds, *loaded = min((fresh(code).stdout.split() for _ in range(3)), key=lambda told: float(told[0]))
    assert float(seconds) < 0.3
    assert not {"torch", "transformers", "pandas", "numpy"} & set(loaded)


def test_looking_at_a_suite_loads_no_library_that_takes_seconds() -> None:
    code = (
        "import sys; from thaikit.__main__ import main; import thaikit.run, thaikit.plan;"
        "main(['status']); print(*sys.modules)"
    )
    begun = time.perf_counter()
    loaded = set(fresh(code).stdout.split())
    assert not {"torch", "transformers", "pandas", "papermill", "datasets", "matplotlib", "IPython"} & loaded
    assert time.perf_counter() - begun < 10


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_files_and_functions_stay_readable(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 330
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= 45, f"{path.name}: {node.name} has {lines} lines"


def test_modules_say_what_they_are_and_functions_what_they_return() -> None:
    for path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path.name
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                assert node.returns is not None, f"{path.name}: {node.name} has no return type"


def test_conda_users_get_the_same_environment() -> None:
    project = tomllib.loads((root() / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    conda = yaml.safe_load((root() / "environment.yml").read_text(encoding="utf-8"))
    assert conda["name"] == "thaikit" and conda["channels"] == ["conda-forge"]
    *plain, pip = conda["dependencies"]
    assert plain == ["python=3.11", "pip"]
    assert pip["pip"] == [*project["dependencies"], "-e ."]
    assert project["requires-python"] == ">=3.11"
