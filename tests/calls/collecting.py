"""Run as a process of its own: collects into a ledger and writes down what was acknowledged.

python collecting.py BASE_URL LEDGER ACKNOWLEDGED QUERIES MODELS CONCURRENCY
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[2]))

from routeyard.pipelines.collect.collect import collect
from routeyard.pipelines.collect.ledger import Attempt, Ledger
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.postgres import PostgresLedger
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Collect, RateLimits
from routeyard.schemas.recipe.pool import Model, Pool, Provider

#: Begins processes of their own that find the imports done: they are forked by a server.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "tests.calls.collecting"])
if "multiprocessing.forkserver" in " ".join(sys.orig_argv):
    atexit.register(os._exit, 0)  # DuckDB's binding would list what its modules hold at the end


def queries(n: int) -> pa.Table:
    names = [f"q{i}" for i in range(n)]
    return pa.table({"query_id": names, "task": ["t"] * n, "prompt": names})


def pool(base_url: str, models: int) -> Pool:
    return Pool(
        models=[Model(model_id=f"m{i}") for i in range(models)],
        providers=[Provider(name="p", base_url=base_url)],
    )


def opened(where: str) -> Ledger:
    return PostgresLedger(where) if "://" in where else SqliteLedger(Path(where))


def collected(
    base_url: str, where: str, acknowledged: str, n: int, models: int, concurrency: int
) -> None:
    settings = Collect(limits=RateLimits(concurrency=concurrency))
    out = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def stored(rows: Sequence[Attempt]) -> None:
        for row in rows:
            if row.usable:
                os.write(out, f"{row.request_hash} {row.sample}\n".encode())

    with opened(where) as ledger:
        made = plan(queries(n), pool(base_url, models), settings, ledger)
        collect(made, ledger, on_stored=stored)


if __name__ == "__main__":
    collected(*sys.argv[1:4], *map(int, sys.argv[4:]))
