"""Models for the tests: `tiny`, random and made on the spot, for all that needs no language; `gemma` and `smollm`, the
embedded ones, converted once into the user's cache by `python -m thaikit fetch` or here."""

from __future__ import annotations

import os

# Before transformers is imported: no test may reach a hub, whatever it asks for.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin at barriers starve whoever shares the cores

from pathlib import Path
from typing import Any

import pytest

from thaikit.models import LocalModel, load
from thaikit.params import ModelEntry

TEXT = [
    "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย และเป็นเมืองที่มีประชากรมากที่สุด",
    "ตำรวจจับโจรเพราะตำรวจเห็นโจร เขาซื้อข้าวเหนียวมะม่วงที่ตลาด",
    "น้ำเดือดที่ 100 องศาเซลเซียส คำถาม: สวัสดีครับ คำตอบ: สวัสดีค่ะ",
    "Question: How many eggs are left? Answer: 12 - 2 = 10 #### 10",
]


def write_tiny(folder: Path, *, seed: int = 0, **config: Any) -> Path:
    """A random two-layer Llama with a byte-level BPE tokenizer of about 500 entries, which puts one <s> in front."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    special = ["<pad>", "<s>", "</s>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(TEXT, trainer)
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    named = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=backend, **named).save_pretrained(folder)
    torch.manual_seed(seed)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    settings = {"vocab_size": backend.get_vocab_size(), "max_position_embeddings": 512, **shape, **ids, **config}
    LlamaForCausalLM(LlamaConfig(**settings)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> LocalModel:
    return load(ModelEntry(source=str(tiny_folder), device="cpu"), name="tiny")


def load_embedded(name: str) -> LocalModel:
    return load(ModelEntry(source=f"embedded:{name}", dtype="float32", device="cpu"), name=name)


@pytest.fixture(scope="session")
def gemma() -> LocalModel:
    return load_embedded("gemma3-270m")


@pytest.fixture(scope="session")
def smollm() -> LocalModel:
    return load_embedded("smollm2-135m-instruct")
