"""What users wait for, in CPU-seconds with children, beside a floor in the same run.

The floor is a minimal script that does the core of the same work (`floors/floor.py`): the
ratio to it is what everything else costs, checks and pages included. Each work starts from
nothing; what it needs, another row builds before. `--only a,b` runs some rows, `--write` writes
the table to FLOORS.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from functools import reduce
from pathlib import Path
from typing import Any

import yaml

_ROOT = Path(__file__).parents[2]
WORKS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("works.yaml").read_text(encoding="utf-8")
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="names of rows, by commas")
    parser.add_argument("--write", action="store_true", help="write benchmarks/FLOORS.md")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    only = [name for name in arguments.only.split(",") if name]
    unknown = set(only) - {work["name"] for work in WORKS}
    if unknown:
        known = ", ".join(work["name"] for work in WORKS)
        raise SystemExit(f"no row {', '.join(sorted(unknown))}; there are {known}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="floors-", dir=arguments.folder) as folder:
        for work in WORKS:
            if only and work["name"] not in only:
                continue
            rows.append(_row(work, Path(folder)))
            print(_line(rows[-1]), file=sys.stderr, flush=True)
    if arguments.write:
        (_ROOT / "benchmarks" / "FLOORS.md").write_text(page(rows), encoding="utf-8")
    return {"rows": rows}


def page(rows: list[dict[str, Any]]) -> str:
    """The table as Markdown, with the machine that it was measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    lines = [
        "# What users wait for, beside a floor",
        "",
        "Made by `python -m benchmarks floors --write`: CPU-seconds with children where no other",
        "unit is named, each in one run with its floor, a minimal script of pandas, DuckDB and",
        "numpy that does the core of the same work. A slow machine makes both columns larger:",
        "runs on different days are compared by the ratio.",
        "",
        f"{processor()}, {os.cpu_count()} cores, {round(memory / 2**30)} GiB, "
        f"Python {platform.python_version()}, {datetime.datetime.now(datetime.UTC).date()}.",
        "",
        "| work | now | floor | times the floor | goal | |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        goal = f"{row['goal']:g}{' ×' if row.get('goal_is') == 'times the floor' else ''}"
        figures = [row.get(name) for name in ("now", "floor", "ratio")]
        cells = ["–" if one is None else f"{one:,.3g}" for one in figures]
        met = row.get("absent") or ("reached" if row["reached"] else "not reached")
        lines.append(f"| {row['work']} | {' | '.join(cells)} | {goal} | {met} |")
    return "\n".join(lines) + "\n"


def processor() -> str:
    """What the machine computes with."""
    path = Path("/proc/cpuinfo")
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _row(work: dict[str, Any], folder: Path) -> dict[str, Any]:
    row = {"name": work["name"], "work": work["says"], "goal": work["goal"]}
    if work.get("data") and "ROUTEYARD_DATA" not in os.environ:
        return row | {"absent": "ROUTEYARD_DATA names no folder"}
    places = {"yard": str(folder / "yard"), "out": str(folder / work["name"])}
    if release := work.get("of"):
        found = sorted((folder / "yard" / "releases" / release).glob("*"))
        if not found:
            _measured(["-m", "routeyard", "build", release, "--workspace", places["yard"]])
            found = sorted((folder / "yard" / "releases" / release).glob("*"))
        places[release] = str(found[0])
    words = work["run"].format(**places).split()
    printed, seconds = _measured(words if work.get("python") else ["-m", "routeyard", *words])
    if kept := work.get("less"):  # the fits themselves, each with its record
        records = Path(f"{places['out']}.cache", kept).glob("*.json")
        seconds -= sum(json.loads(one.read_text(encoding="utf-8"))["cpu_s"] for one in records)
    if key := work.get("key"):
        seconds = _at(printed, key)
    floor: float | None = None
    if key := work.get("floor_key"):
        floor = _at(printed, key)
    elif work.get("floor"):
        given = [places[release]] if release else []
        own = work["floor"].startswith("calls_")
        given += [] if own else [str(folder / f"{work['name']}.floor")]
        told, floor = _measured(["-m", "benchmarks.floors.floor", work["floor"], *given])
        floor = _at(told, "seconds") if own else floor
    ratio = None if not floor else round(seconds / floor, 2)
    reached = (ratio if work.get("times") else seconds) <= work["goal"]
    return row | {
        "now": round(seconds, 3), "floor": floor and round(floor, 3), "ratio": ratio,
        "goal_is": "times the floor" if work.get("times") else "absolute", "reached": reached,
    }  # fmt: skip


def _measured(words: list[str]) -> tuple[str, float]:
    """What a Python command prints, and its CPU-seconds with those of its children."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen([sys.executable, *words], cwd=_ROOT, stdout=out, stderr=err)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode:
            raise RuntimeError(f"`{' '.join(words)}` failed:\n{err.read()[-2000:]}")
        return out.read(), used.ru_utime + used.ru_stime


def _at(printed: str, key: str) -> float:
    found = json.loads(printed.splitlines()[-1])
    return float(reduce(lambda part, name: part[name], key.split("."), found))


def _line(row: dict[str, Any]) -> str:
    if "absent" in row:
        return f"{row['work']}: not run, {row['absent']}"
    floor = "–" if row["floor"] is None else f"{row['floor']:g}"
    ratio = "" if row["ratio"] is None else f", {row['ratio']:g} x the floor"
    unit = " x" if row["goal_is"] != "absolute" else ""
    met = "reached" if row["reached"] else "not reached"
    return f"{row['work']}: {row['now']:g} (floor {floor}{ratio}); goal {row['goal']}{unit} {met}"
