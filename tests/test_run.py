"""Suites: checked before anything starts, run one process a leaf, resumed after whatever ended them."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from thaikit import ThaikitError, run
from thaikit.__main__ import main
from thaikit.inputs import inputs_of
from thaikit.params import Suite
from thaikit.plan import Leafplan, leaf_name, notebook_parameters, plan, slug, waits_for
from thaikit.records import partial, read_rows, root

PARAMETERS = """how: str = "ok"  # what happens
rows: int = 3  # items
mended: str = ""  # a file, once it is there nothing happens any more
tasks: str = ""  # a task file
data: str = ""  # its folder
note: str = "a # = b"  # help # with signs = in it
out_dir: str = ""  # the leaf
"""
BODY = """import os, signal, sys, time
from pathlib import Path
from thaikit import ThaikitError
from thaikit.inputs import inputs_of
from thaikit.records import Run
given = dict(how=how, rows=rows, mended=mended, tasks=tasks, data=data, note=note)
run = Run.open("toy", params=given, inputs=inputs_of("toy", given), out_dir=out_dir)
log = run.log("arc")
for index in range(rows if run.closed is False else 0):
    if f"i{index}" not in log.ids:
        log.append({"id": f"i{index}", "index": index, "outcome": "ok", "score": 1.0, "pid": os.getpid()})
"""
HAPPENS = """if not (mended and Path(mended).exists()):
    if how == "raise":
        raise KeyError("x\\ny")
    if how == "fault":
        raise ThaikitError("file f, key k: found 1, allowed is 2")
    if how == "exit":
        sys.exit(0)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "sleep":
        time.sleep(60)
"""
FINISH = 'run.finish(headline={"toy": {"arc": {"value": 0.25}, "average": {"value": 0.5, "n": rows}}})'
OVERVIEW = """suite: str = ""  # the suite's folder
out_dir: str = ""  # the leaf
"""
OVERVIEW_BODY = """import json
from ipykernel.connect import get_connection_info
from thaikit.inputs import inputs_of
from thaikit.records import Run, leaves
run = Run.open("overview", params={"suite": suite}, inputs=inputs_of("overview", {"suite": suite}), out_dir=out_dir)
transport = json.loads(get_connection_info())["transport"]
run.finish(headline={}, read=[leaf.name for leaf in leaves(suite, stage="toy")], transport=transport)
"""


def write_notebook(path: Path, parameters: str, *cells: str, tag: str = "parameters") -> Path:
    """A notebook whose first cell is tagged."""
    made = [
        {"cell_type": "code", "id": f"c{n}", "execution_count": None, "outputs": [], "metadata": {}, "source": source}
        for n, source in enumerate((parameters, *cells))
    ]
    made[0]["metadata"] = {"tags": [tag]}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    data = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebooks")
    write_notebook(folder / "10_toy.ipynb", PARAMETERS, BODY, HAPPENS, FINISH)
    write_notebook(folder / "90_overview.ipynb", OVERVIEW, OVERVIEW_BODY)
    return folder


def suite_of(*stages: dict[str, Any], name: str = "s") -> Suite:
    return Suite.model_validate({"name": name, "stages": list(stages)})


def toy(notebooks: Path, *how: str, **params: Any) -> dict[str, Any]:
    return {"notebook": str(notebooks / "10_toy.ipynb"), "each": {"how": list(how)}, "params": params}


def pids(folder: Path) -> list[int]:
    return [row["pid"] for row in read_rows(folder / "rows" / "arc.jsonl")]


# ------------------------------------------------------------------------------------------------ plan


def test_a_plan_names_each_leaf_and_fills_the_suite_in(notebooks: Path, tmp_path: Path) -> None:
    stages = (toy(notebooks, "ok", "raise", rows=2), {"notebook": str(notebooks / "90_overview.ipynb")})
    leaves = plan(suite_of(*stages), outputs=tmp_path)
    assert [leaf.name for leaf in leaves] == ["toy/ok", "toy/raise", "overview"]
    assert [leaf.order for leaf in leaves] == [0, 0, 1]
    assert leaves[1].folder == tmp_path / "s" / "toy" / "raise" and leaves[1].params == {"rows": 2, "how": "raise"}
    assert leaves[2].params == {"suite": str(tmp_path / "s")}
    assert not list(tmp_path.iterdir())
    with pytest.raises(AttributeError):
        leaves[0].name = "x"  # type: ignore[misc]


TASKS = "thai-h6-samples"


@pytest.mark.parametrize(
    ("stage", "sentence"),
    [
        ({"notebook": "10_thai_h7"}, r"no notebook '10_thai_h7' \(did you mean '10_thai_h6'\?\)"),
        ({"params": {"row": 3}}, r"suite s, stage 10_toy: unknown parameter 'row' \(did you mean 'rows'\?\)"),
        ({"params": {"rows": "3"}}, r"stage 10_toy: parameter 'rows' is '3', it must be of type int"),
        ({"params": {"tasks": "thai-h6"}}, r"stage 10_toy: params/tasks: no file 'thai-h6' \(did you mean"),
        ({"each": {"tasks": [TASKS], "data": ["/nowhere"]}}, r"data '/nowhere' is no folder; name the folder"),
        ({"params": {"tasks": TASKS, "data": "samples:"}}, r"task arc: no file matches 'arc/test.jsonl' below"),
        ({"params": {"out_dir": "x"}}, r"the parameter out_dir is set by the runner, take it out"),
        ({"each": {"how": ["a"]}, "params": {"how": "b"}}, r"'how' stands in each and in params; keep one"),
        ({"each": {"how": ["a", "a"]}}, r"suite s: two runs would write the leaf toy/a; give one stage a variant"),
    ],
)
def test_faults_of_a_suite_are_found_first(notebooks: Path, tmp_path: Path, stage: Any, sentence: str) -> None:
    with pytest.raises(ThaikitError, match=sentence) as caught:
        plan(suite_of({"notebook": str(notebooks / "10_toy.ipynb"), **stage}), outputs=tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"overlength": "cut"}, r"stage 10_thai_h6: overlength is 'cut'; allowed are error, drop_shots, left, skip"),
        ({"kernel": "fast"}, r"kernel is 'fast'; allowed are tree, plain"),
        ({"profile": "v2"}, r"tasks thai-h6-samples: key 'profile' is 'v2': input should be 'v1', 'harness-0.4' or"),
        ({"labels": "de"}, r"key 'labels' is 'de': input should be 'en' or 'th'"),
    ],
)
def test_settings_of_the_kit_are_checked_first(tmp_path: Path, params: Any, sentence: str) -> None:
    with pytest.raises(ThaikitError, match=sentence):
        plan(suite_of({"notebook": "10_thai_h6", "params": params}), outputs=tmp_path)


def test_a_limit_without_prices_is_told_before_anything_runs(tmp_path: Path) -> None:
    model = {"model": ["replay-thaicli-answers"]}
    answered = {"notebook": "20_thaicli_answer", "each": model, "params": {"max_cost": 1.0}}
    judged = {"notebook": "21_thaicli_judge", "each": {**model, "judge": ["gpt-4o-2024-05-13"]}}
    assert len(plan(suite_of(answered, judged), outputs=tmp_path)) == 2  # a recorded model costs nothing
    with pytest.raises(ThaikitError, match=r"model gpt-4o-2024-05-13: max_cost is 4 but its file has no dated prices"):
        plan(suite_of(answered, {**judged, "params": {"max_cost": 4.0}}), outputs=tmp_path)


def test_answers_may_be_a_leaf_that_the_suite_has_still_to_write(tmp_path: Path) -> None:
    model, base = {"model": ["replay-thaicli-answers"]}, tmp_path / "s" / "thaicli_answer" / "replay-thaicli-answers"
    short = base.with_name(f"{base.name}--short")
    asked = [{"notebook": "20_thaicli_answer", "each": model},
             {"notebook": "20_thaicli_answer", "each": model, "params": {"limit": 7}, "variant": "short"}]  # fmt: skip
    judge = {"notebook": "21_thaicli_judge", "each": model, "variant": "short", "params": {"answers": str(short)}}
    leaves = plan(suite_of(*asked, judge), outputs=tmp_path)
    before = leaves[-1].digest()
    assert [leaf.state().state for leaf in leaves] == ["missing"] * 3
    assert [waits_for(leaves[-1], other) for other in leaves[:2]] == [False, True]
    short.mkdir(parents=True)
    (short / "run.json").write_text("{}")
    assert leaves[-1].digest() != before
    (short / "run.json").unlink()
    for stages in ([judge, *asked], [asked[0], judge]):
        with pytest.raises(ThaikitError, match="21_thaicli_judge: answers .*neither a closed leaf nor written by"):
            plan(suite_of(*stages), outputs=tmp_path)


def test_a_model_file_is_checked_too(tmp_path: Path) -> None:
    source = 'model: str = "x"  # a model\nout_dir: str = ""  # the leaf'
    notebook = write_notebook(tmp_path / "10_m.ipynb", source)
    with pytest.raises(ThaikitError, match=r"no file 'gemma' \(did you mean|params/models: no file 'gemma'"):
        plan(suite_of({"notebook": str(notebook), "each": {"model": ["gemma"]}}), outputs=tmp_path)


@pytest.mark.parametrize(
    ("parameters", "tag", "sentence"),
    [
        ("n: int = 1", "other", "0 cells are tagged parameters; there must be exactly one"),
        ("n = 1", "parameters", r"has `n = 1` \(no annotated literal\); each line is `name: type = literal  # help`"),
        ("n: int = 1 + x", "parameters", r"has `n: int = 1 \+ x`"),
        ("n: int | None = None", "parameters", "an annotation that papermill cannot read"),
        ("import os", "parameters", "has `import os`"),
        ("n: int = (", "parameters", "not valid Python"),
    ],
)
def test_a_parameters_cell_holds_literals_only(tmp_path: Path, parameters: str, tag: str, sentence: str) -> None:
    with pytest.raises(ThaikitError, match=sentence):
        notebook_parameters(write_notebook(tmp_path / "n.ipynb", parameters, tag=tag))


def test_parameters_come_with_type_default_and_help(notebooks: Path) -> None:
    found = notebook_parameters(notebooks / "10_toy.ipynb")
    assert list(found)[0] == "how" and found["rows"] == ("int", 3, "items")
    assert found["note"] == ("str", "a # = b", "help # with signs = in it")


def test_every_notebook_of_the_kit_has_a_parameters_cell_that_can_be_planned() -> None:
    for path in sorted((root() / "notebooks").glob("*.ipynb")):
        found = notebook_parameters(path)
        assert found["out_dir"][:2] == ("str", "") and len(found) <= 12, path.name
        assert all(help_ for _, _, help_ in found.values()), path.name


def test_the_shipped_suites_can_be_planned(tmp_path: Path) -> None:
    for path in sorted((root() / "params" / "suites").glob("*.yaml")):
        assert main(["plan", str(path), "--outputs", str(tmp_path)]) == 0


def test_leaf_names_are_ascii() -> None:
    chosen = {"model": "org/name", "judge": "j", "data": "xquad", "shots": "5"}
    assert leaf_name(chosen, "long run") == "org--name--j--xquad-5shot--long-run"
    assert leaf_name({}, "") == ""
    assert slug("/a/b/mine.yaml") == "mine" and slug("../x") == "x" and len(slug("..")) == 8
    assert slug("ไทย").isascii() and slug("ไทย") != slug("ลาว") and len(slug("ไทย")) == 8


# ------------------------------------------------------------------------------------------------ inputs


def test_inputs_follow_the_content_of_what_decides_a_leaf(tmp_path: Path) -> None:
    rows = tmp_path / "arc"
    rows.mkdir()
    tasks = tmp_path / "t.yaml"
    tasks.write_text(
        "name: t\ntasks:\n  arc: {kind: arc, source: {files: arc}}\n  b: {kind: arc, source: {files: b}}\n"
    )
    (rows / "a.jsonl").write_text('{"x": 1}\n')
    given = {"tasks": str(tasks), "data": str(tmp_path), "only": ["arc"]}
    before = inputs_of("toy", given)
    assert set(before) == {f"tasks/{tasks}", "data/arc/a.jsonl"}
    assert inputs_of("toy", {**given, "limit": 3}) == before
    (rows / "a.jsonl").write_text('{"x": 2}\n')
    after = inputs_of("toy", given)
    assert [name for name in before if before[name] != after[name]] == ["data/arc/a.jsonl"]
    with pytest.raises(ThaikitError, match=r"task t, task b: no file matches 'b'|tasks t, task b: no file matches 'b'"):
        inputs_of("toy", {**given, "only": []})
    with pytest.raises(ThaikitError, match=r"no task 'ark' \(did you mean 'arc'\?\); it has arc, b"):
        inputs_of("toy", {**given, "only": ["ark"]})


def test_weights_in_a_folder_and_recorded_answers_are_inputs(tmp_path: Path) -> None:
    weights = tmp_path / "w"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"x")
    entry = tmp_path / "m.yaml"
    entry.write_text(f"source: {weights}\n")
    before = inputs_of("toy", {"model": str(entry)})
    (weights / "model.safetensors").write_bytes(b"xy")
    assert inputs_of("toy", {"model": str(entry)})["source/w"] != before["source/w"]
    entry.write_text(f"kind: replay\nsource: {tmp_path / 'r.gz'}\n")
    with pytest.raises(ThaikitError, match="no recorded answers"):
        inputs_of("toy", {"model": str(entry)})
    (tmp_path / "r.gz").write_bytes(b"")
    assert "records/r.gz" in inputs_of("toy", {"model": str(entry)})


def test_a_stage_over_a_suite_reads_leaves_but_never_its_own(tmp_path: Path) -> None:
    for place in ("toy/a", "toy/b.partial", "report", "overview"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "run.json").write_text('{"x": 1}')
    assert list(inputs_of("overview", {"suite": str(tmp_path)})) == ["toy/a/run.json"]
    assert list(inputs_of("report", {"suite": str(tmp_path)})) == ["overview/run.json", "toy/a/run.json"]
    assert inputs_of("report", {"suite": str(tmp_path / "none")}) == {} == inputs_of("report", {"suite": ""})
    for stage in ("thaicli_answer", "mrc_answer", "judge_bench"):  # the suite's cost ledger is all that they share
        given = {"model": "replay-mrc-answers", "tasks": "mrc-samples"}
        assert inputs_of(stage, {**given, "suite": str(tmp_path)}) == inputs_of(stage, given)


# ------------------------------------------------------------------------------------------------ run

JUDGED = (
    {"notebook": "10_thai_h6", "each": {"model": ["a", "b"]}},
    {"notebook": "20_thaicli_answer", "each": {"model": ["a", "b"]}},
    {"notebook": "21_thaicli_judge", "each": {"model": ["a", "b"], "judge": ["j"]}},
    {"notebook": "90_report"},
)


def leaves_of(stages: Sequence[Mapping[str, Any]]) -> list[Leafplan]:
    """The leaves of stages without a look at any file."""
    made = []
    for order, stage in enumerate(stages):
        path = root() / "notebooks" / f"{stage['notebook']}.ipynb"
        defaults = {name: default for name, (_, default, _) in notebook_parameters(path).items()}
        each = stage.get("each", {})
        for values in itertools.product(*each.values()):
            given, short = dict(zip(each, values, strict=True)), stage["notebook"][3:]
            name = "/".join([short, *(["--".join(values)] if values else [])])
            made.append(Leafplan(short, path, given | stage.get("params", {}), defaults, Path(name), name, order))
    return made


def test_a_leaf_waits_for_what_it_may_read_and_for_nothing_else() -> None:
    found = {leaf.name: leaf for leaf in leaves_of(JUDGED)}
    waits = {name: {other for other in found if waits_for(found[name], found[other])} for name in found}
    assert waits["thaicli_answer/a"] == waits["thai_h6/a"] == set()
    assert waits["thaicli_judge/a--j"] == {"thaicli_answer/a"}
    assert waits["report"] == set(found) - {"report"}
    for key, place, awaited in (
        ("answers", "somewhere", set()),
        ("answers", str(root() / "thaicli_answer" / "b"), {"thaicli_answer/b"}),
        ("answers", "thaicli_answer/b/rows/answers.jsonl", {"thaicli_answer/b"}),
        ("against", ["thai_h6/b"], {"thai_h6/b", "thaicli_answer/a"}),
        ("judgements", "thai_h6/b", {"thai_h6/b", "thaicli_answer/a"}),
    ):
        named = leaves_of([*JUDGED[:2], {**JUDGED[2], "params": {key: place}}])
        named = [replace(leaf, folder=root() / leaf.folder) for leaf in named]
        judge = next(leaf for leaf in named if leaf.name == "thaicli_judge/a--j")
        assert {other.name for other in named if waits_for(judge, other)} == awaited


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_leaves_start_when_their_inputs_are_there(monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    leaves = leaves_of(JUDGED)
    ended: set[str] = set()
    begun: list[str] = []
    most = [0]

    def attempt(leaf: Leafplan, runner: run.Runner) -> run.Done:
        assert all(other.name in ended for other in leaves if waits_for(leaf, other))
        begun.append(leaf.name)
        most[0] = max(most[0], len(begun) - len(ended))
        time.sleep(0.3 if leaf.name == "thai_h6/a" else 0.02)
        ended.add(leaf.name)
        return run.Done(leaf.name, "done")

    monkeypatch.setattr(run, "attempt", attempt)
    assert {one.name for one in run.run(leaves, jobs=jobs)} == {leaf.name for leaf in leaves}
    assert most[0] == jobs if jobs < 3 else most[0] <= jobs
    if jobs == 1:
        assert begun == [leaf.name for leaf in leaves]
    else:  # the slow leaf holds up none but the report
        assert begun[-1] == "report" and set(begun[:-1]) == {leaf.name for leaf in leaves[:-1]}


HOWS = ("ok", "raise", "fault", "exit", "kill")


@pytest.fixture(scope="module")
def first(notebooks: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """One run of leaves that end in every way, two at once, and of a stage that reads them."""
    outputs = tmp_path_factory.mktemp("outputs")
    mended = outputs / "mended"
    stages = (toy(notebooks, *HOWS, mended=str(mended)), {"notebook": str(notebooks / "90_overview.ipynb")})
    leaves = plan(suite_of(*stages), outputs=outputs)
    done = {one.name: one for one in run.run(leaves, jobs=2)}
    yield {"leaves": leaves, "done": done, "base": outputs / "s", "mended": mended}


@pytest.mark.slow
def test_every_way_to_fail_is_named_and_the_others_go_on(first: dict[str, Any]) -> None:
    done, base = first["done"], first["base"]
    assert {name: one.state for name, one in done.items()} == {
        "toy/ok": "done", "overview": "done", **{f"toy/{how}": "failed" for how in HOWS[1:]}
    }  # fmt: skip
    assert done["toy/ok"].told == "toy average 0.500"
    reasons = {how: done[f"toy/{how}"].told.removeprefix(f"{base}/toy/{how}.partial: ") for how in HOWS[1:]}
    assert reasons["raise"].startswith("KeyError: ") and reasons["raise"].endswith("(in cell 4)")
    assert reasons["fault"] == "file f, key k: found 1, allowed is 2"
    assert reasons["exit"].startswith("the notebook ended without closing its leaf")
    assert reasons["kill"].startswith("kernel died (often memory): lower batch_size")
    assert not any("\n" in reason for reason in reasons.values())
    for how in HOWS[1:]:
        assert not (base / "toy" / how).exists()
        assert (base / "toy" / f"{how}.partial" / "notebook.ipynb").stat().st_size
    record = json.loads((base / "overview" / "run.json").read_text())
    assert record["read"] == ["ok"] and record["transport"] == "ipc"
    assert not (base / "toy" / "ok.partial").exists() and not list((base / "toy" / "ok").glob(".*"))


@pytest.mark.slow
def test_the_next_run_resumes_the_failed_and_leaves_the_closed_alone(first: dict[str, Any]) -> None:
    base = first["base"]
    before = {how: pids(base / "toy" / f"{how}.partial") for how in HOWS[1:]}
    stamp = (base / "toy" / "ok" / "run.json").stat().st_mtime_ns
    first["mended"].touch()
    again = {one.name: one for one in run.run(first["leaves"], jobs=2)}
    first["mended"].unlink()
    assert {name: one.state for name, one in again.items()} == {
        "toy/ok": "closed", "overview": "done", **{f"toy/{how}": "done" for how in HOWS[1:]}
    }  # fmt: skip
    assert again["toy/ok"].told == "toy average 0.500"
    assert (base / "toy" / "ok" / "run.json").stat().st_mtime_ns == stamp
    assert {how: pids(base / "toy" / how) for how in HOWS[1:]} == before  # no row was computed again
    assert json.loads((base / "overview" / "run.json").read_text())["read"] == sorted(HOWS)
    begun = time.monotonic()
    assert {one.state for one in run.run(first["leaves"])} == {"closed"}
    assert time.monotonic() - begun < 5


@pytest.mark.slow
def test_a_bad_rerun_leaves_the_good_leaf_until_a_good_one_replaces_it(notebooks: Path, tmp_path: Path) -> None:
    def go(how: str, rows: int) -> run.Done:
        """The same leaf with other parameters."""
        (leaf,) = plan(suite_of({**toy(notebooks, rows=rows, how=how), "each": {}}), outputs=tmp_path)
        return run.run([leaf])[0]

    folder = tmp_path / "s" / "toy"
    assert go("ok", 2).state == "done" and len(pids(folder)) == 2
    assert go("kill", 3).state == "failed"
    assert len(pids(folder)) == 2 and len(pids(partial(folder))) == 3
    assert go("ok", 1).state == "done"
    assert len(pids(folder)) == 1 and not partial(folder).exists()
    (aside,) = folder.parent.glob("toy.partial.old-*")  # begun with other inputs: kept, not mixed in
    assert len(pids(aside)) == 3
    assert not list(folder.parent.glob(".*replaced"))


@pytest.mark.slow
def test_a_second_run_waits_for_the_lock(
    notebooks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (leaf,) = plan(suite_of(toy(notebooks, "ok")), outputs=tmp_path)
    leaf.folder.parent.mkdir(parents=True)
    handle = os.open(leaf.folder.with_name(".ok.lock"), os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    done: list[run.Done] = []
    thread = threading.Thread(target=lambda: done.extend(run.run([leaf])))
    thread.start()
    time.sleep(4)
    assert not done and not partial(leaf.folder).exists()
    assert "another run works on this leaf" in capsys.readouterr().out
    os.close(handle)
    thread.join(60)
    assert [one.state for one in done] == ["done"]


@pytest.mark.slow
def test_a_leaf_past_its_timeout_is_ended(notebooks: Path, tmp_path: Path) -> None:
    (leaf,) = plan(suite_of({**toy(notebooks, "sleep"), "timeout": 6}), outputs=tmp_path)
    (done,) = run.run([leaf])
    assert done.state == "failed" and "ran past its timeout of 6 s" in done.told


def start(suite: Path, outputs: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "thaikit", "run", str(suite), "--outputs", str(outputs)]
    # A shell's background job ignores Ctrl-C, and so would all that it starts.
    signals = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **signals)


def wait_for_rows(folder: Path, count: int) -> list[int]:
    for _ in range(600):
        path = folder / "rows" / "arc.jsonl"
        if path.exists() and len(read_rows(path)) >= count:
            return pids(folder)
        time.sleep(0.1)
    raise AssertionError(f"no rows in {folder}")


def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_runner_takes_its_children_along_and_is_resumed(
    notebooks: Path, tmp_path: Path, sign: signal.Signals
) -> None:
    mended, suite = tmp_path / "mended", tmp_path / "s.yaml"
    stage = f"notebook: {notebooks / '10_toy.ipynb'}, each: {{how: [sleep]}}, params: {{mended: {mended}}}"
    suite.write_text(f"name: s\nstages:\n  - {{{stage}}}\n")
    folder = tmp_path / "out" / "s" / "toy" / "sleep"
    child = start(suite, tmp_path / "out")
    rows = wait_for_rows(partial(folder), 3)
    child.send_signal(sign)
    _, err = child.communicate(timeout=60)
    assert child.returncode == (-9 if sign == signal.SIGKILL else 130)
    assert "Traceback" not in err
    assert gone(rows[0])
    assert not folder.exists()
    mended.touch()
    again = start(suite, tmp_path / "out")
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, err
    assert "done     toy/sleep" in out and "1 done" in out
    assert pids(folder) == rows


def test_what_went_wrong_is_told_from_status_and_record(tmp_path: Path) -> None:
    assert run.reason_of(0, tmp_path) == ""
    assert "lower batch_size" in run.reason_of(-9, tmp_path) and "lower batch_size" in run.reason_of(138, tmp_path)
    assert "status 3; see" in run.reason_of(3, tmp_path)
    assert "closing its leaf" in run.fault_of_record(tmp_path, "a")
    (tmp_path / "run.json").write_text('{"input_hash": "b"}')
    assert "other inputs than the suite says" in run.fault_of_record(tmp_path, "a")
    assert run.fault_of_record(tmp_path, "b") == ""
    (tmp_path / "run.json").write_text('{"input_hash"')
    assert "closing its leaf" in run.fault_of_record(tmp_path, "a")


def test_cores_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(run, "cores", lambda: 6)
    assert run.Runner(4).environment()["OMP_NUM_THREADS"] == "1"
    assert run.Runner(2).environment()["OMP_NUM_THREADS"] == "3"
    assert "OMP_NUM_THREADS" not in run.Runner(1).environment()
    assert run.Runner(1).environment()["THAIKIT_BATCH"] == "1"
    with pytest.raises(ThaikitError, match="-j 0"):
        run.run([], jobs=0)


def test_one_failed_leaf_makes_the_exit_status_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    suite = tmp_path / "s.yaml"
    notebook = write_notebook(tmp_path / "10_toy.ipynb", PARAMETERS)
    suite.write_text(f"name: s\nstages:\n  - {{notebook: {notebook}, each: {{how: [a, b]}}}}\n")

    def work(leaf: Leafplan, _: run.Runner) -> tuple[str, str]:
        if leaf.name == "toy/a":
            raise ThaikitError("no")
        return "done", ""

    monkeypatch.setattr(run, "work", work)
    common = ["--outputs", str(tmp_path / "out")]
    assert main(["run", str(suite), *common]) == 1
    assert main(["run", str(suite), "--only", "toy/b", *common]) == 0
    assert main(["leaf", str(suite), "toy/a", *common]) == 1
    assert main(["leaf", str(suite), "toy/b", *common]) == 0


def test_a_torn_record_fails_its_own_leaf_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    notebook = write_notebook(tmp_path / "10_toy.ipynb", PARAMETERS)
    leaves = plan(suite_of({"notebook": str(notebook), "each": {"how": ["a", "b"]}}), outputs=tmp_path)
    leaves[0].folder.mkdir(parents=True)
    (leaves[0].folder / "run.json").write_text("")
    monkeypatch.setattr(run, "run_process", lambda *_: "not run here")
    first, second = run.run(leaves)
    assert first.state == "failed" and "not JSON" in first.told and "delete the leaf" in first.told
    assert second.told.endswith("not run here")


def test_a_users_fault_is_one_line_and_status_two(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["run", "demmo"]) == 2
    assert "did you mean 'demo'?" in capsys.readouterr().err
    assert main(["run", "demo", "--only", "nothing", "--outputs", str(tmp_path)]) == 2
    assert "matches no leaf" in capsys.readouterr().err
    assert main(["leaf", "demo", "thai_h6/gemma", "--outputs", str(tmp_path)]) == 2
    assert "did you mean 'thai_h6/gemma3-270m'" in capsys.readouterr().err


def test_plan_prints_lines_that_a_shell_can_take(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    notebook = write_notebook(tmp_path / "10_toy.ipynb", PARAMETERS)
    suite = tmp_path / "my suite.yaml"
    suite.write_text(f"name: s\nstages:\n  - {{notebook: '{notebook}', each: {{how: [a, b]}}}}\n")
    assert main(["plan", str(suite)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{sys.executable} -m thaikit leaf '{suite}' toy/{how}" for how in ("a", "b")]
    assert main(["status", str(suite), "--outputs", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("missing  toy/a")
