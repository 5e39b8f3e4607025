"""The command line: python -m thaikit run | plan | leaf | status | close | fetch | export | import."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from thaikit import ThaikitError


def parser() -> argparse.ArgumentParser:
    """All commands with their arguments."""
    top = argparse.ArgumentParser(prog="python -m thaikit", description="Evaluate language models in Thai.")
    commands = top.add_subparsers(dest="command", required=True)
    suite_help = "a name in params/suites, or the path of a suite file"
    run = commands.add_parser("run", help="run all leaves of a suite that are not closed")
    run.add_argument("suite", help=suite_help)
    run.add_argument("-j", "--jobs", type=int, default=1, help="leaves of a stage at once (default 1)")
    run.add_argument("--only", default="*", metavar="GLOB", help="only leaves whose name matches, e.g. 'thai_h6/*'")
    shell = commands.add_parser("plan", help="print one shell line a leaf, in stage order")
    shell.add_argument("suite", help=suite_help)
    leaf = commands.add_parser("leaf", help="run one leaf of a suite")
    leaf.add_argument("suite", help=suite_help)
    leaf.add_argument("name", help="the leaf's name, e.g. thai_h6/gemma3-270m")
    status = commands.add_parser("status", help="show which leaves are closed, partial, stale or missing")
    status.add_argument("suite", nargs="?", default="", help="a suite, or an output folder (default: all outputs)")
    for command in (run, shell, leaf, status):
        command.add_argument(
            "--outputs", type=Path, default=None, help="where leaves go (default: outputs/ of the kit)"
        )
    close = commands.add_parser("close", help="have an open leaf closed with what is there by its next run")
    close.add_argument("leaf", type=Path, help="the folder of the leaf, with or without .partial")
    fetch = commands.add_parser("fetch", help="fetch and convert the embedded models")
    fetch.add_argument("names", nargs="*", help="their names (default: all)")
    export = commands.add_parser("export", help="write a leaf's rows in lm-evaluation-harness's sample format")
    export.add_argument("leaf", type=Path, help="the folder of a closed leaf")
    export.add_argument("-o", "--folder", type=Path, default=None, help="where to (default: a folder in the leaf)")
    bring = commands.add_parser("import", help="read a results folder of lm-evaluation-harness as leaves of a suite")
    bring.add_argument("folder", type=Path, help="the folder given to lm_eval as --output_path")
    bring.add_argument("--suite", required=True, help="the suite whose leaves they become")
    bring.add_argument("--task", nargs="+", action="extend", default=[], metavar="NAME=TASK", help="what a task is")
    bring.add_argument("--model", default="", help="the leaf's name, where the folder holds one model")
    bring.add_argument("--outputs", type=Path, default=None, help="where suites are (default: outputs/ of the kit)")
    return top


def do_run(given: argparse.Namespace) -> int:
    """Run a suite; 1 if a leaf failed."""
    from thaikit.plan import plan, read_suite

    leaves = plan(read_suite(given.suite), outputs=given.outputs)
    chosen = [leaf for leaf in leaves if fnmatch(leaf.name, given.only)]
    if not chosen:
        raise ThaikitError(
            f"--only {given.only!r} matches no leaf; there are {', '.join(leaf.name for leaf in leaves)}"
        )
    return run_all(chosen, given.jobs)


def run_all(leaves: Sequence[Any], jobs: int) -> int:
    """Run leaves, say how many went how; 1 if one failed."""
    from thaikit.run import run

    ended = run(leaves, jobs=jobs)
    states = [done.state for done in ended]
    print(", ".join(f"{states.count(state)} {state}" for state in ("closed", "done", "failed") if state in states))
    for page in (leaf.folder / "report.html" for leaf in leaves if leaf.stage == "report"):
        print(f"Report: {page}" if page.exists() else f"No report yet: {page}")
    return 0 if all(state in ("closed", "done") for state in states) else 1


def do_plan(given: argparse.Namespace) -> int:
    """One shell line a leaf."""
    from thaikit.plan import plan, read_suite

    more = ["--outputs", str(Path(given.outputs).resolve())] if given.outputs else []
    suite = str(Path(given.suite).resolve()) if Path(given.suite).is_file() else given.suite
    for leaf in plan(read_suite(given.suite), outputs=given.outputs):
        print(shlex.join([sys.executable, "-m", "thaikit", "leaf", suite, leaf.name, *more]))
    return 0


def do_leaf(given: argparse.Namespace) -> int:
    """Run one leaf."""
    from thaikit.params import nearest
    from thaikit.plan import plan, read_suite

    leaves = {leaf.name: leaf for leaf in plan(read_suite(given.suite), outputs=given.outputs)}
    if given.name not in leaves:
        hint = nearest(given.name, list(leaves))
        raise ThaikitError(f"suite {given.suite}: no leaf {given.name!r}{hint}; it has {', '.join(leaves)}")
    return run_all([leaves[given.name]], 1)


def do_status(given: argparse.Namespace) -> int:
    """Show the leaves of a suite, of a folder, or of all outputs."""
    from thaikit.plan import plan, read_suite
    from thaikit.records import root, status

    outputs = given.outputs or root() / "outputs"
    if given.suite and Path(given.suite).is_dir():
        show(status(given.suite))
    elif given.suite:
        show([leaf.state() for leaf in plan(read_suite(given.suite), outputs=given.outputs)])
    else:
        for folder in sorted(path for path in outputs.glob("*/") if not path.name.startswith(".")):
            print(f"{folder.name}:")
            show(status(folder))
    return 0


def show(states: Sequence[Any]) -> None:
    """One line a leaf: state, name, rows, when it was closed."""
    width = max((len(one.name) for one in states), default=0)
    for one in states:
        print(f"{one.state:<8} {one.name:<{width}} {one.rows:>7} rows  {one.record.get('finished', '')}".rstrip())
    if not states:
        print("nothing yet")


def do_close(given: argparse.Namespace) -> int:
    """Mark an open leaf to be closed with what is there."""
    from thaikit.leaves import CLOSE, give_up

    folder = give_up(given.leaf)
    print(
        f"{folder}: run it again now; nobody is asked any more, and items without a reply are closed as failed, with "
        f"lower coverage (delete {folder / CLOSE} to take this back)"
    )
    return 0


def do_fetch(given: argparse.Namespace) -> int:
    """Fetch the embedded models; 1 if one cannot be had."""
    from thaikit import embedded

    wanted = given.names or None
    there = embedded.fetch(wanted)
    return 0 if set(wanted or embedded.EMBEDDED) <= set(there) else 1


def do_export(given: argparse.Namespace) -> int:
    """Write a leaf in the sample format of lm-evaluation-harness."""
    from thaikit.tasks.export import export_leaf

    for path in export_leaf(given.leaf, given.folder or ""):
        print(path)
    return 0


def do_import(given: argparse.Namespace) -> int:
    """Bring results of lm-evaluation-harness; each leaf with its scores in percent and what must be known of it."""
    from thaikit.tasks.from_harness import import_results

    bare = [pair for pair in given.task if "=" not in pair]
    if bare:
        raise ThaikitError(f"--task {bare[0]!r}: NAME=TASK is needed, for example {bare[0]}=arc")
    named = dict(pair.split("=", 1) for pair in given.task)
    for leaf in import_results(given.folder, given.suite, tasks=named, model=given.model, outputs=given.outputs):
        print(f"{leaf.path}{' (there already)' if leaf.already else ''}")
        for name, one in leaf.headline.items():
            print(f"  {name:<24} {leaf.percent(name):>28}  n {one['n']}  {one['method']}")
        for note in leaf.notes:
            print(f"  note: {note}")
    return 0


def terminated(*_: Any) -> None:
    """SIGTERM as Ctrl-C: children end, and what they wrote is resumed next time."""
    raise KeyboardInterrupt


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 0 when all went well, 1 when a leaf failed, 2 for a user's fault, 130 after Ctrl-C."""
    given = parser().parse_args(words)
    commands = {"run": do_run, "plan": do_plan, "leaf": do_leaf, "status": do_status, "fetch": do_fetch}
    signal.signal(signal.SIGTERM, terminated)
    try:
        return {**commands, "export": do_export, "import": do_import, "close": do_close}[given.command](given)
    except ThaikitError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; run again to resume", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
