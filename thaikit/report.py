"""A suite's leaves → one HTML file that opens by double click: no script, no network, Thai font inside."""

from __future__ import annotations

import base64
import io
import re
import shutil
import subprocess
import tempfile
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from thaikit import (
    ThaikitError,
    figures,
    figures_thai,
    records,
    report_board,
    report_items,
    report_lengths,
    report_limits,
    report_mosaic,
    report_mrc,
    report_page,
    report_parts,
    report_rows,
    report_summary,
    report_thai,
    report_thaicli,
)
from thaikit.leaves import LIMIT_HIT_ALLOWED
from thaikit.records import Leaf, Run, leaves, write_atomic
from thaikit.report_board import Board

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
STAGES = ("thai_h6", "thaicli_judge", "thaicli_preference", "judge_bench", "mrc_f1", "mrc_judge")
BENCHMARKS = {"Thai-H6": ("thai_h6",), "ThaiCLI": ("thaicli_judge",), "MRC": ("mrc_f1", "mrc_judge")}
KEYS = ("profile", "labels", "delimiter", "tasks_file", "data")
SCHEME = re.compile(r"(?i)(h)(?=ttp)")


def suite_folder(suite: str) -> Path:
    """The folder whose leaves are reported: "" the recorded outputs that come with the kit, a path, or the name of a
    suite under outputs/. ThaikitError where there is none."""
    if not suite:
        return Path(__file__).resolve().parent / "samples" / "outputs"
    return records.suite_folder(suite)


def found_leaves(suite_dir: Path | str) -> list[Leaf]:
    """The closed Thai-H6 leaves of a suite folder; ThaikitError where there is nothing to report at all."""
    found = leaves(suite_dir, stage="thai_h6")
    if not found and not report_thaicli.found_leaves(suite_dir) and not report_mrc.found_leaves(suite_dir):
        told = "no closed leaf of thai_h6, thaicli_judge, mrc_f1 or mrc_judge in it; run 10, 21, 31 or 32 first"
        raise ThaikitError(f"{suite_dir}: {told}")
    return found


def build(
    suite_dir: Path | str, *, out_path: Path | str, title: str = "", gallery: bool = False, show_sensitive: bool = False
) -> Path:
    """Write the report of a suite's closed leaves to `out_path`, whole or not at all; returns the path.

    Item texts are shown for the shipped samples; for other data only with `gallery`. Rows marked `sensitive` only with
    `show_sensitive`. Every text is escaped, and characters that cannot be seen are written out. ThaikitError where the
    folder has no closed leaf or the Thai font is missing.
    """
    return render(content(suite_dir, title=title, gallery=gallery, show_sensitive=show_sensitive), out_path)


def content(suite_dir: Path | str, *, title: str, gallery: bool, show_sensitive: bool,
            boards: Sequence[Board] | None = None) -> dict[str, Any]:  # fmt: skip
    """All that the page's template is filled with; `boards` where they are made already."""
    suite = Path(suite_dir).resolve()
    found = found_leaves(suite)
    figures.use_style()
    shown = [leaf for leaf in found if report_items.may_show(leaf, gallery=gallery)]
    first = report_limits.leading(shown)
    every = read_leaves(suite)
    rows = report_rows.parts(every, gallery=gallery, sensitive=show_sensitive)
    most = report_rows.share(rows)
    boards = report_board.boards(suite) if boards is None else boards
    thai = thai_tokens([*found, *report_thaicli.found_leaves(suite)])
    return {
        "title": title or default_title(every),
        "font": Markup(base64.b64encode(figures.thai_font().read_bytes()).decode()),
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "dates": dates(every),
        "notices": notices(found),
        "loud": [*loud(found), *report_limits.lost(suite), *report_thaicli.drift_notices(suite)],
        "sections": [section(group) for group in report_parts.groups(found)],
        "board": report_board.section(boards), "summary": report_summary.summary(boards, every, thai=thai),
        "mrc": report_mrc.sections(suite, gallery=gallery, sensitive=show_sensitive),
        "thaicli": thaicli(suite, gallery=gallery, sensitive=show_sensitive),
        "thai_tokens": thai,
        "provenance": [report_items.provenance(leaf, suite) for leaf in every],
        "gallery": [{"model": leaf.name, "tasks": report_items.gallery(leaf, sensitive=show_sensitive)}
                    for leaf in first],
        "left_out": report_limits.left_out(first, shown),
        "hidden": [leaf.name for leaf in found if leaf not in shown],
        "rows": report_rows.trimmed(rows, most),
        "told_at_once": report_limits.NOTICES, "many": report_limits.LEAVES,
        "row_limits": {"each": report_rows.EACH, "in_page": report_rows.IN_PAGE, "most": most},
        "limit_allowed": report_parts.percent(LIMIT_HIT_ALLOWED, 0), "seed": report_parts.SEED,
    }  # fmt: skip


def render(filled: Mapping[str, Any], out_path: Path | str) -> Path:
    """The page, written whole or not at all."""
    page = environment().get_template("report.html.j2").render(**filled)
    write_atomic(Path(out_path), report_page.finished(page, show=visible))
    return Path(out_path)


def read_leaves(suite: Path | str) -> list[Leaf]:
    """Every closed leaf that the page reads, those of Thai-H6 first."""
    return [leaf for stage in STAGES for leaf in leaves(suite, stage=stage)]


def default_title(read: Sequence[Leaf]) -> str:
    """What the page holds: `Thai-H6 and ThaiCLI report`."""
    stages = {leaf.run.get("stage") for leaf in read}
    names = [name for name, its in BENCHMARKS.items() if stages & set(its)]
    return (
        f"{', '.join(names[:-1])} and {names[-1]} report" if len(names) > 1 else f"{''.join(names) or 'thaikit'} report"
    )


def dates(read: Sequence[Leaf]) -> str:
    """The days between which the leaves were closed."""
    days = sorted(str(leaf.run["finished"])[:10] for leaf in read if leaf.run.get("finished"))
    if not days:
        return ""
    return f", closed on {days[0]}" if days[0] == days[-1] else f", closed between {days[0]} and {days[-1]}"


def all_scores(groups: Sequence[report_parts.Group]) -> pd.DataFrame:
    """The scores of all groups below each other, in percent and full precision."""
    frames = [report_parts.score_frame(group) for group in groups]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def write(
    run: Run,
    suite_dir: Path | str,
    *,
    title: str = "",
    gallery: bool = False,
    show_sensitive: bool = False,
    pdf: bool = False,
    boards: Sequence[Board] | None = None,
) -> dict[str, str]:
    """Write report.html into an open leaf, and a PDF where it is asked for and can be made; what was written, for
    run.json. A closed leaf is left as it is. `boards`: `report_board.boards` where they are made already."""
    if run.closed:
        return run.record["headline"]
    filled = content(suite_dir, title=title, gallery=gallery, show_sensitive=show_sensitive, boards=boards)
    parts = {"comparisons": filled["sections"], "comparisons_thaicli": filled["thaicli"]}
    for name, lines in (parts | {"comparisons_mrc": report_mrc.comparisons(filled["mrc"])}).items():
        table = [part["says"] | line["numbers"] for part in lines for line in part["all"]]
        if table:
            run.table(pd.DataFrame(table), name)
    page = render(filled, run.out_dir / "report.html")
    return {"report": page.name, "pdf": write_pdf(page)[1] if pdf else "not asked for"}


def section(group: report_parts.Group) -> dict[str, Any]:
    """All that is shown of one group of comparable leaves."""
    ranked, best = report_limits.ranked(group.leaves), report_limits.best(group)
    table = report_parts.score_frame(best)
    lines = report_parts.comparisons(group)
    kept, compared = report_limits.few(lines, [leaf.name for leaf in ranked])
    return {
        "says": dict(zip(KEYS, report_parts.group_key(group.leaves[0]), strict=True)),
        "profile": group.profile, "labels": group.labels, "delimiter": group.delimiter, "data": group.data,
        "tasks_file": group.tasks_file, "scores": report_parts.score_table(group),
        "figure": png_uri(figures.thai_h6_bars(table)) if table["value"].notna().any() else "",
        "drawn": report_limits.drawn(best.leaves, group.leaves),
        "comparisons": kept, "compared": compared, "all": lines, "metrics": report_parts.metric_tables(group),
        "generated": report_parts.generated_table(group), "counts": report_parts.count_table(group),
        "lengths": report_lengths.tables(group),
        "mosaics": [(name, png_uri(figure)) for name, figure in report_mosaic.thai_h6(best)],
    }  # fmt: skip


def thaicli(suite: Path, *, gallery: bool, sensitive: bool) -> list[dict[str, Any]]:
    """The ThaiCLI parts, their figures as data addresses."""
    parts = report_thaicli.sections(suite, gallery=gallery, sensitive=sensitive)
    drawn = ("figures", "mosaics")
    return [part | {key: [(name, png_uri(figure)) for name, figure in part[key]] for key in drawn} for part in parts]


def thai_tokens(found: Sequence[Leaf]) -> dict[str, Any] | None:
    """The part about tokenizers with its figure, None where no run counted one."""
    part = report_thai.section(found)
    return part and part | {"figure": png_uri(figures_thai.tax_dots(part["drawn"])) if part["drawn"] else ""}


def png_uri(figure: Figure) -> Markup:
    """A figure as a data address, at twice the size on the page."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=192, metadata={"Software": None})
    return Markup("data:image/png;base64," + base64.b64encode(stream.getvalue()).decode())


def notices(found: Sequence[Leaf]) -> list[str]:
    """What a reader must know before the first number."""
    told = []
    rehearsing = [leaf.name for leaf in found if report_parts.rehearses(leaf)]
    if rehearsing:
        told.append(f"These models rehearse the machinery; their numbers rank nothing: {', '.join(rehearsing)}.")
    return [*told, *imports(found), *part_asked(found), *report_items.mismatches(found)]


def imports(found: Sequence[Leaf]) -> list[str]:
    """Which leaves were brought from another harness, and what was noted on the way."""
    brought = [leaf for leaf in found if leaf.run.get("profile") == "harness-import"]
    told = [
        f"{leaf.name} was imported from {leaf.run.get('source')}: asked there, with prompts and labels that this kit "
        "does not know, so it shares a table with imports of the same tasks alone."
        for leaf in brought
    ]
    return told + [f"{leaf.name}: {note}." for leaf in brought for note in leaf.run.get("notes") or []]


def part_asked(found: Sequence[Leaf]) -> list[str]:
    """A sentence where a limit left items out."""
    few = [f"{leaf.name} ({leaf.run['params']['limit']} items a task)" for leaf in found if report_parts.limited(leaf)]
    return [f"A limit was set, so only part of the items was asked: {', '.join(few)}."] if few else []


def loud(found: Sequence[Leaf]) -> list[str]:
    """One sentence for each leaf whose generations hit the token limit too often."""
    return [
        f"{leaf.name}, {figures.task_names(task)[0]}: {report_parts.percent(facts['limit_hit'])} % of the completions "
        f"hit the limit of {facts.get('max_new_tokens', '?')} new tokens, so answers are cut; raise max_new_tokens."
        for leaf in found
        for task, facts in leaf.run.get("tasks", {}).items()
        if report_parts.number(facts.get("limit_hit")) > LIMIT_HIT_ALLOWED
    ]


def environment() -> jinja2.Environment:
    """Jinja2 with autoescape on, undefined names an error, and `visible` over everything that is written."""
    folder = Path(__file__).resolve().parent / "templates"
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, undefined=jinja2.StrictUndefined, finalize=visible,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def visible(value: Any) -> Any:
    """A text as safe HTML in which nothing hides: control, direction and zero-width characters are written as U+XXXX.

    A span around the h of "http" changes nothing that is seen or copied, and keeps programs from making links.
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return Markup(SCHEME.sub(r"<span>\1</span>", seen(value)))


def seen(text: str) -> str:
    """A text escaped, what cannot be seen in it written out."""
    if text.replace("\n", "").isprintable():  # most texts: printable is none of UNSEEN, and quickly told
        return str(escape(text))
    return "".join(
        f'<span class="ctl">U+{ord(char):04X}</span>'
        if unicodedata.category(char) in UNSEEN and char not in "\n\t"
        else str(escape(char))
        for char in text
    )


def write_pdf(html: Path) -> tuple[Path | None, str]:
    """Print the report to a PDF beside it with a Chromium from the PATH: (path, or None without one; a sentence)."""
    browser = next((found for found in map(shutil.which, BROWSERS) if found), None)
    if browser is None:
        return None, f"No Chromium on the PATH, so no PDF was made; open {html.name} in a browser and print it."
    target = html.resolve().with_suffix(".pdf")
    target.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer",
                 "--disable-background-networking", f"--user-data-dir={profile}", f"--print-to-pdf={target}",
                 html.resolve().as_uri()]  # fmt: skip
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=180)
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, f"{Path(browser).name} made no PDF ({type(error).__name__}); print {html.name} by hand."
    if not target.exists():
        return None, f"{Path(browser).name} made no PDF (exit status {done.returncode}); print {html.name} by hand."
    return target, f"PDF: {target.name}"
