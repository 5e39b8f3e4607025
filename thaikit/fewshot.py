"""The two random streams by which the harness draws worked examples, as indices, for parity runs.

Both are generators: take as many items as needed. Thai-H6 itself uses fixed exemplars and needs neither.
Python's `random` is part of the protocol here, so each stream owns a generator with the protocol's seed.
"""

import random
from collections.abc import Iterator

OLD_SEED = 42
NEW_SEED = 1234


def old_stream(n_docs: int, n_pool: int, k: int) -> Iterator[tuple[int, list[int]]]:
    """(index of the evaluated item, indices of its k exemplars), in the order the first harness evaluates items.

    One generator seeded 42 shuffles the items and then draws for each, so leaving an item out changes all later ones.
    ValueError when the pool is smaller than k. Source: lm-evaluation-harness before 0.4, evaluator.py.
    """
    _check(n_pool, k)
    rng = random.Random(OLD_SEED)
    docs = list(range(n_docs))
    rng.shuffle(docs)
    return ((doc, rng.sample(range(n_pool), k)) for doc in docs)


def new_stream(
    n_docs: int, n_pool: int, k: int, *, split_named: bool = True, pool_is_test: bool = False
) -> Iterator[list[int]]:
    """The indices of each item's k exemplars, in data-set order, by a generator seeded 1234.

    `split_named` False is the harness's case of few-shot split and test split both unset: k + 1 are drawn and k kept.
    `pool_is_test` True says that the pool is the evaluated split itself: then too k + 1 are drawn, and the item is
    removed from its own draw. ValueError when the pool is too small.
    Source: lm-evaluation-harness 0.4.13, api/samplers.py.
    """
    extra = 1 if k and (pool_is_test or not split_named) else 0
    _check(n_pool, k + extra)
    rng = random.Random(NEW_SEED)

    def draws() -> Iterator[list[int]]:
        for doc in range(n_docs):
            drawn = rng.sample(range(n_pool), k + extra)
            yield [shot for shot in drawn if not (pool_is_test and shot == doc)][:k]

    return draws()


def _check(n_pool: int, needed: int) -> None:
    if needed < 0 or needed > n_pool:
        raise ValueError(f"the exemplar pool has {n_pool} rows and {needed} are to be drawn; draw 0 to {n_pool}.")
