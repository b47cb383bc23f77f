"""A budget under kill -9: over all reruns the server never bills more than the bound."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from routeyard.pipelines.collect.sqlite import SqliteLedger
from tests.calls.loopback import Loopback
from tests.calls.test_budget import Billing

LIMIT = 2.0
ROOT = Path(__file__).parents[2]
BUILD = """
import sys
from pathlib import Path
from routeyard.pipelines.collect.collect import collect
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Budget, Collect, Retry
from routeyard.schemas.recipe.pool import Pool, Provider
from tests.calls.test_budget import models
from tests.calls.test_faults import table

pool = Pool(models=models(2), providers=[Provider(name="p", base_url=sys.argv[1])])
asking = Collect(max_tokens=50, budget=Budget(usd=float(sys.argv[3])), retry=Retry(attempts=2))
with SqliteLedger(Path(sys.argv[2])) as ledger:
    made = plan(table([f"{i}" for i in range(400)]), pool, asking, ledger, benchmark="b")
    print("asking", flush=True)
    ended = collect(made, ledger)
    print("budget reached" if ended.out_of_budget else "done", flush=True)
"""


def started(url: str, ledger: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, url, str(ledger), str(LIMIT)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("kills", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_kills_do_not_spend_more_than_the_bound(tmp_path: Path, kills: int) -> None:
    bill, path, moments = Billing(), tmp_path / "l.sqlite", random.Random(kills)
    with Loopback(bill) as server:
        for _ in range(kills):
            process = started(server.base_url, path)
            assert process.stdout is not None
            assert process.stdout.readline() == "asking\n"
            before, until = server.requests, time.monotonic() + 60
            while server.requests < before + moments.randrange(1, 8) and time.monotonic() < until:
                if process.poll() is not None:
                    break
                time.sleep(0.005)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        spent = sum(bill.usd.values())
        assert 0 < spent <= LIMIT
        # Whoever is left to finish stops at the bound, and what was in flight counts as billed.
        done = started(server.base_url, path)
        said, _ = done.communicate(timeout=120)
        assert "budget reached" in said
    assert spent <= sum(bill.usd.values()) <= LIMIT
    with SqliteLedger(path) as ledger:
        assert sum(bill.usd.values()) <= sum(ledger.charged("b").values()) <= LIMIT + 1e-9
