"""Loading local models: what is refused, what is resolved, what is recorded."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from conftest import TEXT

from thaikit import ThaikitError, models
from thaikit.model_facts import tokenizer_sha256, window
from thaikit.models import LocalModel, load
from thaikit.params import ModelEntry

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def entry(**keys: Any) -> ModelEntry:
    """An entry without the checks of params: load must refuse by itself what those refuse."""
    given = {"device": "cpu", **keys}
    return ModelEntry.model_construct(**given)


@pytest.fixture
def copy(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder, tmp_path / "copy"))


def edit(path: Path, **keys: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | keys), encoding="utf-8")


def test_import_is_light() -> None:
    heavy = "[m for m in ('torch', 'transformers', 'gguf') if m in sys.modules]"
    code = f"import sys, thaikit.models, thaikit.embedded; print({heavy})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_loaded_model_is_ready(tiny: LocalModel) -> None:
    assert not tiny.model.training and not any(p.requires_grad for p in tiny.model.parameters())
    assert (tiny.max_length, tiny.eos_ids, tiny.pad_id, tiny.device, tiny.chat) == (512, {2}, 0, "cpu", False)
    assert tiny.tokenizer("กข").input_ids[0] == 1
    ids = tiny.tokenizer(TEXT[0], return_tensors="pt").input_ids
    with torch.inference_mode():
        assert tiny.model(input_ids=ids).logits.shape == (1, ids.shape[1], len(tiny.tokenizer))


def test_facts_are_plain_and_complete(tiny: LocalModel, tiny_folder: Path) -> None:
    facts = json.loads(json.dumps(tiny.facts()))
    assert facts["name"] == "tiny" and facts["source"] == str(tiny_folder) and facts["revision"] == ""
    assert facts["dtype"] == facts["logits_dtype"] == "float32" and facts["class"] == "LlamaForCausalLM"
    assert facts["parameters"] == sum(p.numel() for p in tiny.model.parameters())
    assert {"python", "torch", "transformers", "tokenizers"} <= set(facts["versions"])
    assert len(facts["tokenizer_sha256"]) == 64 and facts["chat_template_sha256"] == ""


def test_tokenizer_digest_ignores_what_calls_leave_behind(tiny: LocalModel) -> None:
    before = tokenizer_sha256(tiny.tokenizer)
    tiny.tokenizer(TEXT, padding=True, truncation=True, max_length=5)
    assert tokenizer_sha256(tiny.tokenizer) == before


def test_dtype(tiny_folder: Path) -> None:
    half = load(entry(source=str(tiny_folder), dtype="bfloat16"), name="half")
    assert half.model.dtype == torch.bfloat16 and half.facts()["logits_dtype"] == "bfloat16"


def test_generation_config_does_not_leak(copy: Path) -> None:
    edit(copy / "generation_config.json", do_sample=True, temperature=5.0, repetition_penalty=1.9, eos_token_id=[2, 7])
    model = load(entry(source=str(copy)), name="m")
    assert model.eos_ids == {2, 7}
    left = model.model.generation_config
    assert not left.do_sample and left.repetition_penalty in (None, 1.0) and left.temperature in (None, 1.0)


def test_pickled_weights_are_refused_unless_allowed(copy: Path, tiny: LocalModel) -> None:
    (copy / "model.safetensors").unlink()
    torch.save(tiny.model.state_dict(), copy / "pytorch_model.bin")
    with pytest.raises(ThaikitError, match="no safetensors weights.*allow_pickle"):
        load(entry(source=str(copy)), name="m")
    allowed = load(entry(source=str(copy), allow_pickle=True), name="m")
    assert torch.equal(allowed.model.lm_head.weight, tiny.model.lm_head.weight)


@pytest.mark.parametrize("key", ["trust_remote_code", "allow_pickle"])
@pytest.mark.parametrize("revision", ["", "main", COMMIT[:12]])
def test_dangerous_keys_need_a_full_commit(key: str, revision: str) -> None:
    with pytest.raises(ThaikitError, match=f"{key} is on, so revision must be a full 40-digit commit"):
        load(entry(source="some/model", revision=revision, **{key: True}), name="m")


def test_own_code_is_not_run(copy: Path) -> None:
    (copy / "modeling_own.py").write_text("raise SystemExit('ran')")
    edit(
        copy / "config.json",
        model_type="own",
        auto_map={"AutoConfig": "modeling_own.C", "AutoModelForCausalLM": "modeling_own.M"},
    )
    with pytest.raises(ThaikitError, match="brings code of its own.*trust_remote_code: true"):
        load(entry(source=str(copy)), name="m")


def test_hub_that_cannot_be_reached() -> None:
    with pytest.raises(ThaikitError, match=r"^model m \(some/model\): the hub cannot be reached") as caught:
        load(entry(source="some/model", revision=COMMIT), name="m")
    assert "\n" not in str(caught.value)


def test_hub_model_in_the_cache_is_recorded_with_its_commit(tiny_folder: Path, tmp_path: Path) -> None:
    repo = tmp_path / "models--acme--tiny"
    shutil.copytree(tiny_folder, repo / "snapshots" / COMMIT)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(COMMIT)
    code = """if True:
        from thaikit.models import load
        from thaikit.params import ModelEntry
        print(load(ModelEntry(source="acme/tiny", device="cpu"), name="m").facts()["revision"])"""
    env = os.environ | {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    assert subprocess.check_output([sys.executable, "-c", code], env=env, text=True).strip() == COMMIT


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"source": "./nowhere/at/all"}, "no such folder"),
        ({"source": "embedded:nothing"}, "embedded:nothing is unknown"),
        ({"source": "samples:x", "kind": "replay"}, "no weights to load"),
        ({"chat_template": True}, "its tokenizer has none"),
        ({"chat_template": "nowhere.jinja"}, "which is no file"),
        ({"adapter": "nowhere/at-all"}, "cannot be reached"),
    ],
)
def test_faults_are_one_sentence(tiny_folder: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ThaikitError, match=message) as caught:
        load(entry(**{"source": str(tiny_folder), **keys}), name="m")
    assert "\n" not in str(caught.value)


def test_device_without_gpu(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ThaikitError, match="sees no GPU"):
        load(entry(source=str(tiny_folder), device="cuda"), name="m")


@pytest.mark.parametrize(
    ("key", "value", "library"), [("quantisation", "4bit", "bitsandbytes"), ("adapter", "x/y", "peft")]
)
def test_missing_library(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, key: str, value: str, library: str
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(models.importlib.util, "find_spec", lambda name: None if name == library else find(name))
    with pytest.raises(ThaikitError, match=f"needs {library}, which is not installed"):
        load(entry(source=str(tiny_folder), **{key: value}), name="m")


def test_broken_folders(copy: Path) -> None:
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ThaikitError, match=r"^model m "):
        load(entry(source=str(copy)), name="m")
    (copy / "config.json").unlink()
    with pytest.raises(ThaikitError, match="no config.json"):
        load(entry(source=str(copy)), name="m")
    (copy / "adapter_config.json").write_text("{}")
    with pytest.raises(ThaikitError, match="it is an adapter: name its base model"):
        load(entry(source=str(copy)), name="m")


def test_adapter_changes_the_model_and_is_recorded(tiny_folder: Path, tmp_path: Path, tiny: LocalModel) -> None:
    peft = pytest.importorskip("peft")
    base = load(entry(source=str(tiny_folder)), name="base").model
    tuned = peft.get_peft_model(base, peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False, r=2))
    tuned.save_pretrained(tmp_path / "adapter")
    model = load(entry(source=str(tiny_folder), adapter=str(tmp_path / "adapter")), name="tuned")
    ids = tiny.tokenizer(TEXT[0], return_tensors="pt").input_ids
    with torch.inference_mode():
        expected, got, plain = (m(input_ids=ids).logits for m in (tuned.eval(), model.model, tiny.model))
    assert torch.allclose(expected, got) and not torch.allclose(plain, got)
    assert model.facts()["adapter"] == str(tmp_path / "adapter")
    (tmp_path / "adapter" / "adapter_model.safetensors").unlink()
    with pytest.raises(ThaikitError, match="pickles are not read"):
        load(entry(source=str(tiny_folder), adapter=str(tmp_path / "adapter")), name="tuned")


def test_template_file(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("{{ messages[0]['content'] }}!", encoding="utf-8")
    model = load(entry(source=str(tiny_folder), chat_template=str(tmp_path / "t.jinja")), name="m")
    assert model.chat and len(model.facts()["chat_template_sha256"]) == 64
    assert model.tokenizer.apply_chat_template([{"role": "user", "content": "ก"}], tokenize=False) == "ก!"


@pytest.mark.parametrize(
    ("config", "tokenizer_limit", "explicit", "expected"),
    [
        ({"n_positions": 10, "max_position_embeddings": 20, "n_ctx": 30}, 40, 5, 5),
        ({"n_positions": 10, "max_position_embeddings": 20, "n_ctx": 30}, 40, 0, 10),
        ({"max_position_embeddings": 20, "n_ctx": 30}, 40, 0, 20),
        ({"max_position_embeddings": None, "n_ctx": 30}, 40, 0, 30),
        ({}, 40, 0, 40),
        ({}, int(1e30), 0, 2048),
        ({}, None, 0, 2048),
    ],
)
def test_window(config: dict[str, int], tokenizer_limit: int | None, explicit: int, expected: int) -> None:
    text = SimpleNamespace(**config)
    outer = SimpleNamespace(
        get_text_config=lambda: text, max_position_embeddings=7
    )  # a multimodal model's own is not asked
    assert window(outer, SimpleNamespace(model_max_length=tokenizer_limit), explicit) == expected


def test_window_of_an_entry(tiny_folder: Path) -> None:
    assert load(entry(source=str(tiny_folder), max_length=99), name="m").max_length == 99
