"""The lines of the table: each attack, what holding means, and the file that tries it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass
class Row:
    """One attack: how often it was tried, and what became of it.

    Attributes:
        lost: Answers or files that were acknowledged and are gone.
        invented: Answers, labels or figures that nobody gave.
        paid_twice: Answers that the server gave more than once; None where nothing is paid.
        in_flight: What was on its way when the attack came: the bound of
            `paid_twice`.
    """

    attack: str
    tried: int = 0
    held: int = 0
    lost: int = 0
    invented: int = 0
    paid_twice: int | None = None
    in_flight: int = 0

    def add(self, other: Row) -> None:
        """Count what another process counted."""
        for name in ("tried", "held", "lost", "invented", "in_flight"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.paid_twice is not None:
            self.paid_twice = (self.paid_twice or 0) + other.paid_twice


_BUILD = "the next build gives the same bytes"
#: Attack → (what holding means, test file). The table has this order.
ATTACKS: dict[str, tuple[str, str]] = {
    **{
        f"kill -9 in {stage}": (_BUILD, "test_kills.py")
        for stage in (
            "ingest",
            "pool",
            "collect",
            "label",
            "embed",
            "curate",
            "audit",
            "certify",
            "release",
        )
    },
    "files may not grow": (f"a named error; then {_BUILD}", "test_disk.py"),
    "full disk": (f"a named error; then {_BUILD}", "test_disk.py"),
    "full disk, answers on their way": ("a named error; nothing is asked again", "test_disk.py"),
    "read-only workspace": (f"a named error; then {_BUILD}", "test_disk.py"),
    "clock jumps": (_BUILD, "test_disk.py"),
    "clock jumps, two builds at once": ("each pair is asked once", "test_disk.py"),
    "stale locks": (_BUILD, "test_disk.py"),
    "flipped ledger pages": ("a named error, or the same answers", "test_damage.py"),
    "half-written and flipped Parquet": (_BUILD, "test_damage.py"),
    "missing shards": (_BUILD, "test_damage.py"),
    "two builds at once": ("both give the same bytes", "test_together.py"),
    "build beside relabel": ("both end; the release verifies", "test_together.py"),
    "build beside other commands": ("both end; the release verifies", "test_together.py"),
    "two hosts, one ledger": ("each pair is asked once", "test_together.py"),
    "two hosts, one folder": ("both give the same bytes", "test_together.py"),
    "two containers, one folder": ("each pair is asked once", "test_containers.py"),
    "two containers, one ledger": ("each pair is asked once", "test_containers.py"),
    "a container killed, another goes on": ("only what was in flight", "test_containers.py"),
    "lying bills": ("the budget, as far as text shows it", "test_bills.py"),
    "fault server, pool": ("the stated row, or a named error", "test_server.py"),
    "fault server, judge": ("a verdict as given, or none", "test_server.py"),
    "hostile recipes": ("refused by a named error", "test_recipes.py"),
    "fuzzed recipes": ("read, or a named error", "test_fuzz.py"),
    "fuzzed manifests": ("read, or a named error", "test_fuzz.py"),
    "fuzzed importers": ("read, or a named error", "test_fuzz.py"),
    "fuzzed scorers": ("a reading", "test_fuzz.py"),
    "mutated pickles (RouterBench, RouterEval)": (
        "read, or a named error; nothing run",
        "test_pickles.py",
    ),
    "corruptions of a release": ("a named finding", "test_releases.py"),
    "hostile programs": ("not passed, and nothing reached", "test_programs.py"),
    "injections at the judge": ("no verdict moved", "test_judges.py"),
}


def table(rows: Mapping[str, Row]) -> str:
    """The rows as Markdown, in the order of `ATTACKS`."""
    lines = ["| attack | tried | held | lost | invented | paid twice |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    order = list(ATTACKS)
    known = lambda name: order.index(name) if name in order else len(order)  # noqa: E731
    for name in sorted(rows, key=known):
        found = rows[name]
        twice = "–" if found.paid_twice is None else f"{found.paid_twice:,} of {found.in_flight:,}"
        lines.append(
            f"| {found.attack} | {found.tried:,} | {found.held:,} | {found.lost:,} "
            f"| {found.invented:,} | {twice} |"
        )
    return "\n".join(lines) + "\n"


def read(text: str) -> dict[str, Row]:
    """The rows of a table that `table` wrote."""
    cell = r" ([^|]+?) \|"
    rows = {}
    for attack, *figures, twice in re.findall(r"^\|" + cell * 6, text, re.M):
        if not figures[0].replace(",", "").isdigit():
            continue  # the head
        numbers = [int(figure.replace(",", "")) for figure in figures]
        paid, _, most = twice.replace(",", "").partition(" of ")
        known = (int(paid), int(most)) if most else (None, 0)
        rows[attack] = Row(attack, *numbers, *known)
    return rows
