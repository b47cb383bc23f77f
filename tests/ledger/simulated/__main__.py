"""Run schedules: `python -m tests.ledger.simulated --schedules 200000`.

--seed N          the first seed; each failure names its own, and `--seed N --schedules 1`
                  gives it again
--backend NAME    sqlite, model (of PostgreSQL), or both (each second schedule)
--postgres URL    a real PostgreSQL server in which a database may be made and dropped
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid

from tests.ledger.simulated.ledgers import PostgresDatabase
from tests.ledger.simulated.run import DATABASES, Tally, run


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulate processes that share a ledger.")
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=[*DATABASES, "both"], default="both")
    parser.add_argument("--postgres")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.schedules)
    begun = time.process_time()
    if given.postgres:
        tally = _on_postgres(given.postgres, seeds)
    else:
        names = list(DATABASES) if given.backend == "both" else [given.backend]
        tally = run(seeds, [DATABASES[name]() for name in names])
    print(tally.text(time.process_time() - begun))
    sys.exit(1 if tally.broken else 0)


def _on_postgres(server: str, seeds: range) -> Tally:
    import psycopg

    name = f"simulated{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            with PostgresDatabase(f"{server.rpartition('/')[0]}/{name}") as database:
                return run(seeds, [database])
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


if __name__ == "__main__":
    main()
