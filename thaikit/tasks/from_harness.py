"""A results folder of lm-evaluation-harness → closed leaves that the report and the analyses read like the kit's own.

The profile is `harness-import` and the labels are not known, so imported numbers share a table with nothing but imports
of the same tasks, versions and shots. What the kit would have asked can differ; what was scored is told.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thaikit import ThaikitError, __version__, records, stats
from thaikit.records import Run
from thaikit.tasks import harness_facts, harness_sets, harness_tasks
from thaikit.tasks.harness_facts import PROFILE, UNKNOWN
from thaikit.tasks.harness_files import Found, find, section
from thaikit.tasks.harness_sets import safe
from thaikit.tasks.harness_tasks import Imported

THAI = re.compile("[\u0e01-\u0e5b]")
H6 = tuple(harness_sets.NAMES)
SERVED = ("openai-", "anthropic", "textsynth", "gguf-server")  # the harness's model types behind a closed door


@dataclass(frozen=True)
class Leaf:
    """An imported leaf: its folder, its headline, whether it was there already, and what a reader must know."""

    path: Path
    headline: Mapping[str, Any]
    already: bool
    notes: tuple[str, ...]

    def percent(self, name: str) -> str:
        """A score of the headline in percent with its interval."""
        told = [self.headline[name][key] for key in ("value", "low", "high")]
        value, low, high = ("–" if one is None else f"{100 * one:.2f}" for one in told)
        return f"{value} ({low} to {high})"


def import_results(
    folder: Path | str,
    suite: str,
    *,
    tasks: Mapping[str, str] | None = None,
    model: str = "",
    outputs: Path | None = None,
) -> list[Leaf]:
    """Write one closed leaf outputs/<suite>/thai_h6/<model>/ for each model of a results folder; returns the leaves.

    `tasks` maps harness tasks or groups to names (one of the six: {"arc_th": "arc"}, or one's own), before the default
    map of `harness_sets.NAMES`; `model` names the leaf where the folder holds one model. `suite` is a name below
    `outputs` (default: outputs/ of the kit), or a path. ThaikitError in one sentence, before anything is written, for a
    folder without results, torn files, samples that do not count what the results say, and unknown tasks. A leaf that
    is there with the same content is left as it is; with other content it is refused.
    """
    found = find(folder)
    if model and len(found) > 1:
        told = ", ".join(one.model for one in found)
        raise ThaikitError(f"{folder}: {len(found)} models in it ({told}); a leaf's name can be given to one only")
    given = {str(name): str(to) for name, to in (tasks or {}).items()}
    refuse_unknown(found, given)
    names = [safe(model)] if model else leaf_names(found)
    base = suite_of(suite, outputs) / "thai_h6"
    read = [(base / name, one, *read_model(one, given)) for name, one in zip(names, found, strict=True)]
    there = {path: already(path, one, sets, given) for path, one, sets, _ in read}
    return [there[path] or write(path, one, sets, notes, given) for path, one, sets, notes in read]


def suite_of(suite: str, outputs: Path | None) -> Path:
    """A suite's folder, which need not exist."""
    given = Path(suite).expanduser()
    if not suite.strip() or given.name in ("", ".", ".."):
        raise ThaikitError(f"suite is {suite!r}; a name is needed, which becomes a folder of outputs/")
    return (
        given.resolve()
        if given.is_absolute() or len(given.parts) > 1
        else (outputs or records.root() / "outputs") / suite
    )


def refuse_unknown(found: Sequence[Found], given: Mapping[str, str]) -> None:
    """ThaikitError for a task of the map that no model has; of several models one may lack it."""
    empty = [name for name, to in given.items() if not to.strip()]
    if empty:
        raise ThaikitError(f"task {empty[0]!r}: mapped to nothing; write NAME=arc, or NAME=NAME to keep its own name")
    for name in given:
        if not any(name in one.tasks or name in harness_sets.members_of_groups(one) for one in found):
            harness_sets.kit_sets(found[0], {name: given[name]})


def leaf_names(found: Sequence[Found]) -> list[str]:
    """Each model's leaf: the last part of its name, or the whole where that is another model's too."""
    short = [safe(re.split(r"[/\\]", one.model.rstrip("/\\"))[-1]) for one in found]
    return [one if short.count(one) == 1 else safe(it.model) for one, it in zip(short, found, strict=True)]


def read_model(found: Found, given: Mapping[str, str]) -> tuple[list[Imported], list[str]]:
    """A model's sets, in the order of the six, and sentences on them."""
    there = harness_sets.members_of_groups(found)
    mine = {name: to for name, to in given.items() if name in found.tasks or name in there}
    kits, notes = harness_sets.kit_sets(found, mine)
    notes = [*found.notes, *notes]
    twice = [one.name for one in kits if sum(other.name == one.name for other in kits) > 1]
    if twice:
        raise ThaikitError(f"{found.model}: two sets would be named {twice[0]}; rename one with --task NAME=other")
    sets = []
    for kit in kits:
        one = harness_tasks.read_set(kit, found.tasks)
        if one is None:
            notes.append(f"{kit.name}: left out, it has no metric with scores from 0 to 1")
        else:
            sets.append(one)
            notes += [*one.notes, *differences(one)]
    if not sets:
        raise ThaikitError(f"{found.model}: no task has a metric with scores from 0 to 1; nothing can be imported")
    return sets, notes


def differences(one: Imported) -> list[str]:
    """Sentences on what was worked out again and came out otherwise, and on items without a score."""
    told = one.again.told()
    notes = [
        f"{one.kit.name}: {name} worked out from the logged responses differs from the harness's own number in {count} "
        f"of {told['compared'][name]} items; the harness's counts"
        for name, count in told["differ"].items()
    ]
    failed = sum(row["outcome"] == "failed" for row in one.rows)
    return notes + ([f"{one.kit.name}: {failed} of {len(one.rows)} items have no score in the log"] if failed else [])


def inputs_of(found: Found) -> dict[str, str]:
    """The files behind a leaf, by content."""
    paths = {path for one in found.files for path in (one.path, *one.samples.values())}
    return {f"{path.parent.name}/{path.name}": records.sha256_file(path) for path in sorted(paths)}


def params_of(folder: Path, found: Found, sets: Sequence[Imported], given: Mapping[str, str]) -> dict[str, Any]:
    """What decides a leaf beside its files, in the place where a notebook's parameters stand."""
    return {"model": folder.name, "tasks": versions_in(found), "limit": limit_of(sets), "map": dict(given)}


def versions_in(found: Found) -> str:
    """Who wrote the results files."""
    return ", ".join(dict.fromkeys(one.version for one in found.files))


def already(folder: Path, found: Found, sets: Sequence[Imported], given: Mapping[str, str]) -> Leaf | None:
    """The leaf that is there with the same content; ThaikitError for one of other content, or one under way."""
    if not folder.exists() and not records.partial(folder).exists():
        return None
    if not (folder / "run.json").exists():
        raise ThaikitError(f"{folder}: a run of this name is under way there; name another suite or another model name")
    run = Run.open(
        "thai_h6", params=params_of(folder, found, sets, given), inputs=inputs_of(found), out_dir=str(folder)
    )
    return Leaf(folder, run.record["headline"]["thai_h6"], True, tuple(run.record.get("notes", ())))


def write(folder: Path, found: Found, sets: Sequence[Imported], notes: Sequence[str], given: Mapping[str, str]) -> Leaf:
    """Build a leaf beside its place and move it there when it is closed."""
    building, versions = folder.with_name(f".{folder.name}.import"), versions_in(found)
    shutil.rmtree(building, ignore_errors=True)
    chosen = params_of(folder, found, sets, given)
    run = Run.open("thai_h6", params=chosen, inputs=inputs_of(found), out_dir=str(building))
    for one in sets:
        if one.rows:
            run.log(one.kit.name).extend(one.rows)
    headline = headline_of(sets)
    thai, why = thai_sets(sets)
    told = [*notes, *([] if thai else [why])]
    run.finish(
        headline={"thai_h6": headline}, accept_failed=True, source=versions, notes=told, ranked=thai,
        model=model_facts(found, folder.name, versions), profile=PROFILE, labels=UNKNOWN,
        tasks={one.kit.name: harness_facts.facts(one) for one in sets}, data_place=place_of(sets),
        versions={"thaikit": __version__, **versions_of(found)}, machine=machine_of(found),
        seeds={key: section(found.files[-1].content, "config").get(key) for key in ("fewshot_seed", "random_seed")},
    )  # fmt: skip
    building.rename(folder)
    return Leaf(folder, records.finite(headline), False, tuple(told))


def headline_of(sets: Sequence[Imported]) -> dict[str, Any]:
    """Every set's estimate; the mean of the six where all six are there."""
    each = {name: one for found in sets for name, one in harness_facts.estimates(found).items()}
    micro = {name: one for name, one in each.items() if name.endswith("_micro")}
    plain = {name: one for name, one in each.items() if name not in micro}
    if set(H6) <= set(plain):
        plain["average"] = stats.average_interval([plain[name] for name in H6])
    return {name: one.as_dict() for name, one in {**plain, **micro}.items()}


def limit_of(sets: Sequence[Imported]) -> int:
    """Items a task where only part was asked (the largest task's), else 0."""
    limits = []
    for one in sets:
        for part in one.parts:
            counts = section(part.results.content, "n-samples").get(part.member.task)
            whole = counts.get("original") if isinstance(counts, Mapping) else None
            if section(part.results.content, "config").get("limit") or (isinstance(whole, int) and 0 < part.n < whole):
                limits.append(part.n)
    return max(limits, default=0)


def thai_sets(sets: Sequence[Imported]) -> tuple[bool, str]:
    """Whether all that is called one of the six is in Thai, as far as rows or names show; else a sentence."""
    foreign = []
    for one in (found for found in sets if found.kit.name in H6):
        thai = sum(bool(THAI.search(row["question"])) for row in one.rows)
        if not (2 * thai > len(one.rows) if one.rows else one.kit.marked_thai):
            foreign.append(one.kit.name)
    told = f"{', '.join(foreign)}: nothing shows that the items are in Thai"
    return not foreign, f"{told}; the leaf is shown and enters no statistic over models"


def place_of(sets: Sequence[Imported]) -> str:
    """The data as a table of comparable leaves names it: a hash of tasks, versions and items (without samples,
    of what the task's settings say of the data), and the worked examples of each task."""
    keys = ("dataset_path", "dataset_name", "dataset_kwargs", "test_split", "validation_split")
    pinned = [
        (one.kit.name, one.metric, part.member.task, part.version, part.shots, part.chat, part.n,
         part.items or [str(part.config.get(key, "")) for key in keys])
        for one in sets for part in one.parts
    ]  # fmt: skip
    told = "/".join(str(one.parts[0].shots) for one in sets)
    return f"as logged [{records.sha256_json(pinned)[:8]}], shots {told}"


def model_facts(found: Found, name: str, versions: str) -> dict[str, Any]:
    """What the newest results file says of the model."""
    content = found.files[-1].content
    config = section(content, "config")
    kind = str(content.get("model_source") or config.get("model") or "")
    counted, facts = config.get("model_num_parameters"), {"name": name, "source": found.model}
    facts |= {
        "kind": "openai" if kind.startswith(SERVED) else "local",
        "class": kind,
        "note": f"imported from {versions}",
    }
    if isinstance(counted, int | float) and counted > 0:
        facts["parameters"] = int(counted)
    named = {"dtype": "model_dtype", "revision": "model_sha", "device": "device"}
    facts |= {key: str(config[other]) for key, other in named.items() if config.get(other)}
    told = {"max_length": content.get("max_length"), "chat_template_sha256": content.get("chat_template_sha")}
    return facts | {key: value for key, value in told.items() if value}


def versions_of(found: Found) -> dict[str, str]:
    """Versions that the newest results file names."""
    content = found.files[-1].content
    names = {"lm_eval": "lm_eval_version", "transformers": "transformers_version"}
    return {name: str(content[key]) for name, key in names.items() if content.get(key)}


def machine_of(found: Found) -> dict[str, Any]:
    """What the newest results file says of where it ran."""
    content = found.files[-1].content
    config = section(content, "config")
    return {"device": config.get("device"), "batch_size": config.get("batch_size"), "evaluated": found.files[-1].date,
            "seconds": content.get("total_evaluation_time_seconds")}  # fmt: skip
