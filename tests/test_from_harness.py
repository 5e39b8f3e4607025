"""Results of lm-evaluation-harness as leaves: a folder that the harness itself wrote, and what may be wrong with it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness_folder
import pytest
from test_export import close

from thaikit import ThaikitError, figures, metrics, own, report, stats
from thaikit.__main__ import main
from thaikit.records import leaves, read_leaf, read_rows, status
from thaikit.tasks import harness_sets
from thaikit.tasks.export import export_leaf
from thaikit.tasks.from_harness import import_results

pytest.importorskip("lm_eval")
NEW, DATE = "2031-01-02T03-04-05.678901", "2030-05-06T07-08-09.000001"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return harness_folder.make(tmp_path_factory.mktemp("harness"))


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(written, tmp_path / "results"))


def one(folder: Path, pattern: str) -> Path:
    (found,) = folder.rglob(pattern)
    return found


def edit(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def edit_lines(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    rows = read_rows(path)
    for row in rows:
        change(row)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def results_of(**tasks: Any) -> dict[str, Any]:
    """A results file of our own, in the harness's schema: task → (numbers, n)."""
    return {
        "results": {name: {"alias": name, **numbers} for name, (numbers, _) in tasks.items()},
        "n-samples": {name: {"original": n, "effective": n} for name, (_, n) in tasks.items()},
        "config": {"model": "hf", "model_args": {"pretrained": "lab/first-7b"}}, "lm_eval_version": "0.4.9",
    }  # fmt: skip


def put(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_what_the_harness_wrote_is_a_leaf_that_all_readers_see(written: Path, tmp_path: Path) -> None:
    (made,) = import_results(written, "mine", outputs=tmp_path)
    leaf, told = read_leaf(made.path), json.loads(one(written, "results_*.json").read_text())["results"]
    assert made.path == tmp_path / "mine/thai_h6/tiny-thai" and not made.already
    assert list(leaf.run["tasks"]) == ["arc", "mmlu", "truthfulqa", "winogrande", "gsm8k", "xcopa_th"]
    headline, rows = leaf.run["headline"]["thai_h6"], read_rows(leaf.path / "rows/arc.jsonl")
    for name, theirs in (("arc", told["arc_th"]["acc_norm,none"]), ("truthfulqa", told["truthfulqa_mc2"]["acc,none"]),
                         ("winogrande", told["winogrande"]["acc,none"]), ("mmlu_micro", told["mmlu"]["acc,none"]),
                         ("gsm8k", told["gsm8k"]["exact_match,strict-match"])):  # fmt: skip
        assert headline[name]["value"] == pytest.approx(theirs, abs=1e-9)
    right = int(sum(row["acc_norm"] for row in rows))
    assert headline["arc"] == stats.wilson(right, 3).as_dict() and "average" not in headline
    for facts in leaf.run["tasks"].values():  # all that the log allows is worked out again and agrees
        assert facts["profile"] == "harness-import" and facts["recomputed"]["differ"] == {}
        assert set(facts["recomputed"]["compared"].values()) == {facts["n"]} and not facts["recomputed"]["impossible"]
    assert leaf.run["tasks"]["arc"]["chance"] == 0.25 and leaf.run["tasks"]["gsm8k"]["chance"] == 0.0
    assert leaf.run["model"]["parameters"] > 10_000 and "0.4.13|task:arc_th|" in leaf.run["tasks"]["arc"]["signature"]
    (first, *_) = read_rows(leaf.path / "rows/mmlu.jsonl")
    assert first["choices"] == list("ABCD") and len(first["shown"]) == 4 and first["subject"] in first["id"]
    assert [row["gold"] for row in read_rows(leaf.path / "rows/winogrande.jsonl")] == [0, 1, 0]
    seen = own.own_results(tmp_path / "mine")
    assert set(seen["task"]) == {"arc", "mmlu", "truthfulqa", "winogrande", "gsm8k"} and seen["ranked"].all()
    assert [state.state for state in status(tmp_path / "mine")] == ["closed"]
    again = import_results(written, "mine", outputs=tmp_path)
    assert again[0].already and again[0].headline == made.headline


def test_the_kits_own_leaf_goes_out_and_comes_back_with_its_scores(tmp_path: Path) -> None:
    leaf = close(tmp_path / "suite/thai_h6/kit", limit=6)
    export_leaf(leaf, tmp_path / "out")
    (made,) = import_results(tmp_path / "out", "back", outputs=tmp_path)
    before, after = (read_leaf(path) for path in (leaf, made.path))
    assert after.run["headline"]["thai_h6"] == before.run["headline"]["thai_h6"] and made.path.name == "kit"
    for task, facts in before.run["tasks"].items():
        mine, theirs = (read_rows(one.path / f"rows/{task}.jsonl") for one in (before, after))
        for name in ("id", "subject", "question", "score", "gold", "ll", "prediction", "acc", "labels", "mc1", "v1",
                     "reference", "choices", "shots"):  # fmt: skip
            assert [row.get(name) for row in theirs] == [row.get(name) for row in mine], (task, name)
        assert after.run["tasks"][task]["chance"] == pytest.approx(facts["chance"])
    assert after.run["params"]["limit"] == 6
    with pytest.raises(ThaikitError, match="imported from lm-evaluation-harness"):
        export_leaf(made.path)


def test_without_samples_the_counts_of_the_results_decide(tmp_path: Path) -> None:
    told = results_of(
        arc_challenge_th=({"acc,none": 0.3, "acc_norm,none": 0.35, "acc_norm_stderr,none": 0.1}, 20),
        truthfulqa_th_mc2=({"acc,none": 0.5}, 10), mmlu_virology=({"acc,none": 0.5}, 4),
        mmlu_anatomy=({"acc,none": 1.0}, 2),
        thaiexam_onet=({"acc,none": 0.123456}, 7), wikitext=({"word_perplexity,none": 21.5}, 9),
        mgsm_direct_th=({"exact_match,remove_whitespace": 0.25, "exact_match,flexible-extract": 0.5}, 8),
    )  # fmt: skip
    put(tmp_path / "r" / f"results_{DATE}.json", told)
    (made,) = import_results(tmp_path / "r", "s", outputs=tmp_path)
    got = made.headline
    value, low, high, n = (got["arc"][key] for key in ("value", "low", "high", "n"))
    assert (value, n) == (0.35, 20) and (low, high) == (stats.wilson(7, 20).low, stats.wilson(7, 20).high)
    assert "from the results file" in got["arc"]["method"]
    assert got["mmlu"]["value"] == 0.75 and got["mmlu_micro"]["value"] == pytest.approx(4 / 6)
    assert got["truthfulqa"]["value"] == 0.5 and got["truthfulqa"]["low"] is None  # a mean of shares is no count
    assert got["thaiexam_onet"]["low"] is None and "is no whole count" in got["thaiexam_onet"]["method"]
    assert got["mgsm_direct_th"]["value"] == 0.5 and "wikitext" not in got
    assert any(note.startswith("wikitext: left out") for note in made.notes)
    assert any("mmlu_virology" not in note and "nothing shows" in note and "mmlu" in note for note in made.notes)
    seen = own.own_results(tmp_path / "s")
    assert len(seen) and not seen["ranked"].any()
    assert read_leaf(made.path).tasks() == []


def test_names_of_tasks() -> None:
    known = {"arc_th": "arc", "arc_challenge": "arc", "m_arc_th": "arc", "hellaswag_th": "hellaswag", "mmlu": "mmlu",
             "m_mmlu_th": "mmlu", "mmlu_th_virology": "mmlu", "mmlu_world_religions": "mmlu", "gsm8k_th": "gsm8k",
             "hendrycksTest-virology": "mmlu", "truthfulqa_mc2": "truthfulqa", "truthfulqa_th_mc1": "truthfulqa",
             "truthfulqa_mc1_th": "truthfulqa", "winogrande": "winogrande",
             "thai_winogrande": "winogrande"}  # fmt: skip
    for name, kit in known.items():
        assert harness_sets.default(name)[0] == kit, name  # type: ignore[index]
    for name in ("arc_easy", "arc_de", "mmlu_pro", "mmlu_prox_th", "mmlu_stem", "gsm8k_cot", "mgsm_direct_th",
                 "truthfulqa_gen", "belebele_tha_Thai", "xcopa_th", "thaiexam", "arc_challenge_mt_da"):  # fmt: skip
        assert harness_sets.default(name) is None, name
    assert harness_sets.default("mmlu_th_virology")[1].subject == "virology"  # type: ignore[index]


def test_thai_takes_the_kits_name_and_a_map_decides(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    told = results_of(
        arc_challenge=({"acc_norm,none": 0.5}, 10), arc_th=({"acc_norm,none": 0.2}, 10), my_set=({"acc,none": 0.9}, 10)
    )  # fmt: skip
    put(tmp_path / "r/results.json", told)
    (made,) = import_results(tmp_path / "r", "a", outputs=tmp_path)
    assert made.headline["arc"]["value"] == 0.2 and made.headline["arc_en"]["value"] == 0.5
    call = ["import", str(tmp_path / "r"), "--outputs", str(tmp_path), "--suite"]
    assert main([*call, "b", "--task", "my_set=hellaswag", "arc_challenge=easy", "--model", "../other"]) == 0
    assert set(read_leaf(tmp_path / "b/thai_h6/other").run["tasks"]) == {"arc", "hellaswag", "easy"}
    assert "90.00 (" in capsys.readouterr().out
    assert main([*call, "c", "--task", "my_sett=arc"]) == 2
    assert "task 'my_sett' (did you mean 'my_set'?): not in the results of lab/first-7b" in capsys.readouterr().err
    assert main([*call, "c", "--task", "arc"]) == 2 and "NAME=TASK is needed" in capsys.readouterr().err
    assert main([*call, "a", "--task", "my_set=hellaswag"]) == 2
    assert "this leaf was closed with other inputs (map=" in capsys.readouterr().err
    put(tmp_path / "r/results.json", results_of(arc_th=({"acc,none": 0.5}, 2), m_arc_th=({"acc,none": 0.5}, 2)))
    with pytest.raises(ThaikitError, match="arc_th and m_arc_th are both arc by their names; say what they are"):
        import_results(tmp_path / "r", "d", outputs=tmp_path)


def test_of_several_dates_the_newest_counts_and_each_model_has_a_leaf(folder: Path, tmp_path: Path) -> None:
    model = one(folder, "results_*.json").parent
    put(model / f"results_{NEW}.json", results_of(arc_th=({"acc_norm,none": 0.5}, 10)) | {"model_name": str(
        json.loads(one(folder, "results_*.json").read_text())["model_name"])})  # fmt: skip
    put(folder / "another/results.json", results_of(arc_th=({"acc_norm,none": 0.1}, 10)))
    tiny, other = import_results(folder, "s", outputs=tmp_path)
    assert (other.path.name, tiny.path.name) == ("first-7b", "tiny-thai") and other.headline["arc"]["n"] == 10
    assert tiny.headline["arc"]["n"] == 10 and tiny.headline["winogrande"]["n"] == 3
    assert any("a newer file has 1 of its 8 tasks (arc_th)" in note for note in tiny.notes)
    assert {leaf.name for leaf in leaves(tmp_path / "s", stage="thai_h6")} == {"first-7b", "tiny-thai"}


def test_older_layouts(folder: Path, tmp_path: Path) -> None:
    """Flat, without dates, arguments as lists, samples as one JSON array, numbers as numbers."""
    flat = tmp_path / "flat"
    put(flat / "results.json", json.loads(one(folder, "results_*.json").read_text()))
    for path in folder.rglob("samples_*"):
        rows = read_rows(path)
        for row in rows:
            row["arguments"] = [list(asked.values()) for asked in row["arguments"].values()]
            del row["metrics"], row["prompt_hash"], row["doc_hash"]
            if "acc" in row:
                row["resps"] = [[[float(ll), flag == "True"]] for ((ll, flag),) in row["resps"]]
        name = path.name[len("samples_") :].rsplit("_", 1)[0]
        if name == "gsm8k":
            put(flat / "samples_gsm8k.json", rows)
        else:
            (flat / f"pretrained=tiny_{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (old,) = import_results(flat, "old", outputs=tmp_path)
    (new,) = import_results(folder, "new", outputs=tmp_path)
    assert old.headline == new.headline
    assert read_rows(old.path / "rows/mmlu.jsonl") == read_rows(new.path / "rows/mmlu.jsonl")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda f: one(f, "results_*").unlink(), "no results file of lm-evaluation-harness in it"),
        (lambda f: one(f, "results_*").write_bytes(one(f, "results_*").read_bytes()[:99]), r"results_.*json: not JSON"),
        (lambda f: one(f, "*arc_th*").write_bytes(one(f, "*arc_th*").read_bytes()[:-9]), r"arc_th.*line 3: not JSON"),
        (lambda f: one(f, "*arc_th*").write_bytes(one(f, "*arc_th*").read_bytes().split(b"\n")[0]), "1 items, .* 3;"),
        (lambda f: one(f, "*arc_th*").write_bytes(one(f, "*arc_th*").read_bytes() * 2), "doc_id 0 stands there twice"),
        (lambda f: edit_lines(one(f, "*arc_th*"), lambda row: row.pop("target")), r"line 1: no 'target' in it"),
        (lambda f: edit_lines(one(f, "*arc_th*"), lambda row: row.update(arguments=7)), "'arguments' holds no request"),
        (lambda f: edit_lines(one(f, "*arc_th*"), lambda row: row.update(resps=[], filtered_resps=[])), "fewer resp"),
        (lambda f: edit_lines(one(f, "*mc1*"), lambda row: row.update(doc_hash="x")), "is another row than in"),
        (lambda f: shutil.rmtree(f), "no such folder"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence_and_nothing_is_written(
    spoil: Callable[[Path], Any], told: str, folder: Path, tmp_path: Path
) -> None:
    spoil(folder)
    with pytest.raises(ThaikitError, match=told) as caught:
        import_results(folder, "s", outputs=tmp_path / "out")
    assert "\n" not in str(caught.value) and not (tmp_path / "out").exists()


def test_a_differing_number_is_counted_and_never_replaced(folder: Path, tmp_path: Path) -> None:
    edit_lines(one(folder, "*arc_th*"), lambda row: row.update(acc_norm=1.0 - row["acc_norm"]))
    edit_lines(one(folder, "*winogrande*"), lambda row: row.update(acc=float("nan")) if row["doc_id"] == 1 else None)
    (made,) = import_results(folder, "s", outputs=tmp_path)
    leaf, rows = read_leaf(made.path), read_rows(made.path / "rows/arc.jsonl")
    assert leaf.run["tasks"]["arc"]["recomputed"]["differ"] == {"acc_norm": 3}
    for row in rows:
        mine = metrics.accuracies(row["ll"], row["gold"], choices=row["choices"], tokens=[1] * 4)["acc_norm"]
        assert row["score"] == row["acc_norm"] == 1.0 - mine
    assert any(
        "arc: acc_norm worked out from the logged responses differs" in note and "3 of 3" in note for note in made.notes
    )
    assert any("the results say acc_norm" in note for note in made.notes)
    lost = read_rows(made.path / "rows/winogrande.jsonl")[1]
    assert (lost["score"], lost["outcome"]) == (None, "failed") and made.headline["winogrande"]["n"] == 2


def test_hostile_text_is_data(folder: Path, tmp_path: Path) -> None:
    attack = "<script>alert(1)</script></td>{{7*7}} \u202e ก"
    edit_lines(one(folder, "*arc_th*"), lambda row: row["doc"].update(question=attack, id="../../../etc/passwd"))
    edit_lines(one(folder, "*arc_th*"), lambda row: row.update(target="__import__('os').system('true')"))
    edit_lines(one(folder, "*gsm8k*"), lambda row: row.update(resps=[[attack]], filtered_resps=["\ud800" + attack]))

    def names(told: dict[str, Any]) -> None:
        told["model_name"] = "../../evil/<b>$x$</b>"
        for key in ("results", "n-samples", "group_subtasks", "versions", "configs"):
            if "xcopa_th" in told.get(key, {}):
                told[key]["../../<i>x"] = told[key].pop("xcopa_th")

    edit(one(folder, "results_*"), names)
    (made,) = import_results(folder, "s", outputs=tmp_path)
    assert made.path.parent == tmp_path / "s/thai_h6" and {"arc", "i_x"} <= set(made.headline)
    assert read_rows(made.path / "rows/arc.jsonl")[0]["gold"] is None  # the target is no choice, and nothing is run
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "s"]
    figures.use_style()
    page = report.build(tmp_path / "s", out_path=tmp_path / "page.html", gallery=True).read_text(encoding="utf-8")
    assert "<script" not in page and "</td>{{7*7}}" not in page and "<i>x" not in page
    assert "was imported from lm-evaluation-harness 0.4.13" in page and "How the answer ended was not logged" in page
