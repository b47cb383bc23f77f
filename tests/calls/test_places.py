"""A call keeps its place until its answer is on disk: so many a killed run can pay twice."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.collect import collect
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Collect, RateLimits
from routeyard.schemas.recipe.pool import Provider
from tests.calls.collecting import pool, queries
from tests.calls.loopback import Loopback, answer, completion


@pytest.mark.parametrize(("model", "provider", "most"), [(3, 64, 6), (4, 5, 5)])
def test_no_more_is_asked_than_fits_while_a_commit_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: int, provider: int, most: int
) -> None:
    # An answer had left its place before it was kept: 64 and more were lost to one kill.
    go, ended = threading.Event(), threading.Event()
    commit = SqliteLedger._commit

    def slow(self: SqliteLedger, group: Any) -> None:
        # The windows grow by one an answer: they are full when so many are kept.
        if server.requests > 3 * most:
            ended.set()
            go.wait(10)
        commit(self, group)

    monkeypatch.setattr(SqliteLedger, "_commit", slow)
    with (
        Loopback(lambda body, seen: answer(completion("1"))) as server,
        SqliteLedger(tmp_path / "ledger.sqlite") as ledger,
    ):
        servers = [
            Provider(name="p", base_url=server.base_url, limits=RateLimits(concurrency=provider))
        ]
        models = pool(server.base_url, 2).model_copy(update={"providers": servers})
        made = plan(queries(40), models, Collect(limits=RateLimits(concurrency=model)), ledger)
        run = threading.Thread(target=collect, args=(made, ledger))
        run.start()
        try:
            assert ended.wait(10)
            time.sleep(0.2)
            kept = sum(row["attempts"] for row in ledger.summary())
            assert server.requests - kept <= most
        finally:
            go.set()
            run.join()
        assert server.requests == 80
