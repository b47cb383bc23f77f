"""Builds in pid namespaces of their own: what two containers with one host name do together."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.calls.loopback import Do, Loopback, answer, completion
from tests.faults.attacks import Row
from tests.ledger.test_namespaces import (
    CONCURRENCY,
    QUESTIONS,
    begin,
    recipe,
    two_containers,
    until,
)
from tests.ledger.test_namespaces import build as build_of

pytestmark = pytest.mark.skipif(
    not os.environ.get("ROUTEYARD_FAULTS"), reason="in the full suite: whole builds, minutes"
)
Rows = Callable[[str], Row]


def slow(body: dict[str, Any], seen: int) -> Do:
    return answer(completion("Answer: 1", model=body["model"]), delay=0.6)


@pytest.mark.parametrize("what", ["folder", "ledger"])
def test_two(what: str, tmp_path: Path, row: Rows, request: pytest.FixtureRequest) -> None:
    found = row(f"two containers, one {what}")
    url = request.getfixturevalue("postgres") if what == "ledger" else None
    seen = two_containers(tmp_path, url, whole=True)
    found.tried += 1
    found.paid_twice = sum(times - 1 for times in seen.values())
    assert found.paid_twice == 0
    found.held += 1


def test_one_is_killed(tmp_path: Path, row: Rows) -> None:
    # Its claims lapse after its lease, for another container cannot know that it is dead.
    found = row("a container killed, another goes on")
    with Loopback(slow) as server:
        path = recipe(tmp_path / "recipe", server)
        build = begin(tmp_path, build_of(path, tmp_path / "yard"))
        until(lambda: server.requests >= 60, [build])
        os.killpg(build.pid, signal.SIGKILL)
        build.wait()
        found.tried += 1
        found.in_flight += 3 * CONCURRENCY
        build = begin(tmp_path, build_of(path, tmp_path / "yard"))
        assert build.wait(400) == 0
        assert len(server.seen) == 3 * QUESTIONS
        found.paid_twice = sum(times - 1 for times in server.seen.values())
        assert found.paid_twice <= found.in_flight
        found.held += 1
