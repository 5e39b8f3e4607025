"""The last steps over the rendered page: its contents, and the LaTeX below each table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from thaikit import report_latex

HEADING = re.compile(r"<(h2|h3)\b([^>]*)>(.*?)</\1>", re.DOTALL)
ID = re.compile(r'\bid="([^"]+)"')
SMALLER = 7  # headings of one section that the contents still list
PLACE = '<nav aria-label="Contents"></nav>'


def finished(page: str, *, show: Callable[[Any], Any]) -> str:
    """The page with its contents and the LaTeX of its tables; `show` makes a text safe HTML."""
    return report_latex.with_latex(with_contents(page), show=show)


def with_contents(page: str) -> str:
    """The page with a list of links to its headings, which get an id where they have none.

    Only tags are looked at, and texts hold none: every text of a model or a data set is escaped before.
    """
    entries: list[tuple[str, str, list[tuple[str, str]]]] = []

    def mark(found: re.Match[str]) -> str:
        tag, attributes, inside = found[1], found[2], found[3]
        given = ID.search(attributes)
        text = " ".join(re.sub(r"<[^>]+>", "", re.sub(r'<span class="(small|tag)">.*?</span>', " ", inside)).split())
        number = f"{len(entries) + 1}" if tag == "h2" else f"{len(entries)}-{len(entries[-1][2]) + 1 if entries else 0}"
        name = given[1] if given else f"part-{number}"
        if tag == "h2":
            entries.append((name, text, []))
        elif entries:
            entries[-1][2].append((name, text))
        added = "" if given else f' id="{name}"'
        return f"<{tag}{attributes}{added}>{inside}</{tag}>"

    marked = HEADING.sub(mark, page)
    return marked.replace(PLACE, f'<nav aria-label="Contents"><ul>{"".join(map(entry, entries))}</ul></nav>', 1)


def entry(one: tuple[str, str, list[tuple[str, str]]]) -> str:
    """A section's line in the contents, with its own headings where they are few."""
    name, text, smaller = one
    below = " · ".join(f'<a href="#{place}">{told}</a>' for place, told in smaller)
    listed = f'<span class="small">{below}</span>' if 1 < len(smaller) <= SMALLER else ""
    return f'<li><a href="#{name}">{text}</a>{listed}</li>'
