"""Every figure with plain and with hostile data: no text on another, none off the canvas, every axis told, all legible.

A new figure is one more line in MAKERS: its name and a function of `Names` (what models are called, whether all scores
are alike) that draws it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from thaikit import (
    analysis,
    analysis_pairs,
    audit_claims,
    figures,
    figures_analysis,
    figures_bench,
    figures_groups,
    figures_mosaic,
    figures_mrc,
    figures_ranks,
    figures_text,
    figures_thai,
    figures_thaicli,
)
from thaikit.published import H6_TASKS

TOUCH = 1.5  # pixels at 96 an inch: boxes of text have that much air
HOSTILE = (
    "meta-llama-3.1-typhoon-v1.5x-70b-instruct-dpo-2024-05-13-awq-int4",  # 66 characters
    "organisation_with_a_long_name/model_with_a_long_name_$x_1$_{final}",
    "แบบจำลองภาษาไทยขนาดใหญ่ที่ปรับให้ทำตามคำสั่งแล้วโดยสถาบันวิจัยแห่งชาติ",
    "น้ำ-ฏู-ที่-$\\frac$", "x" * 60, "模型🧭\u202eabc\x07", "<script>", "",
    *(f"replay-thaicli-answers-number-{n:02d}-with-a-name-of-60-characters" for n in range(6)),
)  # fmt: skip


@dataclass(frozen=True)
class Names:
    """What a case draws: the models' names, scores all alike or not, and numbers that are missing."""

    models: tuple[str, ...]
    alike: bool = False
    holes: bool = False

    def number(self, place: int, base: float, step: float) -> float:
        """A score."""
        if self.holes and place % 5 == 3:
            return math.nan
        return base if self.alike else base + step * place


CASES = {
    "plain": Names(("model-a", "model-b", "model-c")),
    "hostile": Names(HOSTILE, holes=True),
    "alike": Names(HOSTILE, alike=True),
    "one": Names(HOSTILE[:1]),
}


def scores(case: Names) -> pd.DataFrame:
    tasks = ["arc", "truthfulqa", "my_own_task_with_a_long_name_$x_1$", "average"] if case.holes else figures.THAI_NAMES
    return pd.DataFrame([
        {"model": model, "task": task, "value": (v := case.number(n, 30.0, 5.0)), "low": v - 9, "high": v + 9,
         "chance": 25.0, "n": 1172}
        for task in tasks for n, model in enumerate(case.models)
    ])  # fmt: skip


def cells(case: Names, scale: float) -> list[dict[str, Any]]:
    found = []
    for name, (n, theme) in itertools.product(figures_thaicli.FORMATS, enumerate(figures_thaicli.THEMES)):
        value = scale * case.number(n, 0.5, 0.07)
        found.append({
            "format": name, "theme": theme, "value": value, "low": value - 0.2 * scale, "high": scale, "n": 1790,
            "sum": value, "sum_low": value / 2, "sum_high": scale, "rejected": 0.1 * scale, "chosen": 0.9 * scale,
        })  # fmt: skip
    return found


def card(case: Names) -> pd.DataFrame:
    return pd.DataFrame([
        {"shift": "wrong_year", "source": model, "expected": "lower", "change": (v := case.number(n, -1.0, 0.2)),
         "low": v - 1, "high": v + 1, "n": 28, "verdict": "not noticed"}
        for n, model in enumerate(case.models)
    ])  # fmt: skip


@cache
def frame(case: Names) -> pd.DataFrame:
    """The published rows and own ones of these names."""
    facts = {"source": "own", "parameters": 7.6, "region": "global", "base": "", "release": "", "partner": "",
             "specialised": False, "table": "", "leaf": "", "right": None, "n": 60, "method": "t"}  # fmt: skip
    own = [
        {"benchmark": benchmark, "model": f"{n} {model}", "task": task, "value": (v := case.number(n, base, 0.4)),
         "low": v - 0.5, "high": v + 0.5, "short": model, "access": ("open", "closed")[n % 2], "ranked": n % 3 > 0,
         **facts, "parameters": 7.6 if case.alike else 0.3 * (n + 1)}
        for benchmark, tasks, base in (("Thai-H6", ("average", *H6_TASKS), 52.0),
                                       ("ThaiCLI", ("average", "factoid", "instruction"), 5.0))
        for task in tasks for n, model in enumerate(case.models)
    ]  # fmt: skip
    return pd.concat([analysis.results(), pd.DataFrame(own)], ignore_index=True)


@cache
def slopes(case: Names) -> pd.DataFrame:
    return analysis.size_slopes(frame(case))


def pairs(case: Names) -> pd.DataFrame:
    made = analysis_pairs.pairs(analysis.results())
    named = [f"{name} − {case.models[-1]}" for name in case.models[:4]]
    again = [made[made["pair"] == title].assign(pair=name, source="own")
             for title, name in zip(made["pair"].unique(), named, strict=False)]  # fmt: skip
    return pd.concat([made, *again], ignore_index=True)


def assessors(case: Names) -> pd.DataFrame:
    kinds = ("judge", "dummy", "people")
    return pd.DataFrame([
        {"assessor": model, "kind": kinds[n % 3], "question": q, "f1": (v := case.number(n, 40.0, 4.0)), "low": v - 9,
         "high": min(100.0, v + 9), "n": 30}
        for q in (*figures_mrc.QUESTION_NAMES, "a_question_of_my_own_$x_1$") for n, model in enumerate(case.models)
    ])  # fmt: skip


def rules(case: Names) -> pd.DataFrame:
    return pd.DataFrame([
        {"rule": "wangchanx" if n == 1 else f"rule-{n}", "f1": (v := case.number(n, 40.0, 4.0)), "low": v - 9,
         "high": v + 9, "n": 30, "used_by": model} for n, model in enumerate(case.models)
    ])  # fmt: skip


def ballots(case: Names) -> tuple[pd.DataFrame, pd.DataFrame]:
    counts = pd.DataFrame([{"source": name, "items": 50, "long": 1, "short": 46, "tie": 2, "split": 1}
                           for name in case.models])  # fmt: skip
    choices = ("long", "short", "tie", "split")
    votes = pd.DataFrame([{"margin": case.number(n, -0.9, 0.1), "ratio": 1.0 + n, "majority": choices[n % 4]}
                          for n in range(14)])  # fmt: skip
    return counts, votes


def ratios(case: Names) -> pd.DataFrame:
    return pd.DataFrame({"shape": case.models, "items": 60,
                         "ratio": [case.number(n, 0.4, 3.0) for n in range(len(case.models))]})  # fmt: skip


def taxes(case: Names) -> list[dict[str, Any]]:
    values = [1.0 if case.alike else 1.0 + 0.3 * n for n in range(len(case.models))]
    return [{"model": model, "value": value, "low": math.nan if n % 5 == 3 else value - 0.1, "high": value + 0.1}
            for n, (model, value) in enumerate(zip(case.models, values, strict=True))]  # fmt: skip


def mosaic(case: Names) -> Figure:
    parts = figures_mosaic.SCORED
    rows = {
        "culture": "Culture วัฒนธรรม",
        "politics": "Politics การเมือง",
        "s": "high_school_government_and_politics_$x_1$",
    }
    counts = pd.DataFrame([{"model": model, "row": row, "part": part, "count": 1700 if part == "high" else n * (n + 3)}
                           for model in case.models for row in rows for n, part in enumerate(parts)])  # fmt: skip
    return figures_mosaic.mosaic(counts, parts=parts, names=rows)


MAKERS: dict[str, Callable[[Names], Figure]] = {
    "thai_h6_bars": lambda case: figures.thai_h6_bars(scores(case)),
    "ratio_bars": lambda case: figures.ratio_bars(ratios(case)),
    "score_dots": lambda case: figures_thaicli.score_dots(cells(case, 10.0), gate=cells(case, 10.0)),
    "preference_dots": lambda case: figures_thaicli.preference_dots(cells(case, 1.0)),
    "bias_card": lambda case: figures_bench.bias_card(card(case)),
    "size": lambda case: figures_analysis.size_figure(frame(case), slopes(case)),
    "tasks": lambda case: figures_analysis.tasks_figure(frame(case), slopes(case)),
    "slopes": lambda case: figures_analysis.slopes_figure(slopes(case)),
    "pairs_h6": lambda case: figures_groups.pairs_figure(pairs(case), "Thai-H6"),
    "pairs_cli": lambda case: figures_groups.pairs_figure(pairs(case), "ThaiCLI"),
    "scatter": lambda case: figures_ranks.scatter_figure(analysis.averages(frame(case))),
    "ranks": lambda case: figures_ranks.ranks_figure(analysis.averages(frame(case))),
    "chance": lambda case: figures_ranks.chance_figure(4 if case.alike else 7, 1.0 if case.alike else -0.9),
    "groups": lambda case: figures_groups.groups_figure(frame(case)),
    "formats": lambda case: figures_groups.formats_figure(analysis.format_gaps(frame(case))),
    "audit": lambda case: figures_groups.audit_figure(audit_claims.published_audit()),
    "agreement": lambda case: figures_mrc.agreement_figure(assessors(case)),
    "votes": lambda case: figures_mrc.votes_figure(*ballots(case)),
    "tax": lambda case: figures_thai.tax_dots(taxes(case)),
    "mosaic": mosaic,
    "f1": lambda case: figures_mrc.f1_figure(rules(case)),
}
SAME = {
    *itertools.product(("audit", "slopes"), ("hostile", "alike", "one")), ("chance", "hostile"),
    *itertools.product(("chance", "size", "tasks", "pairs_h6", "pairs_cli", "scatter", "ranks", "groups"), ("one",)),
    *itertools.product(("score_dots", "preference_dots", "votes"), ("one",)),
    ("pairs_h6", "plain"), ("pairs_h6", "alike"), ("pairs_cli", "alike"), ("tasks", "alike"), ("mosaic", "alike"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def style() -> None:
    figures.use_style()


def shown_texts(figure: Figure) -> Iterator[tuple[Text, Bbox]]:
    """The texts that are drawn, with their boxes in pixels; tick labels only within the limits of their axis."""
    off = {id(label) for axes in figure.axes for label in hidden_ticks(axes)}
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in off:
            yield text, text.get_window_extent()


def hidden_ticks(axes: Axes) -> Iterator[Text]:
    """Tick labels outside the limits, or of an axis that shows none."""
    for axis, place in ((axes.xaxis, 0), (axes.yaxis, 1)):
        low, high = sorted(axis.get_view_interval())
        drawn = {id(tick) for tick in axis._update_ticks()} if axis.get_visible() else set()
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            for label in (tick.label1, tick.label2):
                inside = low - 1e-9 <= label.get_position()[place] <= high + 1e-9
                if id(tick) not in drawn or not inside:
                    yield label


def faults(figure: Figure) -> list[str]:
    """Everything that is wrong with the text of a figure."""
    figure.draw_without_rendering()
    found, drawn = [], list(shown_texts(figure))
    for text, box in drawn:
        if box.x0 < -1 or box.y0 < -1 or box.x1 > figure.bbox.x1 + 1 or box.y1 > figure.bbox.y1 + 1:
            found.append(f"off the canvas: {text.get_text()!r} {box.extents.round()}")
        if "$" in text.get_text() and text.get_parse_math():
            found.append(f"a formula: {text.get_text()!r}")
        if text.get_fontsize() * figures_text.COLUMN / figure.get_figwidth() < 5:
            found.append(f"under 5 points in a column: {text.get_text()!r}")
    for (a, one), (b, two) in itertools.combinations(drawn, 2):
        width, height = min(one.x1, two.x1) - max(one.x0, two.x0), min(one.y1, two.y1) - max(one.y0, two.y0)
        if width > TOUCH and height > TOUCH:
            found.append(f"on each other: {a.get_text()!r} and {b.get_text()!r} ({width:.0f} × {height:.0f} pixels)")
    return found + untold(figure)


def untold(figure: Figure) -> list[str]:
    """Numeric axes without a label of their own or of the figure, and labels without a unit."""
    found = []
    whole = {"x": figure.get_supxlabel(), "y": figure.get_supylabel()}
    units = re.compile("percent|points|items|statements|billion|times|words|rho|votes|tokens|characters|answers|share")
    for axes, name in itertools.product(figure.axes, "xy"):
        axis = axes.xaxis if name == "x" else axes.yaxis
        labels = [tick.get_text() for tick in axis.get_ticklabels() if tick.get_visible() and tick.get_text()]
        if labels and all(re.fullmatch(r"[−\d.×,]+", label) for label in labels):
            label = axis.get_label().get_text() or whole[name]
            if not units.search(label):
                found.append(f"no unit on axis {name}: {label!r}")
    return found


@pytest.mark.parametrize(("maker", "case"), [pair for pair in itertools.product(MAKERS, CASES) if pair not in SAME])
def test_every_text_can_be_read(maker: str, case: str) -> None:
    assert faults(MAKERS[maker](CASES[case])) == []
