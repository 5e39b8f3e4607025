"""Claims of the ThaiCLI paper on groups of models, on size and on both benchmarks: sections 1, 5.3 and 5.4."""

from __future__ import annotations

from functools import partial

import numpy as np

from thaikit.analysis_stats import correlation, slope, smallest_shown, split_test
from thaikit.audit import FAILS, HOLDS, SEED, UNTOLD, Claim, Finding, NotTold, View, in_order, pick, told
from thaikit.audit_cli import CLAUDE, GEMINI, GPT4O, T5
from thaikit.audit_h6 import LARGE, LLAMA70, PAPER, QWEN, SEALLM, T4, TYPHOON, large

LOWEST, HIGHEST = 1.0, 10.0  # of the judge's scale, Figure 5


def apart(view: View, *, column: str) -> Finding:
    """Means of closed and open models, by all ways to deal the scores to two groups."""
    closed, opened = (list(view.column(T5, column, access=kind).values()) for kind in ("closed", "open"))
    return grouped(closed, opened)


def grouped(high: list[float], low: list[float]) -> Finding:
    """The first group's mean stated to be above the second's: exact p over all splits, Welch's interval over models."""
    if min(len(high), len(low)) < 2:
        raise NotTold(f"{len(high)} models against {len(low)}, two of each are needed")
    found = split_test(high, low, rng=np.random.default_rng(SEED))
    one = found.estimate
    verdict = FAILS if one.value <= 0 else HOLDS if found.p <= 0.05 else UNTOLD
    return Finding(verdict, f"{one.value:+.2f} points, p {found.p:.4f}", f"{one.low:+.2f} to {one.high:+.2f}")


def each_below(view: View) -> Finding:
    """Every open model below every closed one."""
    opened, closed = (view.column(T5, "average", access=kind) for kind in ("open", "closed"))
    over = [model for model, value in opened.items() if value > min(closed.values())]
    low = min(closed, key=lambda m: closed[m])
    return in_order([(c, o) for c in closed.values() for o in opened.values()],
                    note=f"{len(over)} open models are above {low}")  # fmt: skip


def most_closed_above(view: View) -> Finding:
    """Closed models above the best open one: more than half."""
    opened, closed = (view.column(T5, "average", access=kind) for kind in ("open", "closed"))
    above = sum(value > max(opened.values()) for value in closed.values())
    return Finding(told(2 * above > len(closed)), f"{above} of {len(closed)}")


def far_from_flagships(view: View) -> Finding:
    """The step from the best open model to the nearest flagship against the widest between neighbouring open ones."""
    opened = sorted(view.column(T5, "average", access="open").values())
    step = min(view(T5, model, "average") for model in (GPT4O, GEMINI, CLAUDE)) - opened[-1]
    widest = max(np.diff(opened))
    return Finding(told(bool(step > widest)), f"{step:.2f} to the nearest flagship, open models step by {widest:.2f}")


def regional(view: View) -> tuple[dict[str, float], dict[str, float]]:
    """Open models' averages: those made for the region, and the others; NotTold where one side is empty."""
    scores = view.column(T5, "average", access="open", least=2)
    special = {m: v for m, v in scores.items() if view.fact(m, "region") != "global"}
    others = {m: v for m, v in scores.items() if m not in special}
    if not (special and others):
        raise NotTold(f"{len(special)} open models with regional specialization and {len(others)} without")
    return special, others


def specialised_good(view: View) -> Finding:
    """Every specialised open model above every other open one."""
    special, others = regional(view)
    top = max(others, key=lambda m: others[m])
    under = [model for model, value in special.items() if value <= others[top]]
    return in_order([(s, o) for s in special.values() for o in others.values()],
                    note=f"{top} is above {len(under)} of {len(special)}")  # fmt: skip


def bigger(view: View) -> Finding:
    """SeaLLMs above every open model of ten times its size or so."""
    scores, line = view.column(T5, "average", access="open"), large(view)
    big = [model for model in scores if view.size(model) > line]
    return in_order([(scores[SEALLM], scores[model]) for model in big])


def not_all_size(view: View) -> Finding:
    """Pairs of open models of which the smaller one scores higher: at least one."""
    scores = view.column(T5, "average", access="open", least=2)
    pairs = [(a, b) for a in scores for b in scores if view.size(a) < view.size(b)]
    upset = sum(scores[a] > scores[b] for a, b in pairs)
    return Finding(told(upset > 0), f"{upset} of {len(pairs)} pairs of different size")


def size_alone(view: View) -> Finding:
    """Points of ThaiCLI a ten-fold of parameters, open models: an effect that 0 could explain proves neither."""
    scores = view.column(T5, "average", access="open", least=3)
    found = slope([view.size(m) for m in scores], list(scores.values())).estimate
    verdict = FAILS if found.low > 0 else HOLDS if found.high < 0 else UNTOLD
    return Finding(verdict, f"{found.value:+.2f} points a ten-fold", f"{found.low:+.2f} to {found.high:+.2f}")


def both(view: View) -> tuple[list[str], list[float], list[float]]:
    """The models with both averages, and these."""
    h6, cli = view.column(T4, "average"), view.column(T5, "average", access="open")
    models = [model for model in h6 if model in cli]
    if len(models) < 4:
        raise NotTold(f"{len(models)} models have both averages, 4 are needed")
    return models, [h6[m] for m in models], [cli[m] for m in models]


def another_part(view: View) -> Finding:
    """Spearman's rho of the two averages. It holds where the interval stays below what so few models could show."""
    models, h6, cli = both(view)
    found = correlation(h6, cli, kind="spearman", rng=np.random.default_rng(SEED))
    one, bar = found.estimate, smallest_shown(min(len(models), 8))["spearman"]
    verdict = HOLDS if one.high < bar else FAILS if found.p <= 0.05 and one.value > 0 else UNTOLD
    return Finding(verdict, f"rho {one.value:.4f}, p {found.p:.4f}", f"{one.low:+.2f} to {one.high:+.2f}")


def inversion(view: View) -> Finding:
    """SeaLLMs last on Thai-H6 and first of the open models on ThaiCLI."""
    models, h6, cli = both(view)
    place = models.index(SEALLM)
    right = h6[place] == min(h6) and cli[place] == max(cli)
    return Finding(told(right), f"{sorted(h6)[::-1].index(h6[place]) + 1} of {len(models)} on Thai-H6, "
                   f"{sorted(cli)[::-1].index(cli[place]) + 1} on ThaiCLI")  # fmt: skip


def lacking(view: View) -> Finding:
    """ThaiCLI as share of its scale against Thai-H6. The scales are not one, so that it can be refuted, not shown."""
    models, h6, cli = both(view)
    shares = [100 * (value - LOWEST) / (HIGHEST - LOWEST) for value in cli]
    lower = sum(share < score for share, score in zip(shares, h6, strict=True))
    value = f"{lower} of {len(models)} lower as a share of the scale; the scales cannot be compared"
    return Finding(UNTOLD if 2 * lower > len(models) else FAILS, value)


C = partial(Claim, paper=PAPER)
AVERAGE, OPEN_AVERAGE = pick(T5, "average"), pick(T5, "average", rows=("open",))
H6_AVERAGE = pick(T4, "average")
CLAIMS: tuple[Claim, ...] = (
    C("cli-15", section="5.3", statement="SeaLLMs 7B is even higher than models with much bigger sizes",
      test="its average above every open model that exceeds the size stated",
      picks=(pick(T5, "average", rows=[SEALLM, LLAMA70, QWEN, TYPHOON]), LARGE), check=bigger),
    C("cli-16", section="5.3", statement="ThaiCLI demonstrates the importance of language specialization",
      test="open specialised against other open models, all ways to deal the averages to the two groups",
      picks=(OPEN_AVERAGE,), check=lambda view: grouped(*(list(side.values()) for side in regional(view))),
      generic=True),
    C("cli-17", section="5.3", statement="SeaLLMs, Sailor and Typhoon all show good performance",
      test="each specialised open model above every other open one", picks=(OPEN_AVERAGE,), check=specialised_good,
      generic=True),
    C("cli-18", section="5.3", statement="the benchmark is not all about size",
      test="at least one pair of open models of which the smaller scores higher", picks=(OPEN_AVERAGE,),
      check=not_all_size, generic=True),
    C("cli-19", section="5.3", statement="a gap in instruction following between open LLMs and closed APIs",
      test="instruction scores, all ways to deal them to the two groups", picks=(pick(T5, "instruction"),),
      check=partial(apart, column="instruction"), generic=True),
    C("cli-20", section="5.3", statement="open scores lag significantly behind closed APIs (each of them)",
      test="every open average below every closed one", picks=(AVERAGE,), check=each_below, generic=True),
    C("cli-21", section="5.3", statement="open scores lag significantly behind closed APIs (on the mean)",
      test="averages, all ways to deal them to the two groups", picks=(AVERAGE,),
      check=partial(apart, column="average"), generic=True),
    C("cli-22", section="5.3", statement="the best open LLM is not even close to the flagship APIs",
      test="further below GPT-4o, Gemini Pro and Claude Sonnet than neighbouring open models are apart",
      picks=(pick(T5, "average", rows=["open", GPT4O, GEMINI, CLAUDE]),), check=far_from_flagships),
    C("cli-23", section="1", statement="most closed APIs score higher than open source LLMs",
      test="more than half of them above the best open model", picks=(AVERAGE,), check=most_closed_above,
      generic=True),
    C("cli-24", section="1", statement="most lack Thai culture, as the lower ThaiCLI score highlights",
      test="open models' (ThaiCLI - 1) / 9 against Thai-H6 / 100, which are different scales",
      picks=(H6_AVERAGE, OPEN_AVERAGE), check=lacking, generic=True),
    C("cli-25", section="5.4", statement="ThaiCLI clearly captures a part not well represented in Thai-H6",
      test="Spearman over open models: bootstrap over models, exact p over all orders",
      picks=(H6_AVERAGE, OPEN_AVERAGE), check=another_part, generic=True),
    C("cli-26", section="5.4", statement="SeaLLMs 7B, worst on Thai-H6, is the best open LLM on ThaiCLI",
      test="last and first place of the open models", picks=(H6_AVERAGE, OPEN_AVERAGE), check=inversion),
    C("cli-27", section="5.4", statement="size alone does not equate to a deeper understanding of culture",
      test="slope of the open averages on log10 parameters, Student's t", picks=(OPEN_AVERAGE,), check=size_alone,
      generic=True),
)  # fmt: skip
