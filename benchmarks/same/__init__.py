"""What differs between two commits: tables, columns, figures, and what is refused.

`--with COMMIT` makes a checkout and an environment for that commit, and does the same work on
both sides through the command line: builds the recipes demo, zeroeval_gsm, mmlu_pro and
routellm_mmlu, verifies and evaluates releases, audits every matrix and shape of the data folder
(ROUTEYARD_DATA), and runs `reproduce` in rehearsal. `--refusals` runs both commits' tests too and
compares what they refuse. Differences that `wanted.yaml` explains are counted there; any other
makes the exit code 3, and so does a sentence of that list that nothing matches.

`--save DIR` keeps the old side, with branch coverage by package and a sample of mutants where
`--tests` is given; `--with DIR` then compares it with this checkout alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.same import suite
from benchmarks.same.differences import Difference, of_folders
from benchmarks.same.side import ALL_KINDS, KINDS, ROOT, CannotCompare, run_works, worktree

WANTED = Path(__file__).with_name("wanted.yaml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--with", dest="other", help="a commit, or a folder that --save wrote")
    parser.add_argument("--save", type=Path, help="keep the side of --with in this folder, and end")
    parser.add_argument("--only", help="work that this package can change: " + ", ".join(KINDS))
    parser.add_argument("--kinds", help=f"kinds of work instead: {', '.join(ALL_KINDS)}")
    parser.add_argument("--refusals", action="store_true", help="run the tests, compare refusals")
    parser.add_argument(
        "--tests", action="store_true", help="with --save: coverage and mutants too"
    )
    parser.add_argument("--select", nargs="*", default=[], help="tests to run, in place of all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    if not arguments.other:
        raise CannotCompare("--with: give a commit, or a folder that --save wrote")
    if arguments.only and arguments.only not in KINDS:
        raise CannotCompare(f"--only: expected one of {', '.join(KINDS)}")
    kinds = KINDS[arguments.only] if arguments.only else ALL_KINDS
    kinds = tuple(arguments.kinds.split(",")) if arguments.kinds else kinds
    data = os.environ.get("ROUTEYARD_DATA")
    more = {"kinds": kinds, "data": Path(data) if data else None, "jobs": arguments.jobs}
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="same-")))
        old = Path(arguments.other)
        if not old.joinpath("side.json").is_file():
            old = arguments.save or scratch / "old"
            old.mkdir(parents=True, exist_ok=True)
            tree = stack.enter_context(worktree(arguments.other, scratch))
            run_works(tree, old, **more)
            if arguments.refusals or arguments.tests:
                suite.record(tree, old, more["data"], arguments.select, whole=arguments.tests)
        if arguments.save:
            return {"saved": str(arguments.save), "kinds": kinds}
        new = scratch / "new"
        new.mkdir()
        run_works(ROOT, new, **more)
        if arguments.refusals:
            suite.record(ROOT, new, more["data"], arguments.select, whole=False)
        return compare(old, new, kinds)


def compare(old: Path, new: Path, kinds: Sequence[str]) -> dict[str, Any]:
    """What two sides' folders differ in, what of it is wanted, and what was not compared."""
    before, now = (json.loads((one / "side.json").read_text("utf-8")) for one in (old, new))
    places = {"old": before["paths"], "new": now["paths"]}
    found = of_folders(old / "files", new / "files", places)
    found += _ends(before["works"], now["works"], kinds)
    refusals = suite.compared(old, new)
    found += refusals.pop("differences", [])
    failed = [
        f"{name} {row['kind']}: exit {row['exit']}"
        for name, rows in now["works"].items()
        for row in rows
        if row["exit"] not in (0, 3)
    ]
    unwanted, wanted, stale = judge(found, whole=set(kinds) == set(ALL_KINDS) and bool(refusals))
    return {
        "old": before["commit"],
        "new": now["commit"],
        "works": {name: sum(row["seconds"] for row in rows) for name, rows in now["works"].items()},
        "not_compared": now["skipped"],
        "failed": failed,
        "refusals": refusals,
        "wanted": wanted,
        "wanted_but_the_same": stale,
        "differences": [f"{one.what}: {one.how}" for one in unwanted],
        "exit": 3 if unwanted or stale or failed else 0,
    }


def _ends(old: Mapping[str, Any], new: Mapping[str, Any], kinds: Sequence[str]) -> list[Difference]:
    """Commands that end otherwise."""
    found = []
    for name in old.keys() & new.keys():
        ends = [
            {row["kind"]: (row["exit"], row["error"]) for row in side[name] if row["kind"] in kinds}
            for side in (old, new)
        ]
        found += [
            Difference(f"{name}/{kind}/exit", f"{ends[0].get(kind)} → {ends[1].get(kind)}")
            for kind in ends[0].keys() | ends[1].keys()
            if ends[0].get(kind) != ends[1].get(kind)
        ]
    return sorted(found)


def judge(
    found: Sequence[Difference], *, whole: bool, wanted: Path = WANTED
) -> tuple[list[Difference], dict[str, int], list[str]]:
    """(differences that nobody explained, sentence → differences it explains, sentences that
    explain none).

    Args:
        whole: Everything was compared, so that a sentence without a difference has to go.
        wanted: YAML list of `what` (regular expression), where needed another for `how` it
            differs, `because` (a sentence), and `always: true` for what differs
            between two runs of one commit, such as times.
    """
    import yaml

    rows = yaml.safe_load(wanted.read_text(encoding="utf-8")) or []
    counts = {row["because"]: 0 for row in rows}
    left = []
    for one in found:
        row = next((row for row in rows if _explains(row, one)), None)
        if row is None:
            left.append(one)
        else:
            counts[row["because"]] += 1
    always = {row["because"] for row in rows if row.get("always")}
    stale = [because for because, n in counts.items() if not n and because not in always]
    return left, counts, stale if whole else []


def _explains(row: Mapping[str, Any], one: Difference) -> bool:
    return bool(re.search(row["what"], one.what) and re.search(row.get("how", ""), one.how))
