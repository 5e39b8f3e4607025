"""A data frame as LaTeX (booktabs) and as Markdown, rounded for display, with every special character made harmless."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any

LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
         "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
         "|": r"\textbar{}", "−": "$-$"}  # fmt: skip
MARKDOWN = {"\\": r"\\", "|": r"\|", "<": "&lt;", ">": "&gt;", "&": "&amp;", "*": r"\*", "_": r"\_", "`": r"\`",
            "[": r"\[", "]": r"\]", "#": r"\#", "~": r"\~"}  # fmt: skip
DASH = "–"


def latex(frame: Any) -> str:
    """The frame (pandas) as a `tabular` with booktabs rules, numbers to the right, no index."""
    sides = ["r" if numeric(kind) else "l" for kind in frame.dtypes]
    head, *body = rows(frame, LATEX)
    return tabular([head], body, "".join(sides))


def tabular(heads: Sequence[Sequence[str]], body: Sequence[Sequence[str]], sides: str) -> str:
    """Rows of escaped cells as a booktabs `tabular`; `sides` has an l or r a column."""
    above, below = ([line(cells) for cells in part] for part in (heads, body))
    parts = [
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        *above,
        r"\midrule",
        *below,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(parts) + "\n"


def line(cells: Sequence[str]) -> str:
    """One row. A bracket or a star that comes first would be taken for an argument of the line end before it."""
    told = " & ".join(cells)
    return ("{}" if told[:1] in ("[", "*") else "") + told + r" \\"


def markdown(frame: Any) -> str:
    """The frame (pandas) as a pipe table, numbers to the right, no index."""
    head, *body = ["| " + " | ".join(cells) + " |" for cells in rows(frame, MARKDOWN)]
    rule = "| " + " | ".join("---:" if numeric(kind) else "---" for kind in frame.dtypes) + " |"
    return "\n".join([head, rule, *body]) + "\n"


def rows(frame: Any, signs: dict[str, str]) -> list[list[str]]:
    """The header and each row as lists of escaped texts."""
    plain = [[str(name) for name in frame.columns]]
    plain += [[shown(value) for value in line] for line in frame.itertuples(index=False, name=None)]
    return [[escaped(text, signs) for text in line] for line in plain]


def numeric(kind: Any) -> bool:
    """Whether a column of this dtype holds numbers (and is set to the right)."""
    return kind.kind in "iuf"


def shown(value: Any) -> str:
    """One value for display: two decimals from 1 upwards, four below, a dash for what is not there."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or str(value) in ("<NA>", "NaT"):
        return DASH
    if isinstance(value, float) and math.isfinite(value):
        if value == int(value) and abs(value) < 1e15:
            return str(int(value))
        return f"{value:.2f}" if abs(value) >= 1 else f"{value:.4f}"
    return str(value)


def escaped(text: str, signs: dict[str, str]) -> str:
    """A text on one line, special characters escaped, those that cannot be seen written as U+XXXX."""
    plain = " ".join(text.split())
    return "".join(
        signs.get(c, f"U+{ord(c):04X}" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") else c)
        for c in plain
    )
