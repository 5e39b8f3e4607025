"""Claims of the WangchanLion paper about judges, section 3.3: Tables 4 and 5, and both against Table 3."""

from __future__ import annotations

from functools import partial

from thaikit import counts
from thaikit.analysis_stats import newcombe
from thaikit.audit import FAILS, Claim, Finding, View, difference, in_order, more, names, pick, told
from thaikit.audit_mrc import LION, NEWCOMBE, OF_GPT4, PAPER, SEALLM, T3, T5, over_others, under_others
from thaikit.published import HUMAN_TO_JUDGED, QUESTIONS

T4 = "wangchan.4"
GPT4, GPT35 = "GPT-4", "GPT-3.5"
OTG7, OTG13, POLYLM, TYPHOON = "OpenThaiGPT 7B", "OpenThaiGPT 13B", "PolyLM-Chat 13B", "Typhoon-instruct-0130"
ANSWERS = pick("wangchan.text", rows=["answers judged by people"])  # section 3.2


def human_counts(view: View) -> dict[str, int]:
    """Question → answers of the three models that the majority of people agreed to."""
    return {q: int(sum(view.column(T3, q).values())) for q in QUESTIONS}


def recovered(view: View, assessor: str) -> dict[str, tuple[int, int, int]]:
    """Question → (human, judge, both) behind an assessor's P, R and F1; ValueError where no counts give them."""
    found = {}
    for question, human in human_counts(view).items():
        printed = [view.text(T4, assessor, f"{question} {name}") for name in ("p", "r", "f1")]
        both, judge = counts.recover_agreement(*printed, human=human)
        found[question] = (human, judge, both)
    return found


def harmonic(view: View) -> Finding:
    """Printed F1 against 2PR / (P + R) of the printed P and R, whose last digits leave 0.015 open."""
    off = []
    for assessor in view.column(T4, "overall f1"):
        for head in (*QUESTIONS, "overall"):
            p, r, f1 = (view(T4, assessor, f"{head} {name}") for name in ("p", "r", "f1"))
            off.append(abs(2 * p * r / (p + r) - f1) if p + r else f1)
    return Finding(told(max(off) <= 0.015), f"{len(off)} cells, largest difference {max(off):.4f}")


def most_aligned(view: View, *, heads: tuple[str, ...]) -> Finding:
    """GPT-4's F1 above the other assessors', under each head."""
    columns = {head: view.column(T4, f"{head} f1") for head in heads}
    lost = [f"{head.upper()} {scores[GPT4]:g} against {max(scores.values()):g}" for head, scores in columns.items()
            if scores[GPT4] < max(scores.values())]  # fmt: skip
    pairs = [(s[GPT4], value) for s in columns.values() for a, value in s.items() if a != GPT4]
    return in_order(pairs, note="; ".join(lost))


def more_often_right(view: View) -> Finding:
    """Verdicts equal to people's, of 1,200: GPT-4 against the next assessor."""
    same, answers = {}, int(view(ANSWERS.table, ANSWERS.rows[0], "value"))
    n = answers * len(QUESTIONS)
    for assessor in view.column(T4, "q1 f1"):
        try:
            cells = recovered(view, assessor).values()
        except ValueError:
            return no_counts(assessor)
        same[assessor] = max(0, sum(answers - (human + judge - 2 * both) for human, judge, both in cells))
    other = max((a for a in same if a != GPT4), key=lambda a: same[a])
    return difference(newcombe(same[GPT4], n, same[other], n), unit=f"points of agreement over {other}")


def no_counts(assessor: str) -> Finding:
    """No whole counts give the printed numbers."""
    return Finding(FAILS, f"no whole counts over Table 3's give the numbers of {assessor}")


def matched(view: View) -> Finding:
    """GPT-4's counts of Table 4 against the sums of Table 5 over the same three models."""
    try:
        found = recovered(view, GPT4)
    except ValueError:
        return no_counts(GPT4)
    judged = {q: int(sum(view(T5, name, q) for name in HUMAN_TO_JUDGED.values())) for q in QUESTIONS}
    value = ", ".join(f"{q.upper()} {human}, {judge}, {both}" for q, (human, judge, both) in found.items())
    return Finding(told(all(found[q][1] == judged[q] for q in QUESTIONS)), f"human, judge, both: {value}")


def pooled(view: View) -> Finding:
    """The overall columns as P, R and F1 of the counts of all four questions together."""
    told_as = []
    for assessor in view.column(T4, "overall f1"):
        try:
            human, judge, both = (sum(part) for part in zip(*recovered(view, assessor).values(), strict=True))
        except ValueError:
            return no_counts(assessor)
        made = {"p": 100 * both / judge, "r": 100 * both / human, "f1": 200 * both / (judge + human)}
        right = [counts.rounds_to(view.text(T4, assessor, f"overall {name}"), made[name]) for name in made]
        told_as.append((f"{assessor} {both}/{judge}/{human}", all(right)))
    return Finding(told(all(right for _, right in told_as)), ", ".join(name for name, _ in told_as))


def conforms(view: View, *, questions: tuple[str, ...]) -> Finding:
    """The order of the three models by people and by GPT-4."""
    orders = []
    for q in questions:
        human = sorted(HUMAN_TO_JUDGED, key=lambda m: view(T3, m, q))
        judged = sorted(HUMAN_TO_JUDGED, key=lambda m: view(T5, HUMAN_TO_JUDGED[m], q))
        people = "/".join(f"{view(T3, m, q):g}" for m in HUMAN_TO_JUDGED)
        gpt = "/".join(f"{view(T5, name, q):g}" for name in HUMAN_TO_JUDGED.values())
        orders.append((human == judged, f"{q.upper()} people {people}, GPT-4 {gpt}"))
    return Finding(told(all(same for same, _ in orders)), "; ".join(value for _, value in orders))


def lower_counts(view: View) -> Finding:
    """WangchanLion's counts of Q3 and Q4 below both others'."""
    return in_order([(view(T5, other, q), view(T5, LION, q)) for q in ("q3", "q4") for other in (OTG7, SEALLM)])


def llama_rows(view: View) -> Finding:
    """Rows of Table 5 named LLaMA."""
    rows = view.names(T5)
    llama = [row for row in rows if "llama" in row.lower()]
    return Finding(told(bool(llama)), f"{len(llama)} of {len(rows)} rows are LLaMA models")


def seven_models(view: View) -> Finding:
    """Rows of Table 5 against the number of models stated."""
    rows, stated = len(view.names(T5)), view("wangchan.text", "models judged by GPT-4", "value")
    return Finding(told(rows == stated), f"{rows} rows, {stated:g} stated")


def improvement(view: View) -> Finding:
    """OpenThaiGPT 13B against 7B on all four questions: Q1 and Q2 up, Q3 and Q4 down."""
    pairs = [(view(T5, OTG13, q), view(T5, OTG7, q)) for q in QUESTIONS]
    note = ", ".join(f"{q.upper()} {a:g} after {b:g}" for q, (a, b) in zip(QUESTIONS, pairs, strict=True))
    return in_order([*pairs[:2], *((b, a) for a, b in pairs[2:])], note=note)


def high(view: View, *, model: str, columns: tuple[str, ...]) -> Finding:
    """A model's place from the highest count: in the upper half of the table."""
    places = {}
    for column in columns:
        scores = view.column(T5, column)
        places[column] = 1 + sum(value > scores[model] for value in scores.values())
    half = len(view.column(T5, columns[0])) / 2
    value = ", ".join(f"{q.upper()} number {place} of {2 * half:g}" for q, place in places.items())
    return Finding(told(all(place <= half for place in places.values())), value)


def cost(view: View) -> Finding:
    """Models times the price of one against the price stated for all."""
    rows = ("models judged by GPT-4", "dollars for each judged model", "dollars for all judged models (less than)")
    models, each, stated = (view("wangchan.text", row, "value") for row in rows)
    return Finding(told(models * each < stated), f"{models * each:.2f} dollars, less than {stated:.2f} stated")


def same_words(view: View) -> Finding:
    """Words an answer of the three models in both tables."""
    same = [view(T3, m, "tokens") == view(T5, name, "tokens") for m, name in HUMAN_TO_JUDGED.items()]
    return Finding(told(all(same)), f"{sum(same)} of {len(same)} equal")


C = partial(Claim, paper=PAPER, section="3.3")
THREE = tuple(HUMAN_TO_JUDGED.values())
OVERALL = pick(T4, "overall f1")
HUMAN = pick(T3, *QUESTIONS)
PRF = tuple(f"{q} {name}" for q in QUESTIONS for name in ("p", "r", "f1"))
COST = ["models judged by GPT-4", "dollars for each judged model", "dollars for all judged models (less than)"]
CLAIMS: tuple[Claim, ...] = (
    C("judge-01", statement="GPT-4 is the most aligned with human evaluation (overall F1)",
      test="its overall F1 above both others'", picks=(OVERALL,), check=partial(most_aligned, heads=("overall",))),
    C("judge-02", statement="GPT-4 is the most aligned with human evaluation (verdicts alike)",
      test="verdicts equal to people's, from recovered counts; Newcombe's interval, 1,200 verdicts each",
      picks=(pick(T4, *PRF), HUMAN, ANSWERS), check=more_often_right),
    C("judge-03", statement="GPT-4 is the most aligned with human evaluation (each question)",
      test="its F1 above both others' on each of the four questions",
      picks=(pick(T4, *(f"{q} f1" for q in QUESTIONS)),), check=partial(most_aligned, heads=QUESTIONS)),
    C("judge-04", statement="F1 score computed from P and R",
      test="each printed F1 against 2PR / (P + R)", picks=(pick(T4),), check=harmonic),
    C("judge-05", statement="Table 4 compares GPT-4 with people on the answers of Tables 3 and 5",
      test="counts recovered from P, R and F1 over Table 3's sums, against Table 5's sums",
      picks=(pick(T4, *PRF, rows=[GPT4]), HUMAN, pick(T5, *QUESTIONS, rows=THREE)), check=matched),
    C("judge-06", statement="the overall column is that of all verdicts together",
      test="P, R and F1 of the pooled counts of each assessor against the printed ones",
      picks=(pick(T4), HUMAN), check=pooled),
    C("judge-07", statement="SeaLLM is the best of the three in Q1 (GPT-4)",
      test=f"above both others; {NEWCOMBE}", picks=(pick(T5, "q1", rows=THREE), OF_GPT4),
      check=partial(over_others, table=T5, model=SEALLM, others=(OTG7, LION), column="q1")),
    C("judge-08", statement="SeaLLM is the best of the three in Q2 (GPT-4)",
      test=f"above both others; {NEWCOMBE}", picks=(pick(T5, "q2", rows=THREE), OF_GPT4),
      check=partial(over_others, table=T5, model=SEALLM, others=(OTG7, LION), column="q2")),
    C("judge-09", statement="for Q3 and Q4, the results conform with the human evaluation",
      test="the same order of the three models by people and by GPT-4 on both questions",
      picks=(pick(T3, "q3", "q4"), pick(T5, "q3", "q4", rows=THREE)),
      check=partial(conforms, questions=("q3", "q4"))),
    C("judge-10", statement="for Q4 alone, the results conform with the human evaluation",
      test="the same order of the three models by people and by GPT-4",
      picks=(pick(T3, "q4"), pick(T5, "q4", rows=THREE)), check=partial(conforms, questions=("q4",))),
    C("judge-11", statement="WangchanLion obtained lower Q3 and Q4 counts than the other two",
      test="the four pairs of counts of Table 5", picks=(pick(T5, "q3", "q4", rows=THREE),), check=lower_counts),
    C("judge-12", statement="WangchanLion has a lower risk of irrelevant information",
      test=f"Q3 by GPT-4 below both others'; {NEWCOMBE}", picks=(pick(T5, "q3", rows=THREE), OF_GPT4),
      check=partial(under_others, table=T5, model=LION, others=(OTG7, SEALLM), column="q3")),
    C("judge-13", statement="WangchanLion has a lower risk of out-of-context information",
      test=f"Q4 by GPT-4 below both others'; {NEWCOMBE}", picks=(pick(T5, "q4", rows=THREE), OF_GPT4),
      check=partial(under_others, table=T5, model=LION, others=(OTG7, SEALLM), column="q4")),
    C("judge-14", statement="the table also includes LLaMA 7B and LLaMA 13B",
      test="row names of Table 5 that hold LLaMA", picks=(names(T5),), check=llama_rows),
    C("judge-15", statement="the assessment comprised seven models",
      test="rows of Table 5", picks=(names(T5), pick("wangchan.text", rows=COST[:1])), check=seven_models),
    C("judge-16", statement="OpenThaiGPT 13B shows a slight improvement over 7B (Q1)",
      test=f"Q1 above; {NEWCOMBE}", picks=(pick(T5, "q1", rows=[OTG13, OTG7]), OF_GPT4),
      check=lambda view: more(view, T5, "q1", OTG13, OTG7)),
    C("judge-17", statement="OpenThaiGPT 13B shows a slight improvement over 7B (all questions)",
      test="Q1 and Q2 above, Q3 and Q4 below", picks=(pick(T5, *QUESTIONS, rows=[OTG13, OTG7]),), check=improvement),
    C("judge-18", statement="Typhoon-instruct-0130 is the best performer regarding Q1",
      test=f"above each of the five others; {NEWCOMBE}", picks=(pick(T5, "q1"), OF_GPT4),
      check=partial(over_others, table=T5, model=TYPHOON, others=(*THREE, OTG13, POLYLM), column="q1")),
    C("judge-19", statement="SeaLLM V2 is second regarding Q1",
      test=f"above all but the best; {NEWCOMBE}", picks=(pick(T5, "q1", rows=[*THREE, OTG13, POLYLM]), OF_GPT4),
      check=partial(over_others, table=T5, model=SEALLM, others=(OTG7, LION, OTG13, POLYLM), column="q1")),
    C("judge-20", statement="Typhoon has a high score in irrelevancy (Q3)",
      test="among the upper half of Table 5", picks=(pick(T5, "q3"),),
      check=partial(high, model=TYPHOON, columns=("q3",))),
    C("judge-21", statement="Typhoon has a high score in out-of-context (Q4)",
      test="among the upper half of Table 5", picks=(pick(T5, "q4"),),
      check=partial(high, model=TYPHOON, columns=("q4",))),
    C("judge-22", statement="SeaLLM V2 has a high score in Q3 and Q4",
      test="among the upper half of Table 5 on both", picks=(pick(T5, "q3", "q4"),),
      check=partial(high, model=SEALLM, columns=("q3", "q4"))),
    C("judge-23", statement="one model costs about 4 dollars, seven less than 30",
      test="the product against the price stated", picks=(pick("wangchan.text", rows=COST),), check=cost),
    C("judge-24", statement="Tables 3 and 5 rest on the same answers",
      test="words an answer of the three models equal in both tables",
      picks=(pick(T3, "tokens"), pick(T5, "tokens", rows=THREE)), check=same_words),
)  # fmt: skip
