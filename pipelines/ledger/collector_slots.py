"""Seats at a shared ledger: how many collectors may ask at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.errors import BadInput
from pipelines.ledger.postgres import connect

#: First half of the advisory lock's key; the second is the seat's number.
_SEATS = 0x53656174  # "Seat"


@contextmanager
def take_slot(url: str, seats: int) -> Iterator[int]:
    """One of `seats` seats, given back on leaving or when the process dies.

    Raises:
        BadInput: all seats are taken, or the database cannot be used.
    """
    with connect(url) as connection:
        for number in range(seats):
            row = connection.execute(
                "SELECT pg_try_advisory_lock(%s, %s)", (_SEATS, number)
            ).fetchone()
            if row is not None and row[0]:
                # The lock lives as long as the connection.
                yield number
                return
    raise BadInput(
        f"all {seats} collectors are at work already: one more would exceed the limits",
        where="the shared ledger",
        next_step="wait for one to end, or set ROUTEYARD_COLLECTORS to more for all of them",
    )
