"""Claims of the ThaiCLI paper about Thai-H6: sections 3.2, 3.3 and 5.2, Tables 1 and 4."""

from __future__ import annotations

from functools import partial

import numpy as np

from thaikit.analysis_stats import newcombe, slope
from thaikit.audit import (
    FAILS,
    HOLDS,
    UNTOLD,
    Claim,
    Finding,
    NotTold,
    View,
    difference,
    in_order,
    pick,
    told,
)
from thaikit.published import H6_TASKS, TABLE_1

PAPER = "ThaiCLI paper"
T1, T4 = "thaicli.1", "thaicli.4"
LLAMA8, LLAMA70 = "Meta-Llama-3.1-8B-Instruct", "Meta-Llama-3.1-70B-Instruct"
QWEN, TYPHOON = "Qwen2-72B-Instruct", "Llama-3-Typhoon-v1.5x-70b-Instruct"
SAILOR, SEALLM = "Sailor-14B-Chat", "SeaLLMs-v3-7B-Chat"
LARGE = pick("thaicli.text", rows=["large models exceed (billion parameters)"])  # the paper's own line


def large_sets(view: View) -> Finding:
    """th-HellaSwag and th-MMLU against the number stated."""
    least = view("thaicli.text", "large Thai-H6 sets hold over", "value")
    return in_order([(view(T1, row, "samples"), least) for row in ("th-HellaSwag", "th-MMLU")])


def around_a_thousand(view: View) -> Finding:
    """th-ARC and th-TruthfulQA within a quarter of the number stated."""
    about = view("thaicli.text", "special Thai-H6 sets hold around", "value")
    sizes = [view(T1, row, "samples") for row in ("th-ARC", "th-TruthfulQA")]
    right = all(abs(size - about) <= about / 4 for size in sizes)
    return Finding(told(right), f"{sizes[0]:g} and {sizes[1]:g} around {about:g}")


def mean_of_six(view: View) -> Finding:
    """The largest difference of a printed average from the mean of its six scores."""
    printed = view.column(T4, "average")
    off = {m: abs(value - np.mean([view(T4, m, task) for task in H6_TASKS])) for m, value in printed.items()}
    worst = max(off, key=lambda m: off[m])
    digits = len(view.text(T4, worst, "average").partition(".")[2])
    return Finding(told(off[worst] <= 10.0**-digits + 1e-9), f"largest difference {off[worst]:.4f}")


def whole_counts_over(view: View, *, task: str) -> Finding:
    """Whether the printed accuracies are whole counts over the size of Table 1, and over which sizes near it they are.

    The verdict can hold only where that size is the only one; where it is one of many it cannot be told.
    """
    listed, near = int(view(T1, TABLE_1[task], "samples")), view.sizes(task)
    value = f"whole counts over {near[0]:,} only" if len(near) == 1 else f"{len(near):,} sizes up to {listed:,} fit"
    return Finding(FAILS if listed not in near else HOLDS if len(near) == 1 else UNTOLD, value)


def top(view: View) -> Finding:
    """The highest average and the next."""
    scores = view.column(T4, "average")
    return in_order([(scores[QWEN], max(v for m, v in scores.items() if m != QWEN))])


def followed(view: View) -> Finding:
    """Typhoon and Llama 70B second and third, nearer to the first than the fourth is to the third."""
    scores = view.column(T4, "average")
    order = sorted(scores.values(), reverse=True)
    near, far = order[0] - order[2], order[2] - order[3]
    right = order[1:3] == [scores[TYPHOON], scores[LLAMA70]] and near < far
    return Finding(told(right), f"first to third {near:.2f}, third to fourth {far:.2f}")


def top_three_are_large(view: View) -> Finding:
    """The sizes of the three highest averages."""
    least, scores = large(view), view.column(T4, "average")
    best = sorted(scores, key=lambda m: -scores[m])[:3]
    return in_order([(view.size(model), least) for model in best], note=", ".join(f"{view.size(m):g}" for m in best))


def large(view: View) -> float:
    """What the paper's large models exceed, in billion parameters."""
    return view(LARGE.table, LARGE.rows[0], "value")


def parted(view: View, column: str) -> tuple[list[float], list[float]]:
    """Scores of models above the paper's line between large and smaller ones, and of the others; NotTold where one side
    is empty."""
    scores, line = view.column(T4, column, least=2), large(view)
    above = [value for model, value in scores.items() if view.size(model) > line]
    small = [value for model, value in scores.items() if view.size(model) <= line]
    if not (above and small):
        raise NotTold(f"{len(above)} models above {line:g} billion parameters and {len(small)} smaller ones")
    return above, small


def smaller_lower(view: View) -> Finding:
    """The lowest of the large against the highest of the smaller."""
    above, small = parted(view, "average")
    return in_order([(min(above), max(small))])


def lag_most(view: View) -> Finding:
    """The three tasks with the widest gap between the means of large and smaller models."""
    gaps = {task: float(np.subtract(*map(np.mean, parted(view, task)))) for task in H6_TASKS}
    widest = sorted(gaps, key=lambda task: -gaps[task])
    value = ", ".join(f"{task} {gaps[task]:.2f}" for task in widest[:4])
    return Finding(told(set(widest[:3]) == {"arc", "mmlu", "gsm8k"}), value)


def dominate(view: View) -> Finding:
    """Points of Thai-H6 a ten-fold of parameters."""
    scores = view.column(T4, "average", least=3)
    return difference(slope([view.size(m) for m in scores], list(scores.values())).estimate, scale=1,
                      unit="points a ten-fold")  # fmt: skip


def less_than_size(view: View) -> Finding:
    """The two matched pairs against the step from Llama 8B to 70B."""
    score = partial(view, T4, column="average")
    size = score(row=LLAMA70) - score(row=LLAMA8)
    regional = [score(row=TYPHOON) - score(row=LLAMA70), score(row=SEALLM) - score(row=LLAMA8)]
    return Finding(told(max(regional) < size), f"{regional[0]:+.2f} and {regional[1]:+.2f} against {size:+.2f}")


def seallm_below(view: View) -> Finding:
    """The averages, and on how many tasks it is the other way."""
    above = sum(view(T4, SEALLM, task) > view(T4, LLAMA8, task) for task in H6_TASKS)
    pair = (view(T4, LLAMA8, "average"), view(T4, SEALLM, "average"))
    return in_order([pair], note=f"SeaLLMs is above on {above} of 6 tasks")


def sailor_gsm8k(view: View) -> Finding:
    """Counts of right answers of th-GSM8K."""
    return difference(newcombe(*view.count(T4, LLAMA8, "gsm8k"), *view.count(T4, SAILOR, "gsm8k")))


def sailor_sets(view: View) -> Finding:
    """On how many tasks Sailor is below."""
    below = [task for task in H6_TASKS if view(T4, SAILOR, task) < view(T4, LLAMA8, task)]
    return Finding(told(len(below) > 1), f"below on {len(below)} of 6: {', '.join(below)}")


C = partial(Claim, paper=PAPER)
LISTED_SIZES = tuple(
    C(f"h6-{place:02d}", section="3.2", statement=f"{TABLE_1[task]} has {listed} samples (taken as those scored)",
      test="the six printed accuracies are whole counts over Table 1's size and over no other size near it",
      picks=(pick(T1, "samples", rows=[TABLE_1[task]]), pick(T4, task)), check=partial(whole_counts_over, task=task))
    for place, task, listed in ((4, "arc", "1,222"), (5, "winogrande", "1,272"), (6, "gsm8k", "1,324"),
                                (7, "hellaswag", "10,052"))
)  # fmt: skip
CLAIMS: tuple[Claim, ...] = (
    C("h6-01", section="3.2", statement="th-HellaSwag and th-MMLU contain over 10,000 samples each",
      test="both sizes of Table 1 above the number stated",
      picks=(pick(T1, "samples", rows=["th-HellaSwag", "th-MMLU"]),
             pick("thaicli.text", rows=["large Thai-H6 sets hold over"])), check=large_sets),
    C("h6-02", section="3.2", statement="th-ARC and th-TruthfulQA include around 1,000 samples each",
      test="both sizes of Table 1 within 25 % of the number stated",
      picks=(pick(T1, "samples", rows=["th-ARC", "th-TruthfulQA"]),
             pick("thaicli.text", rows=["special Thai-H6 sets hold around"])), check=around_a_thousand),
    C("h6-03", section="3.3", statement="the average of the six scores is the Thai-H6 score",
      test="each printed average within its last digit of the mean of its six columns",
      picks=(pick(T4),), check=mean_of_six, generic=True),
    *LISTED_SIZES,
    C("h6-08", section="5.2", statement="the highest Thai-H6 score is achieved by Qwen2-72B",
      test="its average above every other", picks=(pick(T4, "average"),), check=top),
    C("h6-09", section="5.2", statement="closely followed by Typhoon 70B and Llama 70B",
      test="second and third in this order, and first to third nearer than third to fourth",
      picks=(pick(T4, "average"),), check=followed),
    C("h6-10", section="5.2", statement="all three have the largest parameter count, exceeding 70 billion",
      test="the three highest averages belong to models above the size stated",
      picks=(pick(T4, "average"), LARGE),
      check=top_three_are_large),
    C("h6-11", section="5.2", statement="smaller sized LLMs definitely score lower",
      test="the lowest average of models above the size stated, above the highest of the others",
      picks=(pick(T4, "average"), LARGE), check=smaller_lower, generic=True),
    C("h6-12", section="5.2", statement="smaller LLMs lag the most on th-ARC, th-MMLU and th-GSM8K",
      test="these three have the widest gaps between mean scores of large and smaller models",
      picks=(pick(T4, *H6_TASKS), LARGE), check=lag_most, generic=True),
    C("h6-13", section="5.2", statement="Typhoon 70B scores higher than Llama 70B of the same size",
      test="its average above the other's (no interval: th-TruthfulQA has none)",
      picks=(pick(T4, "average", rows=[TYPHOON, LLAMA70]),),
      check=lambda view: in_order([(view(T4, TYPHOON, "average"), view(T4, LLAMA70, "average"))])),
    C("h6-14", section="5.2", statement="the advantage of specialization is not as pronounced as that of size",
      test="both matched pairs' differences below that of Llama 70B and Llama 8B",
      picks=(pick(T4, "average", rows=[TYPHOON, LLAMA70, SEALLM, LLAMA8]),), check=less_than_size),
    C("h6-15", section="5.2", statement="SeaLLMs 7B scored lower than Llama 8B",
      test="its average below the other's (no interval: th-TruthfulQA has none)",
      picks=(pick(T4, rows=[SEALLM, LLAMA8]),), check=seallm_below),
    C("h6-16", section="5.2", statement="Sailor 14B lower than Llama 8B on th-GSM8K",
      test="Newcombe's interval for two proportions from whole counts",
      picks=(pick(T4, "gsm8k"), pick(T1, "samples", rows=[TABLE_1["gsm8k"]])), check=sailor_gsm8k),
    C("h6-17", section="5.2", statement="Sailor 14B lower on datasets (more than one)",
      test="below on at least two of the six tasks",
      picks=(pick(T4, *H6_TASKS, rows=[SAILOR, LLAMA8]),), check=sailor_sets),
    C("h6-18", section="5.4", statement="larger models clearly dominate in Thai-H6",
      test="slope of the average on log10 parameters, Student's t",
      picks=(pick(T4, "average"),), check=dominate, generic=True),
)  # fmt: skip
