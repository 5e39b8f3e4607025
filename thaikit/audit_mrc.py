"""Claims of the WangchanLion paper about F1, people's answers and length: sections 1, 3.1, 3.2, 3.4 and 4."""

from __future__ import annotations

from functools import partial

import numpy as np

from thaikit.analysis_stats import correlation
from thaikit.audit import (
    ANSWERS,
    FAILS,
    HOLDS,
    SEED,
    UNTOLD,
    Claim,
    Finding,
    View,
    all_of,
    in_order,
    more,
    pick,
    told,
)
from thaikit.published import QUESTIONS
from thaikit.stats import sign_test, wilson

PAPER = "WangchanLion paper"
T2, T3, T5 = "wangchan.2", "wangchan.3", "wangchan.5"
LION, SEALLM, OTG = "WangchanLion", "SeaLLM V2", "OpenThaiGPT"
SETTINGS = ("xquad 0-shot", "xquad 1-shot", "iapp 0-shot", "iapp 1-shot")


def best_f1(view: View) -> Finding:
    """WangchanLion above the two others in all four settings."""
    return in_order([(view(T2, LION, s), view(T2, other, s)) for s in SETTINGS for other in (OTG, SEALLM)])


def improved(view: View) -> Finding:
    """WangchanLion above the two others in F1, and in people's verdict on correctness."""
    return all_of([best_f1(view), *(more(view, T3, "q1", LION, other) for other in (OTG, SEALLM))])


def three_hundred(view: View) -> Finding:
    """Models times questions against the number of answers stated."""
    models, each, stated = (
        view("wangchan.text", row, "value")
        for row in ("models judged by people", "questions for each model", "answers judged by people")
    )
    return Finding(told(models * each == stated), f"{models:g} times {each:g} is {models * each:g}, {stated:g} stated")


def outperformed(view: View) -> Finding:
    """WangchanLion first in F1, and SeaLLM above it in people's verdict on correctness."""
    return all_of([best_f1(view), more(view, T3, "q1", SEALLM, LION)])


def higher_counts(view: View) -> Finding:
    """SeaLLM's counts against WangchanLion's on Q2, Q3 and Q4."""
    pairs = [(view(T3, SEALLM, q), view(T3, LION, q)) for q in QUESTIONS[1:]]
    note = ", ".join(f"{q.upper()} {a:g} and {b:g}" for q, (a, b) in zip(QUESTIONS[1:], pairs, strict=True))
    return in_order(pairs, note=note)


def length_and_f1(view: View) -> Finding:
    """F1 against words an answer: a falling order that so few models could show."""
    f1 = view.column(T2, SETTINGS[0])
    words = view.column(T3, "tokens", least=3)
    models = [model for model in f1 if model in words]
    scores, lengths = [f1[m] for m in models], [words[m] for m in models]
    found = correlation(lengths, scores, kind="spearman", rng=np.random.default_rng(SEED))
    return falling(found.estimate.value, found.p)


def falling(rho: float, p: float) -> Finding:
    """A correlation that is stated to be below 0, by its exact p."""
    verdict = FAILS if not rho < 0 else HOLDS if p <= 0.05 else UNTOLD
    return Finding(verdict, f"rho {rho:.2f}, p {p:.4f}")


def over_others(view: View, *, table: str, model: str, others: tuple[str, ...], column: str) -> Finding:
    """A model's count above that of each of the others (Newcombe)."""
    return all_of([more(view, table, column, model, other) for other in others])


def under_others(view: View, *, table: str, model: str, others: tuple[str, ...], column: str) -> Finding:
    """A model's count below that of each of the others (Newcombe)."""
    return all_of([more(view, table, column, other, model) for other in others])


def risk(view: View) -> Finding:
    """SeaLLM's counts of irrelevant and of out-of-context answers above both others'."""
    return all_of([over_others(view, table=T3, model=SEALLM, others=(OTG, LION), column=q) for q in ("q3", "q4")])


def extractive(view: View) -> Finding:
    """WangchanLion highest in F1 and shortest."""
    return all_of([best_f1(view), shorter(view)])


def shorter(view: View) -> Finding:
    """WangchanLion's words an answer below the others'."""
    words = view.column(T3, "tokens")
    return in_order([(value, words[LION]) for model, value in words.items() if model != LION])


def fifty(view: View) -> Finding:
    """Long, short and ties add up to the questions asked."""
    parts = [view("wangchan.text", row, "value") for row in ("long preferred", "short preferred", "ties")]
    stated = view("wangchan.text", "questions on length", "value")
    return Finding(told(sum(parts) == stated), f"{sum(parts):g} of {stated:g}")


def longer_preferred(view: View) -> Finding:
    """The exact sign test on the questions that decide, and the share of long answers among them."""
    long, short = (int(view("wangchan.text", row, "value")) for row in ("long preferred", "short preferred"))
    p, share = sign_test(long, short), wilson(long, long + short)
    verdict = FAILS if long <= short else HOLDS if p <= 0.05 else UNTOLD
    return Finding(verdict, f"{100 * share.value:.1f} % of {share.n}, p {p:.4f}",
                   f"{100 * share.low:.1f} to {100 * share.high:.1f}")  # fmt: skip


def helpful_and(view: View, *, column: str) -> Finding:
    """GPT-4's counts of helpful answers against another question's, over models: a rising order."""
    helpful, other = view.column(T5, "q2", least=4), view.column(T5, column, least=4)
    pairs = [(helpful[m], other[m]) for m in helpful]
    found = correlation(*zip(*pairs, strict=True), kind="spearman", rng=np.random.default_rng(SEED))
    one = found.estimate
    verdict = FAILS if not one.value > 0 else HOLDS if found.p <= 0.05 else UNTOLD
    return Finding(verdict, f"rho {one.value:.2f}, p {found.p:.4f}", f"{one.low:+.2f} to {one.high:+.2f}")


C = partial(Claim, paper=PAPER)
F1 = pick(T2, *SETTINGS)
NEWCOMBE = "Newcombe's interval for two proportions, 100 answers each"
OF_PEOPLE, OF_GPT4 = (pick("wangchan.text", rows=[ANSWERS[table]]) for table in (T3, T5))  # behind each count
CLAIMS: tuple[Claim, ...] = (
    C("mrc-01", section="3.1", statement="WangchanLion has higher F1 in 0-shot and 1-shot on both datasets",
      test="above both other models in all four columns (no interval: items are not published)", picks=(F1,),
      check=best_f1),
    C("mrc-02", section="1", statement="improved MRC performance over SeaLLMs and OpenThaiGPT",
      test=f"above both in F1, and in correctness judged by people; {NEWCOMBE}",
      picks=(F1, pick(T3, "q1"), OF_PEOPLE), check=improved),
    C("mrc-03", section="3.2", statement="three models, 100 questions, 300 responses in all",
      test="the product of the first two", check=three_hundred,
      picks=(pick("wangchan.text", rows=["models judged by people", "questions for each model",
                                         "answers judged by people"]),)),
    C("mrc-04", section="3.2", statement="despite superior F1, WangchanLion is outperformed by SeaLLMs on Q1",
      test=f"above in F1, below in correctness; {NEWCOMBE}",
      picks=(F1, pick(T3, "q1", rows=[SEALLM, LION]), OF_PEOPLE), check=outperformed),
    C("mrc-05", section="3.2", statement="SeaLLMs obtain higher Q2, Q3 and Q4 counts than WangchanLion",
      test="the three counts of Table 3", picks=(pick(T3, "q2", "q3", "q4", rows=[SEALLM, LION]),),
      check=higher_counts),
    C("mrc-06", section="3.2", statement="SeaLLMs' lower F1 comes from generating additional information",
      test="F1 falls with words an answer: Spearman, exact p over all orders",
      picks=(pick(T2, SETTINGS[0]), pick(T3, "tokens")), check=length_and_f1, generic=True),
    C("mrc-07", section="3.2", statement="a high Q2 count: SeaLLMs identify helpful information",
      test=f"above both others; {NEWCOMBE}", picks=(pick(T3, "q2"), OF_PEOPLE),
      check=partial(over_others, table=T3, model=SEALLM, others=(OTG, LION), column="q2")),
    C("mrc-08", section="3.2", statement="a risk of irrelevant and out-of-context information, as Q3 and Q4 show",
      test=f"SeaLLM above both others on Q3 and on Q4; {NEWCOMBE}", picks=(pick(T3, "q3", "q4"), OF_PEOPLE),
      check=risk),
    C("mrc-09", section="3.2", statement="WangchanLion is more akin to extractive answers than the two others",
      test="highest F1 in all columns and fewest words an answer", picks=(F1, pick(T3, "tokens")), check=extractive),
    C("mrc-10", section="3.2", statement="SeaLLMs' additions better than OpenThaiGPT's regarding helpfulness",
      test=f"Q2 above; {NEWCOMBE}", picks=(pick(T3, "q2", rows=[SEALLM, OTG]), OF_PEOPLE),
      check=lambda view: more(view, T3, "q2", SEALLM, OTG)),
    C("mrc-11", section="3.2", statement="SeaLLMs' additions better than OpenThaiGPT's regarding relevance",
      test=f"Q3 below; {NEWCOMBE}", picks=(pick(T3, "q3", rows=[SEALLM, OTG]), OF_PEOPLE),
      check=lambda view: more(view, T3, "q3", OTG, SEALLM)),
    C("mrc-12", section="3.2", statement="SeaLLMs do so while preserving contextuality",
      test=f"Q4 below OpenThaiGPT's; {NEWCOMBE}", picks=(pick(T3, "q4", rows=[SEALLM, OTG]), OF_PEOPLE),
      check=lambda view: more(view, T3, "q4", OTG, SEALLM)),
    C("mrc-13", section="1", statement="WangchanLion tends to produce shorter answers",
      test="fewest words an answer of Table 3", picks=(pick(T3, "tokens"),), check=shorter),
    C("mrc-14", section="1", statement="WangchanLion: less irrelevant information",
      test=f"Q3 by people below both others'; {NEWCOMBE}", picks=(pick(T3, "q3"), OF_PEOPLE),
      check=partial(under_others, table=T3, model=LION, others=(OTG, SEALLM), column="q3")),
    C("mrc-15", section="1", statement="WangchanLion: less out-of-context information",
      test=f"Q4 by people below both others'; {NEWCOMBE}", picks=(pick(T3, "q4"), OF_PEOPLE),
      check=partial(under_others, table=T3, model=LION, others=(OTG, SEALLM), column="q4")),
    C("mrc-16", section="1", statement="WangchanLion: less additional helpful context",
      test=f"Q2 by people below both others'; {NEWCOMBE}", picks=(pick(T3, "q2"), OF_PEOPLE),
      check=partial(under_others, table=T3, model=LION, others=(OTG, SEALLM), column="q2")),
    C("mrc-17", section="3.4", statement="31 long, 12 short and 7 ties of 50",
      test="the three add up to the questions asked", check=fifty,
      picks=(pick("wangchan.text", rows=["long preferred", "short preferred", "ties", "questions on length"]),)),
    C("mrc-18", section="3.4", statement="humans prefer longer answers over short ones",
      test="exact two-sided sign test without ties, Wilson's interval of the share", check=longer_preferred,
      picks=(pick("wangchan.text", rows=["long preferred", "short preferred"]),)),
    C("mrc-19", section="4", statement="optimizing for Q2 may come with the risk of a higher Q3",
      test="Spearman of Table 5's counts over models, exact p over all orders", picks=(pick(T5, "q2", "q3"),),
      check=partial(helpful_and, column="q3"), generic=True),
    C("mrc-20", section="4", statement="optimizing for Q2 may come with the risk of a higher Q4",
      test="Spearman of Table 5's counts over models, exact p over all orders", picks=(pick(T5, "q2", "q4"),),
      check=partial(helpful_and, column="q4"), generic=True),
)  # fmt: skip
