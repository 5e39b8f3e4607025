"""From a number in the report to its rows in the same page: names of places, and what lies at them."""

from __future__ import annotations

import hashlib
import re

from thaikit.records import Leaf

MICRO, AVERAGE = "_micro", "average"


def anchor(leaf: Leaf, key: str = "") -> str:
    """The id of the place where a leaf's rows of a task (or `format/theme`, or a file of rows) stand; "" is all of it.

    Letters, digits and hyphens only, whatever the names hold; other leaves and keys never share one.
    """
    known = "\0".join([*leaf.path.parts[-2:], str(leaf.run.get("input_hash", "")), key])
    digest = hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    words = re.sub(r"[^a-z0-9]+", "-", f"{leaf.name} {key}".lower()).strip("-")
    return f"rows-{words[:48].strip('-')}-{digest}"


def link(leaf: Leaf, key: str = "") -> str:
    """The address in the page of the rows behind a number: `#rows-…`; "" where the leaf has no such rows.

    `key` is a column of the Thai-H6 table (a micro mean leads to its task, the average to all tasks), or the name of a
    file in the leaf's rows/, with a slash and a model behind it where the file holds several.
    """
    task = key.removesuffix(MICRO)
    if task in ("", AVERAGE):
        return f"#{anchor(leaf)}" if leaf.tasks() else ""
    return f"#{anchor(leaf, task)}" if task.split("/")[0] in leaf.tasks() else ""
