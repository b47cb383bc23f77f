"""Whoever follows what is stored may fail: the run ends with that, and loses nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from routeyard.pipelines.collect.collect import collect
from routeyard.pipelines.collect.ledger import Attempt
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Collect, RateLimits
from tests.calls.collecting import pool, queries
from tests.calls.loopback import Loopback, answer, completion


# The first says nothing: a run must not take that for "not stopped".
@pytest.mark.parametrize("error", [ValueError(), OSError("pipe closed"), SystemExit(3)])
def test_what_it_raises_ends_the_run_and_is_raised(tmp_path: Path, error: BaseException) -> None:
    calls, ended = [], []

    def stored(rows: Sequence[Attempt]) -> None:
        calls.append(rows)
        if len(calls) == 5:
            raise error

    def run() -> None:
        try:
            collect(made, ledger, on_stored=stored)
        except BaseException as fault:
            ended.append(fault)

    with (
        Loopback(lambda body, seen: answer(completion("1"))) as server,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        made = plan(
            queries(40), pool(server.base_url, 1), Collect(limits=RateLimits(concurrency=2)), ledger
        )
        # It waited for ever.
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(10)
        assert ended == [error]
        # Nothing more was asked, and what was is kept: only the rest is asked again.
        kept = sum(row["ok"] for row in ledger.summary())
        assert server.requests == kept <= 5 + 2
        again = plan(queries(40), pool(server.base_url, 1), Collect(), ledger)
        assert collect(again, ledger).complete
        assert server.requests == 40
