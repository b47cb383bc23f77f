"""What keeping one attempt costs: SQLite, and PostgreSQL where a server is named.

Attempts of 1.2 kB are appended one by one, as the client does, and committed in groups. CPU is
that of the process that appends; a PostgreSQL server's own is not in it. `--postgres` (or
ROUTEYARD_TEST_POSTGRES) names a server in which a database may be made and dropped again.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import threading
import time
import uuid
from functools import partial
from pathlib import Path
from typing import Any

from routeyard.pipelines.collect.ledger import Attempt, Ledger


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--attempts", type=int, default=20_000)
    parser.add_argument("--postgres", default=os.environ.get("ROUTEYARD_TEST_POSTGRES"))


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    figures: dict[str, Any] = {"attempts": arguments.attempts}
    with tempfile.TemporaryDirectory() as folder:
        figures |= _sqlite(arguments.attempts, Path(folder) / "ledger.sqlite")
    if arguments.postgres:
        figures |= _postgres(arguments.attempts, arguments.postgres)
    return figures


def _sqlite(n: int, path: Path) -> dict[str, Any]:
    from routeyard.pipelines.collect.sqlite import SqliteLedger

    with SqliteLedger(path) as ledger:
        taken = _append(ledger, n)
    return _named("sqlite", n, taken, path.stat().st_size)


def _postgres(n: int, server: str) -> dict[str, Any]:
    import psycopg

    from routeyard.pipelines.collect.postgres import PostgresLedger

    name = f"bench{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            url = server.rpartition("/")[0] + f"/{name}"
            with PostgresLedger(url) as ledger:
                taken = _append(ledger, n)
            with psycopg.connect(url) as own:
                row = own.execute("SELECT pg_total_relation_size('attempts')").fetchone()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
    assert row is not None
    return _named("postgres", n, taken, int(row[0]))


def _append(ledger: Ledger, n: int) -> tuple[float, float]:
    """(wall, CPU) seconds until the last of n attempts is durable."""
    draw = random.Random(0)
    # Texts that do not compress to nothing, made before the clock starts.
    words = [f"{draw.getrandbits(40):x}" for _ in range(4096)]
    texts = [" ".join(draw.choices(words, k=115))[:1200] for _ in range(256)]
    attempts = [
        Attempt(
            request_hash=f"{draw.getrandbits(128):032x}",
            sample=0,
            query_id=f"{draw.getrandbits(64):016x}",
            model_id="a-model-name",
            settings_hash="s" * 16,
            run="r" * 32,
            purpose="collect",
            status="ok",
            permanent=False,
            requested_at="2026-11-01T00:00:00Z",
            http_status=200,
            text=texts[i % 256],
            finish_reason="stop",
            served_model="a-model-name",
            prompt_tokens=200,
            completion_tokens=300,
            total_tokens=500,
            cost_usd=1e-4,
            cost_source="price_table",
            latency_s=1.5,
        )
        for i in range(n)
    ]
    told = threading.Event()
    faults: list[BaseException] = []

    def done(fault: BaseException | None, last: bool) -> None:
        if fault:
            faults.append(fault)
        if last or fault:
            told.set()

    wall, cpu = time.perf_counter(), time.process_time()
    for number, attempt in enumerate(attempts):
        last = number == n - 1
        ledger.append([attempt], settles=True, done=partial(done, last=last))
    told.wait()
    taken = time.perf_counter() - wall, time.process_time() - cpu
    if faults:
        raise faults[0]
    return taken


def _named(name: str, n: int, taken: tuple[float, float], size: int) -> dict[str, Any]:
    return {
        f"{name}_wall_ms": round(taken[0] / n * 1000, 4),
        f"{name}_cpu_ms": round(taken[1] / n * 1000, 4),
        f"{name}_bytes": round(size / n),
    }
