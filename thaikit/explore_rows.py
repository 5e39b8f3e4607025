"""Any leaf's rows as a person looks through them: one line an item, two leaves side by side, filtered.

Reads closed leaves, and open ones while they run, without touching a byte of them.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thaikit import ThaikitError
from thaikit.params import expand
from thaikit.records import partial, root
from thaikit.rowlog import whole

SAMPLES = ("samples:outputs/thai_h6/gemma3-270m", "samples:outputs/thai_h6/smollm2-135m-instruct")
REPLIES = "replies"  # the file of raw replies: shown on cards, no rows of their own
APART = "gate"  # a judge's rows on the items' own two answers: shown where they are asked for
SENSITIVE = "royal family"
DASH = "–"  # stands for a text that is not shown
RIGHT = ("right", "wrong")
QUESTIONS = ("q1", "q2", "q3", "q4")
HEADLINE = {"acc_norm": "prediction_norm", "acc_bytes": "prediction_bytes", "acc_tokens": "prediction_tokens"}


@dataclass(frozen=True)
class Rows:
    """A leaf's rows: `run` is run.json, of an open leaf what it was begun with. `files` are the row files' names."""

    path: Path
    run: Mapping[str, Any]
    closed: bool
    lines: tuple[Mapping[str, Any], ...] = field(repr=False, default=())
    files: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The leaf's own name."""
        return self.path.name.removesuffix(".partial")

    @property
    def shipped(self) -> bool:
        """Whether all texts are the bundled samples', which may always be shown; of an open leaf that is not known."""
        places = [self.run.get("data_place"), *(one.get("place") for one in self.run.get("answers") or [])]
        told = [str(place) for place in places if place]
        return self.closed and bool(told) and all(place.startswith("samples:") for place in told)


def find(place: str) -> Path:
    """The folder of a leaf: a data place, a path, or one below the kit or its outputs/; one that is being built is
    found by its future name too. ThaikitError where there is none with rows."""
    given = expand(place, base=root())
    tried = [given, root() / "outputs" / place, Path(place).expanduser().resolve()]
    for path in [one for folder in tried for one in (folder, partial(folder))]:
        if (path / "rows").is_dir():
            return path
    there = next((path for path in tried if path.exists()), None)
    what = f"{there} has no folder rows/" if there else f"no such folder ({', '.join(dict.fromkeys(map(str, tried)))})"
    raise ThaikitError(f"leaf {place!r}: {what}; name a leaf that holds rows, such as outputs/demo/thai_h6/gemma3-270m")


def read(place: str) -> Rows:
    """A leaf's rows in item order, each with the name of its file under `file`. A half line at the end of an open
    leaf's file is left for later; of an item that was tried again the last row counts."""
    path = find(place)
    closed = (path / "run.json").is_file()
    marker = path / ("run.json" if closed else ".inputs.json")
    try:
        run = json.loads(marker.read_text(encoding="utf-8")) if marker.is_file() else {}
    except ValueError as error:
        raise ThaikitError(f"{marker}: not JSON ({error}); run the leaf's notebook again") from error
    names = sorted({one.stem for one in (path / "rows").glob("*.*") if one.suffix in (".jsonl", ".parquet")})
    listed = [name for name in (run.get("tasks") or {}) if name in names] if isinstance(run.get("tasks"), dict) else []
    files = listed + [name for name in names if name not in listed and name != REPLIES]
    lines = [{**row, "file": name} for name in files for row in read_file(path / "rows", name)]
    return Rows(path, run, closed, tuple(lines), tuple(files))


def read_file(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of one file of a leaf, from the JSONL where it is there, else from Parquet."""
    source = folder / f"{name}.jsonl"
    if not source.is_file():
        if not (folder / f"{name}.parquet").is_file():
            return []
        import pandas as pd  # takes long to load, and a suite is planned without it

        frame = pd.read_parquet(folder / f"{name}.parquet")
        return [{key: plain(value) for key, value in row.items()} for row in frame.to_dict("records")]
    data, found = source.read_bytes(), {}
    for place, text in enumerate(data[: data.rfind(b"\n") + 1].split(b"\n"), 1):
        if text.strip():
            try:
                row = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise ThaikitError(f"{source}, line {place}: not JSON ({error}); mend or delete the line") from error
            if not isinstance(row, dict):
                raise ThaikitError(f"{source}, line {place}: found {type(row).__name__}; a row is an object")
            found[str(row.get("id", f"line {place}"))] = whole(row) if b"\\u" in text else row
    return sorted(found.values(), key=lambda row: number(row.get("index"), 0.0))


def plain(value: Any) -> Any:
    """A Parquet cell as JSON would have it: lists for arrays, None for NaN."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if isinstance(value, float) and math.isnan(value) else value


def number(value: Any, missing: float = math.nan) -> float:
    """A number, true and false as 1 and 0, and `missing` for everything else."""
    return float(value) if isinstance(value, int | float) and value == value else missing


def text_of(value: Any) -> str:
    """Any value of a row as text: "" for what is not there, a list's parts with slashes between."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, list | tuple):
        return " / ".join(text_of(one) for one in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def kind(row: Mapping[str, Any]) -> str:
    """What a row is, told from its fields: choices, number, preference, four, judged, f1, answer, or other."""
    signs = {"choices": "ll", "number": "completion", "preference": "ll_chosen", "four": "q1",
             "judged": "score_tags", "f1": "wangchanx_f1", "answer": "answer"}  # fmt: skip
    return next((name for name, key in signs.items() if key in row), "other")


def item_of(row: Mapping[str, Any]) -> str:
    """The item's id; a judge's row on an item's own answer keeps which of the two it was."""
    own = row.get("source") in ("chosen", "rejected")
    return text_of(row.get("id") if own or row.get("item") in (None, "") else row["item"])


def line(row: Mapping[str, Any], rows: Rows, *, texts: bool = True, sensitive: bool = False) -> dict[str, Any]:
    """A row as a line of the table. `texts` and `sensitive` say which texts may be shown; the others are a dash."""
    what = kind(row)
    theme = text_of(row.get("theme") or row.get("subject") or row.get("title"))
    touchy = (theme == SENSITIVE or row.get("sensitive") is True) and not sensitive
    hidden = touchy or not texts
    shown = {"question": row.get("question"), "answer": answer(row, what), "reference": reference(row, what)}
    right = rightness(row, what)
    own = rows.run.get("params") or {}
    return {
        "id": item_of(row), "task": text_of(row.get("format") or row.get("task") or row.get("tasks") or row["file"]),
        "theme": theme, "source": source(row, own), "outcome": text_of(row.get("outcome", row.get("answer_outcome"))),
        "right": "" if right is None else RIGHT[not right], "score": score(row, what),
        **{key: number(row[key]) for key in QUESTIONS if key in row},
        **{key: DASH if hidden else text_of(value) for key, value in shown.items()},
        "key": text_of(row.get("question")), "verdict": verdict(row, what, right), "row": row,
        "hidden": hidden, "sensitive": touchy,
    }  # fmt: skip


def source(row: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Whose answer a row is about, with the number of worked examples where the row tells a model of its own."""
    told = text_of(row.get("model")) if "item" in row or "tasks" in row else ""
    shots = f", {text_of(row['shots'])} shots" if told and "shots" in row else ""
    return (told or text_of(row.get("source")) or text_of(given.get("model"))) + shots


def chosen(row: Mapping[str, Any]) -> int | None:
    """The place of the choice that the row's metric takes."""
    place = row.get(HEADLINE.get(text_of(row.get("metric")), "prediction"))
    return int(place) if isinstance(place, int | float) and place == place else None


def choice_texts(row: Mapping[str, Any]) -> list[str]:
    """The choices as a person reads them: after the letter where letters are what is scored."""
    texts, shown = list(row.get("choices") or []), list(row.get("shown") or [])
    return [f"{text_of(one)}. {text_of(shown[n])}" if n < len(shown) else text_of(one) for n, one in enumerate(texts)]


def true_choices(row: Mapping[str, Any]) -> list[int]:
    """The places of the right choices."""
    labels = list(row.get("labels") or [])
    if labels:
        return [place for place, label in enumerate(labels) if label == 1]
    return [int(row["gold"])] if isinstance(row.get("gold"), int | float) and row["gold"] == row["gold"] else []


def answer(row: Mapping[str, Any], what: str) -> Any:
    """What was answered: the chosen choice, the completion, the answer's text, which of two was likelier."""
    if what == "choices":
        texts, place = choice_texts(row), chosen(row)
        return texts[place] if place is not None and 0 <= place < len(texts) else ""
    if what == "preference":
        gap = number(row.get("margin_sum"))
        return "" if math.isnan(gap) else "chosen" if gap > 0 else "rejected" if gap < 0 else "both alike"
    return row.get("completion") if what == "number" else row.get("answer")


def reference(row: Mapping[str, Any], what: str) -> Any:
    """What would have been right, where the row says it."""
    if what == "choices":
        texts = choice_texts(row)
        return [texts[place] for place in true_choices(row) if place < len(texts)]
    return row.get("reference", row.get("references", row.get("chosen")))


def score(row: Mapping[str, Any], what: str) -> float:
    """The row's score: 0 to 1, of ThaiCLI's judge 0 to 10, of the four questions the first."""
    return number(row.get("q1") if what == "four" else row.get("score"))


def rightness(row: Mapping[str, Any], what: str) -> bool | None:
    """Whether the answer is right; None without a score, and where a judge gives degrees. F1 counts an exact match."""
    value = score(row, what)
    if what == "f1":
        value = number(row.get("wangchanx_em"))
    elif text_of(row.get("metric")) == "mc2" and not math.isnan(value):
        value = number(row.get("acc"))
    if what in ("judged", "answer", "other") or math.isnan(value):
        return None
    return None if what == "preference" and value == 0.5 else value == 1.0


def verdict(row: Mapping[str, Any], what: str, right: bool | None) -> Any:
    """What two leaves can differ in about an item: four verdicts, right or wrong, a score; an answer's text where
    nothing is scored. None where there is none, which is no disagreement."""
    if what == "four":
        four = tuple(number(row.get(key)) for key in QUESTIONS)
        return None if any(map(math.isnan, four)) else four
    if what == "answer":
        return text_of(row.get("answer")) if row.get("outcome") == "ok" else None
    value = score(row, what)
    if what in ("judged", "f1", "preference"):
        return None if math.isnan(value) else value
    return right


def near(name: str, known: Sequence[str]) -> list[str]:
    """Up to three known names that look like a misspelt one."""
    return difflib.get_close_matches(name, list(dict.fromkeys(known)), n=3, cutoff=0.5)
