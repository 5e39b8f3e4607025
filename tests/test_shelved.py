"""Rows over a shared beginning, several tokens a step: the texts that the model writes alone, token by token."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
import transformers
from test_tree import AWAY, KINDS, LLAMA, VOCABULARY, small

from thaikit import cascade, generation
from thaikit.shelved import Line, Shelved, followers, unfit

MORE = {
    "capped": lambda: small("gemma2", num_key_value_heads=2, head_dim=8, sliding_window=12, query_pre_attn_scalar=8,
                            attn_logit_softcapping=2.0, **LLAMA),
    "sinks": lambda: small("gpt_oss", num_key_value_heads=2, head_dim=8, num_local_experts=2, num_experts_per_tok=1,
                           **LLAMA),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    """The kit's attention function is known to transformers, as `asking` makes it known."""
    transformers.AttentionInterface.register(cascade.NAME, cascade.attend)


@pytest.fixture(scope="module", params=[*sorted(KINDS), "capped"])
def model(request: pytest.FixtureRequest) -> Any:
    """A tiny model of each attention kind."""
    return {**KINDS, **MORE}[request.param]()


def written(model: Any, prompts: list[list[int]], **options: Any) -> dict[int, tuple[tuple[int, ...], str]]:
    """Generations by prompt: ids and finish. Ids stand for letters, so that stop strings can be told."""

    def decode(ids: list[int]) -> str:  # fmt: skip
        return "".join(chr(0x0E01 + i % 40) for i in ids)

    options = {"eos_ids": [3], "max_new_tokens": 30, "stops": [], **options}
    found = generation.generate(model, prompts, decode=decode, **options)
    return {index: (made.ids, made.finish) for index, made in found}


def prompts_over(seed: int, stem: int, count: int) -> list[list[int]]:
    rng = random.Random(seed)
    shared = [rng.randrange(VOCABULARY) for _ in range(stem)]
    return [shared + [rng.randrange(VOCABULARY) for _ in range(rng.randint(1, 12))] for _ in range(count)]


def test_the_probe_lets_these_write(model: Any) -> None:
    before = model.config._attn_implementation
    assert unfit(model) == ""
    assert model.config._attn_implementation == before


@pytest.mark.parametrize("kind", [*sorted(AWAY), "sinks"])
def test_the_probe_turns_these_away(kind: str) -> None:
    assert unfit({**AWAY, **MORE}[kind]())


@pytest.mark.parametrize("stem", [0, 50])
def test_texts_are_the_models_own(model: Any, stem: int) -> None:
    prompts, stops = prompts_over(9, stem, 11), [chr(0x0E01 + 7), chr(0x0E01 + 11)]
    alone = written(model, prompts, stops=stops, batch_size=1)
    assert len({finish for _, finish in alone.values()}) > 1, "rows must leave at different times"
    for batch_size in (1, 3, 8):
        assert written(model, prompts, stops=stops, batch_size=batch_size, share=True) == alone


def test_long_texts_outgrow_their_buffers_and_repeat_themselves(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedy text of a random model falls into loops: most of it must come from what was tried along."""
    prompts, steps = prompts_over(2, 40, 5), []
    honest = Shelved.run
    monkeypatch.setattr(Shelved, "run", lambda state, lines: steps.append(len(lines)) or honest(state, lines))
    alone = written(model, prompts, eos_ids=[], max_new_tokens=150, batch_size=1)
    assert written(model, prompts, eos_ids=[], max_new_tokens=150, batch_size=4, share=True) == alone
    assert all(len(ids) == 150 and finish == "length" for ids, finish in alone.values())
    assert len(steps) < 290, "token by token it takes 300 steps: four rows, then the fifth"


def test_out_of_memory_writes_the_same_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompts = KINDS["grouped"](), prompts_over(8, 40, 9)
    alone = written(model, prompts, batch_size=1)
    honest, calls = Shelved.step, []

    def narrow(state: Shelved, limits: list[int]) -> list[list[int]]:
        calls.append(len(state.lines))
        if len(state.lines) > 2 and len(calls) > 3:
            raise torch.cuda.OutOfMemoryError("out of memory")
        return honest(state, limits)

    monkeypatch.setattr(Shelved, "step", narrow)
    assert written(model, prompts, batch_size=8, share=True) == alone
    assert max(calls[4:]) > 2 and calls[-1] <= 2


def test_tried_ids_are_taken_as_far_as_the_model_agrees() -> None:
    ids = [1, 2, 3, 4, 5, 6, 1, 2, 3]
    line = Line(list(ids), past=2, table=followers(ids), slot=0, held=6)
    line.guess({}, [], 3)
    assert line.fresh == [3] and line.tried == [4, 5, 6]
    assert line.take([4, 5, 9, 7]) == [4, 5, 9], "4 and 5 agree, 9 is the model's own, 7 follows a rejected id"
    assert line.ids[-3:] == [4, 5, 9] and line.fresh == [9] and line.held == len(line.ids) - 2 - 1
    line.guess({(4, 5, 9): 1}, [8, 8], 3)
    assert line.tried == [8], "the beginning is looked through where the row itself has nothing"
    assert line.take([0, 1]) == [0] and line.reach == 2 and line.fresh == [0]
    line.guess({}, [], 0)
    assert line.tried == [] and line.take([3]) == [3] and line.reach == 2


def test_parts_join_to_one_attention() -> None:
    q, k, v = (torch.randn(2, 3, n, 8) for n in (5, 20, 20))
    hide = torch.full((2, 1, 5, 12), cascade.UNSEEN).where(torch.rand(2, 1, 5, 12) < 0.4, torch.tensor(0.0))
    hide[0, 0, 0] = cascade.UNSEEN
    a = cascade.part(q, k[:, :, :12], v[:, :, :12], hide, 0.3, None)
    b = cascade.part(q, k[:, :, 12:], v[:, :, 12:], None, 0.3, None)
    scores = q @ k.transpose(-1, -2) * 0.3
    scores[..., :12] += hide
    torch.testing.assert_close(cascade.join(a, b), scores.softmax(-1) @ v, atol=1e-5, rtol=0)
