"""Runs cases in separate processes, several times each, and gathers their figures."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.whole.cases import Case, Figure, Growth

#: One thread: medians then say what a core does, on any machine.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


class BenchmarkFailed(Exception):
    """A benchmark ended with an error, in its own last words."""


def run_case(
    case: Case, rounds: int, peers: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    """The case's figures as medians with their spread; what is absent is named, not left out."""
    absent = [name for name in case.needs if not has(name, peers)]
    row: dict[str, Any] = {"name": case.name, "title": case.title, "absent": absent}
    if absent:
        say(f"{case.name}: not run, {', '.join(absent)} absent")
        return row | {"figures": [], "growth": None}
    try:
        return row | _measured(case, rounds, peers, say)
    except BenchmarkFailed as fault:  # the other cases are worth their time all the same
        say(f"{case.name}: {fault}")
        return row | {"figures": [], "growth": None, "failed": str(fault)}


def _measured(
    case: Case, rounds: int, peers: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    printed = []
    for round_ in range(rounds):
        say(f"{case.name}: run {round_ + 1} of {rounds}")
        printed.append(_ask(case.name, case.arguments, peers))
    figures = [_summary(figure, printed) for figure in case.figures]
    return {
        "absent": [figure["says"] for figure in figures if figure["median"] is None],
        "figures": figures,
        "growth": _grow(case, case.growth, peers, say) if case.growth else None,
    }


def has(need: str, peers: Path | None) -> bool:
    """Is this here: recorded `data`, or a peer's own environment?"""
    if need == "data":
        return (
            Path(os.environ.get("ROUTEYARD_DATA", "")).is_dir() and "ROUTEYARD_DATA" in os.environ
        )
    return peers is not None and (peers / need / "bin" / "python").exists()


def _ask(name: str, arguments: Sequence[str], peers: Path | None) -> dict[str, Any]:
    """What one benchmark prints; its own words when it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        given = [argument.replace("{scratch}", scratch) for argument in arguments]
        environment = os.environ | ONE_THREAD
        if peers:
            environment["ROUTEYARD_PEERS"] = str(peers.resolve())
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks", name, *given, "--json"],
            env=environment,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise BenchmarkFailed(f"`{name}` failed: {done.stderr.strip()[-800:]}")
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed


def value(printed: dict[str, Any], key: str) -> float | None:
    """The figure at `a.b`, or None where this run has none (a peer that is not installed)."""
    found: Any = printed
    for part in key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return None if found is None else float(found)


def _summary(figure: Figure, printed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    values = [each for each in (value(one, figure.key) for one in printed) if each is not None]
    return {
        "key": figure.key,
        "says": figure.says,
        "unit": figure.unit,
        "better": figure.better,
        "ratio": figure.ratio,
        "median": statistics.median(values) if values else None,
        "low": min(values, default=None),
        "high": max(values, default=None),
        "runs": len(values),
    }


def _grow(
    case: Case, growth: Growth, peers: Path | None, say: Callable[[str], None]
) -> dict[str, Any]:
    seconds = []
    for size in growth.sizes:
        say(f"{case.name}: {growth.option} {size}")
        arguments = (growth.option, str(size), *growth.extra)
        found = value(_ask(case.name, arguments, peers), growth.key)
        if not found:
            raise BenchmarkFailed(f"`{growth.key}` is missing or zero at {growth.option} {size}")
        seconds.append({"total": found, "each": found * size, "rate": size / found}[growth.kind])
    return {
        "option": growth.option,
        "sizes": list(growth.sizes),
        "relative": [round(one / seconds[0], 3) for one in seconds],
        "exponent": round(exponent(growth.sizes, seconds), 2),
    }


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Least-squares slope of log seconds over log size: 1 is linear, 2 quadratic."""
    x, y = [math.log(size) for size in sizes], [math.log(one) for one in seconds]
    return statistics.linear_regression(x, y).slope
