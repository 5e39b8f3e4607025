"""A task file → tasks: rows read, checked, counted and hashed; exemplars set apart; who is shown which exemplars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from thaikit import ThaikitError, fewshot, text
from thaikit.params import TaskSet, TaskSpec, expand, nearest
from thaikit.records import root, sha256_json
from thaikit.tasks import custom, h6
from thaikit.tasks.items import Item
from thaikit.tasks.labels import PROFILES, Profile
from thaikit.tasks.load import Row, Table, read_source, subset

MMLU_SUBJECTS = 57
ACCURACIES = ("acc", "acc_norm", "acc_bytes", "acc_tokens")


@dataclass(frozen=True)
class Task:
    """A benchmark ready to be asked: items in scoring order, and for each the indices of its exemplars in its pool."""

    name: str
    spec: TaskSpec
    profile: Profile
    language: str
    items: tuple[Item, ...]
    pools: Mapping[str, tuple[Item, ...]]
    draws: tuple[tuple[int, ...], ...]
    files: tuple[Mapping[str, Any], ...]
    removed: int
    unscorable: int
    audit: Mapping[str, int]

    @property
    def metric(self) -> str:
        """The headline metric's name; GSM8K's is the profile's rule."""
        ruled = self.profile.numeric if self.spec.kind == "gsm8k" else ""
        return self.spec.metric or ruled or h6.METRICS[self.spec.kind]

    def in_turns(self, model: Any) -> bool:
        """Whether items are asked as a conversation: the leaderboard's frozen commit (`v1`) knew none."""
        return bool(model.chat) and self.profile.name != "v1"

    @property
    def generates(self) -> bool:
        """Whether items are answered by generation instead of being scored by log-probability."""
        return self.spec.kind in ("gsm8k", "numeric")

    def shots(self, index: int) -> tuple[Item, ...]:
        """The worked examples before an item."""
        pool = self.pools.get(self.items[index].subject) or self.pools.get("", ())
        return tuple(pool[place] for place in self.draws[index])

    def exemplar_sha256(self) -> str:
        """Hash of the exemplars' texts, in order."""
        return sha256_json({k: [(i.example_query, i.answer) for i in pool] for k, pool in self.pools.items()})


def build_all(tasks: TaskSet, *, data: str = "", only: Sequence[str] = (), limit: int = 0) -> list[Task]:
    """The tasks of a task file. `data` overrides its folder; `only` names some of them; `limit` items each (0: all)."""
    unknown = [name for name in only if name not in tasks.tasks]
    if unknown:
        raise ThaikitError(f"task file {tasks.name}: no task {unknown[0]!r}; it has {', '.join(tasks.tasks)}")
    if limit < 0:
        raise ThaikitError(f"limit is {limit}; a number of items is needed (0: all)")
    base = expand(data or tasks.data, base=root())
    if not base.is_dir() and any(spec.source.files for spec in tasks.tasks.values()):
        raise ThaikitError(f"data {str(base)!r}: no such folder; name the folder that holds the rows")
    chosen = [name for name in tasks.tasks if not only or name in only]
    return [build(name, tasks, base, limit=limit) for name in chosen]


def build(name: str, tasks: TaskSet, base: Path, *, limit: int = 0) -> Task:
    """One task: read, split into scored rows and exemplars, checked."""
    spec, profile = tasks.tasks[name], PROFILES[tasks.profile]
    own: Mapping[str, Any] = h6.FIELDS.get(spec.kind, {})
    refuse_unknown(name, spec, own)
    reader = h6.Reader(spec, {**own, **spec.fields}, profile, tasks.labels)
    exemplar_reader = replace(reader, fields={**reader.fields, **spec.exemplar_fields})
    table = read_source(spec.source, base)
    scored_rows, exemplar_rows, hashes = split(spec, table, base, reader)
    pool = list(items(spec, exemplar_reader, exemplar_rows, exemplars=True))
    known = {fingerprint(item) for _, item in pool}
    pairs = list(items(spec, reader, scored_rows))
    kept = [(row, item) for row, item in pairs if fingerprint(item) not in known]
    counts = count_files(table, exemplar_rows, kept, hashes, spec)
    refuse_size_mismatch(name, spec, tasks, counts, kept)
    refuse_twice(kept)
    pools = group_pools(pool)
    sampler = "first_n" if spec.kind == "mmlu" else (tasks.sampler or profile.sampler)
    ordered, draws = draw(name, spec, [item for _, item in kept], pools, sampler)
    taken = spread([item.subject for item in ordered], limit)
    return Task(
        name, spec, profile, tasks.labels, tuple(ordered[i] for i in taken), pools, tuple(draws[i] for i in taken),
        tuple(counts), len(pairs) - len(kept), len(scored_rows) - len(pairs), audit([item for _, item in kept]),
    )  # fmt: skip


def refuse_unknown(name: str, spec: TaskSpec, own: Mapping[str, Any]) -> None:
    """Stop at a misspelt field of a map, or a metric that the kind does not have."""
    allowed = [*own, "id", "subject", *(["ctx"] if spec.kind == "hellaswag" else [])] if own else [*spec.fields]
    for key in ("fields", "exemplar_fields", "values"):
        if own or key == "values":
            for field in getattr(spec, key):
                if field not in allowed:
                    hint = nearest(field, allowed)
                    raise ThaikitError(f"task {name}: {key} names {field!r}{hint}; allowed are {', '.join(allowed)}")
    named = ("strict", "flexible", "em_thai", "v1") if spec.kind in ("gsm8k", "numeric") else ACCURACIES
    if spec.kind == "truthfulqa":
        named = ("mc2", "acc") if spec.fields.get("mc1_choices") == "" else ("mc1", "mc2", "acc")
    if spec.metric and spec.metric not in named:
        raise ThaikitError(f"task {name}: metric is {spec.metric!r}; a {spec.kind} set has {', '.join(named)}")


def split(spec: TaskSpec, table: Table, base: Path, reader: h6.Reader) -> tuple[list[Row], list[Row], dict[str, str]]:
    """Scored rows, exemplar rows, and the hashes of all files. Exemplars taken from the scored table leave it."""

    def subject(row: Row) -> str:  # fmt: skip
        return h6.subject_of(reader, row)

    rows = [row for row in subset(table.rows, spec.source, subject_of=subject) if wanted(spec, subject(row))]
    if spec.exemplars is None:
        return rows, [], table.hashes
    if spec.exemplars.files or spec.exemplars.hub:
        other = read_source(spec.exemplars, base)
        found = [row for row in subset(other.rows, spec.exemplars, subject_of=subject) if wanted(spec, subject(row))]
        return rows, found, {**table.hashes, **other.hashes}
    found = subset(rows, spec.exemplars, subject_of=subject)
    taken = {id(row) for row in found}
    return [row for row in rows if id(row) not in taken], found, table.hashes


def wanted(spec: TaskSpec, subject: str) -> bool:
    """Whether the task file asks for this subject."""
    return not spec.subjects or subject in spec.subjects


def items(
    spec: TaskSpec, reader: h6.Reader, rows: Sequence[Row], *, exemplars: bool = False
) -> Iterator[tuple[Row, Item]]:
    """Rows with their items; rows that a builder marks as skipped are left out."""
    makers = {"multiple_choice": custom.multiple_choice, "numeric": custom.numeric, **h6.BUILDERS}
    make = custom.exemplar if exemplars and spec.exemplar else makers[spec.kind]
    for row in rows:
        parts = make(reader, row)
        if not parts.get("skip"):
            yield row, h6.item_from(parts, item_id(reader, row))


def item_id(reader: h6.Reader, row: Row) -> str:
    """The row's own id where it has one, else its subject or file and its number."""
    if "id" in reader.fields:
        return str(reader.get(row, "id"))
    own = row.data.get("id", row.data.get("qID"))
    if own not in (None, ""):
        return str(own)
    return f"{row.subject or h6.subject_of(reader, row) or Path(row.file).stem}-{row.number:05d}"


def fingerprint(item: Item) -> tuple[Any, ...]:
    """What makes two rows the same question."""
    return item.question, item.shown or item.choices, item.reference


def count_files(
    table: Table,
    exemplars: Sequence[Row],
    kept: Sequence[tuple[Row, Item]],
    hashes: Mapping[str, str],
    spec: TaskSpec,
) -> list[dict[str, Any]]:
    """Per file: hash, rows, exemplars, rows scored, and where `expected_rows` names the file (or it is alone) the
    difference."""
    rows, scored = Counter(row.file for row in table.rows), Counter(row.file for row, _ in kept)
    shots = Counter(row.file for row in exemplars)
    expected = spec.expected_rows if isinstance(spec.expected_rows, dict) else {}
    if isinstance(spec.expected_rows, int) and spec.expected_rows and len(rows) == 1:
        expected = {next(iter(rows)): spec.expected_rows}
    report = []
    for file, digest in hashes.items():
        line: dict[str, Any] = {"file": file, "sha256": digest, "rows": rows.get(file, shots[file])}
        line |= {"exemplars": shots[file], "scored": scored[file]}
        if file in expected:
            line |= {"expected": expected[file], "difference": scored[file] - expected[file]}
        report.append(line)
    return report


def refuse_size_mismatch(
    name: str, spec: TaskSpec, tasks: TaskSet, counts: Sequence[Mapping[str, Any]], kept: Sequence[tuple[Row, Item]]
) -> None:
    """Stop where counts differ from `expected_rows`, unless `allow_size_mismatch`; the sentence lists every file."""
    if not spec.expected_rows or tasks.allow_size_mismatch:
        return
    if isinstance(spec.expected_rows, dict):
        absent = [file for file in spec.expected_rows if file not in {line["file"] for line in counts}]
        wrong = [line for line in counts if line.get("difference")]
        told = [f"{line['file']}: {line['scored']} scored, {line['expected']} expected" for line in wrong]
        told += [f"{file}: no such file" for file in absent]
    else:
        told = [f"{len(kept)} scored, {spec.expected_rows} expected"] if len(kept) != spec.expected_rows else []
        main = [line for line in counts if told and not line["exemplars"]]
        told += [f"{line['file']}: {line['scored']} scored of {line['rows']}" for line in main]
    subjects = {item.subject for _, item in kept}
    if spec.kind == "mmlu" and len(subjects) != MMLU_SUBJECTS and not spec.subjects:
        told.insert(0, f"{len(subjects)} subjects, {MMLU_SUBJECTS} expected")
    if told:
        raise ThaikitError(
            f"task {name}: the row counts differ from expected_rows ({'; '.join(told)}); "
            "check the files, or set allow_size_mismatch to true, which is recorded"
        )


def refuse_twice(kept: Sequence[tuple[Row, Item]]) -> None:
    """Stop where an id stands twice."""
    seen: dict[str, Row] = {}
    for row, item in kept:
        if item.id in seen:
            first = seen[item.id]
            told = f"id {item.id!r} is also in {first.file}, row {first.number}; ids are unique"
            raise ThaikitError(f"{row.where()}: {told}")
        seen[item.id] = row
    if not kept:
        raise ThaikitError("no row is left to score once exemplars are taken out; give more rows or fewer exemplars")


def group_pools(pool: Sequence[tuple[Row, Item]]) -> dict[str, tuple[Item, ...]]:
    """Exemplars by subject, in file order."""
    groups: dict[str, list[Item]] = {}
    for _, item in pool:
        groups.setdefault(item.subject, []).append(item)
    return {subject: tuple(found) for subject, found in groups.items()}


def draw(
    name: str, spec: TaskSpec, found: Sequence[Item], pools: Mapping[str, tuple[Item, ...]], sampler: str
) -> tuple[list[Item], list[tuple[int, ...]]]:
    """Items in the profile's order and each one's exemplar indices: the first k, or a harness's random stream."""
    for subject in {item.subject for item in found}:
        size = len(pools.get(subject) or pools.get("", ()))
        if size < spec.shots:
            where = f"subject {subject!r} has" if subject else "there are"
            raise ThaikitError(
                f"task {name}: {where} {size} exemplars, {spec.shots} shots are asked; "
                "give more exemplars, lower shots, or name in `subjects` those to run"
            )
    size = len(pools.get("", ()))
    if set(pools) - {""}:  # the harness's streams know one pool; exemplars by subject are taken in order
        sampler = "first_n"
    if sampler == "random-42":
        stream = list(fewshot.old_stream(len(found), size, spec.shots))
        return [found[doc] for doc, _ in stream], [tuple(shots) for _, shots in stream]
    if sampler == "random-1234" and spec.shots:
        return list(found), [tuple(shots) for shots in fewshot.new_stream(len(found), size, spec.shots)]
    return list(found), [tuple(range(spec.shots))] * len(found)


def spread(subjects: Sequence[str], limit: int) -> list[int]:
    """Indices of the first `limit` items, one subject after the other in turn (0: all), in item order."""
    if not limit or limit >= len(subjects):
        return list(range(len(subjects)))
    turn: Counter[str] = Counter()
    ranks = []
    for index, subject in enumerate(subjects):
        ranks.append((turn[subject], index))
        turn[subject] += 1
    return sorted(index for _, index in sorted(ranks)[:limit])


def audit(found: Sequence[Item]) -> dict[str, int]:
    """How often each odd thing of `text.audit` occurs in questions and choices (counted, never mended)."""
    total: Counter[str] = Counter()
    for item in found:
        for part in (item.question, *(item.shown or item.choices)):
            total.update(text.audit(part))
    return {key: count for key, count in total.items() if count}
