"""Prefect reports its use to its makers only where the user has turned that on."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.calls.loopback import Loopback, answer, completion
from tests.conftest import ROOT
from tests.ledger.test_namespaces import recipe

#: Runs a command line, then says whether Prefect's reporting service took an event.
_BUILD = """
import sys
from routeyard.flows.cli import run
from routeyard.flows.build import build  # Prefect's flow, which a build by itself does not make
code = run(sys.argv[1:])
from prefect._internal.analytics.service import AnalyticsService
one = AnalyticsService._instance
print("events:", one is not None and (one._started or not one._queue.empty()))
sys.exit(code)
"""
SLOW = pytest.mark.slow
_ASKED = "from prefect._internal.analytics import is_telemetry_enabled as on; print(on())"


def environment(**given: str) -> dict[str, str]:
    """That of a person: neither a test's settings nor the marks of a CI service."""
    from prefect._internal.analytics.ci_detection import CI_ENV_VARS

    hidden = {*CI_ENV_VARS, "DO_NOT_TRACK", "PREFECT_SERVER_ANALYTICS_ENABLED", "PREFECT_API_URL"}
    return {k: v for k, v in os.environ.items() if k not in hidden} | given


def on_a_terminal(words: list[str], env: dict[str, str]) -> tuple[int, str]:
    """Exit code and what a terminal shows."""
    master, slave = pty.openpty()
    process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=ROOT)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    return process.wait(), shown.decode("utf-8", "replace")


def test_a_build_on_a_terminal_prints_no_notice_and_queues_no_event(tmp_path: Path) -> None:
    home = tmp_path / "prefect"
    with Loopback(lambda body, seen: answer(completion("Answer: 1"))) as server:
        path = recipe(tmp_path / "recipe", server)
        rows = (path.parent / "questions.jsonl").read_text().splitlines()[:3]
        (path.parent / "questions.jsonl").write_text("\n".join(rows) + "\n")
        words = [sys.executable, "-c", _BUILD, "build", str(path), "--until", "collect"]
        code, shown = on_a_terminal(
            [*words, "--workspace", str(tmp_path / "yard")], environment(PREFECT_HOME=str(home))
        )
    assert code == 0, shown
    assert "usage data" not in shown
    assert "events: False" in shown
    # It was a terminal on which Prefect would have: it notes the first flow of a new user.
    assert (home / ".sdk_telemetry").exists()


@pytest.mark.parametrize(
    ("given", "first", "on"),
    [
        # That a build has it off shows the test above.
        pytest.param({}, "flows.build", False, marks=SLOW),  # a deployment's entry point
        ({"DO_NOT_TRACK": "0"}, "routeyard.flows.build", True),
        pytest.param({"DO_NOT_TRACK": "1"}, "routeyard.flows.build", False, marks=SLOW),
        pytest.param(
            {"PREFECT_SERVER_ANALYTICS_ENABLED": "true"}, "routeyard.flows.build", True, marks=SLOW
        ),
        pytest.param(
            {"PREFECT_SERVER_ANALYTICS_ENABLED": "false"},
            "routeyard.flows.build",
            False,
            marks=SLOW,
        ),
        # Whoever uses Prefect for something else has made up his mind.
        ({}, "prefect, routeyard.flows.build", True),
    ],
)
def test_what_the_user_says_counts(given: dict[str, str], first: str, on: bool) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", f"import {first}; {_ASKED}"],
        env=environment(**given),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == str(on)
