import itertools

import pytest

from thaikit.fewshot import new_stream, old_stream


def _ints(s: str) -> list[int]:
    return [int(x) for x in s.split()]


OLD = {
    "arc": (
        (1172, 1119, 25),
        595,
        "888 201 205 908 340 613 59 94 664 114 600 734 767 882 298 500 1087 843 368 348 358 161 783 493 1019",
        716,
        "293 475 944 520 941",
    ),
    "hellaswag": (
        (10042, 39905, 10),
        9792,
        "3656 36651 3421 19327 24999 26324 6280 26942 15277 39293",
        1027,
        "695 29714 25160 30422 28056 6637 22257 1702 29758 33896",
    ),
    "winogrande": ((1267, 40398, 5), 187, "5906 19340 21411 27230 11510", 719, "13159 8661 35350 23976 34789"),
    "gsm8k": ((1319, 7473, 5), 588, "7268 4403 1111 3183 3716", 1214, "3039 5492 6087 5705 4425"),
}

NEW = {
    "arc": (
        (1172, 1119, 25),
        True,
        "902 239 15 185 71 171 201 726 484 35 63 32 708 991 949 304 186 374 234 29 1030 996 511 132 1108",
        "954 140 182 1054 94",
    ),
    "hellaswag": (
        (10042, 39905, 10),
        True,
        "28883 7657 490 5940 38156 2288 5500 6450 23241 15519",
        "1142 2019 1038 22681 31735 30379 9735 5982 11999 7498",
    ),
    "hellaswag-unset": (
        (10042, 39905, 10),
        False,
        "28883 7657 490 5940 38156 2288 5500 6450 23241 15519",
        "2019 1038 22681 31735 30379 9735 5982 11999 7498 958",
    ),
    "winogrande": ((1267, 40398, 5), True, "28883 7657 490 5940 38156", "2288 5500 6450 23241 15519"),
    "winogrande-unset": ((1267, 40398, 5), False, "28883 7657 490 5940 38156", "5500 6450 23241 15519 1142"),
    "gsm8k": ((1319, 7473, 5), True, "6374 3610 957 61 742", "7462 6610 4769 286 5501"),
}


@pytest.mark.parametrize("task", OLD)
def test_old_stream(task: str) -> None:
    sizes, doc0, shots0, doc1, shots1 = OLD[task]
    (found0, drawn0), (found1, drawn1) = itertools.islice(old_stream(*sizes), 2)
    assert (found0, drawn0) == (doc0, _ints(shots0))
    assert (found1, drawn1[: len(_ints(shots1))]) == (doc1, _ints(shots1))
    assert len(drawn1) == sizes[2]


@pytest.mark.parametrize("task", NEW)
def test_new_stream(task: str) -> None:
    sizes, named, shots0, shots1 = NEW[task]
    drawn0, drawn1 = itertools.islice(new_stream(*sizes, split_named=named), 2)
    assert drawn0 == _ints(shots0)
    assert drawn1[: len(_ints(shots1))] == _ints(shots1)
    assert len(drawn1) == sizes[2]


def test_old_stream_evaluates_every_item_once() -> None:
    assert sorted(doc for doc, _ in old_stream(50, 9, 2)) == list(range(50))


def test_no_shots_and_no_items() -> None:
    assert list(new_stream(2, 0, 0)) == [[], []]
    assert list(new_stream(0, 5, 2)) == []
    assert list(old_stream(0, 5, 2)) == []
    assert [shots for _, shots in old_stream(2, 0, 0)] == [[], []]


def test_an_item_is_never_its_own_exemplar() -> None:
    for doc, shots in enumerate(new_stream(6, 6, 5, pool_is_test=True)):
        assert doc not in shots
        assert len(set(shots)) == 5


def test_a_small_pool_is_refused_at_the_call() -> None:
    with pytest.raises(ValueError, match="4 rows and 5"):
        new_stream(1, 4, 5)
    with pytest.raises(ValueError, match="5 rows and 6"):
        new_stream(1, 5, 5, split_named=False)
    with pytest.raises(ValueError, match="4 rows and 5"):
        old_stream(1, 4, 5)


@pytest.mark.parametrize("same", [False, True])
def test_new_stream_as_the_harness_draws(same: bool) -> None:
    samplers = pytest.importorskip("lm_eval.api.samplers")
    pool = [{"row": i} for i in range(30)]
    sampler = samplers.ContextSampler(pool, rnd=1234)
    theirs = [[x["row"] for x in sampler.sample(4, eval_doc={"row": i} if same else None)] for i in range(30)]
    assert list(new_stream(30, 30, 4, pool_is_test=same)) == theirs
