"""Names of lm-evaluation-harness's tasks → sets of the kit: which are the six tasks, which keep their own names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from thaikit import ThaikitError
from thaikit.params import nearest
from thaikit.tasks.harness_files import Found, section
from thaikit.tasks.labels import SUBJECTS_TH

BEFORE, AFTER = r"(?:m_|th_|thai_)?", r"(?:[_-](?:th|tha|thai|tha_Thai))?"
# The documented default map: a name that matches whole is that task, with or without a mark of Thai. `mmlu_<subject>`
# is a subject of MMLU. MGSM, Belebele, XCOPA, ThaiExam and all others keep their own names.
NAMES = {
    "arc": rf"{BEFORE}arc(?:_challenge)?(?:_mt)?{AFTER}",
    "hellaswag": rf"{BEFORE}hellaswag{AFTER}",
    "mmlu": rf"(?:{BEFORE}mmlu{AFTER}|hendrycksTest)(?:[_-](?P<subject>{'|'.join(SUBJECTS_TH)}){AFTER})?",
    "truthfulqa": rf"{BEFORE}truthfulqa{AFTER}_mc(?P<part>[12])?{AFTER}",
    "winogrande": rf"{BEFORE}winogrande(?:_xl)?{AFTER}",
    "gsm8k": rf"{BEFORE}gsm8k{AFTER}",
}
MARKED = re.compile(r"(?:^|_|-)(?:th|tha|thai)(?:$|_|-)", re.IGNORECASE)
SAFE = re.compile(r"[^\w.+=-]+")


@dataclass(frozen=True)
class Member:
    """One harness task in a set: its subject where the set has several, or its half of TruthfulQA ("1", "2", "")."""

    task: str
    subject: str = ""
    part: str = ""


@dataclass(frozen=True)
class KitSet:
    """A task of the imported leaf: its name, the kind of the six that it is ("" for another), its harness tasks."""

    name: str
    kind: str
    members: tuple[Member, ...]

    @property
    def marked_thai(self) -> bool:
        """Whether the names of all its harness tasks say that they are Thai."""
        return all(MARKED.search(one.task) for one in self.members)


def safe(name: str) -> str:
    """A name as a file or folder may be called: letters, digits and _ . + = -, no dot in front."""
    return SAFE.sub("_", name).strip("._") or "unnamed"


def default(task: str) -> tuple[str, Member] | None:
    """The kit's task and the member that a harness task is by its name; None for one that keeps its own name."""
    for kind, pattern in NAMES.items():
        match = re.fullmatch(pattern, task, re.IGNORECASE)
        if match:
            found = {"subject": "", "part": "", **match.groupdict()}
            return kind, Member(task, found["subject"] or "", found["part"] or "")
    return None


def kit_sets(found: Found, given: Mapping[str, str]) -> tuple[list[KitSet], list[str]]:
    """The sets of a model's results and sentences on them. `given` maps a harness task or group to a name of the
    kit or of one's own, before any default. ThaikitError for a name that is not there, or two that claim one place."""
    groups = members_of_groups(found)
    unknown = [name for name in given if name not in found.tasks and name not in groups]
    if unknown:
        known = [*found.tasks, *groups]
        hint = nearest(unknown[0], known)
        raise ThaikitError(f"task {unknown[0]!r}{hint}: not in the results of {found.model}; it has {shown(known)}")
    chosen = {task: to for name, to in given.items() for task in groups.get(name, [name])}
    parts: dict[tuple[str, str], list[Member]] = {}
    for task in found.tasks:
        kind_member = default(task)
        if task in chosen:
            member = kind_member[1] if kind_member and kind_member[0] == chosen[task] else Member(task)
            parts.setdefault((chosen[task], ""), []).append(member)
        elif kind_member:
            variant = "th" if MARKED.search(task) else "en"
            parts.setdefault((kind_member[0], variant), []).append(kind_member[1])
    told = [one for names in parts.values() for one in names]
    rest = [task for task in found.tasks if task not in {one.task for one in told}]
    sets, notes = settle(parts)
    return sets + own_sets(rest, groups), notes + own_notes(rest)


def settle(parts: Mapping[tuple[str, str], list[Member]]) -> tuple[list[KitSet], list[str]]:
    """The mapped sets: where a task is there in Thai and without a mark, the Thai one has the kit's name."""
    sets, notes = [], []
    for (kind, variant), members in parts.items():
        name = kind
        if variant == "en" and ((kind, "th") in parts or (kind, "") in parts):
            name = f"{kind}_en"
            notes.append(f"{shown(one.task for one in members)}: kept as {name}, because {kind} has other results")
        elif variant == "th" and (kind, "") in parts:
            name = f"{kind}_th"
        if variant:
            refuse_two(kind, members)
        elif len(members) > 1 and kind not in ("mmlu", "truthfulqa"):
            members = [Member(one.task, one.task) for one in members]
        if kind == "mmlu" and len(members) > 1:
            members = [one if one.subject else Member(one.task, one.task) for one in members]
        sets.append(KitSet(safe(name), kind if kind in NAMES else "", tuple(members)))
    return sorted(sets, key=lambda one: list(NAMES).index(one.kind) if one.kind else len(NAMES)), notes


def refuse_two(kind: str, members: list[Member]) -> None:
    """ThaikitError where two harness tasks are the same one of the kit by default."""
    seen: dict[tuple[str, str], str] = {}
    for one in members:
        first = seen.setdefault((one.subject, one.part), one.task)
        if first != one.task:
            raise ThaikitError(
                f"{first} and {one.task} are both {kind} by their names; say what they are, "
                f"for example --task {first}={kind} --task {one.task}={one.task}"
            )


def own_sets(rest: list[str], groups: Mapping[str, list[str]]) -> list[KitSet]:
    """Sets of another kind: a group with a result of its own is one set with a subject a task, others stand alone."""
    found, taken = [], set()
    for group, tasks in sorted(groups.items(), key=lambda one: -len(one[1])):  # the outermost group first
        mine = [task for task in tasks if task in rest and task not in taken]
        if len(mine) == len(tasks) > 1:
            found.append(KitSet(own_name(group), "", tuple(Member(task, task) for task in mine)))
            taken |= set(mine)
    alone = [KitSet(own_name(task), "", (Member(task),)) for task in rest if task not in taken]
    return [*found, *alone]


def own_name(task: str) -> str:
    """A set's own name; `average` is taken by the mean of the tasks."""
    return "average_task" if safe(task) == "average" else safe(task)


def own_notes(rest: list[str]) -> list[str]:
    """One sentence on the tasks that keep their names."""
    if not rest:
        return []
    return [f"{shown(rest)}: none of the six tasks by name, so a set of another kind; --task NAME=arc maps it"]


def members_of_groups(found: Found) -> dict[str, list[str]]:
    """Each group that has a result of its own → its tasks, through groups of groups."""
    made: dict[str, list[str]] = {}
    for one in found.files:
        nested = section(one.content, "group_subtasks")
        for group in nested:
            numbers = one.content["results"].get(group, {})
            leaves = below(group, nested, set())
            if leaves and any(isinstance(value, float) for value in numbers.values()):
                made[group] = [task for task in leaves if task in found.tasks]
    return made


def below(group: str, nested: Mapping[str, object], seen: set[str]) -> list[str]:
    """The tasks below a group, each once; a group that holds itself ends there."""
    if group in seen:
        return []
    seen.add(group)
    inner = nested.get(group)
    names = [str(name) for name in inner] if isinstance(inner, list) else []
    if not names:
        return []
    return list(dict.fromkeys(task for name in names for task in (below(name, nested, seen) or [name])))


def shown(names: Iterable[str]) -> str:
    """The first names of a list, and how many more there are."""
    listed = list(names)
    return ", ".join(listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")
