"""A loaded model as tasks ask it: strings in, token ids, log-probabilities and completions out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from thaikit import ThaikitError, encoding, params
from thaikit.encoding import Encoded

Tell = Callable[[str], None]
Conversation = list[dict[str, str]]
PLAIN_ROWS = 4  # rows a forward pass of the plain path where nobody says


def open_model(name: str) -> Any:
    """The model of params/models/<name>.yaml: a `Local` (weights on this machine) or a `Replay` (recorded answers)."""
    entry = params.load("models", name, params.ModelEntry)
    if entry.kind == "replay":
        from thaikit.replay import Replay

        return Replay.read(name, entry)
    from thaikit import models

    return Local(models.load(entry, name=name))


@dataclass
class Local:
    """A local causal model behind the four calls that tasks make."""

    loaded: Any
    kernel: dict[str, str] = field(default_factory=dict, repr=False)
    probed: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)
    contexts: dict[tuple[str, int], dict[str, tuple[int, ...]]] = field(default_factory=dict, repr=False)
    ran: int = 0

    @property
    def name(self) -> str:
        """The name of its parameter file."""
        return self.loaded.name

    @property
    def chat(self) -> bool:
        """Whether prompts go through its chat template."""
        return self.loaded.chat

    @property
    def bos(self) -> str:
        """The BOS policy that its file sets against the profile's, or ""."""
        return self.loaded.entry.bos

    @property
    def max_length(self) -> int:
        """Its window in tokens."""
        return self.loaded.max_length

    def facts(self) -> dict[str, Any]:
        """What run.json says of it, with the scoring kernel that was asked for and the one that was used."""
        return {**self.loaded.facts(), **({"kernel": self.kernel} if self.kernel else {})}

    def render(self, conversation: Conversation) -> str:
        """A conversation as the chat template writes it, ready for the answer; a refused system turn is dropped."""
        from jinja2 import TemplateError

        if any(not turn["content"].strip() for turn in conversation):
            raise ValueError("a turn of the conversation is empty; this task has no chat form, use a plain prompt")
        fault: TemplateError | None = None
        for turns in (conversation, conversation[1:] if conversation[0]["role"] == "system" else []):
            try:
                if turns:
                    return self.loaded.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            except TemplateError as error:
                fault = error
        raise ValueError(f"the chat template of {self.name} fails on this conversation ({fault})") from fault

    def encode_prompt(self, prompt: str | Conversation, *, bos: str) -> list[int]:
        """Token ids of a prompt to continue; a rendered conversation holds its own special tokens."""
        if isinstance(prompt, str):
            return encoding.encode(self.loaded.tokenizer, prompt, bos=bos)
        return encoding.encode(self.loaded.tokenizer, self.render(prompt), bos="never")

    def encode_pair(
        self, prompt: str | Conversation, continuation: str, *, bos: str, boundary: str, prefix: str
    ) -> Encoded:
        """A scoring request. In a conversation the template's last newlines stay on the context's side."""
        rules: dict[str, Any] = {"bos": bos, "boundary": boundary, "prefix": prefix}
        if not isinstance(prompt, str):
            prompt, rules = self.render(prompt), {**rules, "bos": "never", "move_space": False}
        known = self.contexts.setdefault((rules["bos"], threading.get_ident()), {})
        return encoding.encode_pair(self.loaded.tokenizer, prompt, continuation, known=known, **rules)

    def pieces(self, request: Encoded) -> list[str]:
        """The text of each scored token (`encoding.pieces`)."""
        return encoding.pieces(self.loaded.tokenizer, request)

    def choose(self, kernel: str) -> str:
        """The kernel to use: the tree where a probe shows that this model can be packed, else the plain path."""
        if kernel not in self.probed:
            self.probed[kernel] = self.probe(kernel)
        self.kernel = self.probed[kernel]
        return self.kernel["used"]

    def probe(self, kernel: str) -> dict[str, str]:
        """Which kernel runs this model, and why not the one that was asked for; ThaikitError for an unusual LM head."""
        from thaikit import loglikelihood, tree

        try:
            loglikelihood.check_head(self.loaded.model)
        except ValueError as error:
            raise ThaikitError(f"model {self.name}: {error}") from error
        attention = self.try_split() if kernel == "tree" else ""
        why = tree.unfit(self.loaded.model) if kernel == "tree" and not attention else ""
        if kernel == "tree" and not why and "cuda" in self.loaded.device:
            attention = self.try_flex()
        return {"asked": kernel, "used": "plain" if why else kernel, "why": why, "attention": attention}

    def shelves(self) -> bool:
        """Whether generation may share beginnings: a probe shows that the attention layers take the kit's function."""
        if "writing" not in self.probed:
            from thaikit import shelved

            register()
            why = shelved.unfit(self.loaded.model)
            self.probed["writing"] = {"generation": "plain" if why else "shared", "generation_why": why}
        self.kernel |= self.probed["writing"]
        return not self.probed["writing"]["generation_why"]

    def alone(self) -> bool:
        """Whether rows that do not share must be written one by one: a probe shows that padding changes their text."""
        from thaikit import generation

        if "alone" not in self.probed:
            self.probed["alone"] = {"rows": generation.unpadded(self.loaded.model)}
        return bool(self.probed["alone"]["rows"])

    def try_split(self) -> str:
        """On a CPU in fp32, the name of the kit's own attention where the probe passes with it; "" where not."""
        import torch

        from thaikit import cascade, split, tree

        model = self.loaded.model
        if "cpu" not in self.loaded.device or next(model.parameters()).dtype != torch.float32:
            return ""
        register()
        return "" if tree.unfit(model, cache=split.Split) else cascade.NAME

    def try_flex(self) -> str:
        """Turn FlexAttention on for scoring where the model takes it and the probe passes with it; "" where not."""
        from thaikit import tree

        before = self.loaded.model.config._attn_implementation
        try:
            self.loaded.model.set_attn_implementation("flex_attention")
            fits = not tree.unfit(self.loaded.model)
        except (ValueError, ImportError, AttributeError):
            fits = False
        self.loaded.model.set_attn_implementation(before)
        return "flex_attention" if fits else ""

    def cache(self) -> Any:
        """How attention reaches a shared prefix: by the kit's own function where the probe chose it."""
        from thaikit import cascade, split, tree

        return split.Split if self.kernel["attention"] == cascade.NAME else tree.Prefix

    def score(
        self, requests: Sequence[Encoded], *, batch_size: int, tell: Tell, kernel: str = "tree"
    ) -> Iterator[tuple[int, Any]]:
        """Yield (request index, Scored) as batches or packs finish."""
        from thaikit import loglikelihood

        pairs = [(request.context, request.continuation) for request in requests]
        used, bend = self.choose(kernel), loglikelihood.bend(self.loaded.model)
        far = [n for n, (context, tail) in enumerate(pairs) if bend and len(context) + len(tail) - 1 > bend]
        near = sorted(set(range(len(pairs))) - set(far))
        for places, path in ((near, used), (far, "plain")):
            if places:
                for place, scored in self.run(path, [pairs[n] for n in places], batch_size=batch_size, tell=tell):
                    yield places[place], scored

    def run(self, path: str, pairs: Sequence[Any], *, batch_size: int, tell: Tell) -> Iterator[tuple[int, Any]]:
        """The scores of (context, continuation) pairs by the tree or the plain path."""
        from thaikit import loglikelihood, memory, tree, trie

        model = self.loaded.model
        fed = [(*context, *continuation[:-1]) for context, continuation in pairs]
        if path != "tree":
            hear = counter(self, tell, sum(map(len, set(fed))), "tokens")
            yield from loglikelihood.score_plain(model, pairs, batch_size=batch_size or PLAIN_ROWS, on_batch=hear)
            return
        hear = counter(self, tell, trie.distinct(fed), "distinct tokens")
        longest = max(map(len, fed), default=0)
        pack = memory.pack_size(memory.shape_of(model), memory.free_bytes(model), longest=longest)
        self.kernel["pack"] = str(pack)
        before = model.config._attn_implementation
        flex = self.kernel["attention"] == "flex_attention"
        model.set_attn_implementation("flex_attention" if flex else before)
        try:
            yield from tree.score_tree(model, pairs, pack=pack, cache=self.cache(), on_batch=hear)
        finally:
            model.set_attn_implementation(before)

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        stops: Sequence[str],
        max_new_tokens: int,
        batch_size: int,
        tell: Tell,
        kernel: str = "tree",
    ) -> Iterator[tuple[int, Any]]:
        """Yield (prompt index, Generated) as rows finish; greedy, cut at the first end token."""
        from thaikit import generation, loglikelihood, memory, trie

        model, bend = self.loaded.model, loglikelihood.bend(self.loaded.model)
        share = self.choose(kernel) == "tree" and self.shelves()
        longest = max(map(len, prompts), default=0) + max_new_tokens
        whole = bool(bend) and longest > bend  # a row that crosses the bend is run anew
        share = share and not whole
        rows = batch_size or memory.row_count(memory.shape_of(model), memory.free_bytes(model), longest=longest)
        rows = rows if share else 1 if whole or self.alone() else rows

        def decode(ids: list[int]) -> str:
            return self.loaded.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

        yield from generation.generate(
            model,
            prompts,
            decode=decode,
            stops=stops,
            eos_ids=sorted(self.loaded.eos_ids),
            max_new_tokens=max_new_tokens,
            batch_size=rows,
            share=share,
            cache=self.cache(),
            whole=whole,
            on_batch=counter(self, tell, trie.distinct(prompts) if share else sum(map(len, prompts)), "prompt tokens"),
        )


def counter(asked: Local, tell: Tell, total: int, unit: str) -> Callable[[int], None]:
    """A listener that adds up the tokens of finished batches (in the model's `ran` too) and tells how many are done,
    how fast, and what is left."""
    done, begun = [0], time.monotonic()

    def heard(tokens: int) -> None:
        asked.ran += tokens
        done[0] += tokens
        rate = done[0] / max(time.monotonic() - begun, 1e-6)
        left = max(total - done[0], 0) / max(rate, 1e-6)
        tell(f"{done[0]:,} of {total:,} {unit}, {rate:,.0f}/s, {left:,.0f} s left")

    return heard


def register() -> None:
    """Make the kit's attention function known to transformers."""
    from transformers import AttentionInterface

    from thaikit import cascade

    AttentionInterface.register(cascade.NAME, cascade.attend)
