from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common.errors import ContractError, VersionExists
from routeyard.pipelines.release.database import Streamed
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.pipelines.release.tables import cut
from routeyard.schemas import QUERIES


def _hashes(release: Path) -> dict[str, str]:
    return {
        p.relative_to(release).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(release.rglob("*"))
        if p.is_file() and p.suffix not in (".duckdb", ".sha256")
    }


def test_two_builds_in_two_folders_are_byte_identical(write, tables, tmp_path):
    one = write(root=tmp_path / "here" / "releases")
    # Rows arrive in another order and in other chunks: neither may show.
    turned = {
        name: pa.concat_tables(
            table.take(pa.array(range(start, stop), pa.int64())[::-1])
            for start, stop in ((table.num_rows // 2, table.num_rows), (0, table.num_rows // 2))
        )
        for name, table in tables.items()
    }
    two = write(turned, root=tmp_path / "a longer place" / "releases")
    assert _hashes(one.path) == _hashes(two.path)
    assert "manifest.json" in _hashes(one.path)
    assert one.fingerprint == two.fingerprint


def test_a_table_in_order_is_written_in_parts_with_the_same_bytes(
    write, tables, tmp_path, monkeypatch
):
    monkeypatch.setattr("routeyard.pipelines.release.tables.ROWS_PER_GROUP", 2)
    asked = tables["queries"]
    assert [part.num_rows for part in cut(QUERIES, asked)] == [2, 2, 2]
    one = write(tables, root=tmp_path / "parts")
    turned = asked.take(pa.array([5, 3, 1, 0, 2, 4]))
    assert len(list(cut(QUERIES, turned))) == 1
    two = write({**tables, "queries": turned}, root=tmp_path / "whole")
    assert _hashes(one.path) == _hashes(two.path)
    # A key that stands there twice is found wherever the parts are cut.
    twice = asked.take(pa.array([0, 1, 1, 2, 3]))
    with pytest.raises(ContractError, match="is repeated for 1 value"):
        write({**tables, "queries": twice}, root=tmp_path / "twice")


def test_nothing_of_this_machine_stands_in_a_release(write, tmp_path):
    path = write().path
    for name in ("manifest.json", "README.md"):
        assert str(tmp_path) not in (path / name).read_text()


def test_same_again_is_unchanged_and_touches_nothing(write):
    first = write()
    before = _hashes(first.path)
    second = write()
    assert (first.status, second.status) == ("created", "unchanged")
    assert _hashes(first.path) == before
    # No staging folder is left beside it.
    assert [p.name for p in first.path.parent.iterdir()] == ["1.0.0"]


@pytest.mark.parametrize("same", [True, False])
def test_a_release_that_another_build_makes_meanwhile(write, tables, monkeypatch, same):
    """trap: the second of two builds ended in a traceback, since it looks before it writes"""
    from routeyard.pipelines.release import build

    plain, done = build.write_database, []
    theirs = tables if same else {**tables, "labels": tables["labels"].slice(1)}

    def meanwhile(*given, **named):
        plain(*given, **named)
        if not done:
            done.append("begun")
            done.append(write(theirs))

    monkeypatch.setattr(build, "write_database", meanwhile)
    if same:
        assert write(tables).status == "unchanged"
    else:
        with pytest.raises(VersionExists):
            write(tables)
    assert done[1].status == "created"


def test_a_version_is_never_overwritten(write, tables):
    path = write().path
    before = _hashes(path)
    flipped = tables["labels"].slice(1)
    with pytest.raises(VersionExists) as error:
        write({**tables, "labels": flipped})
    assert "'version: 1.1.0'" in str(error.value)
    assert error.value.exit_code == 2
    assert _hashes(path) == before


def test_changed_questions_ask_for_a_major_version(write, tables):
    write()
    kept = tables["queries"].slice(0, 5)
    with pytest.raises(VersionExists, match=r"'version: 2\.0\.0'"):
        write({**tables, "queries": kept})


def test_measured_times_change_only_one_of_two_fingerprints(write, tables, tmp_path):
    # A run that was killed and resumed differs from an undisturbed one in nothing but times.
    responses = tables["responses"]
    at = responses.column_names.index("latency_s")
    slower = responses.set_column(
        at, responses.schema.field(at), pa.array([9.0] * responses.num_rows)
    )
    one = read_manifest(write(root=tmp_path / "one").path)
    two = read_manifest(write({**tables, "responses": slower}, root=tmp_path / "two").path)
    assert one.content != two.content
    assert one.content_without_times == two.content_without_times


def test_parquet_explains_itself(release):
    field = pq.read_schema(release / "data" / "responses.parquet").field("latency_s")
    assert field.metadata == {b"description": b"request sent to last byte", b"unit": b"s"}


def test_a_table_that_breaks_its_contract_is_not_released(write, tables, tmp_path):
    twice = pa.concat_tables([tables["models"], tables["models"]])
    with pytest.raises(ContractError, match="key"):
        write({**tables, "models": twice})
    assert not list((tmp_path / "releases").glob("tiny/*"))


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
# The kernel refuses to write a file beyond this size, as a full disk would.
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
sys.path[:0] = [".", "tests/release"]
from pathlib import Path
from tests.support.small_release import RECIPE, tiny_tables
from routeyard.datacards.card import render
from routeyard.pipelines.common.errors import DiskFull
from routeyard.pipelines.release.build import write_release
try:
    write_release(tiny_tables(400), recipe=RECIPE, root=Path(sys.argv[1]), render_card=render)
except DiskFull as error:
    print(error.exit_code, error.next_step)
"""


@pytest.mark.parametrize("size", [2_000, 200_000])
def test_full_disk_leaves_nothing_behind(tmp_path, size):
    # 2,000 bytes stop the first Parquet file, 200,000 the database.
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), str(size)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
    )
    assert done.stdout.startswith("1 free some space"), done.stderr
    assert list((tmp_path / "tiny").iterdir()) == []


@pytest.mark.parametrize("streamed", [False, True])
def test_withheld_text_is_gone_everywhere(write, tables, streamed):
    sources = [{"source": "arith", "license": "proprietary", "redistribute_text": False}]
    if streamed:  # questions that arrived in parts went out with their text
        asked = tables["queries"]
        tables["queries"] = Streamed(lambda: iter([asked.slice(0, 4), asked.slice(4)]))
    path = write(tables, sources=sources).path
    queries = pq.read_table(path / "data/queries.parquet").to_pylist()
    responses = pq.read_table(path / "data/responses.parquet").to_pylist()
    assert all("withheld" in row["question"] and row["references"] == [] for row in queries)
    assert all("withheld" in row["text"] and row["completion_tokens"] for row in responses)
    assert "withheld" in (path / "README.md").read_text()
    # Ids and labels stay.
    assert pq.read_table(path / "data/labels.parquet").num_rows == 17
    assert b"+1?" not in (path / "tiny.duckdb").read_bytes()


def test_manifest_lists_every_file(release):
    listed = json.loads((release / "manifest.json").read_text())
    there = {p.relative_to(release).as_posix() for p in release.rglob("*") if p.is_file()}
    assert there == {*listed["files"], "tiny.duckdb", "tiny.duckdb.sha256", "manifest.json"}
