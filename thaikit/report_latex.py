"""The LaTeX of the report's tables, read off the tables as they stand in the page, so that the two cannot differ."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

from markupsafe import Markup

from thaikit import table_text

TABLE = re.compile(r'(<div class="scroll"[^>]*>\s*<table(?P<attributes>[^>]*)>.*?</table>\s*</div>)', re.DOTALL)
WITHOUT = ("rowtable", "files")  # rows and file lists: they are in the leaf as CSV, JSONL or JSON
ASIDE = ("small", "thai", "tag")  # what stands below a number or a name in the page comes in brackets behind it
NEEDS = r"% \usepackage{booktabs}; Thai letters need XeLaTeX or LuaLaTeX and a font that holds them"


class Reader(HTMLParser):
    """The rows of one table of the report: each a list of (text, columns that it spans); how many are heads; sides."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[list[tuple[str, int]]] = []
        self.heads = 0
        self.sides = ""
        self.inside = ""  # thead or tbody
        self.stack: list[bool] = []  # of the open spans, whether each is an aside
        self.text: list[str] | None = None
        self.span = 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A row, a cell, a break or a span begins."""
        given = dict(attrs)
        if tag in ("thead", "tbody"):
            self.inside = tag
        elif tag == "tr":
            self.rows.append([])
            self.heads += self.inside == "thead"
        elif tag in ("td", "th"):
            self.text, self.span = [], int(given.get("colspan") or 1)
            if len(self.rows) == 1:
                left = not self.rows[0] or "text" in (given.get("class") or "").split()
                self.sides += ("l" if left else "r") * self.span
        elif tag == "br" and self.text is not None:
            self.text.append("; " if any(self.stack) else " ")
        elif tag == "span":
            self.stack.append(bool(set(ASIDE) & set((given.get("class") or "").split())))
            self.say(" (" if self.stack[-1] else "")

    def handle_endtag(self, tag: str) -> None:
        """A cell or a span ends."""
        if tag == "span" and self.stack and self.stack.pop():
            self.say(")")
        elif tag in ("td", "th") and self.text is not None:
            self.rows[-1].append((" ".join("".join(self.text).split()), self.span))
            self.text = None

    def handle_data(self, data: str) -> None:
        """A text of the open cell."""
        self.say(data)

    def say(self, text: str) -> None:
        """Add to the open cell."""
        if self.text is not None:
            self.text.append(text)


def latex(table: str) -> str:
    """A `<table>` of the report as a booktabs `tabular`, every special character made harmless."""
    reader = Reader()
    reader.feed(table)
    reader.close()
    lines = [[cell(*one) for one in row] for row in reader.rows]
    return table_text.tabular(lines[: reader.heads], lines[reader.heads :], reader.sides)


def cell(text: str, span: int) -> str:
    """One cell, escaped."""
    told = table_text.escaped(text, table_text.LATEX)
    return told if span == 1 else rf"\multicolumn{{{span}}}{{l}}{{{told}}}"


def with_latex(page: str, *, show: Callable[[Any], Any]) -> str:
    """The page with the LaTeX of each table folded below it; `show` makes a text safe HTML."""

    def add(found: re.Match[str]) -> str:
        if set(WITHOUT) & set(re.findall(r"[\w-]+", found["attributes"])):
            return found[1]
        told: Markup = show(f"{NEEDS}\n{latex(found[1])}")
        return f'{found[1]}\n<details class="latex"><summary>LaTeX of this table</summary><pre>{told}</pre></details>'

    return TABLE.sub(add, page)
