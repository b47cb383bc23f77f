"""Every benchmark of the project by one command.

Each case runs several times in a separate process and gives medians with their
spread, ratios to peers measured in the same run, and the exponent with which its
seconds grow over three sizes. Writes `RESULTS.json` (what `compare` reads),
`RESULTS.md` and plots. Peers that are not installed are named as absent;
`python -m benchmarks peers --folder DIR` installs those that need environments of
their own.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.whole.cases import CASES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = [case.name for case in CASES]
    parser.add_argument("--out", type=Path, default=Path("benchmarks"), help="folder of RESULTS.md")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each case")
    parser.add_argument("--only", help=f"cases, separated by commas: {', '.join(names)}")
    parser.add_argument("--peers", type=Path, help="folder of the peers' environments")
    parser.add_argument("--no-growth", action="store_true", help="leave the three sizes out")
    parser.add_argument(
        "--keep", action="store_true", help="with --only: keep the other cases of RESULTS.json"
    )


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from dataclasses import replace

    from benchmarks.whole import page, results, running

    chosen = _chosen(arguments.only)
    run: dict[str, Any] = {"surroundings": results.surroundings(), "rounds": arguments.rounds}
    began = time.perf_counter()
    run["cases"] = []
    for case in chosen:
        load = os.getloadavg()[0]
        measured = running.run_case(
            replace(case, growth=None) if arguments.no_growth else case,
            arguments.rounds,
            arguments.peers,
            lambda line: print(line, file=sys.stderr, flush=True),
        )
        loads = sorted(round(one, 1) for one in (load, os.getloadavg()[0]))
        day = run["surroundings"]["measured_on"]
        run["cases"].append({**measured, "on": day, "loads": loads, "rounds": arguments.rounds})
    ended = outcome(run["cases"])
    run["wall_s"] = round(time.perf_counter() - began)
    if arguments.keep:
        run["cases"] = _kept(results.read(arguments.out / "RESULTS.json"), run["cases"])
    results.write(arguments.out / "RESULTS.json", run)
    page.write(arguments.out, run)
    return {"cases": len(run["cases"]), **ended, "wall_s": run["wall_s"], "out": str(arguments.out)}


def outcome(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """What failed, what lacks its data or peers, and the exit code: 1 when nothing was measured."""
    failed = [case["name"] for case in cases if "failed" in case]
    not_run = {
        case["name"]: case["absent"]
        for case in cases
        if case["absent"] and not case["figures"] and "failed" not in case
    }
    wrong = failed or len(not_run) == len(cases)
    return {"failed": failed, "not_run": not_run, "exit": 1 if wrong else 0}


def _kept(before: dict[str, Any], cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cases of both runs in their usual order; a new one takes the place of an old one."""
    on = {"on": before["surroundings"]["measured_on"], "rounds": before["rounds"]}
    found = {case["name"]: {**on, **case} for case in before["cases"]}
    found |= {case["name"]: case for case in cases}
    return [found[case.name] for case in CASES if case.name in found]


def _chosen(only: str | None) -> list[Any]:
    if not only:
        return list(CASES)
    by_name = {case.name: case for case in CASES}
    unknown = [name for name in only.split(",") if name not in by_name]
    if unknown:
        raise SystemExit(f"no case {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [by_name[name] for name in only.split(",")]
