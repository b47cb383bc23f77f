"""The `.duckdb` file of a release: older clients open it, and all of its rows are hashed."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from routeyard.pipelines.verify.database import compare

#: Number in the header of files that DuckDB 1.0 can read (0.10 brought it in).
READ_BY_1_0 = 64


@pytest.fixture
def database(release: Path) -> Path:
    return release / "tiny.duckdb"


def test_the_file_says_a_storage_version_that_older_clients_read(database: Path) -> None:
    # Bytes 8 to 12: magic `DUCK`; then the storage version as a little-endian uint64.
    head = database.read_bytes()[:20]
    assert head[8:12] == b"DUCK"
    assert struct.unpack("<Q", head[12:20])[0] == READ_BY_1_0


def test_no_view_is_stored_in_a_form_that_later_clients_do_not_read(database: Path) -> None:
    """DuckDB 2.0.0 keeps `a->'b'->>c` as `a -> ('b' ->> c)`, and 2.0.1 takes `'b'` for JSON."""
    with duckdb.connect(database, read_only=True) as release:
        views = release.sql("SELECT view_name, sql FROM duckdb_views()").fetchall()
    assert len(views) > 50
    assert [name for name, sql in views if re.search(r"-> \('[^()]*->>", sql)] == []


@pytest.mark.skipif(
    "ROUTEYARD_OLD_DUCKDB" not in os.environ,
    reason="ROUTEYARD_OLD_DUCKDB names no folder that holds an unpacked duckdb 1.0 wheel",
)
def test_the_oldest_client_that_is_named_answers_from_the_file(database: Path) -> None:
    code = (
        "import duckdb, sys\n"
        "db = duckdb.connect(sys.argv[1], read_only=True)\n"
        "print(duckdb.__version__, db.execute('FROM accuracy').fetchall(), "
        "db.execute('SELECT \"references\" FROM queries').fetchall())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(database)],
        env={"PYTHONPATH": os.environ["ROUTEYARD_OLD_DUCKDB"], "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1.0."), done.stdout
    assert "('m0', 'even', 3, 1.0)" in done.stdout
    assert "['2']" in done.stdout


#: A row more of `numbered.queries`, and another number of one that is there.
_MORE = (
    "INSERT INTO numbered.queries SELECT {}, * EXCLUDE (query_no) REPLACE ('qx' AS query_id) "
    "FROM numbered.queries LIMIT 1"
)
_MOVED = "UPDATE numbered.queries SET query_no = {} WHERE query_no = 5"


@pytest.mark.parametrize(
    ("change", "said"), [(_MORE, "has 7 rows, expected 6"), (_MOVED, "is not that of the release")]
)
@pytest.mark.parametrize("number", ["NULL", "-3", "1000000"])
def test_a_row_behind_a_number_that_nobody_asks_for_is_found(
    database: Path, tmp_path: Path, number: str, change: str, said: str
) -> None:
    other = tmp_path / "other.duckdb"
    other.write_bytes(database.read_bytes())
    with duckdb.connect(str(other)) as connection:
        connection.execute(change.format(number))
    assert compare(str(database), str(database), True, True, []) == []
    (says,) = compare(str(other), str(database), True, True, [])
    assert says.startswith(f"its table numbered.queries {said}")
