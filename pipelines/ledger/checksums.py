"""Checksums of attempts: SQLite does not see that a bit of its file has changed."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any


def checksum_of(values: Sequence[Any]) -> int:
    """CRC-32 of an attempt as SQLite gives it back: true is 1, and NaN is null."""
    return zlib.crc32(repr([_plain(value) for value in values]).encode("utf-8", "surrogatepass"))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    return int(value) if isinstance(value, int) else value
