"""Systems of the five papers beside implementations from scratch: the largest difference of each.

`python -m benchmarks papers --write docs/papers.md` runs each comparison and writes the table
there. A comparison is a test that computes the paper's formula once more, in plain loops that
share no code with ours; every number that it compares is recorded.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from routeyard.papers.reproduction import COUNTS

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- differences: begin -->", "<!-- differences: end -->"
#: Around the table of what `routeyard reproduce` came to.
COUNTED = ("<!-- reproduced: begin -->", "<!-- reproduced: end -->")
#: Reasons of a paper that are written out; the JSON has all.
REASONS = 6


class Compared(NamedTuple):
    """A system, the paper it is from, what it is compared with, and the test that does it.

    `within`: the largest difference that the test allows; more than rounding only for draws.
    """

    paper: str
    system: str
    against: str
    test: str
    within: float = 1e-5


def _comparisons() -> tuple[Compared, ...]:
    path = Path(__file__).with_suffix(".yaml")
    return tuple(Compared(**row) for row in yaml.safe_load(path.read_text(encoding="utf-8")))


COMPARISONS = _comparisons()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="words of a system; the others are left out")
    parser.add_argument("--write", type=Path, help="page whose table is written anew")
    parser.add_argument(
        "--reproduced",
        type=Path,
        nargs="*",
        help="JSON files of `routeyard reproduce`",
    )


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.reproduced:
        text = counted([json.loads(path.read_text("utf-8")) for path in arguments.reproduced])
        if arguments.write:
            _between(arguments.write, COUNTED, lambda old: text)
        return {"table": text, "exit": 0}
    chosen = [one for one in COMPARISONS if arguments.only.lower() in one.system.lower()]
    rows = [{**one._asdict(), **largest(one.test)} for one in chosen]
    if arguments.write:
        _between(arguments.write, (BEGIN, END), lambda old: table(rows, old))
    return {"rows": rows, "exit": int(any(row["exit"] for row in rows))}


def _between(page: Path, marks: tuple[str, str], made: Callable[[str], str]) -> None:
    """Write the text between two marks of a page anew."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(marks[0])
    old, end, after = rest.partition(marks[1])
    page.write_text(f"{before}{begin}\n{made(old)}{end}{after}", encoding="utf-8")


def counted(found: Sequence[Mapping[str, Any]]) -> str:
    """What `routeyard reproduce` came to for each paper, and why cells differ or are not there."""
    lines = ["| Command | Printed | Computed | Equal | Differs | Cannot be computed |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    notes = []
    for one in found:
        row = one["table"][-1]
        cells = " | ".join(f"{row[name]:,}" for name in COUNTS)
        lines.append(f"| `{one['command']}` | {cells} |")
        why = [*row["differs because"], *row["cannot because"]]
        said = "; ".join(f"{reason['cells']:,}: {reason['reason']}" for reason in why[:REASONS])
        rest = sum(reason["cells"] for reason in why[REASONS:])
        said += f"; {rest:,}: other reasons" if rest else ""
        notes.append(f"- `{one['command']}`: {said}")
    return "\n".join([*lines, "", *notes]) + "\n"


def largest(test: str) -> dict[str, Any]:
    """How many numbers a test compares, and the largest difference between two of them."""
    import pytest

    seen: list[float] = []
    approx: Any = type(pytest.approx(1.0))  # of arrays and lists too, number by number
    plain = approx.__eq__

    def recorded(self: Any, actual: Any) -> bool:
        same: bool = plain(self, actual)
        number = isinstance(self.expected, float | int) and np.ndim(actual) == 0
        if same and number and actual is not None:
            seen.append(abs(float(actual) - float(self.expected)))
        return same

    approx.__eq__ = recorded
    try:
        code = pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", test])
    finally:
        approx.__eq__ = plain
    finite = [one for one in seen if one == one and one != float("inf")]
    return {"compared": len(finite), "largest": max(finite, default=None), "exit": int(code)}


def table(rows: list[dict[str, Any]], old: str = "") -> str:
    """The rows as Markdown, in the order of `COMPARISONS`; of those not run, the old ones."""
    kept = {line.split(" | ")[1]: line for line in old.splitlines() if line.count(" | ") > 4}
    lines = ["| Paper | System | Compared with | Numbers | Largest difference | Command |",
             "| --- | --- | --- | ---: | ---: | --- |"]  # fmt: skip
    new = {row["system"]: row for row in rows}
    for one in COMPARISONS:
        row = new.get(one.system, {})
        if not row:
            lines += [kept[one.system]] if one.system in kept else []
            continue
        far = "none" if row["largest"] is None else f"{row['largest']:.1e}"
        lines.append(
            f"| {row['paper']} | {row['system']} | {row['against']} | {row['compared']:,} | {far} "
            f"| `pytest -n 0 {row['test']}` |"
        )
    return "\n".join(lines) + "\n"
