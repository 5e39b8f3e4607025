"""The kit's generation beside transformers' continuous batching: python tests/continuous.py [--model NAME] [--items 4]

The same GSM8K prompts of the bundled samples, greedily, the same number of new tokens, in one process: seconds of each,
the ratio, and how many texts are equal. Which of the two the kit should use is decided by this.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from thaikit import asking
from thaikit.bench import sample_work


def theirs(local: Any, prompts: list[list[int]], *, new_tokens: int) -> list[list[int]]:
    """What `generate_batch` writes, prefix caching on, its cache sized for these prompts."""
    from transformers import ContinuousBatchingConfig, GenerationConfig

    page = 256
    pages = sum((len(ids) + new_tokens) // page + 2 for ids in prompts)
    config = ContinuousBatchingConfig(page_size=page, num_blocks=pages, max_batch_tokens=4096, use_cuda_graph=False)
    greedy = GenerationConfig(
        max_new_tokens=new_tokens, do_sample=False, eos_token_id=sorted(local.loaded.eos_ids), pad_token_id=0
    )
    made = local.loaded.model.generate_batch(
        prompts, generation_config=greedy, continuous_batching_config=config, progress_bar=False, warmup=False
    )
    ordered = sorted(made.items(), key=lambda pair: int("".join(c for c in pair[0] if c.isdigit()) or 0))
    return [list(output.generated_tokens) for _, output in ordered]


def ours(local: Any, prompts: list[list[int]], *, new_tokens: int) -> list[list[int]]:
    """What the kit writes."""
    found = local.generate(prompts, stops=(), max_new_tokens=new_tokens, batch_size=0, tell=lambda _: None)
    return [list(made.ids) for _, made in sorted(found, key=lambda pair: pair[0])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--items", type=int, default=4)
    parser.add_argument("--new-tokens", type=int, default=32)
    given = parser.parse_args()
    local = asking.open_model(given.model)
    prompts = [list(ids) for ids in sample_work(local, "gsm8k", given.items).prompt_ids]
    lengths = [len(ids) for ids in prompts]
    ours(local, prompts[:1], new_tokens=2)  # the probe is paid once
    told: dict[str, Any] = {"model": given.model, "items": len(prompts), "prompt_tokens": lengths}
    written = {}
    for name, way in (("kit", ours), ("continuous", theirs)):
        begun = time.monotonic()
        written[name] = way(local, prompts, new_tokens=given.new_tokens)
        told[f"{name}_s"] = round(time.monotonic() - begun, 2)
        print(json.dumps(told), flush=True)
    kit, other = written["kit"], written["continuous"]
    equal = sum(a[: len(b)] == b[: len(a)] for a, b in zip(kit, other, strict=True))
    print(json.dumps(told | {"ratio": round(told["continuous_s"] / told["kit_s"], 2), "equal": equal}))


if __name__ == "__main__":
    main()
