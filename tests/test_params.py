"""Parameter files: every shipped one is valid and means the same to any YAML reader; each fault is one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from thaikit import ThaikitError, params
from thaikit.params import ModelEntry, Suite, TaskSet, check_notebook_params, expand, load, read_yaml
from thaikit.records import root
from thaikit.shapes import JudgeEntry, LabelSet, PromptEntry, task_shape

SHAPES = {"models": ModelEntry, "suites": Suite, "prompts": PromptEntry, "judges": JudgeEntry, "analyses": LabelSet}
FILES = sorted((root() / "params").glob("*/*.y*ml"))


class Core(yaml.SafeLoader):
    """YAML 1.2's core schema, where PyYAML follows 1.1: no and on are words, 012 is twelve, 1e-3 is a number."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


def read_int(loader: Core, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    return int(text, 8 if text.startswith("0o") else 16 if text.startswith("0x") else 10)


def read_float(loader: Core, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node).lower().replace(".inf", "inf").replace(".nan", "nan"))


RULES = {
    "null": (r"(?:~|null|Null|NULL|)$", "~nN\0"),
    "bool": (r"(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    "int": (r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
    "float": (
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        "-+.0123456789",
    ),
}
for tag, (pattern, first) in RULES.items():
    Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), [*first.replace("\0", ""), ""])
Core.add_constructor("tag:yaml.org,2002:int", read_int)
Core.add_constructor("tag:yaml.org,2002:float", read_float)


def kinds(value: object) -> object:
    """A value with the type of every scalar in it, so that 1 and True and 1.0 differ."""
    if isinstance(value, dict):
        return {(type(key), key): kinds(inner) for key, inner in value.items()}
    return [kinds(inner) for inner in value] if isinstance(value, list) else (type(value), value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_file_loads_and_reads_equal_in_yaml_1_1_and_1_2(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    old, new = yaml.safe_load(text), yaml.load(text, Core)
    assert kinds(old) == kinds(new), f"{path.name}: quote what the two versions read differently"
    shape = task_shape(path.stem) if path.parent.name == "tasks" else SHAPES.get(path.parent.name)
    if shape:
        load(path.parent.name, path.stem, shape)


def test_the_check_sees_the_traps() -> None:
    for trap in ("no", "on", "1e-3", "012", "1:30", "2024-01-01", "1_000"):
        assert kinds(yaml.safe_load(trap)) != kinds(yaml.load(trap, Core)), trap
    for plain in ("7", "-1.5", "true", "''", "~", "text", "th", "1.0e+3"):
        assert kinds(yaml.safe_load(plain)) == kinds(yaml.load(plain, Core)), plain


def model_file(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("source: x/y\nrevison: main", r"unknown key 'revison' \(did you mean 'revision'\?\); allowed here: adapter"),
        ("source: x/y\nmax_length: many", r"key 'max_length' is 'many': input should be a valid integer"),
        ("source: x/y\nmax_length: true", r"key 'max_length' is True: input should be a valid integer"),
        ("source: x/y\nmax_length: -1", r"key 'max_length' is -1: input should be greater than or equal to 0"),
        ("source: x/y\ndtype: float8", r"key 'dtype' is 'float8': input should be 'auto', 'float32'"),
        ("dtype: auto", r"key 'source' is missing"),
        ("source: a\nsource: b", r"line 1: key 'source' is given twice; keep one of them"),
        (
            "source: x/y\ntrust_remote_code: true",
            r"trust_remote_code is on, so revision must be a full 40-digit",
        ),
        ("source: x/y\nallow_pickle: true\nrevision: main", r"allow_pickle is on, .* found 'main'"),
        ("- a\n- b", r"found list, a parameter file is a mapping of keys"),
        ("", r"found NoneType, a parameter file is a mapping of keys"),
        ("source: [", r"not readable as YAML"),
    ],
)
def test_each_fault_of_a_model_file_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ThaikitError, match=sentence) as caught:
        load("models", model_file(tmp_path, text), ModelEntry)
    assert "\n" not in str(caught.value) and "mine.yaml" in str(caught.value)


def test_a_nested_fault_names_its_place(tmp_path: Path) -> None:
    text = "name: t\ntasks:\n  arc: {kind: arc, source: {file: x}}\n"
    with pytest.raises(ThaikitError, match=r"unknown key 'tasks\.arc\.source\.file' \(did you mean 'files'\?\)"):
        load("tasks", model_file(tmp_path, text), TaskSet)
    text = "name: t\ntasks:\n  arc: {kind: arc, shots: 3, source: {files: x}}\n"
    with pytest.raises(ThaikitError, match=r"tasks\.arc: shots is 3 but exemplars is missing"):
        load("tasks", model_file(tmp_path, text), TaskSet)
    text = "name: t\ntasks:\n  arc: {kind: arc, source: {hub: a/b}}\n"
    with pytest.raises(ThaikitError, match="without revision"):
        load("tasks", model_file(tmp_path, text), TaskSet)


def test_a_pinned_commit_and_a_local_folder_may_run_code(tmp_path: Path) -> None:
    commit = "0123456789abcdef" * 2 + "01234567"
    pinned = f'source: x/y\ntrust_remote_code: true\nrevision: "{commit}"'
    assert load("models", model_file(tmp_path, pinned), ModelEntry).trust_remote_code
    local = f"source: {tmp_path}\nallow_pickle: true"
    assert load("models", model_file(tmp_path, local), ModelEntry).allow_pickle


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfsource: x/y\n")
    assert load("models", str(path), ModelEntry).source == "x/y"


def test_other_encodings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.yaml"
    path.write_bytes("note: ไทย".encode("tis-620"))
    with pytest.raises(ThaikitError, match="not readable as YAML"):
        read_yaml(path)


def test_a_missing_file_names_the_nearest() -> None:
    with pytest.raises(ThaikitError, match=r"no file 'gemma3-270' \(did you mean 'gemma3-270m'\?\); there are .*smol"):
        load("models", "gemma3-270", ModelEntry)
    with pytest.raises(ThaikitError, match="no file '/nowhere/x.yaml'"):
        load("models", "/nowhere/x.yaml", ModelEntry)


ALLOWED = {
    "model": ("str", ""), "limit": ("int", 0), "share": ("float", 0.5), "only": ("list[str]", []), "on": ("bool", True)
}  # fmt: skip


def test_notebook_parameters_are_checked_by_name_and_type() -> None:
    good = {"model": "x", "limit": 3, "share": 1, "only": ["arc"], "on": False}
    check_notebook_params(good, ALLOWED, where="suite s")
    with pytest.raises(
        ThaikitError, match=r"suite s: unknown parameter 'modle' \(did you mean 'model'\?\); it has limit"
    ):
        check_notebook_params({"modle": "x"}, ALLOWED, where="suite s")
    for name, value in (("limit", "3"), ("limit", True), ("limit", 2.5), ("only", "arc"), ("on", 1), ("model", 7)):
        with pytest.raises(ThaikitError, match=f"parameter '{name}' is {value!r}, it must be of type"):
            check_notebook_params({name: value}, ALLOWED, where="suite s")


def test_places_are_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("THAI_ROWS", str(tmp_path))
    monkeypatch.delenv("NOT_SET", raising=False)
    assert expand("$THAI_ROWS/x", base=root()) == tmp_path / "x"
    assert expand("data/x", base=root()) == root() / "data" / "x"
    assert expand("samples:thai_h6", base=root()) == root() / "thaikit" / "samples" / "thai_h6"
    with pytest.raises(ThaikitError, match="the environment variable NOT_SET is not set"):
        expand("${NOT_SET}/x", base=root())


def test_values_set_anew_are_checked_like_a_file() -> None:
    tasks = load("tasks", "thai-h6-samples", TaskSet)
    assert params.changed(tasks, {"profile": "v1"}, where="tasks").profile == "v1"
    with pytest.raises(ThaikitError, match="tasks x: key 'profile' is 'v9'"):
        params.changed(tasks, {"profile": "v9"}, where="tasks x")
