"""Four verdicts an answer in a leaf: judged or read from a file, as counts with intervals, words and what it cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from thaikit import ThaikitError, chat, f1, params, published, records, stats
from thaikit.params import ModelEntry, expand
from thaikit.records import Run, root
from thaikit.stats import Estimate
from thaikit.tasks import mrc_read
from thaikit.tasks.load import read_file
from thaikit.tasks.mrc_judge import Answered, MrcJudge, judge_all, read_replies
from thaikit.verdicts import QUESTIONS

Rows = Sequence[Mapping[str, Any]]
NO_TEXT = "none: the answers' texts are not known"


@dataclass
class Judging:
    """The four questions on their way into a leaf: answers and a judge, or a file of replies (`judgements`)."""

    run: Run
    judge: MrcJudge
    answers: Sequence[Answered]
    judgements: Path | None = None
    reply_column: str = "text"
    max_cost: float = 0.0

    @cached_property
    def asked(self) -> Any:
        """The judge's model, ready to be asked."""
        shared = self.run.params.get("suite") or self.run.out_dir
        return chat.open_chat(self.judge.entry.model, max_cost=self.max_cost, suite_dir=shared)

    def conversation(self) -> str:
        """What the judge gets about the first answer; "" where replies are read from a file."""
        if self.judgements is not None or not self.answers:
            return ""
        return "\n\n".join(f"[{turn['role']}]\n{turn['content']}" for turn in self.judge.messages(self.answers[0]))

    def score(self) -> list[dict[str, Any]]:
        """One row an answer, in item order; every reply is on disk before it is read."""
        if self.run.closed:
            return records.read_rows(self.run.out_dir / "rows" / "judgements.jsonl")
        log = self.run.log("judgements")
        if self.judgements is None:
            tell = records.ticker(f"{self.judge.name} four questions")
            judge_all(self.judge, self.answers, self.asked, replies=self.run.log("replies"), log=log, tell=tell)
        else:
            cases = {key: case for case in self.answers for key in (case.id, case.item)}
            rows, name = read_file(self.judgements, self.judgements.name), self.judgements.name
            for row in read_replies(rows, cases, column=self.reply_column, rule=self.judge.entry.rule,
                                    judge=self.judgements.stem, where=name):  # fmt: skip
                if row["id"] not in log.ids:
                    log.append(row)
        return log.rows()

    def finish(self, rows: Rows) -> dict[str, Any]:
        """Close the leaf with each question's share of agreement; returns run.json. A reply that failed on the way
        keeps the leaf open, to be asked for again, unless it was recorded so."""
        if self.run.closed:
            return self.run.record
        lost = any(row["asked"] and row["outcome"] == "failed" for row in rows)
        recorded = (
            self.judgements is not None or params.load("models", self.judge.entry.model, ModelEntry).kind == "replay"
        )
        told = {"judgements": str(self.judgements)} if self.judgements else {"judge_model": self.asked.facts()}
        return self.run.finish(
            headline={"mrc_judge": headline(rows)},
            accept_failed=recorded or not lost,
            judge=self.judge.facts(), outcomes=outcomes(rows), faults=faults(rows), cost=cost(rows, self.judge),
            models=list(dict.fromkeys(row["model"] for row in rows)), **told,
        )  # fmt: skip


def start(
    run: Run, *, judge: str, judgements: str = "", reply_column: str = "text", rule: str = "", max_cost: float = 0.0
) -> Judging:
    """The judge file and the answers that the leaf's parameters lead to, read and checked; nobody is asked.

    With `judgements` the answers are those that `answers` names, else the same file where it holds them too.
    """
    chosen = MrcJudge.read(judge)
    if rule:
        entry = params.changed(chosen.entry, {"rule": rule}, where="rule")
        chosen = MrcJudge(chosen.name, entry, chosen.prompt).checked()
    if not judgements:
        return Judging(run, chosen, answered(mrc_read.find("mrc_judge", run.params)), max_cost=max_cost)
    path = expand(judgements, base=root())
    path = path / "rows" / "replies.jsonl" if path.is_dir() else path
    if not path.is_file():
        raise ThaikitError(f"judgements {judgements!r}: no such file; name a CSV or JSONL file with raw replies")
    named = run.params.get("answers") or run.params.get("suite")
    return Judging(
        run, chosen, answered(mrc_read.find("mrc_judge", run.params) if named else own(path)), path, reply_column
    )


def own(path: Path) -> list[mrc_read.Answers]:
    """The answers that a file of replies holds beside them; none where it has no such columns."""
    first = next(iter(read_file(path, path.name)), {})
    there = any(name in first for name in mrc_read.PREDICTIONS) and "references" in first
    return [mrc_read.from_file(path)] if there else []


def answered(found: Sequence[mrc_read.Answers]) -> list[Answered]:
    """Answers as the judge needs them, with their words."""
    cut, cases = f1.Segmenter(), []
    for answers in found:
        passages = mrc_read.passages(answers.rows)
        for row, passage in zip(answers.rows, passages, strict=True):
            words = float(cut.count(row["answer"])) if row["outcome"] not in mrc_read.NOT_SCORED else math.nan
            cases.append(Answered(row["id"], answers.model, row["context"], row["question"], tuple(row["references"]),
                                  row["answer"], passage, row["outcome"], words))  # fmt: skip
    return cases


# ------------------------------------------------------------------------------------------------ what it says


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


def item_table(rows: Rows, *, first: int = 8) -> pd.DataFrame:
    """Judgements as a person reads them, one of each outcome first: question, answer, the raw reply, what was read."""
    seen: set[tuple[str, str]] = set()
    ahead, rest = [], []
    for row in rows:
        kind = (row["outcome"], row["fault"])
        (rest if kind in seen else ahead).append(row)
        seen.add(kind)
    columns = ["item", "model", "question", "answer", "reply", *QUESTIONS, "outcome", "fault", "tries"]
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
    same = sum(row["identical"] for row in rows)
    if same:
        said.append(f"{same} regenerated replies repeat an earlier one to the letter: asking again changed nothing.")
    return said
