"""The path from a plan through a real HTTP server and a real ledger to `responses`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from pipelines.calls.sqlite_ledger import SqliteLedger
from pipelines.collect.collect import collect, responses_table
from pipelines.collect.plan import plan
from schemas.recipe.collect import Collect
from schemas.recipe.pool import Model, Pool, Provider
from tests.calls.loopback import Loopback, answer, completion


def queries(n: int) -> pa.Table:
    return pa.table(
        {
            "query_id": [f"q{i:04d}" for i in range(n)],
            "task": [f"t{i % 3}" for i in range(n)],
            "prompt": [f"What is {i} + {i}?" for i in range(n)],
        }
    )


def pool(server: Loopback, n: int = 2, **model: object) -> Pool:
    return Pool(
        models=[Model(model_id=f"m{i}", **model) for i in range(n)],
        providers=[Provider(name="local", base_url=server.base_url)],
    )


def test_a_run_asks_each_pair_once_and_a_second_run_nothing(tmp_path: Path) -> None:
    with (
        Loopback(lambda body, seen: answer(completion(f"{body['model']} says 4"))) as server,
        SqliteLedger(tmp_path / "ledger.sqlite") as ledger,
    ):
        made = plan(queries(50), pool(server), Collect(), ledger)
        assert (made.wanted, made.missing) == (100, 100)
        collected = collect(made, ledger)
        assert collected.complete
        assert collected.stopped is None
        assert server.requests == 100
        table = responses_table(made, ledger)
        assert table.num_rows == 100
        assert set(table.column("status").to_pylist()) == {"ok"}
        assert table.column("cost_usd").null_count == 100  # no price: unknown, not free
        again = plan(queries(50), pool(server), Collect(), ledger)
        assert again.missing == 0
        collect(again, ledger)
        assert server.requests == 100


def test_another_port_is_the_same_request(tmp_path: Path) -> None:
    # A loopback server gets a new port at each start: it must not be asked again.
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        for expected in (20, 0):
            with Loopback(lambda body, seen: answer(completion())) as server:
                made = plan(queries(10), pool(server), Collect(), ledger)
                assert made.missing == expected
                collect(made, ledger)


def test_another_temperature_is_another_request(tmp_path: Path) -> None:
    with (
        Loopback(lambda body, seen: answer(completion())) as server,
        SqliteLedger(tmp_path / "ledger.sqlite") as ledger,
    ):
        collect(plan(queries(5), pool(server, 1), Collect(), ledger), ledger)
        assert plan(queries(5), pool(server, 1), Collect(temperature=0.5), ledger).missing == 5
        # More samples add to what is there.
        assert plan(queries(5), pool(server, 1), Collect(samples=3), ledger).missing == 10
