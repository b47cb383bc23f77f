"""Checksums of attempts: SQLite does not see that a bit of its file has changed."""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Sequence
from typing import Any

from routeyard.pipelines.ledger.attempt import LATER

#: Columns of the checksums that `checksums_of` gives.
CHECKSUMS = ("checksum", "later_checksum")
#: `user_version` of a ledger in which every attempt has had a checksum from the first.
_CHECKED = 2


def checksum_of(values: Sequence[Any]) -> int:
    """CRC-32 of an attempt as SQLite gives it back: true is 1, and NaN is null."""
    return zlib.crc32(repr([_plain(value) for value in values]).encode("utf-8", "surrogatepass"))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    return int(value) if isinstance(value, int) else value


def checksums_of(values: Sequence[Any]) -> tuple[int, int | None]:
    """Checksums of the columns that every ledger has, and of those that came later.

    They are apart, so that programs of earlier versions read and write the ledger beside this one.
    The second is null where a row says nothing in later columns, as every row of theirs.
    """
    first, later = values[: -len(LATER)], values[-len(LATER) :]
    whole = checksum_of(first)
    return whole, None if all(v is None for v in later) else checksum_of([whole, *later])


def add_columns(connection: sqlite3.Connection) -> None:
    """Give the ledger of an older version the columns that it lacks; they are null in its rows."""
    there = {row[1] for row in connection.execute("PRAGMA table_info(attempts)")}
    for name in (*LATER, *CHECKSUMS):
        if name in there:
            continue
        try:
            connection.execute(f"ALTER TABLE attempts ADD COLUMN {name}")
        except sqlite3.OperationalError as error:
            if "duplicate column" not in str(error):  # another process was faster
                raise


def is_checked(connection: sqlite3.Connection) -> bool:
    """Whether no attempt may lack a checksum; a ledger that is still empty is one of those."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version < _CHECKED and not connection.execute("SELECT 1 FROM attempts LIMIT 1").fetchone():
        connection.execute(f"PRAGMA user_version = {_CHECKED}")
        return True
    return bool(version >= _CHECKED)
