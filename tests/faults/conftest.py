"""The fault suite: what it counts, how large it is, and the one table that it prints.

    python -m tests.faults            all of it, 30 minutes on two idle cores
    python -m tests.faults --share 0.1
    python -m pytest tests/faults     the part that every run tries

`attacks.py` lists the lines of the table and what each of them means.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.calls.loopback import Loopback
from tests.faults import odd
from tests.faults.attacks import Row, table
from tests.faults.yard import Builder, Yard, behave, bytes_of

#: What share of the whole suite is tried: `full`, a number, or nothing for the quick part.
SHARE = {"": 0.0, "full": 1.0}.get(found := os.environ.get("ROUTEYARD_FAULTS", "")) or float(
    found or 0
)
FULL = SHARE > 0
_ROWS: dict[str, Row] = {}


@pytest.fixture(scope="session")
def row() -> Callable[[str], Row]:
    """`row("attack")` gives the line of that attack; count every try, then what held."""
    return lambda attack: _ROWS.setdefault(attack, Row(attack))


@pytest.fixture(scope="session")
def size() -> Callable[[int, int], int]:
    """`size(quick, full)`: how many times an attack is tried in this run."""
    return lambda quick, full: max(quick, round(full * SHARE)) if FULL else quick


@pytest.fixture(scope="session")
def full() -> bool:
    """Whether this run tries more than the quick part."""
    return FULL


@pytest.fixture(scope="session")
def mutants() -> Callable[[bytes, int], Iterator[bytes]]:
    """`mutants(data, n)`: n damaged copies, the same ones in every run."""
    return lambda data, count: islice(odd.mutants(data, len(data)), count)


@pytest.fixture(scope="session")
def builder() -> Iterator[Builder]:
    """A process that forks builds; it starts when the first test needs it."""
    made = Builder()
    yield made
    made.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is tried thousands of times, or waits for processes, takes longer than other tests."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(3_600 if FULL else 900))


@pytest.fixture(scope="session")
def right(builder: Builder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A build that nothing disturbed, and what it has to be like after every attack."""
    with Loopback(behave) as server:
        yard = Yard(tmp_path_factory.mktemp("right"), builder, server)
        yard.took = yard.whole(learn=True)["stages"]
        if FULL:  # once more with everything imported, for its times
            again = Yard(tmp_path_factory.mktemp("again"), builder, server)
            yard.took = again.whole()["stages"]
            assert bytes_of(again.release) == bytes_of(yard.release)
        assert yard.invented() == 0
        yield yard


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (given := getattr(session.config, "workeroutput", None)) is not None:
        given["faults"] = json.dumps([vars(found) for found in _ROWS.values()])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """What another process of the run counted is added to ours."""
    for said in json.loads(getattr(node, "workeroutput", {}).get("faults", "[]")):
        ours = _ROWS.setdefault(said["attack"], Row(said["attack"]))
        ours.add(Row(**said))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _ROWS:
        terminalreporter.section("faults")
        terminalreporter.write(table(_ROWS))
        if place := os.environ.get("ROUTEYARD_FAULTS_TABLE"):
            Path(place).write_text(
                json.dumps([vars(found) for found in _ROWS.values()]), encoding="utf-8"
            )
