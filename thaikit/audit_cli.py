"""Claims of the ThaiCLI paper about ThaiCLI by model and question format: sections 4.3 to 5.3, Tables 3 and 5."""

from __future__ import annotations

from functools import partial

import numpy as np

from thaikit.audit import Claim, Finding, NotTold, View, in_order, pick, told
from thaikit.audit_h6 import LLAMA70, PAPER, SEALLM
from thaikit.published import FORMATS

T3, T5 = "thaicli.3", "thaicli.5"
GPT4O, TURBO, MINI, GPT35 = "GPT-4o", "GPT-4 Turbo", "GPT-4o Mini", "GPT-3.5 Turbo"
GEMINI, CLAUDE = "Gemini Pro", "Claude Sonnet"


def sum_of_themes(view: View, *, kind: str) -> Finding:
    """The seven themes' questions, the table's total and the number in the prose."""
    sizes = view.column(T3, kind)
    total = sum(n for theme, n in sizes.items() if theme != "Total")
    stated = view("thaicli.text", f"{kind} questions", "value")
    return Finding(told(total == sizes["Total"] == stated), f"{total:g} in themes, {stated:g} stated")


def mean_of_two(view: View) -> Finding:
    """The largest difference of a printed average from the mean of its two formats."""
    off = {m: abs(v - np.mean([view(T5, m, kind) for kind in FORMATS])) for m, v in view.column(T5, "average").items()}
    worst = max(off, key=lambda m: off[m])
    digits = len(view.text(T5, worst, "average").partition(".")[2])
    return Finding(told(off[worst] <= 10.0**-digits + 1e-9), f"largest difference {off[worst]:.4f}")


def best(view: View, *, model: str, access: str, last: int = 0) -> Finding:
    """A model's average above that of every other of its kind; with `last`, at that place from the end instead."""
    scores = view.column(T5, "average", access=access)
    if last:
        place = sorted(scores.values()).index(scores[model]) + 1
        return Finding(told(place == last), f"{scores[model]:g} is number {place} of {len(scores)} from the end")
    return in_order([(scores[model], max(v for m, v in scores.items() if m != model))])


def closely(view: View) -> Finding:
    """Claude and GPT-4o mini second and third, nearer to the first than the fourth is to the third."""
    scores = view.column(T5, "average", access="closed")
    order = sorted(scores.values(), reverse=True)
    near, far = order[0] - order[2], order[2] - order[3]
    right = order[1:3] == [scores[CLAUDE], scores[MINI]] and near < far
    return Finding(told(right), f"first to third {near:.2f}, third to fourth {far:.2f}")


def gemini_behind(view: View) -> Finding:
    """Gemini Pro below the flagships of the other two vendors, and where it stands against the rest."""
    scores = view.column(T5, "average", access="closed")
    above = [model for model, value in scores.items() if value < scores[GEMINI]]
    return in_order([(scores[flagship], scores[GEMINI]) for flagship in (GPT4O, CLAUDE)],
                    note=f"it is above {', '.join(above) or 'none'}")  # fmt: skip


def by_far(view: View) -> Finding:
    """The lowest of the closed models, and its distance to the next against the widest of the other steps."""
    scores = view.column(T5, "average", access="closed")
    steps = np.diff(sorted(scores.values()))
    right = min(scores, key=lambda m: scores[m]) == GPT35 and steps[0] > max(steps[1:])
    return Finding(told(bool(right)), f"{steps[0]:.2f} to the next, other steps up to {max(steps[1:]):.2f}")


def gaps(view: View, access: str) -> dict[str, float]:
    """Factoid less instruction, by model."""
    factoid, instruction = (view.column(T5, kind, access=access) for kind in FORMATS)
    return {model: factoid[model] - instruction[model] for model in factoid if model in instruction}


def little_difference(view: View) -> Finding:
    """The closed models' gaps but GPT-3.5's against the smallest of the open ones."""
    closed = {model: abs(gap) for model, gap in gaps(view, "closed").items() if model != GPT35}
    return in_order([(min(gaps(view, "open").values()), max(closed.values()))])


def noticeably_lower(view: View) -> Finding:
    """The open models' gaps, all above 0, and above all but the widest of the closed ones where there are any."""
    opened = gaps(view, "open")
    try:
        closed = sorted(map(abs, gaps(view, "closed").values()))[:-1]
    except NotTold:
        closed = []
    bar = max([0.0, *closed])
    return in_order(
        [(gap, bar) for gap in opened.values()], note=f"smallest {min(opened.values()):.2f} against {bar:.2f}"
    )


def not_so_for_closed(view: View) -> Finding:
    """The closed models' gaps, every one below the smallest open one."""
    bar, closed = min(gaps(view, "open").values()), gaps(view, "closed")
    wide = [f"{model} {gap:.2f}" for model, gap in closed.items() if gap >= bar]
    return Finding(told(not wide), f"{len(wide)} of {len(closed)} at or above {bar:.2f}: {', '.join(wide) or 'none'}")


def all_excel(view: View) -> Finding:
    """Every closed model's instruction score above every open one's."""
    opened, closed = (view.column(T5, "instruction", access=kind) for kind in ("open", "closed"))
    under = [f"{model} {value:g}" for model, value in closed.items() if value <= max(opened.values())]
    note = f"best open {max(opened.values()):g}; below it: {', '.join(under) or 'none'}"
    return in_order([(value, max(opened.values())) for value in closed.values()], note=note)


C = partial(Claim, paper=PAPER)
OPEN, CLOSED = ("open",), ("closed",)
CLAIMS: tuple[Claim, ...] = (
    C("cli-01", section="4.3", statement="1,790 samples with factoid questions",
      test="the themes of Table 3 add up to its total and to the number stated",
      picks=(pick(T3, "factoid"), pick("thaicli.text", rows=["factoid questions"])),
      check=partial(sum_of_themes, kind="factoid")),
    C("cli-02", section="4.3", statement="100 samples with instruction questions",
      test="the themes of Table 3 add up to its total and to the number stated",
      picks=(pick(T3, "instruction"), pick("thaicli.text", rows=["instruction questions"])),
      check=partial(sum_of_themes, kind="instruction")),
    C("cli-03", section="4.4", statement="the ThaiCLI score is the average of factoid and instruction",
      test="each printed average within its last digit of the mean of its two columns",
      picks=(pick(T5),), check=mean_of_two, generic=True),
    C("cli-04", section="5.3", statement="GPT-4o has the highest score of the closed APIs",
      test="its average above every other closed one", picks=(pick(T5, "average", rows=CLOSED),),
      check=partial(best, model=GPT4O, access="closed")),
    C("cli-05", section="5.3", statement="closely followed by Claude Sonnet and GPT-4o mini",
      test="second and third in this order, and first to third nearer than third to fourth",
      picks=(pick(T5, "average", rows=CLOSED),), check=closely),
    C("cli-06", section="5.3", statement="GPT-4o mini outperforms GPT-4 Turbo",
      test="its average above the other's (no interval: items are not published)",
      picks=(pick(T5, "average", rows=[MINI, TURBO]),),
      check=lambda view: in_order([(view(T5, MINI, "average"), view(T5, TURBO, "average"))])),
    C("cli-07", section="5.3", statement="Gemini Pro, a flagship, lags behind those of OpenAI or Anthropic",
      test="its average below those of GPT-4o and Claude Sonnet",
      picks=(pick(T5, "average", rows=CLOSED),), check=gemini_behind),
    C("cli-08", section="5.3", statement="GPT-3.5 Turbo shows the lowest score by far",
      test="last of the closed APIs, and by more than any other step between neighbours",
      picks=(pick(T5, "average", rows=CLOSED),), check=by_far),
    C("cli-09", section="5.3", statement="closed APIs but GPT-3.5 show little difference between formats",
      test="their widest gap below the smallest of the open models", check=little_difference,
      picks=(pick(T5, *FORMATS, rows=["open", GPT4O, TURBO, MINI, GEMINI, CLAUDE]),)),
    C("cli-10", section="5.3", statement="closed LLM APIs all excel in instruction following",
      test="every closed API's instruction score above every open model's", picks=(pick(T5, "instruction"),),
      check=all_excel, generic=True),
    C("cli-11", section="5.3", statement="the best open score is achieved by SeaLLMs 7B",
      test="its average above every other open one (no interval: items are not published)",
      picks=(pick(T5, "average", rows=OPEN),), check=partial(best, model=SEALLM, access="open")),
    C("cli-12", section="5.3", statement="Llama 70B shows the second lowest score",
      test="second from the end of the open models", picks=(pick(T5, "average", rows=OPEN),),
      check=partial(best, model=LLAMA70, access="open", last=2)),
    C("cli-13", section="5.3", statement="all open LLMs score noticeably lower on instruction than on factoid",
      test="every open gap above all closed ones but the widest", picks=(pick(T5, *FORMATS),),
      check=noticeably_lower, generic=True),
    C("cli-14", section="5.3", statement="this was not the case for closed APIs",
      test="every closed gap below the smallest open one", picks=(pick(T5, *FORMATS),),
      check=not_so_for_closed, generic=True),
)  # fmt: skip
