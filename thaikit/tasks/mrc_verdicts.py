"""Four verdicts an answer as tables: counts with intervals, words, outcomes, what it cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from thaikit import params, published, stats
from thaikit.params import ModelEntry
from thaikit.stats import Estimate
from thaikit.tasks.answers import why_failed
from thaikit.tasks.mrc_judge import MrcJudge
from thaikit.verdicts import QUESTIONS

Rows = Sequence[Mapping[str, Any]]
NO_TEXT = "none: the answers' texts are not known"


def share(rows: Rows, question: str) -> Estimate:
    """The share of answers that the judge agreed to, of those with verdicts; passages are clusters."""
    told = [row for row in rows if row["outcome"] == "ok"]
    if not told:
        return Estimate(math.nan, math.nan, math.nan, 0, "none: no verdicts")
    return stats.clustered_interval([float(row[question]) for row in told], [row["passage"] for row in told])


def mean_words(rows: Rows) -> Estimate:
    """Mean words an answer, white space not counted, passages as clusters."""
    told = [row for row in rows if row["words"] is not None and not math.isnan(row["words"])]
    if not told:
        return Estimate(math.nan, math.nan, math.nan, 0, NO_TEXT)
    return stats.clustered_interval([float(row["words"]) for row in told], [row["passage"] for row in told])


def by_model(rows: Rows) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of each model that answered, in order."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["model"], []).append(row)
    return found


def verdict_table(rows: Rows) -> pd.DataFrame:
    """One row a question (of each model): question, n with a verdict, agree, unreadable; then share with its interval,
    asked, coverage, and least and most, the shares if every missing verdict were disagree or agree."""
    lines = []
    for model, part in by_model(rows).items():
        for question in QUESTIONS:
            found = share(part, question)
            agree = sum(row[question] == 1 for row in part)
            lines.append({
                "question": question, "n": found.n, "agree": agree,
                "unreadable": sum(row["outcome"] == "unreadable" for row in part), "share": found.value,
                "low": found.low, "high": found.high, "asked": len(part), "coverage": found.n / len(part),
                "least": agree / len(part), "most": (agree + len(part) - found.n) / len(part), "method": found.method,
                "model": model, "judge": part[0]["judge"],
            })  # fmt: skip
    return pd.DataFrame(lines)


def table_5(rows: Rows, *, beside_published: bool = True) -> pd.DataFrame:
    """Table 5's layout: model, Q1 to Q4 as agreed answers per 100 with interval, words an answer, n; the published rows
    (GPT-4 over 100 answers a model) below."""
    lines = []
    for model, part in by_model(rows).items():
        line: dict[str, Any] = {"model": model, "judge": part[0]["judge"]}
        for question in QUESTIONS:
            found = share(part, question)
            line |= {
                question: 100 * found.value,
                f"{question}_low": 100 * found.low,
                f"{question}_high": 100 * found.high,
            }
        words = mean_words(part)
        lines.append(line | {"words": words.value, "words_low": words.low, "words_high": words.high,
                             "n": share(part, QUESTIONS[0]).n, "asked": len(part)})  # fmt: skip
    return pd.DataFrame(lines + (published_lines() if beside_published else []))


def published_lines() -> list[dict[str, Any]]:
    """Table 5 of the WangchanLion paper as rows of `table_5`."""
    frame, lines = published.mrc_questions("wangchan.5"), []
    for model in dict.fromkeys(frame["model"]):
        part = frame[frame["model"] == model].set_index("task")
        line: dict[str, Any] = {"model": f"{model} (published)", "judge": "GPT-4"}
        for question in QUESTIONS:
            one = part.loc[question]
            line |= {question: one["value"], f"{question}_low": one["low"], f"{question}_high": one["high"]}
        lines.append(line | {"words": part.loc["tokens", "value"], "n": published.JUDGED, "asked": published.JUDGED})
    return lines


def outcomes(rows: Rows) -> dict[str, int]:
    """How often each outcome occurs, the commonest first."""
    return dict(Counter(row["outcome"] for row in rows).most_common())


def faults(rows: Rows) -> dict[str, int]:
    """Why replies gave no verdicts, the commonest first."""
    return dict(Counter(row["fault"] for row in rows if row["outcome"] != "ok").most_common())


def outcome_table(rows: Rows) -> pd.DataFrame:
    """One row an outcome and fault: how many answers, how many replies came for them."""
    counts = Counter((row["outcome"], row["fault"]) for row in rows)
    tries = Counter[tuple[str, str]]()
    for row in rows:
        tries[row["outcome"], row["fault"]] += row["tries"]
    lines = [
        {"outcome": key[0], "fault": key[1], "answers": n, "replies": tries[key]} for key, n in counts.most_common()
    ]
    return pd.DataFrame(lines)


def cost(rows: Rows, judge: MrcJudge) -> dict[str, Any]:
    """What the assessment took: answers, replies, regenerated and identical ones, tokens, seconds of waiting, US
    dollars and dollars per 100 answers by the model file's prices (None, with why, where prices or counts are missing).
    """
    entry = params.load("models", judge.entry.model, ModelEntry)
    sums = {key: [row[key] for row in rows if row["tries"]] for key in ("prompt_tokens", "completion_tokens")}
    known = {key: None if None in some or not some else sum(some) for key, some in sums.items()}
    told = {
        "answers": sum(row["tries"] > 0 for row in rows), "replies": sum(row["tries"] for row in rows),
        "regenerated": sum(max(0, row["tries"] - 1) for row in rows),
        "identical": sum(row["identical"] for row in rows), **known,
        "seconds": round(math.fsum(row["seconds"] for row in rows), 1),
    }  # fmt: skip
    if None in known.values():
        return told | {"usd": None, "usd_per_100": None, "why": "the replies tell no token counts"}
    if not entry.price_date:
        return told | {"usd": None, "usd_per_100": None, "why": f"no prices in params/models/{judge.entry.model}.yaml"}
    usd = (known["prompt_tokens"] * entry.price_input + known["completion_tokens"] * entry.price_output) / 1e6
    return told | {"usd": usd, "usd_per_100": 100 * usd / told["answers"], "why": f"prices of {entry.price_date}"}


def cost_table(rows: Rows, judge: MrcJudge) -> pd.DataFrame:
    """The cost as a table, the published price beside it: about 4 dollars for 100 questions with GPT-4, March 2024."""
    dollars = published.book().value("wangchan.text", "dollars for each judged model", "value")
    told = {"judge": judge.name, **cost(rows, judge)}
    paper = {"judge": "GPT-4 (published)", "answers": published.JUDGED, "usd": dollars, "usd_per_100": dollars,
             "why": "March 2024"}  # fmt: skip
    return pd.DataFrame([told, paper])


def headline(rows: Rows) -> dict[str, Any]:
    """Each question's share of agreement as an estimate, then counts: asked, ok, coverage, mean words. Where several
    models answered, each question's name follows the model's."""
    models, found = by_model(rows), {}
    for model, part in models.items():
        prefix = f"{model} " if len(models) > 1 else ""
        found |= {prefix + question: share(part, question).as_dict() for question in QUESTIONS}
        found[prefix + "words"] = mean_words(part).as_dict()
    ok = sum(row["outcome"] == "ok" for row in rows)
    return found | {"asked": len(rows), "ok": ok, "coverage": ok / len(rows) if rows else math.nan}


def item_table(rows: Rows, *, first: int = 8, texts: bool = False) -> pd.DataFrame:
    """Judgements as a person reads them, one of each outcome first: what was read, and with `texts` the question, the
    answer and the raw reply."""
    seen: set[tuple[str, str]] = set()
    ahead, rest = [], []
    for row in rows:
        kind = (row["outcome"], row["fault"])
        (rest if kind in seen else ahead).append(row)
        seen.add(kind)
    told = ["question", "answer", "reply"] if texts else []
    columns = ["item", "model", *told, *QUESTIONS, "outcome", "fault", "tries"]
    return pd.DataFrame((ahead + rest)[:first]).reindex(columns=columns)


def warnings(rows: Rows) -> list[str]:
    """What must be said in words: verdicts that are missing and what they could move."""
    missing = len(rows) - sum(row["outcome"] == "ok" for row in rows)
    said = []
    if missing:
        told = ", ".join(f"{n} {name}" for name, n in outcomes(rows).items() if name != "ok")
        said.append(
            f"{missing} of {len(rows)} answers have no verdicts ({told}) and are in no count; see least and most."
        )
    said += why_failed(rows)
    same = sum(row["identical"] for row in rows)
    if same:
        said.append(f"{same} regenerated replies repeat an earlier one to the letter: asking again changed nothing.")
    return said
