"""Run as a process of its own: collects into a ledger and writes down what was acknowledged.

python collecting.py BASE_URL LEDGER ACKNOWLEDGED QUERIES MODELS CONCURRENCY
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[2]))

from routeyard.pipelines.collect.collect import collect
from routeyard.pipelines.collect.ledger import Attempt
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Collect, RateLimits
from routeyard.schemas.recipe.pool import Model, Pool, Provider


def queries(n: int) -> pa.Table:
    names = [f"q{i}" for i in range(n)]
    return pa.table({"query_id": names, "task": ["t"] * n, "prompt": names})


def pool(base_url: str, models: int) -> Pool:
    return Pool(
        models=[Model(model_id=f"m{i}") for i in range(models)],
        providers=[Provider(name="p", base_url=base_url)],
    )


def main() -> None:
    base_url, path, acknowledged, n, models, concurrency = sys.argv[1:]
    settings = Collect(limits=RateLimits(concurrency=int(concurrency)))
    out = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def stored(rows: Sequence[Attempt]) -> None:
        for row in rows:
            if row.usable:
                os.write(out, f"{row.request_hash} {row.sample}\n".encode())

    with SqliteLedger(Path(path)) as ledger:
        made = plan(queries(int(n)), pool(base_url, int(models)), settings, ledger)
        collect(made, ledger, on_stored=stored)


if __name__ == "__main__":
    main()
