"""How long 100,000 answers take: `python tests/bench_f1.py [ANSWERS]` prints seconds a rule on one core. No test."""

from __future__ import annotations

import random
import sys
import time

from thaikit import f1
from thaikit.tasks import mrc


def answers(count: int) -> tuple[list[str], list[list[str]]]:
    """Distinct answers of 5 to 250 characters cut from the bundled passages, with the references of their questions."""
    rng, items = random.Random(1), mrc.load().items
    made, references = [], []
    for number in range(count):
        item = items[number % len(items)]
        start = rng.randrange(len(item.context))
        made.append(f"{item.context[start : start + rng.randrange(5, 250)]} {number}")
        references.append(list(item.references))
    return made, references


def main(count: int) -> None:
    """Print seconds for each rule without segmentation, their sum, and what segmentation costs, cold and cached."""
    made, references = answers(count)
    total = 0.0
    for rule in f1.UNSEGMENTED:
        begun = time.perf_counter()
        f1.score_all(made, references, rules=[rule])
        total += (seconds := time.perf_counter() - begun)
        print(f"{rule:<22}{seconds:8.1f} s")
    print(f"{'without segmentation':<22}{total:8.1f} s for {count:,} answers")
    some = max(1, count // 20)
    segment = f1.Segmenter()
    for told in ("cold", "cached"):
        begun = time.perf_counter()
        f1.score_all(made[:some], references[:some], segment=segment)
        print(f"all rules, {told:<11}{time.perf_counter() - begun:8.1f} s for {some:,} answers")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
