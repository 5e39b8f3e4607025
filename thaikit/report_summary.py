"""The report's first words: what was run, what came out, what cannot be told, in English and Thai, filled by code."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from thaikit import stats
from thaikit.figures import task_names
from thaikit.leaves import LIMIT_HIT_ALLOWED
from thaikit.records import Leaf
from thaikit.report_board import Board, Entry
from thaikit.report_parts import limited, number
from thaikit.report_thaicli import STAGE, model_of
from thaikit.report_words import LANGUAGES, counted, date, listed, reason, say, share, theme


def summary(boards: Sequence[Board], leaves: Sequence[Leaf], *, thai: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Language → sentences, the same facts in each. `boards` are the leaderboard's, `leaves` all that the page reads,
    `thai` the part about tokenizers."""
    return {lang: list(sentences(lang, boards, leaves, thai=thai)) for lang in LANGUAGES}


def sentences(lang: str, boards: Sequence[Board], leaves: Sequence[Leaf], *, thai: Mapping[str, Any] | None
              ) -> Iterator[str]:  # fmt: skip
    """One line a board, then the warnings, then tokens, days and data."""
    for board in boards:
        several = sum(other.benchmark == board.benchmark for other in boards) > 1
        yield " ".join(board_line(lang, board, leaves, several=several))
    if not boards:
        yield say(lang, "nothing")
    yield from warnings(lang, boards, leaves)
    yield from tax_line(lang, thai)
    yield days_line(lang, leaves)


# ------------------------------------------------------------------------------------------------- scores


def board_line(lang: str, board: Board, leaves: Sequence[Leaf], *, several: bool) -> Iterator[str]:
    """What a board ran, its highest and lowest score, and what its pairs show."""
    ranked = [board.entries[i] for i in board.order if not math.isnan(board.entries[i].value)]
    without = [entry for entry in board.entries if math.isnan(entry.value)]
    models = f"{counted(lang, len(board.entries), 'model')} ({listed(lang, [one.model for one in board.entries])})"
    told = {"benchmark": board.benchmark, "terms": f" ({board.terms})" if several else "", "models": models}
    judges = judges_of(board, leaves)
    key = "judged" if judges else "ran"
    yield say(lang, key, **told, items=items(lang, board.entries), judge=listed(lang, judges) if judges else "")
    yield from scores(lang, board, ranked)
    for entry in without:
        yield say(lang, "no score", model=entry.model, why=reason(lang, entry.estimate.get("method")))
    if ranked:
        yield from differences(lang, board, ranked)


def judges_of(board: Board, leaves: Sequence[Leaf]) -> list[str]:
    """The judges behind a board of ThaiCLI; each board has one, and its terms name it."""
    found = {str((leaf.run.get("judge") or {}).get("name")) for leaf in leaves if leaf.run.get("stage") == STAGE}
    told = board.terms.split(" · ")
    return sorted(name for name in found if f"judge {name}" in told) if board.benchmark == "ThaiCLI" else []


def items(lang: str, entries: Sequence[Entry]) -> str:
    """How many items are in the scores, from the fewest to the most over models."""
    sizes = sorted({int(number(one.estimate.get("n")) if one.estimate.get("n") else 0) for one in entries})
    last = counted(lang, sizes[-1], "item")
    to = {"en": " to ", "th": " ถึง "}[lang]
    return last if len(sizes) == 1 else f"{sizes[0]:,}{to}{last}"


def scores(lang: str, board: Board, ranked: Sequence[Entry]) -> Iterator[str]:
    """The highest and the lowest score."""
    if not ranked:
        return
    by_value = sorted(ranked, key=lambda entry: -entry.value)
    first, last = by_value[0], by_value[-1]
    if len(ranked) == 1:
        yield say(lang, "alone", model=first.model, value=with_interval(lang, board, first))
    elif board.show(first.value) == board.show(last.value):
        yield say(lang, "alike", value=in_unit(lang, board, first.value))
    else:
        told = {"first": first.model, "value": with_interval(lang, board, first), "last": last.model}
        yield say(lang, "best", **told, lowest=with_interval(lang, board, last))


def in_unit(lang: str, board: Board, value: float) -> str:
    """A score in percent or in points of the judge's scale."""
    return say(lang, "percent" if board.scale != 1 else "points", x=board.show(value))


def with_interval(lang: str, board: Board, entry: Entry) -> str:
    """A score with its interval, or with the reason for having none."""
    low, high = number(entry.estimate.get("low")), number(entry.estimate.get("high"))
    value = in_unit(lang, board, entry.value)
    if math.isnan(low) or math.isnan(high):
        return say(lang, "no interval", value=value, why=reason(lang, entry.estimate.get("method")))
    ends = {"low": board.show(low), "high": board.show(high)}
    return say(lang, "interval", value=value, confidence=f"{100 * stats.CONFIDENCE:.0f}", **ends)


def differences(lang: str, board: Board, ranked: Sequence[Entry]) -> Iterator[str]:
    """What the pairs show after Holm's correction, and what cannot be told."""
    tested = [pair for pair in board.pairs if not math.isnan(pair.holm)]
    shown = [pair for pair in tested if pair.ahead]
    count = len(tested)
    if len(ranked) < 2:
        yield say(lang, "one model")
    elif count == 1:
        yield say(lang, "pair differs", ahead=shown[0].ahead) if shown else say(lang, "pair alike")
    elif count:
        key = "all differ" if len(shown) == count else "some differ" if shown else "none differ"
        yield say(lang, key, count=f"{count:,}", shown=f"{len(shown):,}", rest=f"{count - len(shown):,}")
    if count < len(board.pairs):
        yield say(lang, "untested", count=f"{len(board.pairs) - count:,}")


# ------------------------------------------------------------------------------------------------- warnings


def warnings(lang: str, boards: Sequence[Board], leaves: Sequence[Leaf]) -> Iterator[str]:
    """Rehearsals, limits, answers cut off, the judge's gate, coverage."""
    rehearsing = dict.fromkeys(entry.model for board in boards for entry in board.entries if entry.rehearsal)
    if rehearsing:
        yield say(lang, "rehearsal", names=listed(lang, list(rehearsing)))
    few = [say(lang, "limited", model=leaf.name, limit=leaf.run["params"]["limit"]) for leaf in leaves if limited(leaf)]
    if few:
        yield say(lang, "limit", names=listed(lang, few))
    cut = [say(lang, "cut one", model=leaf.name, task=task_names(task)[0], share=share(lang, facts["limit_hit"]))
           for leaf, task, facts in cut_tasks(leaves)]  # fmt: skip
    if cut:
        yield say(lang, "cut", allowed=share(lang, LIMIT_HIT_ALLOWED, 0), names=listed(lang, cut))
    judged = [leaf for leaf in leaves if leaf.run.get("stage") == STAGE]
    yield from gates(lang, judged)
    yield from coverage(lang, judged)


def cut_tasks(leaves: Sequence[Leaf]) -> list[tuple[Leaf, str, Mapping[str, Any]]]:
    """The generated tasks that hit the limit of new tokens too often, the worst first."""
    found = [(leaf, task, facts) for leaf in leaves for task, facts in (leaf.run.get("tasks") or {}).items()
             if isinstance(facts, Mapping) and number(facts.get("limit_hit")) > LIMIT_HIT_ALLOWED]  # fmt: skip
    return sorted(found, key=lambda one: -number(one[2]["limit_hit"]))


def gates(lang: str, judged: Sequence[Leaf]) -> Iterator[str]:
    """For each judge the themes in which it is marked, or that it was not gated at all."""
    by_judge: dict[str, list[Leaf]] = {}
    for leaf in judged:
        by_judge.setdefault(str((leaf.run.get("judge") or {}).get("name")), []).append(leaf)
    for judge, some in by_judge.items():
        marked = dict.fromkeys(theme(lang, key) for leaf in some for key in leaf.run.get("gate_marked") or [])
        if marked:
            yield say(lang, "gate", judge=judge, themes=listed(lang, list(marked), most=len(marked)))
        elif not any(leaf.run.get("gate") for leaf in some):
            yield say(lang, "no gate", judge=judge)


def coverage(lang: str, judged: Sequence[Leaf]) -> Iterator[str]:
    """The lowest coverage where one is below all items."""
    told = [(number((leaf.run["headline"].get("thaicli") or {}).get("coverage")), place)
            for place, leaf in enumerate(judged)]  # fmt: skip
    below = [one for one in told if one[0] < 1]
    if below:
        value, place = min(below)
        found = judged[place].run["headline"]["thaicli"]
        counts = {key: f"{int(found[key]):,}" for key in ("ok", "asked")}
        yield say(lang, "coverage", model=model_of(judged[place]), share=share(lang, value), **counts)


# ------------------------------------------------------------------------------------------------- the rest


def tax_line(lang: str, thai: Mapping[str, Any] | None) -> Iterator[str]:
    """The range of the Thai tax."""
    drawn = sorted((line["value"], line["model"]) for line in (thai or {}).get("drawn") or [])
    if drawn:
        key = "tax one" if len(drawn) == 1 else "tax"
        yield say(lang, key, model=drawn[0][1], low=f"{drawn[0][0]:.2f}", high=f"{drawn[-1][0]:.2f}")


def days_line(lang: str, leaves: Sequence[Leaf]) -> str:
    """On which days the runs ended and which data they read."""
    ended = sorted({str(leaf.run["finished"])[:10] for leaf in leaves if leaf.run.get("finished")})
    places = dict.fromkeys(place for leaf in leaves for place in places_of(leaf))
    told = listed(lang, list(places)) if places else say(lang, "not recorded")
    if not ended:
        return say(lang, "undated", places=told)
    first, last = date(lang, ended[0]), date(lang, ended[-1])
    return say(lang, "day" if first == last else "days", day=first, last=last, places=told)


def places_of(leaf: Leaf) -> list[str]:
    """Where a leaf's data came from; a leaf of scored answers names the place of each set."""
    answers = leaf.run.get("answers")
    sets = [one.get("place") for one in answers if isinstance(one, Mapping)] if isinstance(answers, list) else []
    return [str(place) for place in (leaf.run.get("data_place"), *sets) if place]
