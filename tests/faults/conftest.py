"""The fault suite: what it counts, how large it is, and the one table that it prints.

    ROUTEYARD_FAULTS=full python -m pytest tests/faults -n 0 -m "slow or not slow"

Without the variable each attack is tried on a small part, the same in every run.
`ROUTEYARD_FAULTS_TABLE=FILE` writes the table as Markdown as well.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

FULL = os.environ.get("ROUTEYARD_FAULTS") == "full"


@dataclass
class Row:
    """One attack: how often it was tried, and what became of it."""

    attack: str
    tried: int = 0
    held: int = 0
    lost: int = 0
    invented: int = 0
    paid_twice: int | None = None


_ROWS: dict[str, Row] = {}


@pytest.fixture
def row() -> Callable[[str], Row]:
    """`row("attack")` gives the line of that attack; count every try, then what held."""
    return lambda attack: _ROWS.setdefault(attack, Row(attack))


@pytest.fixture(scope="session")
def size() -> Callable[[int, int], int]:
    """`size(quick, full)`: how many times an attack is tried in this run."""
    return lambda quick, full: full if FULL else quick


@pytest.fixture(scope="session")
def mutants() -> Callable[[bytes, int], Iterator[bytes]]:
    """`mutants(data, n)`: n damaged copies, the same ones in every run."""
    return _mutants


def _mutants(data: bytes, count: int) -> Iterator[bytes]:
    chance = random.Random(len(data))
    for _ in range(count):
        found = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 4, 16))):
            at = chance.randrange(len(found) + 1)
            kind = chance.randrange(6)
            if kind == 0 and at < len(found):
                found[at] ^= 1 << chance.randrange(8)
            elif kind == 1 and at < len(found):
                found[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            elif kind == 2:
                del found[at : at + chance.randrange(1, 32)]
            elif kind == 3:
                found[at:at] = found[at : at + chance.randrange(1, 64)]
            elif kind == 4:
                found[at:at] = chance.randbytes(chance.randrange(1, 9))
            else:
                other = chance.randrange(len(found) + 1)
                found[at : at + 8] = found[other : other + 8]
        yield bytes(found)


def _table() -> str:
    lines = ["| attack | tried | held | lost | invented | paid twice |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    for found in _ROWS.values():
        twice = "–" if found.paid_twice is None else f"{found.paid_twice:,}"
        lines.append(
            f"| {found.attack} | {found.tried:,} | {found.held:,} | {found.lost:,} "
            f"| {found.invented:,} | {twice} |"
        )
    return "\n".join(lines) + "\n"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _ROWS:
        terminalreporter.section("faults")
        terminalreporter.write(_table())
        if place := os.environ.get("ROUTEYARD_FAULTS_TABLE"):
            Path(place).write_text(_table(), encoding="utf-8")
