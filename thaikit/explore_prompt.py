"""What an item's card shows beside its row: the prompt as sent, each token's log-probability, raw replies and what was
read from them. Nobody is asked: prompts are built again from the files, and a hash says whether they are the same."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thaikit import ThaikitError, params, reading, replay, verdicts
from thaikit.explore_rows import REPLIES, Rows, kind, number, read_file, text_of
from thaikit.judge import Case, Judge
from thaikit.params import ModelEntry, TaskSet, expand
from thaikit.records import root
from thaikit.shapes import PromptEntry
from thaikit.tasks import build, mrc_answer, mrc_judging, thaicli_answer
from thaikit.tasks.build import Task
from thaikit.tasks.items import Item, context, digest, messages
from thaikit.tasks.mrc import Exemplar, MrcItem
from thaikit.tasks.mrc_judge import Answered, MrcJudge

CHAT = "It went through the model's chat template, whose text is not kept: these are its turns."
CHANGED = "It cannot be shown: built again from its files it is not the one that was sent (SHA-256 {}…)."
OPEN = "Built again from its files; the leaf is open, so it was not compared with what was sent."
NO_TOKENS = "This leaf holds no log-probabilities of single tokens; run 10_thai_h6 again with token_logprobs true."
NO_TEXTS = "This leaf holds the numbers without the tokens' texts; run 10_thai_h6 again with token_logprobs true."
BUILT = ("tasks", "data", "limit", "profile", "labels", "allow_size_mismatch")
CLOSE = 1e-3  # of a log-probability, between a row and the recording that its tokens are taken from


@dataclass(frozen=True)
class Asked:
    """A prompt as turns (role, text); role "" is a plain text to continue. `told` is what must be said of it."""

    turns: tuple[tuple[str, str], ...] = ()
    told: str = ""


@dataclass(frozen=True)
class Tokens:
    """For each choice its tokens as (text, natural-log probability); none where they were not kept, `told` says how to
    get them or where they are from. A token inside a character has the text "", see `encoding.pieces`."""

    choices: tuple[tuple[tuple[str, float], ...], ...] = ()
    told: str = ""


def asked(rows: Rows, row: Mapping[str, Any]) -> Asked:
    """The prompt of a row as it was sent; without turns, and one sentence why, where it cannot be had."""
    makers = {"choices": h6, "number": h6, "preference": preference, "four": four, "judged": judged, "answer": answer}
    maker = makers.get(kind(row))
    if maker is None:
        return Asked(told="This stage sends nothing: the leaf that it reads holds the prompts.")
    if text_of((rows.run.get("params") or {}).get("tasks")).startswith("lm-evaluation-harness"):
        return Asked(told="lm-evaluation-harness asked it: the prompt is in the sample files that it wrote.")
    try:
        return maker(rows, row)
    except (ThaikitError, KeyError, IndexError, TypeError, ValueError) as error:
        return Asked(told=f"It cannot be built again from its files ({' '.join(str(error).split())}).")


def compared(turns: Sequence[tuple[str, str]], text: str, row: Mapping[str, Any], told: str = "") -> Asked:
    """The turns if their text has the row's hash, else why not."""
    wanted = text_of(row.get("prompt_sha256"))
    return Asked(tuple(turns), told) if digest(text) == wanted else Asked(told=CHANGED.format(wanted[:12]))


# ---------------------------------------------------------------------------------------------- Thai-H6


@functools.lru_cache(maxsize=4)
def task_of(given: str, name: str) -> Task:
    """A task built again from a leaf's parameters, given as JSON."""
    told = json.loads(given)
    found = params.load("tasks", told["tasks"], TaskSet)
    changes = {key: told[key] for key in ("profile", "labels", "allow_size_mismatch") if told.get(key)}
    found = params.changed(found, changes, where=f"tasks {told['tasks']}")
    base = expand(str(told.get("data") or found.data), base=root())
    return build.build(name, found, base, limit=int(told.get("limit") or 0))


def item(rows: Rows, row: Mapping[str, Any]) -> tuple[Task, Item, tuple[Item, ...]]:
    """(the task, the item, the worked examples before it) of a Thai-H6 row; ThaikitError where data have changed."""
    given = {key: rows.run["params"][key] for key in BUILT if key in rows.run["params"]}
    task = task_of(json.dumps(given, sort_keys=True), str(row["task"]))
    found = task.items[row["index"]] if row["index"] < len(task.items) else None
    if found is None or found.id != row["id"]:
        raise ThaikitError(f"task {task.name} has another item at place {row['index']} than {row['id']!r} now")
    return task, found, task.shots(row["index"])[task.spec.shots - row["shots"] :]


def h6(rows: Rows, row: Mapping[str, Any]) -> Asked:
    """A Thai-H6 prompt; of Winogrande, which has one a choice, the first."""
    task, found, shots = item(rows, row)
    facts = (rows.run.get("tasks") or {}).get(task.name) or {}
    notes = [f"The first {row['cut_tokens']} tokens were cut off."] if row.get("cut_tokens") else []
    notes += ["The first choice's; the other's differs by its option."] if len(found.queries) > 1 else []
    if facts.get("chat"):
        turns = [(turn["role"], turn["content"]) for turn in messages(found, shots)]
        return Asked(tuple(turns), " ".join([CHAT, *notes]))
    text = context(found, shots, delimiter=task.spec.delimiter)
    return compared([("", text)], text, row, " ".join(notes))


def tokens(rows: Rows, row: Mapping[str, Any]) -> Tokens:
    """Each choice's tokens: from the row, else from a recording of the same request that agrees with the row."""
    kept, texts = row.get("token_logprobs"), row.get("token_texts")
    if kind(row) != "choices":
        return Tokens()
    if not kept:
        return recorded(rows, row)
    if not texts:
        return Tokens(tuple(tuple(("", number(lp)) for lp in one) for one in kept), NO_TEXTS)
    both = zip(kept, texts, strict=False)
    return Tokens(tuple(tuple(zip(map(text_of, told), map(number, one), strict=False)) for one, told in both))


@functools.lru_cache(maxsize=2)
def recording(model: str) -> replay.Replay | None:
    """The recorded log-probabilities of a model, or of the model that it repeats; None where there are none."""
    for name in (model, f"replay-{model}"):
        try:
            entry = params.load("models", name, ModelEntry)
            if entry.kind == "replay" and entry.source.endswith(".json.gz"):
                return replay.Replay.read(name, entry)
        except ThaikitError:
            continue
    return None


def recorded(rows: Rows, row: Mapping[str, Any]) -> Tokens:
    """Tokens from a model's recording, where it holds this very request and adds up to the row's own numbers."""
    given = rows.run.get("params") or {}
    source = recording(str(given.get("model") or ""))
    try:
        task, found, shots = item(rows, row)
    except (ThaikitError, KeyError, IndexError, TypeError):
        return Tokens(told=NO_TOKENS)
    if source is None:
        return Tokens(told=NO_TOKENS)
    glue, choices = task.spec.delimiter, []
    for place, text in list(enumerate(found.continuations))[found.first :]:
        prompt = context(found, shots, delimiter=glue, choice=place)
        one = source.records["scores"].get(replay.pair_key(prompt.encode(), (glue + text).encode())) or {}
        choices.append(tuple(zip(one.get("t", []), one.get("lp", []), strict=False)))
    sums = [math.fsum(lp for _, lp in one) for one in choices]
    ll = [number(value) for value in row.get("ll") or []]
    fits = len(sums) == len(ll) and all(abs(x - y) < CLOSE for x, y in zip(sums, ll, strict=True)) and all(choices)
    return Tokens(tuple(choices), f"Tokens as recorded in {source.path.name}.") if fits else Tokens(told=NO_TOKENS)


# ---------------------------------------------------------------------------------------------- answers


def preference(rows: Rows, row: Mapping[str, Any]) -> Asked:
    """The question before two answers whose log-probabilities are compared."""
    if row.get("prompt_form") == "chat":
        return Asked((("user", text_of(row["question"])),), CHAT)
    text = thaicli_answer.PLAIN.replace("{question}", text_of(row["question"]))
    return compared([("", text)], text, row)


def answer(rows: Rows, row: Mapping[str, Any]) -> Asked:
    """The prompt of a ThaiCLI question or of a passage with a question."""
    if "context" not in row:
        if row.get("prompt_form") != "chat":
            return preference(rows, row)
        prompt: Any = ({"role": "user", "content": text_of(row["question"])},)
    else:
        entry = params.load("prompts", str(row["prompt"]), PromptEntry)
        shown = (rows.run.get("exemplar") or {}) if row.get("shots") else {}
        exemplar = Exemplar(shown["context"], shown["question"], shown["reference"]) if shown else None
        texts = (str(row[key]) for key in ("id", "title", "context", "question"))
        prompt = mrc_answer.render(entry, MrcItem(*texts, tuple(row["references"])), exemplar)
    turns = [("", prompt)] if isinstance(prompt, str) else [(turn["role"], turn["content"]) for turn in prompt]
    return compared(turns, mrc_answer.told(prompt), row)


# ---------------------------------------------------------------------------------------------- judges


def conversation(rows: Rows, facts: Mapping[str, Any], turns: Sequence[Mapping[str, str]]) -> Asked:
    """What a judge got, if its prompt file is still the one that the leaf records."""
    told = tuple((turn["role"], turn["content"]) for turn in turns)
    if not rows.closed:
        return Asked(told, OPEN)
    before, now = (rows.run.get("judge") or {}).get("prompt_sha256"), facts["prompt_sha256"]
    if before != now:
        return Asked(told="It cannot be shown: the judge's prompt file is not the one that was used.")
    return Asked(told)


def judged(rows: Rows, row: Mapping[str, Any]) -> Asked:
    """The conversation of ThaiCLI's judge about an answer."""
    if not row.get("asked", True):
        return Asked(told="The judge was not asked: there is no answer to judge.")
    judge = Judge.read(str(rows.run["params"]["judge"]))
    texts = [text_of(row[key]) for key in ("answer", "question", "chosen", "rejected")]
    return conversation(rows, judge.facts(), judge.messages(Case(text_of(row["id"]), *texts)))


def four(rows: Rows, row: Mapping[str, Any]) -> Asked:
    """The conversation about the four questions; the passage is looked up among the answers that were judged."""
    given = rows.run["params"]
    if not row.get("asked", True):
        return Asked(told="The judge was not asked: there is no answer to judge.")
    if given.get("judgements"):
        return Asked(told="The replies were read from a file, nobody was asked.")
    judge, found = MrcJudge.read(str(given["judge"])), mrc_judging.given_answers(given)
    mine = [one for one in found.rows if f"{one['id']}@{found.model}" == row["id"]]
    if not mine or any(mine[0][key] != row[key] for key in ("question", "answer")):
        return Asked(told="It cannot be shown: the answers that were judged are not there any more.")
    texts = [mine[0][key] for key in ("context", "question")]
    case = Answered(mine[0]["id"], found.model, *texts, tuple(mine[0]["references"]), mine[0]["answer"])
    return conversation(rows, judge.facts(), judge.messages(case))


def replies(rows: Rows, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All raw replies about a row, in the order of their coming, each with what was read from it ("" for answers)."""
    rule = text_of(row.get("rule") or (rows.run.get("judge") or {}).get("rule"))
    own = [one for one in read_file(rows.path / "rows", REPLIES) if one.get("item") == row.get("id")]
    found = sorted(own, key=lambda one: (number(one.get("repeat"), 0), number(one.get("attempt"), 0)))
    if not found and row.get("reply"):
        found = [{"text": row["reply"], "outcome": row.get("outcome"), "finish": row.get("finish")}]
    return [dict(one, read=read(text_of(one.get("text")), kind(row), rule)) for one in found]


def read(text: str, what: str, rule: str) -> str:
    """What a judge's reply says under its rule, as words."""
    if what == "judged" and rule in reading.RULES:
        score = reading.read(text, rule=rule).score
        return "no score" if score is None else f"score {score}"
    if what == "four" and rule in verdicts.RULES:
        told = verdicts.read(text, rule=rule)
        words = ("disagree", "agree")
        given = [f"Q{n} {words[one]}" for n, one in enumerate(told.verdicts or (), 1)]
        return ", ".join(given) or told.fault
    return ""
