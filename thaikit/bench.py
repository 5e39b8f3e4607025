"""The kit's kernels against lm-evaluation-harness: one process, the same model, the same requests, one line a shape.

Requests are ids on both sides (prompts as text for generation), so that only the kernels are timed. Rates are items a
second; the peer may be timed on fewer items, for it repeats the same work for each.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thaikit import ThaikitError, asking, params, peer, trie
from thaikit.records import Run, ticker
from thaikit.tasks import build, score

Request = tuple[tuple[int, ...], tuple[int, ...]]
COLUMNS = (
    "shape", "device", "model", "items", "peer_items_per_s", "kit_items_per_s", "ratio", "distinct_tokens_per_s",
    "matrix_share", "peak_gib", "max_abs_diff_per_token",
)  # fmt: skip
# items, subjects, prefix, question, choices, choice length: the Thai sizes of the six tasks at about 2.4 tokens for one
# English token; Winogrande's options are two tokens that differ, its choices one shared tail.
SIZES = {
    "arc": (1172, 1, 2300, 80, 4, 14),
    "hellaswag": (10042, 1, 2500, 145, 4, 72),
    "mmlu": (14042, 57, 1100, 220, 4, 1),
    "truthfulqa": (817, 1, 600, 45, 10, 36),
    "winogrande": (1267, 1, 300, 30, 2, 30),
}
RANDOM = {
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "vocab_size": 512},
    "llama-1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
                 "num_key_value_heads": 8, "vocab_size": 128_256},
    "llama-8b": {"hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32, "num_attention_heads": 32,
                 "num_key_value_heads": 8, "vocab_size": 128_256},
}  # fmt: skip


@dataclass(frozen=True)
class Work:
    """The requests of one shape: ids by item, or prompts to continue."""

    shape: str
    items: tuple[tuple[Request, ...], ...]
    prompts: tuple[str, ...] = ()
    prompt_ids: tuple[tuple[int, ...], ...] = ()
    stops: tuple[str, ...] = ()
    max_new_tokens: int = 0

    @property
    def size(self) -> int:
        """Items."""
        return len(self.items) or len(self.prompts)

    def requests(self, items: int = 0) -> list[Request]:
        """The requests of the first items (0: all)."""
        return [request for item in self.items[: items or None] for request in item]


def open_model(model: str, random_shape: str) -> Any:
    """A model of params/models, or a Llama of a shape with random weights (nothing is downloaded)."""
    if model:
        return asking.open_model(model)
    if random_shape not in RANDOM:
        raise ThaikitError(f"random_shape is {random_shape!r}; allowed are {', '.join(RANDOM)}")
    import torch
    import transformers
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    device = "cuda" if torch.cuda.is_available() else "cpu"
    sizes = RANDOM[random_shape]
    config = transformers.LlamaConfig(**sizes, max_position_embeddings=8192, tie_word_embeddings=False)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    with torch.device(device):
        made = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval().requires_grad_(False)
    words = Tokenizer(WordLevel({"<eos>": 0, "<unk>": 1}, unk_token="<unk>"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>", unk_token="<unk>")
    entry = params.ModelEntry(source=random_shape, rehearsal=True, note="Random weights: for timing only.")
    from thaikit.models import LocalModel

    loaded = LocalModel(random_shape, entry, tokenizer, made, device, 8192, frozenset([0]), 0, "", False)
    return asking.Local(loaded)


def sample_work(local: Any, shape: str, items: int) -> Work:
    """A bundled sample task as requests; MMLU always whole, for its prefixes are one a subject."""
    tasks = params.load("tasks", "thai-h6-samples", params.TaskSet)
    task = build.build_all(tasks, only=[shape], limit=0 if shape == "mmlu" else items)[0]
    ready = score.prepare(task, local, score.Settings())
    if task.generates:
        ids, prompts = tuple(one.prompt_ids for one in ready), tuple(one.prompt for one in ready)
        return Work(shape, (), prompts, ids, tuple(score.stop_strings(task)), score.new_tokens(task))
    pairs = [tuple((r.context, r.continuation) for r in one.requests) for one in ready]
    return Work(shape, tuple(pairs))


def random_work(local: Any, shape: str, items: int) -> Work:
    """Random ids in the sizes of a task (`SIZES`), `items` of them (0: all)."""
    count, subjects, prefix, question, choices, length = SIZES[shape]
    rng, top = random.Random(1), local.loaded.model.config.vocab_size

    def ids(n: int) -> tuple[int, ...]:
        return tuple(rng.randrange(2, top) for _ in range(n))

    stems, made = [ids(prefix) for _ in range(subjects)], []
    for place in range(min(items or count, count)):
        context = stems[place % subjects] + ids(question + rng.randint(-question // 4, question // 4))
        if shape == "winogrande":
            tail = ids(length)
            made.append(tuple((context + ids(2), tail) for _ in range(choices)))
        elif length == 1:
            made.append(tuple((context, (letter + 2,)) for letter in range(choices)))
        else:
            made.append(tuple((context, ids(length)) for _ in range(choices)))
    return Work(shape, tuple(made))


def measure(local: Any, work: Work, *, peer_items: int, rate: float) -> dict[str, Any]:
    """One line of the benchmark: the peer at its better batch size on `peer_items` items, the kit on all."""
    few = min(peer_items or work.size, work.size)
    reset_peak()
    peer_seconds, theirs = best_peer(local, work, few)
    begin = time.perf_counter()
    ours, tokens = ask_kit(local, work)
    seconds = time.perf_counter() - begin
    per_second = tokens / seconds
    return {
        "shape": work.shape, "device": device_name(local), "model": local.name, "items": work.size,
        "peer_items_per_s": few / peer_seconds, "kit_items_per_s": work.size / seconds,
        "ratio": (work.size / seconds) / (few / peer_seconds), "distinct_tokens_per_s": per_second,
        "matrix_share": per_second * 2 * parameters(local) / rate, "peak_gib": peak_gib(),
        "max_abs_diff_per_token": difference(work, ours, theirs),
    }  # fmt: skip


def best_peer(local: Any, work: Work, few: int) -> tuple[float, list[Any]]:
    """The peer's seconds and answers at the better of batch 1 and the largest that fits, chosen on two items."""
    import torch

    sizes = [2, 4, 8] + ([16, 32] if torch.cuda.is_available() else [])
    largest, trial = 1, {1: ask_peer(local, work, min(2, few), 1)[0]}
    for size in reversed(sizes):
        try:
            trial[size] = ask_peer(local, work, min(max(2, size if work.prompts else 2), few), size)[0]
            trial[size] *= min(2, few) / min(max(2, size if work.prompts else 2), few)
            largest = size
            break
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
    return ask_peer(local, work, few, min(trial, key=lambda size: (trial[size], -size)) if largest > 1 else 1)


def ask_peer(local: Any, work: Work, items: int, batch_size: int) -> tuple[float, list[Any]]:
    """The harness on the first items."""
    if work.prompts:
        rules = {"stops": work.stops, "max_new_tokens": work.max_new_tokens, "batch_size": batch_size}
        return peer.time_texts(local, work.prompts[:items], **rules)
    return peer.time_scores(local, work.requests(items), batch_size=batch_size)


def ask_kit(local: Any, work: Work) -> tuple[list[Any], int]:
    """The kit's answers on all items, in input order, and the distinct tokens that it ran (new ones included)."""
    tell = ticker(f"{local.name} {work.shape}")
    if work.prompts:
        rules = {"stops": work.stops, "max_new_tokens": work.max_new_tokens, "batch_size": 0, "tell": tell}
        found = dict(local.generate(work.prompt_ids, **rules))
        made = [found[place] for place in range(work.size)]
        return [one.text for one in made], trie.distinct(work.prompt_ids) + sum(len(one.ids) for one in made)
    requests = [asking.Encoded(*pair) for pair in work.requests()]
    found = dict(local.score(requests, batch_size=0, tell=tell))
    fed = [(*context, *tail[:-1]) for context, tail in work.requests()]
    return [found[place].ll for place in range(len(requests))], trie.distinct(fed)


def difference(work: Work, ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    """Largest difference of two log-likelihoods per token; of generations the share of texts that differ."""
    if work.prompts:
        from thaikit.extract import cut_at_stops

        pairs = [(cut_at_stops(a, work.stops), b) for a, b in zip(ours, theirs, strict=False)]
        return sum(a != b for a, b in pairs) / len(pairs)
    sizes = [len(tail) for _, tail in work.requests()]
    return max(abs(a - b) / n for a, b, n in zip(ours, theirs, sizes, strict=False))


def parameters(local: Any) -> int:
    """Parameters that work on every token: all but an input embedding that is not the head too."""
    model = local.loaded.model
    tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    return model.num_parameters() - (0 if tied else model.get_input_embeddings().weight.numel())


def matrix_rate(local: Any, *, seconds: float = 1.0) -> float:
    """Floating-point operations a second of a large matrix product in the model's dtype on its device."""
    import torch

    weight = next(local.loaded.model.parameters())
    size = 8192 if weight.is_cuda else 1024
    a = torch.randn(size, size, dtype=weight.dtype, device=weight.device)
    best = 0.0
    for _ in range(5):
        begin, runs = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds / 5:
            for _ in range(8):
                a @ a
            runs += 8
            if weight.is_cuda:
                torch.cuda.synchronize()
        best = max(best, 2 * size**3 * runs / (time.perf_counter() - begin))
    return best


def device_name(local: Any) -> str:
    """The GPU's name, or cpu with its threads."""
    import torch

    cuda = next(local.loaded.model.parameters()).is_cuda
    return torch.cuda.get_device_name() if cuda else f"cpu, {torch.get_num_threads()} threads"


def reset_peak() -> None:
    """Begin a new peak on a GPU; a CPU's is the process's own, which only grows."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def peak_gib() -> float:
    """Peak memory in GiB: allocated on a GPU, else resident in this process so far."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**30
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def benchmark(
    run: Run, *, model: str, random_shape: str, shapes: Sequence[str], items: int, peer_items: int
) -> list[dict[str, Any]]:
    """A line for each shape, kept in the leaf as soon as it is measured."""
    log = run.log("benchmark")
    if run.closed:
        return log.rows()
    names = shapes or [*SIZES, *(["gsm8k"] if model else [])]
    local = open_model(model, random_shape)
    local.choose("tree")
    rate = matrix_rate(local)
    for index, shape in enumerate(names):
        if shape not in log.ids:
            work = (sample_work if model else random_work)(local, shape, items)
            line = measure(local, work, peer_items=peer_items, rate=rate)
            log.append({"id": shape, "index": index, **line, "matrix_rate": rate})
    return log.rows()


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of ratios."""
    return float(np.exp(np.mean(np.log(values))))
