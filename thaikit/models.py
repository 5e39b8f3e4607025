"""Causal language models on this machine: from the hub, a folder or a package, with nothing left to chance.

A model file of params/models/ (`params.ModelEntry`) says what is loaded. Weights are read as safetensors and without
the model's own code, unless the file allows more and pins it. `replay` models, which only repeat stored completions,
are no business of this module. Nothing heavy is imported before a model is asked for.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thaikit import ThaikitError, embedded
from thaikit.model_facts import clean_generation, end_ids, logits_dtype, tokenizer_sha256, versions, window
from thaikit.model_faults import ask
from thaikit.params import FULL_COMMIT

if TYPE_CHECKING:
    from thaikit.params import ModelEntry

SNAPSHOT = re.compile(r"/snapshots/([0-9a-f]{40})/")
HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True, eq=False)
class LocalModel:
    """A loaded model and what a run must know of it.

    `model` is in eval mode without gradients, and its generation config holds nothing but the ids of end and padding.
    `max_length` is in tokens, BOS included. `eos_ids` ends a generation. `revision` is the commit for a hub model and
    the digest of the package's file for an embedded one, else empty. `chat` says whether prompts go through the
    tokenizer's chat template.
    """

    name: str
    entry: ModelEntry
    tokenizer: Any
    model: Any
    device: str
    max_length: int
    eos_ids: frozenset[int]
    pad_id: int
    revision: str
    chat: bool

    @cached_property
    def thai(self) -> dict[str, Any]:
        """What its tokenizer spends on Thai, counted once."""
        from thaikit.thai_facts import thai_facts  # brings scipy

        return thai_facts(self.tokenizer, window=self.max_length)

    def facts(self) -> dict[str, Any]:
        """What a run records of its model, as plain JSON values. Runs the model once on a single token."""
        entry, template = self.entry, self.tokenizer.chat_template if self.chat else None
        return {
            "name": self.name,
            "source": entry.source,
            "revision": self.revision,
            "rehearsal": entry.rehearsal,
            "note": entry.note,
            "licence": entry.licence,
            "class": type(self.model).__name__,
            "parameters": self.model.num_parameters(),
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "logits_dtype": logits_dtype(self.model),
            "device": self.device,
            "attention": self.model.config._attn_implementation,
            "quantisation": entry.quantisation,
            "adapter": entry.adapter,
            "max_length": self.max_length,
            "eos_ids": sorted(self.eos_ids),
            "pad_id": self.pad_id,
            "tokenizer_sha256": tokenizer_sha256(self.tokenizer),
            "chat_template_sha256": hashlib.sha256(str(template).encode()).hexdigest() if template else "",
            "thai": self.thai,
            "versions": versions(),
        }


def load(entry: ModelEntry, *, name: str) -> LocalModel:
    """The model that `entry` describes, ready to score: see LocalModel. `name` is used in messages and records.

    ThaikitError, in one sentence, when the model cannot be had (unknown, gated, hub unreachable), does not fit, has
    only pickled weights or needs code of its own without the entry's leave, or asks for a library that is missing.
    """
    where = f"model {name} ({entry.source})"
    source, local = locate(entry, where)
    guard(entry, local, where)
    device = pick_device(entry, where)
    # Everything is read from one commit, even if the branch moves while weights are on their way.
    commit = ask(where, lambda: resolve(entry, source, local))
    tokenizer = ask(where, lambda: read_tokenizer(entry, source, local, commit))
    chat = set_template(entry, tokenizer, where)
    model = ask(where, lambda: read_model(entry, source, local, commit, device))
    if entry.adapter:
        model = ask(where, lambda: put_adapter(entry, model, where))
    model.eval().requires_grad_(False)
    eos = end_ids(model, tokenizer)
    pad = next((i for i in (tokenizer.pad_token_id, *sorted(eos)) if i is not None), 0)
    clean_generation(model, eos, pad)
    return LocalModel(
        name=name,
        entry=entry,
        tokenizer=tokenizer,
        model=model,
        device=str(model.get_input_embeddings().weight.device),
        max_length=window(model.config, tokenizer, entry.max_length),
        eos_ids=eos,
        pad_id=pad,
        revision=commit or package_digest(entry.source),
        chat=chat,
    )


# ---------------------------------------------------------------------------------------------- before loading


def locate(entry: ModelEntry, where: str) -> tuple[str, bool]:
    """(what transformers is given, whether it is a folder here). An embedded model is converted on first use."""
    if entry.kind != "local":
        raise ThaikitError(f"{where}: a {entry.kind} entry has no weights to load; only kind: local has")
    if entry.source.startswith("embedded:"):
        return str(embedded.folder(entry.source.removeprefix("embedded:"))), True
    path = Path(entry.source).expanduser()
    if path.is_dir():
        return str(path.resolve()), True
    if not HUB_ID.fullmatch(entry.source) or entry.source.startswith("."):
        raise ThaikitError(f"{where}: there is no such folder, and it is not a hub id such as Qwen/Qwen2-72B-Instruct")
    return entry.source, False


def guard(entry: ModelEntry, local: bool, where: str) -> None:
    """Code of others runs only from a folder that the user has, or from a commit that cannot change."""
    for key in ("trust_remote_code", "allow_pickle"):
        if getattr(entry, key) and not local and not FULL_COMMIT.fullmatch(entry.revision):
            found = repr(entry.revision) if entry.revision else "nothing"
            raise ThaikitError(f"{where}: {key} is on, so revision must be a full 40-digit commit, found {found}")
    for key, library in (("quantisation", "bitsandbytes"), ("adapter", "peft")):
        if getattr(entry, key) and importlib.util.find_spec(library) is None:
            raise ThaikitError(
                f"{where}: {key}: {getattr(entry, key)} needs {library}, which is not installed; "
                f"install it with pip install {library}, or empty the key"
            )


def pick_device(entry: ModelEntry, where: str) -> str:
    import torch

    if entry.device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if entry.device == "cuda" and not torch.cuda.is_available():
        raise ThaikitError(f"{where}: device is cuda, but PyTorch sees no GPU here; use device: auto or cpu")
    return entry.device


def package_digest(source: str) -> str:
    """The SHA-256 that stands for an embedded model's revision; a folder of the user's own has none."""
    kind, _, name = source.partition(":")
    return f"sha256:{embedded.EMBEDDED[name].sha256}" if kind == "embedded" else ""


# ---------------------------------------------------------------------------------------------- loading


def hub_options(entry: ModelEntry, local: bool, commit: str) -> dict[str, Any]:
    """Options that every from_pretrained call shares. The code's revision is pinned too, also where it is another
    repository's: one that cannot be found there is an error, not today's code."""
    if local:
        return {"trust_remote_code": entry.trust_remote_code, "local_files_only": True}
    pinned = {"revision": commit} if commit else {}
    if entry.trust_remote_code:
        pinned["code_revision"] = entry.revision
    return {"trust_remote_code": entry.trust_remote_code, **pinned}


def resolve(entry: ModelEntry, source: str, local: bool) -> str:
    """The commit that the entry's revision (empty: the main branch) means now; for a folder, empty and a first look."""
    from transformers.utils import cached_file

    if not local:
        found = cached_file(source, "config.json", revision=entry.revision or None)
        commit = SNAPSHOT.search(Path(found).as_posix())
        return commit[1] if commit else entry.revision
    if not (Path(source) / "config.json").is_file():
        adapter = (Path(source) / "adapter_config.json").is_file()
        hint = (
            "it is an adapter: name its base model as source and this folder as adapter" if adapter else "name another"
        )
        raise ValueError(f"the folder has no config.json; {hint}")
    return ""


def read_tokenizer(entry: ModelEntry, source: str, local: bool, commit: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(source, **hub_options(entry, local, commit))


def read_model(entry: ModelEntry, source: str, local: bool, commit: str, device: str) -> Any:
    """The weights, in the entry's dtype (auto: as stored), on the entry's device or spread by its device map."""
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    dtype = entry.dtype if entry.dtype == "auto" else getattr(torch, entry.dtype)
    options = hub_options(entry, local, commit) | {"dtype": dtype}
    if not entry.allow_pickle:
        options["use_safetensors"] = True
    if entry.attention:
        options["attn_implementation"] = entry.attention
    if entry.quantisation == "8bit":
        options["quantization_config"] = BitsAndBytesConfig(load_in_8bit=True)
    elif entry.quantisation == "4bit":
        compute = torch.bfloat16 if dtype == "auto" else dtype
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=compute
        )
    placed = entry.device_map or ("auto" if entry.quantisation else "")
    if placed:
        options["device_map"] = placed
    model = AutoModelForCausalLM.from_pretrained(source, **options)
    return model if placed else model.to(device)


def put_adapter(entry: ModelEntry, model: Any, where: str) -> Any:
    """The base model with the adapter's layers in it, unmerged. The adapter is a folder, or a hub id with `@commit`."""
    from huggingface_hub import snapshot_download
    from peft import PeftModel

    path = Path(entry.adapter).expanduser()
    if not path.is_dir():
        repo, _, revision = entry.adapter.partition("@")
        wanted = ["adapter_config.json", "adapter_model.safetensors"]
        path = Path(snapshot_download(repo, revision=revision or None, allow_patterns=wanted))
    if not (path / "adapter_model.safetensors").is_file() and not entry.allow_pickle:
        raise ThaikitError(
            f"{where}: adapter {entry.adapter} has no adapter_model.safetensors, and pickles are not read"
        )
    return PeftModel.from_pretrained(model, str(path)).get_base_model()


def set_template(entry: ModelEntry, tokenizer: Any, where: str) -> bool:
    """Whether prompts go through a chat template; a template file named by the entry takes the tokenizer's place."""
    if isinstance(entry.chat_template, str):
        path = Path(entry.chat_template).expanduser()
        if not path.is_file():
            raise ThaikitError(
                f"{where}: chat_template names {path}, which is no file; true, false or a file is allowed"
            )
        tokenizer.chat_template = path.read_text(encoding="utf-8")
    elif entry.chat_template and not tokenizer.chat_template:
        raise ThaikitError(
            f"{where}: chat_template is true, but its tokenizer has none; name a template file, or say false"
        )
    return bool(entry.chat_template)
