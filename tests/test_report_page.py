"""The whole page: links that arrive, LaTeX that says what the tables say, attacks, widths, print, and many models."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import fake_leaves
import pandas as pd
import pytest

from thaikit import report, report_columns, report_latex, report_limits, report_links, report_rows, table_text
from thaikit.records import Run, leaves
from thaikit.report import BROWSERS

BROWSER = next((found for found in map(shutil.which, BROWSERS) if found), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH")
ATTACKS = [
    "<script>alert(1)</script>", "</td></tr></table>", "</details></section>", "</pre></article>", "ก" * 10_000,
    "x" * 10_000, "\u202eกลับ\u2066abc", "บรรทัด\n" * 500, "{{ 7*7 }} {% raw %}", r"\end{tabular} \\ & $x_1$ #1 %~^",
    "ศูนย์\x00ท้าย", "https://example.org/a?b=<i>", '" onmouseover="alert(1)', "<img src=x onerror=alert(1)>",
    "[invalid] *", "<!-- ", "]]>", "&lt;b&gt; &amp;",
]  # fmt: skip
VOID = {"meta", "img", "br"}


class Balanced(HTMLParser):
    """Every tag that opens is closed in its order; tags, attributes and rows as they are."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing: {self.open[-5:]}, {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment in the page: {data[:60]!r}")


def read(page: Path) -> Balanced:
    reader = Balanced()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.close()
    assert not reader.open
    return reader


def attacked(row: dict[str, Any], number: int) -> dict[str, Any]:
    """A row with attacks in its id, subject and every text."""
    text = ATTACKS[number % len(ATTACKS)]
    found = row | {"id": f"{text}#{number}", "subject": text if row["subject"] else "", "question": text}
    if "completion" in row:
        return found | {"completion": text, "reference": text, "answers": dict.fromkeys(row["answers"], text)}
    key = "shown" if "shown" in row else "choices"
    return found | {key: [text, *row[key][1:]]}


def judgement(number: int) -> dict[str, Any]:
    """A judged answer full of attacks, a lone surrogate among them (JSONL can hold one)."""
    text, theme = [*ATTACKS, "ครึ่ง\ud800คู่"][number % (len(ATTACKS) + 1)], "religion" if number % 2 else "royal family"
    return {"id": str(number), "item": f"{text}{number}", "item_sha256": str(number), "theme": theme, "tries": 1,
            "format": "factoid" if number % 4 < 2 else "instruction", "answer_outcome": "ok", "answer": text,
            "question": text, "chosen": text, "rejected": text, "answer_tags": 0, "score_tags": 1, "asked": True,
            "reply": text, "explanation": text, "outcome": "ok", "score": number % 10 + 1}  # fmt: skip


def write_judged(suite: Path, model: str, *, count: int = 40) -> None:
    """A closed leaf of ThaiCLI judgements."""
    run = Run.open("thaicli_judge", params={"model": model, "judge": "j"}, out_dir=str(suite / "thaicli_judge" / model))
    rows = [judgement(number) for number in range(count)]
    path = run.out_dir / "rows" / "judgements.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    whole = {"value": 5.5, "low": 5.0, "high": 6.0, "n": count, "method": "t"}
    cells = [whole | {"format": name, "theme": theme, "outcomes": {"ok": 10}}
             for name in ("factoid", "instruction") for theme in ("royal family", "religion")]  # fmt: skip
    told = dict.fromkeys(("average", "average_ok", "factoid", "instruction"), whole)
    told |= {"coverage": 1.0, "asked": count, "ok": count, "lowest": 5.0, "highest": 6.0}
    run.finish(headline={"thaicli": told}, cells=cells, data_place="samples:thaicli", told=[ATTACKS[0]],
               judge={"name": ATTACKS[1], "model": ATTACKS[5], "rule": "paper", "variant": "", "tries": 5,
                      "prompt_source": ATTACKS[11]})  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page over leaves in which every text is an attack."""
    suite = tmp_path_factory.mktemp("hostile")
    for place, model in enumerate(("a$x_1$<b>", "b" * 90)):
        leaf = fake_leaves.write_leaf(suite, model, seed=place)
        for path in (leaf / "rows").glob("*.parquet"):
            rows = pd.read_parquet(path).to_dict("records")
            pd.DataFrame([attacked(row, number) for number, row in enumerate(rows)]).to_parquet(path)
        record = json.loads((leaf / "run.json").read_text(encoding="utf-8"))
        record["model"] |= {"note": "".join(ATTACKS), "source": "\x00\u202e", "licence": ATTACKS[5]}
        (leaf / "run.json").write_text(json.dumps(record), encoding="utf-8")
        write_judged(suite, model)
    return report.build(suite, out_path=suite / "report" / "report.html", title=ATTACKS[0], show_sensitive=True)


# ------------------------------------------------------------------------------------------- attacks


def test_no_attack_breaks_the_page(hostile: Path) -> None:
    reader, page = read(hostile), hostile.read_text(encoding="utf-8")
    assert not {tag for tag, _ in reader.tags} & {"script", "iframe", "object", "embed", "link", "base", "form", "svg"}
    for tag, attrs in reader.tags:
        assert not [name for name in attrs if name.startswith("on")]
        assert attrs.get("href", "#").startswith("#") and attrs.get("src", "data:").startswith("data:"), (tag, attrs)
    assert not re.search(r"http(?!-equiv)", page) and "{{ 7*7 }}" in page and "alert(1)" in reader.text
    assert not re.search(r"[\x00\u202e\u2066]", page) and "U+0000" in reader.text and "ครึ่ง" in reader.text
    rows = page.split('<section id="rows">')[1]
    assert rows.count("<tr>") == 2 * (6 * 20 + 6) + 2 * (40 + 4)  # every row and every head, none more
    assert len(page.encode()) < 5_000_000


def test_every_link_arrives(hostile: Path) -> None:
    reader = read(hostile)
    places = [attrs["id"] for _, attrs in reader.tags if attrs.get("id")]
    assert len(places) == len(set(places)) and all(re.fullmatch(r"[a-z0-9-]+", place) for place in places if place)
    links = [attrs["href"] for tag, attrs in reader.tags if tag == "a" and attrs.get("href")]
    assert {link[1:] for link in links if link} <= set(places)
    leaf = leaves(hostile.parent.parent, stage="thai_h6")[0]
    for key in ("arc", "mmlu", "mmlu_micro", "average"):
        assert report_links.link(leaf, key) in links, key
    judged = leaves(hostile.parent.parent, stage="thaicli_judge")[0]
    for key in ("", "factoid", "factoid/religion", "instruction/royal family"):
        assert f"#{report_links.anchor(judged, key)}" in links, key
    assert report_links.link(leaf, "xcopa") == ""


@needs_browser
@pytest.mark.chromium
@pytest.mark.parametrize("width", [1200, 400])
def test_nothing_hangs_over_the_edge(hostile: Path, tmp_path: Path, width: int) -> None:
    """Measured in a copy in which all is opened; the page itself holds no script and forbids them."""
    page = hostile.read_text(encoding="utf-8")
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page).replace("<details>", "<details open>")
    measure = (
        "<style>.rows > .body { display: block !important; }</style><script>addEventListener('load', () => "
        "parent.postMessage([innerWidth, document.scrollingElement.scrollWidth].join(' '), '*'))</script></body>"
    )
    (tmp_path / "copy.html").write_text(page.replace("</body>", measure), encoding="utf-8")
    frame = tmp_path / "frame.html"  # a browser's window has a smallest width, a frame has none
    frame.write_text(
        "<script>onmessage = told => document.title = told.data</script>"
        f'<iframe src="copy.html" style="width:{width}px;height:900px;border:0"></iframe>',
        encoding="utf-8",
    )
    words = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
             "--window-size=1300,1000", "--virtual-time-budget=5000", "--dump-dom", frame.as_uri()]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    found = re.search(r"<title>(\d+) (\d+)</title>", done.stdout)
    assert found, done.stderr[-500:]
    inner, wide = int(found[1]), int(found[2])
    assert inner == width and wide <= width, (inner, wide)


# ------------------------------------------------------------------------------------------- rows


def heads(block: report_rows.Block) -> list[str]:
    return [column.name for column in block.columns]


def test_rows_say_what_was_answered_and_at_most_200_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_leaves.write_leaf(tmp_path, "m", tasks=("arc", "gsm8k"), items=20)
    (leaf,) = leaves(tmp_path)
    choice, written = report_rows.trimmed([report_rows.thai_h6(leaf)], 7)[0].blocks
    assert heads(choice) == ["Id", "Outcome", "Score, %", "Chosen", "Right", "Log-probabilities",
                                                  "Question"]  # fmt: skip
    assert (len(choice.lines), choice.total, choice.file) == (7, 20, "rows/arc.parquet")
    row = leaf.rows("arc").iloc[0]
    told = dict(zip(heads(choice), choice.lines[0], strict=True))
    best = row["choices"][row["prediction_norm"]]
    assert told["Id"] == row["id"] and told["Chosen"] == report_columns.brief(best)
    assert told["Right"] == report_columns.brief(row["choices"][row["gold"]])
    assert told["Log-probabilities"].split() == [f"{x:.2f}".replace("-", "−") for x in row["ll"]]
    read = [answers["strict"] for answers in leaf.rows("gsm8k")["answers"][:7]]
    assert [line[3] for line in written.lines] == ["[invalid]" if one is None else one for one in read]
    monkeypatch.setattr(report_rows, "IN_PAGE", 12)
    page = report.build(tmp_path, out_path=tmp_path / "r.html").read_text(encoding="utf-8")
    assert "The first 6 of 20 rows; the other 14 are in rows/arc.parquet" in page and "so 6 in a table" in page


def test_where_texts_are_hidden_scores_are_not(tmp_path: Path) -> None:
    fake_leaves.write_leaf(tmp_path, "m", tasks=("arc", "gsm8k"), data_place="/data/release")
    (leaf,) = leaves(tmp_path)
    for block in report_rows.thai_h6(leaf).blocks:
        assert heads(block)[:3] == ["Id", "Outcome", "Score, %"] and len(block.lines) == 20
        assert not {"Question", "Chosen", "Right", "Answer", "Completion"} & set(heads(block))
        assert "Texts are not shown" in block.note
    path = leaf.path / "rows" / "arc.parquet"
    frame = leaf.rows("arc")
    frame.assign(sensitive=[True, *[False] * (len(frame) - 1)]).to_parquet(path)
    first = report_rows.thai_h6(leaf, gallery=True).blocks[0].lines
    assert first[0][3] == "not shown" != first[1][3] and first[0][2] in ("0", "100")
    write_judged(tmp_path, "j")
    (judged,) = leaves(tmp_path, stage="thaicli_judge")
    royal, other = report_rows.thaicli(judged).parts[0].blocks
    assert len(royal.columns) == 3 and len(other.columns) == 7
    assert len(report_rows.thaicli(judged, sensitive=True).parts[0].blocks[0].columns) == 7


# ------------------------------------------------------------------------------------------- LaTeX


def test_latex_holds_the_tables_numbers_and_no_special_sign() -> None:
    table = ('<table><thead><tr><th>Model</th><th>ARC<span class="thai">วิทย์</span></th><th class="text">Note</th></tr>'
             "</thead><tbody><tr><th>[a_1] &amp; 50% $x$ #1 {y} ~ ^ \\end{tabular}</th><td><a href='#r'>"
             '<span class="value">−1.50</span></a><span class="small">1.0 to 2.0<br>n 60</span></td>'
             '<td class="text">ที่ <span class="ctl">U+202E</span></td></tr></tbody></table>')  # fmt: skip
    head, body = report_latex.latex(table).split("\\toprule\n")[1].split("\\bottomrule")[0].split("\\midrule\n")
    assert head == "Model & ARC (วิทย์) & Note \\\\\n"
    assert body == (
        r"{}[a\_1] \& 50\% \$x\$ \#1 \{y\} \textasciitilde{} \textasciicircum{} \textbackslash{}end\{tabular\} & "
        "$-$1.50 (1.0 to 2.0; n 60) & ที่ U+202E \\\\\n"
    )
    assert report_latex.latex(table).startswith("\\begin{tabular}{lrl}\n")
    frame = pd.DataFrame({"name": ["*", "[1]"], "x": [1.25, None]})
    assert table_text.latex(frame).count("\n{}") == 2


def test_every_table_has_its_latex_and_none_breaks_it(hostile: Path) -> None:
    page = hostile.read_text(encoding="utf-8")
    tables = re.findall(r'<div class="scroll"[^>]*>\s*<table([^>]*)>', page)
    blocks = re.findall(r'<details class="latex">.*?<pre>(.*?)</pre>', page, re.DOTALL)
    assert len(blocks) == sum(not re.search("rowtable|files", one) for one in tables) > 8
    for block in blocks:
        source = html.unescape(re.sub(r"</?span[^>]*>", "", block))
        assert source.count(r"\begin{tabular}") == source.count(r"\end{tabular}") == 1
        lines = source.split("\\toprule\n")[1].split("\\bottomrule")[0].replace("\\midrule\n", "").splitlines()
        columns = len(re.search(r"\\begin\{tabular\}\{([lr]+)\}", source)[1])
        for line in lines:
            assert line.endswith(r" \\") and not re.match(r"[\[*]", line)
            bare = re.sub(r"\\(text[a-z]+\{\}|multicolumn\{\d+\}\{l\}|[&%$#_{}\\])|\$-\$", "", line[:-3])
            wide = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line))
            assert bare.count("&") + wide == columns - 1, line
            assert not re.search(r"[%$#_~^\\]", bare), line
    score = leaves(hostile.parent.parent, stage="thai_h6")[0].run["headline"]["thai_h6"]["average"]["value"]
    assert f"{100 * score:.2f} (" in blocks[0]


# ------------------------------------------------------------------------------------------- many models


def test_forty_models_are_still_a_page(tmp_path: Path) -> None:
    for place in range(40):
        fake_leaves.write_leaf(tmp_path, f"model-{place:02d}", seed=place, tasks=("arc", "winogrande"), items=12,
                               skill=place / 5)  # fmt: skip
    given = {"suite": str(tmp_path)}
    run = Run.open("report", params=given, out_dir=str(tmp_path / "report"))
    report.write(run, tmp_path)
    page = (run.out_dir / "report.html").read_text(encoding="utf-8")
    frame = pd.read_csv(run.out_dir / "tables" / "comparisons.csv")
    assert len(frame) == 780 * 2 and frame["p_holm"].notna().all() and len(page.encode()) < 3_000_000
    best = report_limits.ranked(leaves(tmp_path, stage="thai_h6"))[0].name
    assert f"60 of 1,560 comparisons: {best}, which has the highest average, with each of the next 30" in page
    compared = page.split("Models compared on the items they share")[2].split("</table>")[0]
    assert compared.count("<tr>") == 61 and compared.count(f">{best}<br>") + compared.count(f"− {best}<") == 60
    assert "Drawn are the 8 models" in page and "Items of the 8 models" in page
    assert page.count("Model, machine, parameters and inputs") == 40
    assert page.count('class="rows"') == 80


def test_the_few_lines_are_those_of_the_best() -> None:
    lines = [{"a": f"m{i}", "b": f"m{j}", "task": t} for i in range(20) for j in range(i) for t in "xyz"]
    kept, told = report_limits.few(lines, [f"m{i}" for i in (7, 3, *range(8, 20))])
    assert len(kept) == 39 and all("m7" in (line["a"], line["b"]) for line in kept) and "39 of 570" in told
    assert report_limits.few(lines[:60], ["m1"]) == (lines[:60], "")


# ------------------------------------------------------------------------------------------- head and print


def test_the_title_and_contents_say_what_is_there(tmp_path: Path) -> None:
    fake_leaves.write_leaf(tmp_path, "m", tasks=("arc",), items=6)
    assert "<title>Thai-H6 report</title>" in report.build(tmp_path, out_path=tmp_path / "r.html").read_text("utf-8")
    write_judged(tmp_path, "j")
    page = report.build(tmp_path, out_path=tmp_path / "r.html").read_text("utf-8")
    assert "<h1>Thai-H6 and ThaiCLI report</h1>" in page and re.search(
        r"from 2 leaves, closed on \d{4}-\d\d-\d\d<", page
    )
    contents = page.split('<nav aria-label="Contents">')[1].split("</nav>")[0]
    for name in ("Scores", "ThaiCLI", "Provenance", "Items", "Rows"):
        assert re.search(rf'<a href="#[a-z0-9-]+">{name}', contents), name


@needs_browser
@pytest.mark.chromium
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext on the PATH")
def test_print_loses_nothing(tmp_path: Path) -> None:
    fake_leaves.write_leaf(tmp_path, "m", tasks=("arc",), items=9)
    path, told = report.write_pdf(report.build(tmp_path, out_path=tmp_path / "r.html"))
    assert path is not None, told
    done = subprocess.run(["pdftotext", str(path), "-"], capture_output=True, text=True, check=True)
    told = re.sub(r"[\s-]", "", done.stdout)  # a hyphen at the end of a line is taken away
    for row in leaves(tmp_path)[0].rows("arc")["id"]:
        assert row.replace("-", "") in told  # the folded rows are printed
    assert "SHA256" in told and r"\toprule" not in told  # folded facts are, LaTeX is not
