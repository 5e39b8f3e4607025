"""One set of imported results: its rows, its scores, and what run.json says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thaikit import ThaikitError
from thaikit.records import sha256_json
from thaikit.tasks.h6 import METRICS
from thaikit.tasks.harness_files import Results, sample_lines, section
from thaikit.tasks.harness_rows import row_of
from thaikit.tasks.harness_samples import Again, Manner, named, number, own_id
from thaikit.tasks.harness_sets import KitSet, Member, shown

LIKED = ("acc", "strict", "flexible", "exact_match", "acc_norm")  # of a set of another kind the first that is there
TOTALS_CLOSE = 1e-6


@dataclass
class Part:
    """One harness task of a set: its rows (none without samples), its numbers in the results file, where it stands."""

    member: Member
    results: Results
    rows: list[dict[str, Any]] = field(default_factory=list)
    totals: dict[str, float] = field(default_factory=dict)
    stderrs: dict[str, float] = field(default_factory=dict)
    n: int = 0
    lines: int = 0
    items: str = ""  # a hash of its source rows, the same for every model asked the same

    @property
    def config(self) -> dict[str, Any]:
        """The task's settings in the results file."""
        return section(section(self.results.content, "configs"), self.member.task)

    @property
    def samples(self) -> Path | None:
        """Its samples file."""
        return self.results.samples.get(self.member.task)

    @property
    def chat(self) -> bool:
        """Whether a chat template was applied."""
        return bool(self.results.content.get("chat_template"))

    @property
    def shots(self) -> int:
        """Worked examples."""
        told = section(self.results.content, "n-shot").get(self.member.task, self.config.get("num_fewshot"))
        return int(told) if isinstance(told, int | float) else 0

    @property
    def delimiter(self) -> str:
        """What stands between the prompt and a choice; a chat template leaves nothing there."""
        return "" if self.chat else str(self.config.get("target_delimiter", " "))

    @property
    def version(self) -> str:
        """The version of the harness's task file."""
        return str(section(self.results.content, "versions").get(self.member.task, "unknown"))


@dataclass
class Imported:
    """A set with its parts, its metric, rows in order, and what came of working the scores out again."""

    kit: KitSet
    parts: list[Part]
    metric: str
    rows: list[dict[str, Any]]
    again: Again
    notes: list[str]


def read_set(kit: KitSet, files: Mapping[str, Results]) -> Imported | None:
    """A set's rows and numbers; None where the harness gave it no score between 0 and 1. ThaikitError for a samples
    file that is torn, that does not count what the results say, or whose halves of TruthfulQA are of other rows."""
    again, parts = Again(), [read_part(one, kit, files[one.task]) for one in kit.members]
    for part in parts:
        if part.samples:
            read_rows(part, kit, again)
    bare = [part.member.task for part in parts if not part.samples]
    notes = [f"{kit.name}: no samples of {shown(bare)}, so only what the results file says"] if bare else []
    rows = joined(kit, parts)
    metric = metric_of(kit, parts, rows)
    if not metric:
        return None
    kept = [finished(row, kit.name, metric, place) for place, row in enumerate(rows)]
    name_rows(kept)
    found = Imported(kit, parts, metric, kept, again, notes)
    found.notes.extend(totals_notes(found))
    return found


def read_part(member: Member, kit: KitSet, results: Results) -> Part:
    """A harness task's own numbers, under the kit's names, and its count of items."""
    part = Part(member, results)
    for key, value in results.content["results"][member.task].items():
        metric, _, chosen = str(key).partition(",")
        if isinstance(value, bool) or not isinstance(value, int | float) or metric in ("sample_len", "alias", "name"):
            continue
        name = named(metric.removesuffix("_stderr"), chosen or "none", half(member, kit))
        (part.stderrs if metric.endswith("_stderr") else part.totals)[name] = float(value)
    counts = section(results.content, "n-samples").get(member.task)
    told = counts.get("effective", counts.get("original")) if isinstance(counts, Mapping) else None
    told = told if told is not None else results.content["results"][member.task].get("sample_len")
    part.n = int(told) if isinstance(told, int) and told > 0 else 0
    return part


def half(member: Member, kit: KitSet) -> str:
    """Which half of TruthfulQA a member is; "" for all else."""
    return member.part if kit.kind == "truthfulqa" else ""


def read_rows(part: Part, kit: KitSet, again: Again) -> None:
    """A samples file's rows, one a document, its filters joined; counted against the results."""
    manner = Manner(part.delimiter, part.shots, half(part.member, kit), kit.kind == "gsm8k")
    found: dict[Any, dict[str, Any]] = {}
    filters: dict[Any, list[str]] = {}
    for where, sample in sample_lines(part.samples):  # type: ignore[arg-type]
        place, chosen = sample["doc_id"], str(sample.get("filter") or "none")
        if not isinstance(place, int):
            raise ThaikitError(f"{where}: doc_id is {place!r}; a whole number is expected")
        if chosen in filters.setdefault(place, []):
            raise ThaikitError(f"{where}: doc_id {place} stands there twice (filter {chosen}); copy the file again")
        filters[place].append(chosen)
        row = row_of(sample, manner, where, again)
        row |= {"_doc": place, "_id": own_id(sample.get("doc")), "_hash": sample.get("doc_hash")}
        row["subject"] = subject_of(sample, part.member, kit)
        if place in found and "answers" in row:
            row["answers"] = {**found[place].get("answers", {}), **row["answers"]}
        found[place] = {**found.get(place, {}), **row}
        part.lines += 1
    part.rows = [found[place] for place in sorted(found)]
    if part.n and len(part.rows) != part.n:
        raise ThaikitError(
            f"{part.samples}: {len(part.rows)} items, {part.results.path.name} counts {part.n}; "
            "copy the file again, or delete it to take the results alone"
        )
    part.n = len(part.rows)
    part.items = sha256_json([row["_hash"] or row["question"] for row in part.rows])


def subject_of(sample: Mapping[str, Any], member: Member, kit: KitSet) -> str:
    """An item's subject: the member's, and in MMLU as one task the source row's."""
    doc = sample.get("doc")
    told = doc.get("subject") if kit.kind == "mmlu" and isinstance(doc, Mapping) else ""
    return member.subject or (told if isinstance(told, str) else "")


def joined(kit: KitSet, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The rows of all parts in order; the halves of TruthfulQA joined by document."""
    if kit.kind != "truthfulqa" or len(parts) < 2 or not all(part.rows for part in parts):
        return [row for part in parts for row in part.rows]
    first, second = sorted(parts, key=lambda part: part.member.part)
    other = {row["_doc"]: row for row in first.rows}
    rows = []
    for row in second.rows:
        mate = other.get(row["_doc"])
        if mate is None or mate["_hash"] != row["_hash"]:
            raise ThaikitError(
                f"{second.samples}: doc_id {row['_doc']} is another row than in {first.samples}; "  # type: ignore[str-bytes-safe]
                "both halves of TruthfulQA must be of the same data, or be mapped to names of their own with --task"
            )
        rows.append({**mate, **row, "outcome": max(mate["outcome"], row["outcome"], key=lambda told: told == "failed")})
    return rows


def metric_of(kit: KitSet, parts: Sequence[Part], rows: Sequence[Mapping[str, Any]]) -> str:
    """The headline metric: the kit's for the kind, else the first liked one, else any score there is; "" for none."""
    there = [name for part in parts for name, value in part.totals.items() if number(value) is not None]
    there = [name for name in dict.fromkeys(there) if not rows or any(row.get(name) is not None for row in rows)]
    wanted = [METRICS[kit.kind]] if kit.kind else []
    wanted += ["mc1"] if kit.kind == "truthfulqa" else []
    return next((name for name in [*wanted, *LIKED, *there] if name in there), "")


def finished(row: Mapping[str, Any], name: str, metric: str, place: int) -> dict[str, Any]:
    """A row with its task, place, metric and score; without the harness's number it has failed and has no score."""
    score = row.get(metric) if row["outcome"] != "failed" else None
    outcome = row["outcome"]
    if outcome == "ok" and "completion" in row and row["answers"].get(metric) is None and metric in row["answers"]:
        outcome = "unreadable"
    made = {**row, "task": name, "index": place, "metric": metric, "outcome": outcome, "score": score}
    if score is None and outcome != "failed":
        made |= {"outcome": "failed", "error": f"the log has no number for {metric}"}
    return made


def name_rows(rows: Sequence[dict[str, Any]]) -> None:
    """Give each row its id: the source row's own where all are different, else subject or task and number."""
    own = [row["_id"] for row in rows]
    use = all(own) and len(set(own)) == len(own)
    for row in rows:
        row["id"] = row["_id"] if use else f"{row['subject'] or row['task']}-{row['_doc']:05d}"
    if len({row["id"] for row in rows}) != len(rows):
        for row in rows:
            row["id"] = f"{row['task']}-{row['index']:05d}"
    for row in rows:
        for key in ("_id", "_doc", "_hash"):
            del row[key]


def totals_notes(found: Imported) -> list[str]:
    """A sentence for each harness task whose own total is not the mean of its samples."""
    notes = []
    for part in found.parts:
        values = [row[found.metric] for row in part.rows if row.get(found.metric) is not None]
        told = part.totals.get(found.metric)
        if values and told is not None and abs(sum(values) / len(values) - told) > TOTALS_CLOSE:
            notes.append(
                f"{part.member.task}: the results say {found.metric} {told:.6f}, the mean of its samples is "
                f"{sum(values) / len(values):.6f}; the samples count"
            )
    return notes
