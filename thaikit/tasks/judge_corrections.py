"""A judge's counts corrected for the errors that it makes against people, as a table in percent of answers.

Rogan and Gladen's correction takes the judge's errors to be the same on every model's answers; the prediction-powered
estimate takes the labelled answers for a random part of the model's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from thaikit import correction, published
from thaikit.correction import Corrected
from thaikit.tasks.judge_people import Study
from thaikit.tasks.judge_tables import NO_LABELS, SEED, nothing, percent, published_counts

COLUMNS = ("judge", "model", "question", "method", "agreed", "judged", "labels", "value", "low", "high", "people",
           "shown", "shown_low", "shown_high", "how", "more", "why_more")  # fmt: skip
OTHERS = "none: none of this model's answers has a label, and other models' answers are other answers"


def corrected_table(study: Study | None, *, seed: int = SEED) -> pd.DataFrame:
    """One line for each judge, model, question and method: agreed and judged (answers without labels), labels, then
    value, low and high as computed, and shown, shown_low, shown_high at the bounds with how; more (labels that would
    halve the interval) and why_more. Empty without verdicts.

    As a check, half of the labelled answers, drawn by `seed`, are also treated as if they had no labels: `people` then
    says what people say of these. Without a study the papers' counts are corrected by GPT-4's errors.
    """
    if study is None:
        return pd.DataFrame(published_corrected(), columns=list(COLUMNS))
    lines = []
    for judge in study.labels.judge_names if study.binary else []:
        for (name, model), verdicts in study.other.items():
            lines += correct_other(study, judge, model, verdicts) if name == judge else []
        lines += correct_half(study, judge, np.random.default_rng(seed))
    return pd.DataFrame(lines, columns=list(COLUMNS))


def correct_other(study: Study, judge: str, model: str, verdicts: Mapping[str, Sequence[bool]]) -> list[dict[str, Any]]:
    """The lines of one model's answers without labels."""
    truth, said, lines = study.truth(), study.labels.judge_array(judge), []
    same = [model in (study.model, item.rpartition("@")[2]) for item in study.labels.items]
    for place, question in enumerate(study.questions):
        each = verdicts.get(question, [])
        judged = (sum(each), len(each))
        pairs = told(truth[:, place], said[:, place])
        own = told(truth[same, place], said[same, place])
        lines += both_methods(judge, model, question, judged, pairs, own)
    return lines


def correct_half(study: Study, judge: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """The lines of the labelled answers themselves, half of their labels hidden."""
    truth, said, lines = study.truth(), study.labels.judge_array(judge), []
    hidden = np.zeros(len(truth), dtype=bool)
    hidden[rng.permutation(len(truth))[: len(truth) // 2]] = True
    name = f"{study.model or study.labels.name}, half of the labels hidden"
    for place, question in enumerate(study.questions):
        unseen = told(truth[hidden, place], said[hidden, place])
        seen = told(truth[~hidden, place], said[~hidden, place])
        judged = (int(unseen[1].sum()), len(unseen[1]))
        people = 100 * float(unseen[0].mean()) if len(unseen[0]) else math.nan
        lines += [line | {"people": people} for line in both_methods(judge, name, question, judged, seen, seen)]
    return lines


def told(human: np.ndarray, judge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both verdicts of the answers that have both."""
    both = ~np.isnan(human) & ~np.isnan(judge)
    return human[both], judge[both]


def both_methods(
    judge: str,
    model: str,
    question: str,
    judged: tuple[int, int],
    pairs: tuple[np.ndarray, np.ndarray],
    own: tuple[np.ndarray, np.ndarray],
) -> list[dict[str, Any]]:
    """Rogan and Gladen from all labelled answers, the prediction-powered estimate from the model's own ones."""
    human, said = pairs
    rogan = correction.rogan_gladen(
        judged=judged,
        sensitivity=(int((human * said).sum()), int(human.sum())),
        specificity=(int(((1 - human) * (1 - said)).sum()), int((1 - human).sum())),
    )
    if len(own[0]):
        powered = correction.prediction_powered(own[0], own[1], judged=judged)
    else:
        powered = unlabelled(
            "none: none of this model's answers has a label, and other models' answers differ", judged[1]
        )
    return [line_of_correction(judge, model, question, "rogan-gladen", judged, len(human), rogan),
            line_of_correction(judge, model, question, "prediction-powered", judged, len(own[0]), powered)]  # fmt: skip


def unlabelled(reason: str, n: int) -> Corrected:
    """A correction that cannot be made."""
    return Corrected(nothing(reason, n), nothing(reason, n), math.nan, reason)


def line_of_correction(
    judge: str, model: str, question: str, method: str, judged: tuple[int, int], labels: int, found: Corrected
) -> dict[str, Any]:
    """One line of `corrected_table`."""
    value, shown = percent(found.estimate), percent(found.shown)
    return {"judge": judge, "model": model, "question": question, "method": method, "agreed": judged[0],
            "judged": judged[1], "labels": labels, **value, "shown": shown["value"], "shown_low": shown["low"],
            "shown_high": shown["high"], "how": found.shown.method, "more": found.more,
            "why_more": found.more_reason}  # fmt: skip


def published_corrected() -> list[dict[str, Any]]:
    """Table 5's models without human labels, corrected by GPT-4's errors on the 300 answers that people labelled."""
    calibration, lines = published_counts()["GPT-4"], []
    labelled = set(published.HUMAN_TO_JUDGED.values())
    frame = published.mrc_questions("wangchan.5")
    for model in [name for name in dict.fromkeys(frame["model"]) if name not in labelled]:
        for question, one in calibration.items():
            agreed = int(published.book().value("wangchan.5", model, question))
            judged, disagreed = (agreed, published.JUDGED), one.n - one.human
            rogan = correction.rogan_gladen(judged=judged, sensitivity=(one.both, one.human),
                                            specificity=(disagreed - one.judge + one.both, disagreed))  # fmt: skip
            lines += [line_of_correction("GPT-4", model, question, "rogan-gladen", judged, one.n, rogan),
                      line_of_correction("GPT-4", model, question, "prediction-powered", judged, 0,
                                         unlabelled(NO_LABELS, published.JUDGED))]  # fmt: skip
    return lines
