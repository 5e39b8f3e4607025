"""The scoring kernel against hand-made logits, against plain full logits, and against itself in other batches."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import TEXT
from kit import samples

from thaikit.encoding import Encoded, encode_pair
from thaikit.loglikelihood import Scored, check_head, group, score_plain
from thaikit.models import LocalModel
from thaikit.tasks import items

PER_TOKEN = 1e-4
VECTOR = [[2.0, 1.0, 0.0, -1.0], [0.5, 0.5, 3.0, 0.0], [1.0, 4.0, 1.0, 1.0]]


class Fake:
    """A causal model whose logits at each position are given; they may depend on the row's ids."""

    def __init__(self, table: Any, size: int, *, cap: float | None = None, twist: float = 0.0) -> None:
        self.table, self.size, self.calls, self.twist = table, size, [], twist
        self.config = SimpleNamespace(final_logit_softcapping=cap)
        self.head = torch.nn.Linear(size, size, bias=False)
        self.head.weight.data = torch.eye(size)

    def get_input_embeddings(self) -> Any:
        return SimpleNamespace(weight=torch.zeros(1))

    def get_output_embeddings(self) -> Any:
        return self.head

    def get_decoder(self) -> Any:
        return self.run

    def run(self, *, input_ids: torch.Tensor, **_: Any) -> tuple[torch.Tensor]:
        self.calls.append(tuple(input_ids.shape))
        return (torch.tensor([[self.table(row[: n + 1]) for n in range(len(row))] for row in input_ids.tolist()]),)

    def __call__(self, *, input_ids: torch.Tensor, **_: Any) -> Any:
        return SimpleNamespace(logits=self.run(input_ids=input_ids)[0] + self.twist)


def scores(model: Any, requests: list[Any], **options: Any) -> list[Scored]:
    found = dict(score_plain(model, requests, **options))
    assert sorted(found) == list(range(len(requests)))
    return [found[n] for n in range(len(requests))]


def pairs_of(requests: list[Encoded]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [(request.context, request.continuation) for request in requests]


def thai_requests(model: LocalModel, count: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Requests of many lengths, four choices to a context as in the tasks."""
    rng, made = random.Random(3), []
    for _ in range(count // 4):
        context = "\n\n".join(rng.choice(TEXT) for _ in range(rng.randint(1, 4))) + "\nคำตอบ:"
        made += [encode_pair(model.tokenizer, context, " " + rng.choice(TEXT)[: rng.randint(1, 40)]) for _ in range(4)]
    return pairs_of(made)


def reference(model: Any, context: tuple[int, ...], continuation: tuple[int, ...]) -> torch.Tensor:
    """Full logits of the unpadded, unshared sequence, by the library's own head."""
    with torch.inference_mode():
        out = model(input_ids=torch.tensor([[*context, *continuation]]), use_cache=False).logits[0].float()
    return out.log_softmax(-1)[len(context) - 1 : -1]


def test_kernel_vector() -> None:
    model = Fake(lambda seen: VECTOR[(len(seen) - 2) % 3], 4)
    (found,) = scores(model, [((3, 0), (1, 2, 1))])
    np.testing.assert_allclose(found.logprobs, [-1.440190, -0.193885, -0.139206], atol=1e-6)
    assert found.ll == pytest.approx(-1.773281, abs=1e-6) and found.greedy is False
    assert found.logprobs.dtype == np.float32
    assert scores(model, [((3, 0), (0, 2, 1))])[0].greedy is True


def test_reuse_vector_reads_each_members_own_last_rows() -> None:
    """Two requests feed [1,2,3,4]: A scores 4 and 5, B scores 6, and B reads the last row, not the first."""
    rng = np.random.default_rng(0)
    rows = {3: rng.normal(size=7).tolist(), 4: rng.normal(size=7).tolist()}
    model = Fake(lambda seen: rows.get(len(seen), [0.0] * 7), 7)
    first, second = scores(model, [((1, 2, 3), (4, 5)), ((1, 2, 3, 4), (6,))])
    r0, r1 = (torch.tensor(rows[n]).log_softmax(-1) for n in (3, 4))
    assert first.ll == pytest.approx(float(r0[4] + r1[5]), abs=1e-6)
    assert second.ll == pytest.approx(float(r1[6]), abs=1e-6)
    assert second.ll != pytest.approx(float(r0[6]), abs=1e-3)
    assert model.calls == [(1, 4)]


def test_equal_inputs_are_run_once(tiny: LocalModel) -> None:
    shown: list[int] = []
    handle = tiny.model.get_decoder().register_forward_hook(
        lambda _m, _a, kwargs, _o: shown.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    try:
        requests = [((1, 5, 6), (7, 8))] * 5 + [((1, 5, 6, 7), (n,)) for n in range(9, 13)] + [((1, 5), (9,))]
        found = scores(tiny.model, requests, batch_size=8)
    finally:
        handle.remove()
    assert sum(shown) == 2  # [1,5,6,7] for nine requests, [1,5] for one
    assert len({score.ll for score in found[:5]}) == 1 and len({score.ll for score in found[5:9]}) == 4


def test_ties_and_argmax_take_the_lowest_index() -> None:
    model = Fake(lambda seen: [1.0, 1.0, 0.0, 0.0], 4)
    assert [s.greedy for s in scores(model, [((2,), (0,)), ((2,), (1,))])] == [True, False]


def test_long_continuations_are_read_in_parts() -> None:
    """More rows than the head takes at once: no row is lost or read twice at the seam."""
    model = Fake(lambda seen: [float(len(seen) % 5), 1.0, 2.0], 3)
    target = tuple(n % 3 for n in range(1300))
    long, short = scores(model, [((1,), target), ((1, *target[:700]), target[700:])])
    expected = [torch.tensor([float(n % 5), 1.0, 2.0]).log_softmax(-1)[target[n - 1]].item() for n in range(1, 1301)]
    np.testing.assert_allclose(long.logprobs, expected, atol=1e-6)
    np.testing.assert_allclose(short.logprobs, expected[700:], atol=1e-6)


def test_empty_sides_are_refused() -> None:
    for request in (((), (1,)), ((1,), ())):
        with pytest.raises(ValueError, match="request 0: context and continuation need at least one token"):
            group([request])


def test_nothing_asked_nothing_run(tiny: LocalModel) -> None:
    assert list(score_plain(tiny.model, [])) == []


def test_head_check_accepts_plain_heads_and_soft_caps(tiny: LocalModel) -> None:
    check_head(tiny.model)
    with pytest.raises(ValueError, match="LM head differs"):
        check_head(Fake(lambda seen: [float(len(seen)), 0.0, 0.0], 3, twist=0.5))
    with pytest.raises(ValueError, match="LM head differs"):  # logits of NaN agree with nothing
        check_head(Fake(lambda seen: [float("nan"), 0.0, 0.0], 3))
    capped = Fake(lambda seen: [60.0, 0.0, 0.0], 3, cap=30.0)
    (found,) = scores(capped, [((1,), (0,))])
    expected = (torch.tanh(torch.tensor([60.0, 0.0, 0.0]) / 30) * 30).log_softmax(-1)[0].item()
    assert found.ll == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("batch_size", [1, 8])
def test_equals_full_logits(tiny: LocalModel, batch_size: int) -> None:
    requests = thai_requests(tiny, 40)
    for (context, continuation), found in zip(
        requests, scores(tiny.model, requests, batch_size=batch_size), strict=True
    ):
        rows = reference(tiny.model, context, continuation)
        expected = rows[torch.arange(len(continuation)), torch.tensor(continuation)].numpy()
        np.testing.assert_allclose(found.logprobs, expected, atol=PER_TOKEN)
        assert found.greedy == (rows.argmax(-1).tolist() == list(continuation))


def test_greedy_choice_is_seen(tiny: LocalModel) -> None:
    context = (1, 20, 30, 40)
    best = int(reference(tiny.model, context, (5,))[0].argmax())
    flags = [found.greedy for found in scores(tiny.model, [(context, (best,)), (context, ((best + 1) % 300,))])]
    assert flags == [True, False]


def compare(model: LocalModel, requests: list[Any]) -> None:
    """Batch 1 and 8 in file order, and batch 8 in another order: the same numbers."""
    order = random.Random(5).sample(range(len(requests)), len(requests))
    one, eight = (scores(model.model, requests, batch_size=size) for size in (1, 8))
    mixed = scores(model.model, [requests[n] for n in order], batch_size=8)
    back = {n: found for n, found in zip(order, mixed, strict=True)}
    for n, (a, b) in enumerate(zip(one, eight, strict=True)):
        np.testing.assert_allclose(a.logprobs, b.logprobs, atol=PER_TOKEN)
        np.testing.assert_allclose(a.logprobs, back[n].logprobs, atol=PER_TOKEN)
    for start in range(0, len(requests), 4):
        best = {max(range(4), key=lambda n: found[start + n].ll) for found in (one, eight)}
        assert len(best) == 1


def test_batch_size_and_order_change_nothing(tiny: LocalModel) -> None:
    compare(tiny, thai_requests(tiny, 80))


@pytest.mark.slow
def test_batches_change_nothing_with_sliding_windows(gemma: LocalModel) -> None:
    """Gemma's windows are 512 tokens: the bundled ARC prompt is past them, the other request far below."""
    (task,) = samples(only=["arc"], limit=1)
    long = items.context(task.items[0], task.shots(0), delimiter=" ")
    texts = [(long, " " + task.items[0].choices[0]), (TEXT[0], " " + TEXT[1][:20])]
    requests = pairs_of([encode_pair(gemma.tokenizer, *pair) for pair in texts])
    assert len(requests[0][0]) > gemma.model.config.sliding_window
    single, together = (scores(gemma.model, requests, batch_size=size) for size in (1, 2))
    for (before, after), one, two in zip(requests, single, together, strict=True):
        expected = reference(gemma.model, before, after)[torch.arange(len(after)), torch.tensor(after)].sum().item()
        assert abs(one.ll - expected) <= PER_TOKEN * len(after)
        assert abs(two.ll - expected) <= PER_TOKEN * len(after)


def test_results_come_as_batches_finish(tiny: LocalModel) -> None:
    """Rows can be written while later batches wait; tokens are told batch by batch."""
    told: list[int] = []
    stream = score_plain(tiny.model, [((1,) * n, (3,)) for n in range(1, 7)], batch_size=2, on_batch=told.append)
    assert next(stream)[0] == 5 and told == [11]
    assert len(list(stream)) == 5 and told == [11, 7, 3]


def test_out_of_memory_halves_the_batch() -> None:
    class Small(Fake):
        def run(self, *, input_ids: torch.Tensor, **_: Any) -> tuple[torch.Tensor]:
            if len(input_ids) > 2:
                raise torch.cuda.OutOfMemoryError("too large")
            return super().run(input_ids=input_ids)

    model = Small(lambda seen: VECTOR[len(seen) % 3], 4)
    requests = [((1,) * n, (2,)) for n in range(1, 8)]
    assert len(scores(model, requests, batch_size=8)) == 7
    assert {lines for lines, _ in model.calls} == {2, 1}
    with pytest.raises(torch.cuda.OutOfMemoryError):
        list(score_plain(Never(lambda seen: VECTOR[0], 4), requests, batch_size=4))


class Never(Fake):
    """No batch fits."""

    def run(self, **_: Any) -> Any:
        raise torch.cuda.OutOfMemoryError("too large")
