"""The tree kernel against the plain path: random tries, every attention kind, models that the probe must turn away."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from thaikit import split, tree, trie
from thaikit.asking import Local, register
from thaikit.encoding import Encoded
from thaikit.loglikelihood import check_head, score_plain
from thaikit.models import LocalModel
from thaikit.tree import score_tree, unfit

VOCABULARY = 97
LIMIT = 1e-4


def small(kind: str, **extra: Any) -> Any:
    """A tiny random causal model of an architecture, in fp32."""
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    config = transformers.AutoConfig.for_model(kind, **{**sizes, **extra})
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


LLAMA = {"intermediate_size": 48, "max_position_embeddings": 512}
GEMMA = {
    **LLAMA, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 12, "query_pre_attn_scalar": 8,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}  # fmt: skip
KINDS = {
    "full": lambda: small("llama", num_key_value_heads=4, **LLAMA),
    "grouped": lambda: small("llama", num_key_value_heads=2, **LLAMA),
    "sliding and full": lambda: small("gemma3_text", **GEMMA),
    "sliding": lambda: small("mistral", num_key_value_heads=2, sliding_window=10, **LLAMA),
}
AWAY = {
    "mpt": lambda: small("mpt", d_model=32, n_heads=4, n_layers=2),
    "bloom": lambda: small("bloom", n_layer=2, n_head=4),
    "mamba": lambda: small("mamba", state_size=4),
    "recurrent_gemma": lambda: small("recurrent_gemma", num_key_value_heads=1, intermediate_size=48),
    "llama4": lambda: small("llama4_text", num_key_value_heads=2, head_dim=8, num_local_experts=2,
                            attention_chunk_size=16, intermediate_size_mlp=48, **LLAMA),
}  # fmt: skip


@pytest.fixture(scope="module", params=sorted(KINDS))
def model(request: pytest.FixtureRequest) -> Any:
    """A tiny model of each attention kind."""
    return KINDS[request.param]()


def random_requests(rng: random.Random) -> list[tuple[list[int], list[int]]]:
    """Requests over a random trie: shared stems of any depth, any fan-out, duplicates, prefixes of each other."""

    def ids(low: int, high: int) -> list[int]:  # fmt: skip
        return [rng.randrange(VOCABULARY) for _ in range(rng.randint(low, high))]

    stems = [ids(1, 60)]
    for _ in range(rng.randint(0, 6)):
        stem = rng.choice(stems)
        stems.append(stem[: rng.randint(1, len(stem))] + ids(0, 40))
    requests = []
    for _ in range(rng.randint(1, 24)):
        stem = rng.choice(stems)
        context, tail = stem + ids(0, 4), ids(1, 6)
        requests.append((context, tail))
        if rng.random() < 0.3:
            requests.append((context, tail[: rng.randint(1, len(tail))]))  # a choice that is a prefix of another
        if rng.random() < 0.2:
            requests.append((context, tail))  # a duplicate
        if rng.random() < 0.2 and len(context) > 1:
            requests.append((context[:-1], [context[-1], *tail]))  # the same ids, split elsewhere
    rng.shuffle(requests)
    return requests


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit's attention function, with several blocks even in small packs."""
    register()
    monkeypatch.setattr(split, "BLOCK", 16)


def assert_same(model: Any, requests: list[tuple[list[int], list[int]]], pack: int) -> None:
    """The plain path and the packed one under either attention give every request once, with equal log-probabilities
    and arg-maxes."""
    plain = dict(score_plain(model, requests, batch_size=4))
    for cache in (tree.Prefix, split.Split):
        packed = list(score_tree(model, requests, pack=pack, cache=cache))
        assert sorted(index for index, _ in packed) == list(range(len(requests)))
        for index, scored in packed:
            np.testing.assert_allclose(scored.logprobs, plain[index].logprobs, atol=LIMIT, rtol=0)
            assert scored.greedy == plain[index].greedy


@pytest.mark.parametrize("seed", range(12))
def test_random_tries(model: Any, seed: int) -> None:
    rng = random.Random(seed)
    assert_same(model, random_requests(rng), pack=rng.choice([7, 33, 64, 500]))


@pytest.mark.parametrize("pack", [40, 1000])
def test_the_shapes_of_the_six_tasks(model: Any, pack: int) -> None:
    rng = random.Random(5)

    def ids(n: int) -> list[int]:  # fmt: skip
        return [rng.randrange(VOCABULARY) for _ in range(n)]

    shots, subjects = ids(90), [ids(50), ids(50)]
    fixed = [(shots + question, choice) for question in (ids(9), ids(7)) for choice in (ids(4), ids(2), ids(6))]
    letters = [(stem + question, [letter]) for stem in subjects for question in (ids(8), ids(8)) for letter in range(4)]
    drawn = [(context, ids(5)) for context in (ids(70), ids(75)) for _ in range(4)]
    tail = ids(8)
    head = shots + ids(5)
    winogrande = [(head + ids(1), tail), (head + ids(2), tail)]
    empty_context = [([0], ids(3)), ([0], ids(1))]
    assert_same(model, fixed + letters + drawn + winogrande + empty_context, pack)


def test_every_distinct_token_runs_once() -> None:
    rng = random.Random(2)
    requests = [(list(range(60)) + [rng.randrange(60, 90)], [rng.randrange(90) for _ in range(5)]) for _ in range(40)]
    fed = [(*context, *tail[:-1]) for context, tail in requests]
    segments = [step for step in trie.plan(trie.feeds(requests), 50) if isinstance(step, trie.Segment)]
    assert sum(len(segment.ids) for segment in segments) <= 1.1 * trie.distinct(fed)
    assert max(len(segment.ids) for segment in segments) <= 50


def test_distinct_counts_the_nodes_of_the_trie() -> None:
    assert trie.distinct([(1, 2, 3), (1, 2, 4), (1, 2), (5,)]) == 5
    assert trie.distinct([]) == 0


def test_the_probe_lets_these_pass(model: Any) -> None:
    assert unfit(model) == "" == unfit(model, cache=split.Split)


def test_a_block_sees_from_the_root_of_its_first_subtree_on() -> None:
    forest = trie.Segment(0, parent=[*(-1 if n % 10 == 0 else n - 1 for n in range(40))])
    assert split.blocks(forest) == [(0, 0, 16), (10, 16, 32), (30, 32, 40)]
    chain = trie.Segment(0, parent=[*range(-1, 32)])
    assert split.blocks(chain) == [(0, 0, 16), (0, 16, 32), (0, 32, 33)]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_sliding_layer_reads_only_what_its_window_reaches(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, rng, read = KINDS[kind](), random.Random(3), []
    honest = split.part

    def heard(q: Any, k: Any, *rest: Any) -> Any:
        read.append(k.shape[2])
        return honest(q, k, *rest)

    monkeypatch.setattr(split, "part", heard)
    stem = [rng.randrange(VOCABULARY) for _ in range(100)]
    list(score_tree(model, [(stem, [n, 1, 2]) for n in range(9)], pack=64, cache=split.Split))
    assert max(read[-2 * len(model.model.layers) :]) == (16 if kind == "sliding" else 100)


def test_a_narrow_dtype_and_layers_of_another_kind_keep_the_models_own_attention(tiny: LocalModel) -> None:
    assert Local(tiny).probe("tree")["attention"] == "thaikit"
    narrow = Local(replace(tiny, model=KINDS["full"]().to(torch.bfloat16)))
    experts = {"num_local_experts": 2, "num_experts_per_tok": 2}
    sinks = small("gpt_oss", num_key_value_heads=2, head_dim=8, sliding_window=12, **experts, **LLAMA)
    for asked in (narrow, Local(replace(tiny, model=sinks))):
        assert asked.probe("tree") == {"asked": "tree", "used": "tree", "why": "", "attention": ""}


@pytest.mark.parametrize("kind", sorted(AWAY))
def test_the_probe_turns_these_away(kind: str) -> None:
    assert unfit(AWAY[kind]())


@pytest.mark.parametrize("kind", sorted(AWAY))
def test_rounding_of_a_narrow_dtype_hides_no_positions_of_a_models_own(kind: str) -> None:
    assert unfit(AWAY[kind]().to(torch.bfloat16))
    assert not unfit(KINDS["sliding and full"]().to(torch.bfloat16))


@pytest.mark.parametrize("kind", [*sorted(AWAY), "gpt2"])
def test_the_path_taken_stands_in_the_facts_and_gives_the_models_own_numbers(tiny: LocalModel, kind: str) -> None:
    model = {**AWAY, "gpt2": lambda: small("gpt2", n_embd=32, n_layer=2, n_head=4, n_positions=256)}[kind]()
    asked, rng = Local(replace(tiny, model=model)), random.Random(1)
    requests = [Encoded(tuple(context), tuple(tail)) for context, tail in random_requests(rng)]
    found = dict(asked.score(requests, batch_size=4, tell=lambda _: None))
    for index, request in enumerate(requests):
        with torch.inference_mode():
            fed = torch.tensor([[*request.context, *request.continuation[:-1]]])
            own = model(input_ids=fed).logits[0].float().log_softmax(-1)[len(request.context) - 1 :]
        wanted = [float(own[place, token]) for place, token in enumerate(request.continuation)]
        np.testing.assert_allclose(found[index].logprobs, wanted, atol=LIMIT, rtol=0)
    told = asked.facts()["kernel"]  # what run.json says of the model
    assert told["asked"] == "tree" and (told["used"], bool(told["why"])) in {("tree", False), ("plain", True)}
    assert kind == "gpt2" or told["used"] == "plain"


def test_gpt2_with_learned_positions_is_handled_exactly_or_turned_away() -> None:
    found = small("gpt2", n_embd=32, n_layer=2, n_head=4, n_positions=256)
    if not unfit(found):
        assert_same(found, random_requests(random.Random(1)), pack=64)


def test_out_of_memory_halves_the_pack_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    model, sizes = KINDS["grouped"](), []
    requests = random_requests(random.Random(3))
    honest = tree.run_segment

    def narrow(model: Any, segment: trie.Segment, *rest: Any) -> Any:
        sizes.append(len(segment.ids))
        if len(segment.ids) > 70:
            raise torch.cuda.OutOfMemoryError("out of memory")
        return honest(model, segment, *rest)

    whole = dict(score_tree(model, requests, pack=1000))
    monkeypatch.setattr(tree, "run_segment", narrow)
    found = list(score_tree(model, requests, pack=256))
    assert max(sizes) > 70, "the fault must have struck"
    assert sorted(index for index, _ in found) == sorted(whole)
    for index, scored in found:
        np.testing.assert_allclose(scored.logprobs, whole[index].logprobs, atol=LIMIT, rtol=0)
    monkeypatch.setattr(tree, "SMALLEST_PACK", 128)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        list(score_tree(model, requests, pack=128))


def test_windows_of_requests_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, requests = KINDS["full"](), random_requests(random.Random(4))
    monkeypatch.setattr(tree, "WINDOW", 5)
    assert_same(model, requests, pack=64)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_block_masks_let_through_what_the_additive_ones_do(kind: str) -> None:
    from torch.nn.attention.flex_attention import create_mask

    model, requests = KINDS[kind](), random_requests(random.Random(1))
    for segment in trie.plan(trie.feeds(requests), 64):
        if isinstance(segment, trie.Segment):
            model.config._attn_implementation = "sdpa"
            dense = tree.masks(model, segment, "cpu")
            model.config._attn_implementation = "flex_attention"
            blocks = tree.masks(model, segment, "cpu")
            pairs = [(blocks[k], dense[k]) for k in dense] if isinstance(dense, dict) else [(blocks, dense)]
            for block, mask in pairs:
                shape = mask.shape[-2:]
                seen = create_mask(block.mask_mod, None, None, *shape, device="cpu").reshape(shape)
                assert torch.equal(seen, mask.reshape(shape) == 0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_flex_attention_gives_the_same(kind: str) -> None:
    model, requests = KINDS[kind]().cuda(), random_requests(random.Random(1))
    whole = dict(score_tree(model, requests, pack=64))
    model.set_attn_implementation("flex_attention")
    assert tree.uses_flex(model)
    for index, scored in score_tree(model, requests, pack=64):
        np.testing.assert_allclose(scored.logprobs, whole[index].logprobs, atol=1e-3, rtol=0)


def bent() -> Any:
    """A model that turns to other rotary frequencies, for all of a row, beyond 96 tokens."""
    rope = {"rope_type": "longrope", "rope_theta": 10_000.0, "original_max_position_embeddings": 96}
    rope |= {"short_factor": [1.0] * 4, "long_factor": [3.0, 4.0, 5.0, 6.0]}
    sizes = {"num_key_value_heads": 2, "pad_token_id": 0, "initializer_range": 0.2, **LLAMA}
    return small("phi3", rope_parameters=rope, original_max_position_embeddings=96, **sizes)


LOCAL = {
    "a bend in the positions": bent,
    "local layers": lambda: small("gpt_neo", num_hidden_layers=4, window_size=90, intermediate_size=48,
                                  attention_types=[[["global", "local"], 2]], initializer_range=0.2),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(LOCAL))
def test_what_changes_only_beyond_the_probe_changes_no_number(tiny: LocalModel, kind: str) -> None:
    model, rng = LOCAL[kind](), random.Random(5)
    stem = [rng.randrange(VOCABULARY) for _ in range(150)]
    requests = [(stem[:size] + [n], [n, 2, n]) for size in (60, 93, 94, 95, 120, 150) for n in (1, 5)]
    asked = Local(replace(tiny, model=model))
    found = dict(asked.score([Encoded(tuple(c), tuple(t)) for c, t in requests], batch_size=4, tell=lambda _: None))
    assert sorted(found) == list(range(len(requests)))
    for index, (context, tail) in enumerate(requests):
        with torch.inference_mode():
            rows = model(input_ids=torch.tensor([[*context, *tail[:-1]]])).logits[0].log_softmax(-1)[-len(tail) :]
        wanted = [float(rows[place, token]) for place, token in enumerate(tail)]
        np.testing.assert_allclose(found[index].logprobs, wanted, atol=LIMIT, rtol=0)


def plainly(model: Any, ids: list[int], count: int) -> list[int]:
    """The arg-max tokens that follow, one forward pass of all ids for each."""
    ids = list(ids)
    for _ in range(count):
        with torch.inference_mode():
            ids.append(int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[-count:]


WRITERS = {
    "mamba": lambda: small("mamba", state_size=4, initializer_range=0.3),
    "no cache": lambda: small("openai-gpt", n_embd=32, n_layer=2, n_head=4, n_positions=256, initializer_range=0.3),
    "a bend in the positions": bent,
}


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_models_off_the_common_way_write_their_own_text(tiny: LocalModel, kind: str) -> None:
    model, rng = WRITERS[kind](), random.Random(7)
    if kind == "mamba":
        with torch.no_grad():
            for weights in model.parameters():
                weights.add_(0.2 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(1)))
    stem = [rng.randrange(3, VOCABULARY) for _ in range(80)]
    prompts = [stem + [rng.randrange(3, VOCABULARY) for _ in range(size)] for size in (3, 8, 14, 30)]
    asked = Local(replace(tiny, model=model, eos_ids=frozenset()))
    made = dict(asked.generate(prompts, stops=(), max_new_tokens=15, batch_size=3, tell=lambda _: None))
    for index, prompt in enumerate(prompts):
        assert list(made[index].ids) == plainly(model, prompt, 15)


@pytest.mark.parametrize("kind", ["gemma2", "cohere", "granite"])
def test_a_head_that_scales_or_caps_is_known_in_a_narrow_dtype_too(kind: str) -> None:
    scale = {"cohere": {"logit_scale": 0.3}, "granite": {"logits_scaling": 3.0}}.get(kind, {"head_dim": 8})
    model = small(kind, num_key_value_heads=2, initializer_range=0.3, pad_token_id=0, **scale, **LLAMA)
    check_head(model.to(torch.bfloat16))


def test_fp32_states_before_a_narrow_head_are_narrowed() -> None:
    check_head(small("mamba", state_size=4).to(torch.bfloat16))
