"""The explorer for a person at JupyterLab: `load` a leaf or two, look at the `rows`, open the `card` of an item.

    view = explore.load("outputs/demo/thai_h6/gemma3-270m", task="arc", right="wrong", gallery=True)
    explore.rows(view)
    explore.card(view, "th-arc-019")

All texts of models, judges and data sets are escaped, and what cannot be seen in them is written out.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from markupsafe import Markup

from thaikit import explore_card, explore_view, figures, report
from thaikit.explore_rows import text_of
from thaikit.explore_view import View

SHOWN = 240  # characters of a text in a table; the card has the whole
PLAIN = "tex2jax_ignore mathjax_ignore"  # a dollar sign in a text opens no formula
LONG = ("question", "answer", "reference", "theme")
MOST = 5_000  # rows in a table that a browser still sorts at once
NO_SCRIPTS = (
    "This table needs scripts, which the page holds itself: in JupyterLab trust the notebook, or open the exported "
    "HTML in a browser; all rows are in tables/rows.csv."
)
CSS = """
.dt-container .dt-layout-table { overflow-x: auto; }
.dt-container { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Explore Thai", "DejaVu Sans", sans-serif; }
.dt-container table.dataTable > tbody > tr > td { max-width: 24rem; vertical-align: top; white-space: normal;
  overflow-wrap: anywhere; text-align: left !important; line-height: 1.65; }
.dt-container table.dataTable > tbody > tr > td.tk-long { min-width: 13rem; }
.dt-container table.dataTable > tbody > tr > td.tk-short { white-space: nowrap; }
.dt-container table.dataTable > tbody > tr > td.dt-type-numeric { text-align: right !important; white-space: nowrap; }
.dt-container table.dataTable > thead > tr > th { text-align: left !important; }
.dt-container .ctl { font: .72em ui-monospace, monospace; background: #fde2dc; color: #8c2a17; border-radius: 3px;
  padding: 0 .2em; }
"""
FONT = """<script>
new FontFace("Explore Thai", "url(data:font/ttf;base64,%s)", { unicodeRange: "U+0E00-0E7F, U+200C-200D, U+25CC" })
  .load().then(font => { document.fonts.add(font); window.dispatchEvent(new Event("resize")); });
</script>"""
DASH_FOR_NONE = "function (data, type) { return type === 'display' && !isFinite(data) ? '–' : data; }"
SORT_AND_SEARCH = [{"target": 0, "content": ["order"]}, {"target": 1, "content": ["search"]}]


@dataclass(frozen=True)
class Page:
    """Something that a notebook shows: HTML where it can, else `text`."""

    html: str = field(repr=False)
    text: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


def start() -> None:
    """Put the table's script and the Thai font into the notebook once: nothing is loaded from elsewhere, then or
    later."""
    import itables
    from IPython.display import display

    itables.options.display_logo_when_loading = False
    itables.init_notebook_mode(all_interactive=False, connected=False)
    font = base64.b64encode(figures.thai_font().read_bytes()).decode()
    display(Page(FONT % font, "Tables work without a network from here on."))


def load(leaf: str = "", other: str = "", **choices: Any) -> View:
    """One leaf's rows, or those of two side by side; see `explore_view.load` for the filters and what is shown."""
    return explore_view.load(leaf, other, **choices)


def rows(view: View, *, most: int = MOST) -> Page:
    """The filtered rows as a table to sort and search, with a filter for each column and what must be said above it."""
    frame = view.frame()
    lines = summary(view)
    if len(frame) > most:
        lines.append(f"Only the first {most:,} are in the table; name a task or a filter, or take tables/rows.csv.")
    told = "".join(f"<p>{report.visible(one)}</p>" for one in lines)
    return Page(f'<div class="{PLAIN}">{told}{table(frame.head(most))}</div>', "\n".join(lines))


def summary(view: View) -> list[str]:
    """What the rows are: whose, how many, who was right, and what is left out."""
    facts = view.facts()
    if view.b is None:
        first = f"{view.names[0]}: {facts['rows']:,} of {facts['of']:,} rows."
    else:
        first = (
            f"a is {view.names[0]}, b is {view.names[1]}: {facts['rows']:,} of {facts['of']:,} items that both have."
        )
        counts = ", ".join(f"{key} {count:,}" for key, count in facts["who"].items())
        first += f" Who was right, or scored higher, over all items: {counts}." if counts else ""
    return [first, *view.told]


def table(frame: pd.DataFrame) -> str:
    """A data frame as an offline itables table; cells are escaped here, so that nothing in them is markup."""
    import itables

    shown = pd.DataFrame({name: list(map(cell, frame[name])) for name in frame.columns}, columns=list(frame.columns))
    long = [place for place, name in enumerate(frame.columns) if name.startswith(LONG)]
    numbers = [place for place, name in enumerate(frame.columns) if shown[name].dtype.kind in "if"]
    short = [place for place in range(len(frame.columns)) if place not in long]
    classes = [{"targets": long, "className": "tk-long"}, {"targets": short, "className": "tk-short"}]
    classes += [{"targets": numbers, "render": itables.JavascriptFunction(DASH_FOR_NONE)}] if numbers else []
    with pd.option_context("display.max_colwidth", None):
        made = itables.to_html_datatable(
            shown, connected=False, allow_html=True, maxBytes=0, maxColumns=0, showIndex=False,
            classes="display compact", style="table-layout:auto;width:100%;margin:0", css=CSS,
            columnControl=SORT_AND_SEARCH, ordering={"indicators": False}, lengthMenu=[10, 25, 100, 500],
            columnDefs=classes, format_floats_in_python=False,
            display_logo_when_loading=False, text_in_header_can_be_selected=False,
        )  # fmt: skip
    made = re.sub(r"(?s)<tbody>.*?</tbody>", f"<tbody><tr><td>{NO_SCRIPTS}</td></tr></tbody>", made, count=1)
    return re.sub(r"(?s)<sup>.*?</sup>", "", made, count=1)  # itables' own link to its pages


def cell(value: Any) -> Any:
    """A number as it is, rounded for display; anything else as escaped text, shortened, on one line."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return round(value, 4)
    text = " ⏎ ".join(part.strip() for part in text_of(value).splitlines() if part.strip())
    text = text if len(text) <= SHOWN else f"{text[:SHOWN]} … ({len(text) - SHOWN:,} more)"
    return str(report.visible(text))


def card(view: View, item: str = "") -> Page:
    """All that is known of one item, in one leaf or both: the prompt as sent, choices or completion, tokens coloured by
    log-probability, judgements and raw replies. Without an id the first filtered item's."""
    found = view.find(item)
    if found is None:
        told = "No item is left by these filters, so there is no card."
        return Page(f"<p>{told}</p>", told)
    sides = [explore_card.side(rows, one) for rows, one in zip((view.a, view.b), found, strict=True) if rows and one]
    template = report.environment().get_template("explore_card.html.j2")
    html = template.render(
        head=found[0], sides=sides, names=view.names, css=Markup(explore_card.css()), legend=explore_card.LEGEND
    )
    return Page(html, f"Item {found[0]['id']} of {' and '.join(filter(None, view.names))}.")
