"""Checksums of attempts: SQLite does not see that a bit of its file has changed."""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Sequence
from typing import Any

#: `user_version` of a ledger in which every attempt has had a checksum from the first.
_CHECKED = 2


def checksum_of(values: Sequence[Any]) -> int:
    """CRC-32 of an attempt as SQLite gives it back: true is 1, and NaN is null."""
    return zlib.crc32(repr([_plain(value) for value in values]).encode("utf-8", "surrogatepass"))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    return int(value) if isinstance(value, int) else value


def add_column(connection: sqlite3.Connection) -> None:
    """Give the ledger of an older version the column; its rows have none."""
    columns = [row[1] for row in connection.execute("PRAGMA table_info(attempts)")]
    if "checksum" not in columns:
        try:
            connection.execute("ALTER TABLE attempts ADD COLUMN checksum")
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
