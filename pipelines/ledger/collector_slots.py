"""Slots of a shared ledger: how many collectors may send requests at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.ledger.postgres import connect

#: First half of the advisory lock's key; the second is the slot's number.
_SLOTS = 0x53656174


@contextmanager
def take_slot(url: str, slots: int) -> Iterator[int]:
    """One of `slots` slots, given back on leaving or when the process dies.

    Raises:
        BadInput: all slots are taken, or the database cannot be used.
    """
    with connect(url) as connection:
        for number in range(slots):
            row = connection.execute(
                "SELECT pg_try_advisory_lock(%s, %s)", (_SLOTS, number)
            ).fetchone()
            if row is not None and row[0]:
                # The lock lives as long as the connection.
                yield number
                return
    raise BadInput(
        f"all {slots} collectors are at work already: one more would exceed the limits",
        where="the shared ledger",
        next_step="wait for one to end, or set ROUTEYARD_COLLECTORS to more for all of them",
    )
