"""Several collectors on one benchmark: one ledger, and provider limits that hold in sum.

`ROUTEYARD_LEDGER` names a PostgreSQL ledger (`postgresql://…`); without it the
ledger is the workspace's own file. `ROUTEYARD_COLLECTORS` says how many
collectors may work at once: each takes an equal share of every limit, and holds
one of that many slots while it asks, so that one too many is turned away.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from routeyard.flows.tracking.run import tracked
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe import Collect, Pool
from routeyard.schemas.recipe.collect import RateLimits

LEDGER = "ROUTEYARD_LEDGER"
COLLECTORS = "ROUTEYARD_COLLECTORS"


@contextmanager
def open_ledger(root: Path) -> Iterator[Ledger]:
    """The ledger that the environment names, else the workspace's; closed on leaving."""
    url = os.environ.get(LEDGER)
    if url and not url.startswith(("postgresql://", "postgres://")):
        raise BadInput(
            f"{LEDGER} does not start with postgresql://",
            next_step="unset it to keep the ledger in the workspace",
        )
    if url:
        from routeyard.pipelines.ledger.postgres import PostgresLedger

        with PostgresLedger(url) as shared:
            yield shared
        return
    from routeyard.pipelines.ledger.sqlite import SqliteLedger
    from routeyard.pipelines.release.sealed_files import outside_releases

    outside_releases(root)
    with SqliteLedger(root / "ledger" / "ledger.sqlite") as own:
        yield own


def collectors() -> int:
    """How many collectors may ask at once, this one included."""
    given = os.environ.get(COLLECTORS, "1")
    if not (given.isascii() and given.isdecimal() and 1 <= int(given) <= 1000):
        raise BadInput(f"{COLLECTORS} is {given!r}", next_step="set a number between 1 and 1000")
    return int(given)


def share(pool: Pool, collect: Collect, collectors: int) -> tuple[Pool, Collect]:
    """Pool and collect section with this collector's share of every limit.

    Raises:
        BadInput: a limit leaves less than one call in flight per collector.
    """
    if collectors == 1:
        return pool, collect

    def shared(one: Any) -> Any:
        return one.but(limits=part(one.limits, collectors))

    models = [shared(one) if one.limits else one for one in pool.models]
    providers = [shared(one) for one in pool.providers]
    return pool.but(providers=providers, models=models), shared(collect)


def part(limits: RateLimits, collectors: int) -> RateLimits:
    """One of `collectors` equal shares."""
    if limits.concurrency < collectors:
        raise BadInput(
            f"{limits.concurrency} calls in flight cannot be shared by {collectors} collectors",
            next_step=f"lower {COLLECTORS}, or raise 'limits.concurrency' in the recipe",
        )
    return limits.but(
        concurrency=limits.concurrency // collectors,
        requests_per_minute=_share(limits.requests_per_minute, collectors),
        tokens_per_minute=_share(limits.tokens_per_minute, collectors),
    )


def sharers(pool: Pool, collect: Collect, collectors: int, at_once: int) -> int:
    """Among how many shards each limit of a pool is divided.

    Not more than its smallest concurrency allows, and so many that a Prefect
    limit, of which each holds its share, lets no more of them ask.

    Args:
        collectors: Collectors. at_once: Shards that each of them works on at a time.
    """
    limits = [m.limits or collect.limits for m in pool.models] + [p.limits for p in pool.providers]
    smallest = min(one.concurrency for one in limits)
    wanted = max(collectors, min(collectors * at_once, smallest))
    # 5 places for 3 shards make 1 place each, and then 5 of them may ask.
    return max(
        p.limits.concurrency // max(1, p.limits.concurrency // wanted) for p in pool.providers
    )


@contextmanager
def collector_slot(collectors: int) -> Iterator[None]:
    """One of the collectors' slots, held while this one asks.

    With a PostgreSQL ledger the database counts the slots; a collector that dies
    loses its own.
    """
    url = os.environ.get(LEDGER)
    if not url:
        yield
        return
    from routeyard.pipelines.ledger.collector_slots import take_slot

    with take_slot(url, collectors):
        yield


@contextmanager
def provider_slots(pool: Pool) -> Iterator[None]:
    """As much of each provider's Prefect limit as the pool's share says, in a tracked run."""
    with ExitStack() as held:
        if tracked():
            from prefect.concurrency.sync import concurrency

            from routeyard.flows.tracking.limits import limit_name

            for provider in pool.providers:
                places = provider.limits.concurrency
                held.enter_context(concurrency(limit_name(provider.name), occupy=places))
        yield


def at_server(pool: Pool) -> Pool:
    """The pool with providers' limits as the Prefect server has them, where they are lower.

    Makes those that are not there. Outside a tracked run the pool as it is.
    """
    if not tracked():
        return pool
    from routeyard.flows.tracking.limits import made

    there = made({p.name: p.limits.concurrency for p in pool.providers})
    providers = []
    for one in pool.providers:
        lower = min(one.limits.concurrency, there[one.name])
        limits = one.limits.but(concurrency=lower)
        providers.append(one.but(limits=limits))
    return pool.but(providers=providers)


def _share(value: float | None, collectors: int) -> float | None:
    return None if value is None else value / collectors
