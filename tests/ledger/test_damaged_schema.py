"""A ledger whose schema was damaged is refused by name, whatever bytes SQLite quotes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import BadInput

#: Letters of `CREATE TABLE attempts` that SQLite does not open without.
NEEDED = (0, 2, 4, 7, 8, 10, 12)


@pytest.mark.parametrize("at", NEEDED)
def test_a_damaged_schema_is_named(at: int, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    SqliteLedger(path).close()
    data = bytearray(path.read_bytes())
    where = data.index(b"CREATE TABLE attempts")
    data[where + at] = 0xA0
    path.write_bytes(bytes(data))
    with pytest.raises(BadInput, match="the ledger cannot be used"):
        SqliteLedger(path).close()
