"""A budget under kill -9: over all reruns the server never bills more than the bound."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.collect import collect
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Budget, Collect, Retry
from routeyard.schemas.recipe.pool import Pool, Provider
from tests.calls.asking import table
from tests.calls.collecting import PROCESSES
from tests.calls.loopback import Loopback
from tests.calls.test_budget import Billing, models

LIMIT = 2.0


def build(url: str, path: str, told: Any) -> None:
    pool = Pool(models=models(2), providers=[Provider(name="p", base_url=url)])
    asking = Collect(max_tokens=50, budget=Budget(usd=LIMIT), retry=Retry(attempts=2))
    with SqliteLedger(Path(path)) as ledger:
        made = plan(table([f"{i}" for i in range(400)]), pool, asking, ledger, benchmark="b")
        told.send("asking")
        ended = collect(made, ledger)
        told.send("budget reached" if ended.out_of_budget else "done")


def started(url: str, path: Path) -> tuple[Any, Any]:
    """A process of its own that asks, and what it tells."""
    told, tells = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=build, args=(url, str(path), tells))
    process.start()
    tells.close()
    assert told.recv() == "asking"
    return process, told


@pytest.mark.parametrize("kills", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_kills_do_not_spend_more_than_the_bound(tmp_path: Path, kills: int) -> None:
    bill, path, moments = Billing(), tmp_path / "l.sqlite", random.Random(kills)
    with Loopback(bill) as server:
        for _ in range(kills):
            process, told = started(server.base_url, path)
            before, until = server.requests, time.monotonic() + 60
            while server.requests < before + moments.randrange(1, 8) and time.monotonic() < until:
                if not process.is_alive():
                    break
                time.sleep(0.005)
            process.kill()
            process.join()
            told.close()
        spent = sum(bill.usd.values())
        assert 0 < spent <= LIMIT
        # Whoever is left to finish stops at the bound, and what was in flight counts as billed.
        process, told = started(server.base_url, path)
        assert told.recv() == "budget reached"
        process.join(120)
        told.close()
    assert spent <= sum(bill.usd.values()) <= LIMIT
    with SqliteLedger(path) as ledger:
        assert sum(bill.usd.values()) <= sum(ledger.charged("b").values()) <= LIMIT + 1e-9
