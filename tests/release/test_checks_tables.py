"""Tables and database of a sound release whose manifest says something else."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.release.derived_tables import derive
from routeyard.pipelines.verify.database import (
    check_database,
    check_derived,
    check_references,
    compare,
    reread,
)
from routeyard.pipelines.verify.evidence import rows
from routeyard.pipelines.verify.files import check_seal
from routeyard.schemas import StoredTable
from tests.support.sound_release import evidence_of, other, places, tables_of


def test_the_database_of_another_version_of_the_code(sound, manifest):
    told, tables = other(manifest, code_version="0.0.1"), tables_of(sound, manifest)
    assert list(check_database(evidence_of(sound, told, tables))) == []


def test_the_fingerprint_of_the_database_is_that_of_its_tables(sound, manifest):
    says = [one.says for one in check_seal(other(manifest, database__content="b"))]
    assert says == ["the database's fingerprint is not that of its tables"]


def test_a_database_of_a_table_that_has_no_file(sound, manifest):
    held = [*manifest.database.tables, "embeddings"]
    (first, *_) = check_database(evidence_of(sound, other(manifest, database__tables=held)))
    assert (first.check, first.where) == ("database", "tiny.duckdb")
    assert "'embeddings' of no file" in first.says


def test_rows_of_the_database_are_those_of_the_tables(sound, manifest, tmp_path):
    tables = tables_of(sound, manifest)
    derive(tables, tmp_path)
    assert list(check_database(evidence_of(sound, manifest, tables), tmp_path)) == []
    few = tables | {"splits": tables["splits"].slice(2)}
    (only,) = check_database(evidence_of(sound, manifest, few), tmp_path)
    assert only.says == "its table numbered.splits has 6 rows, expected 4"


def test_a_damaged_database_is_a_finding(manifest, tmp_path):
    (tmp_path / "tiny.duckdb").write_bytes(b"DUCK" * 4096)
    found = [("file", "tiny.duckdb.sha256"), ("database", "tiny.duckdb")]
    assert places(check_database(evidence_of(tmp_path, manifest))) == found


def test_rules_of_one_table_and_macros_of_one_name_are_told_apart(tmp_path):
    plain, more = str(tmp_path / "plain.duckdb"), str(tmp_path / "more.duckdb")
    for path, rule, macro in ((plain, "", ""), (more, " CHECK (b > 0)", ", (x, y) AS y")):
        with duckdb.connect(path) as connection:
            connection.execute(f"CREATE TABLE t (a INT CHECK (a > 0), b INT{rule})")
            connection.execute(f"CREATE MACRO m(x) AS x{macro}")
    assert compare(plain, plain, True, True, []) == []
    found = compare(more, plain, True, True, [])
    assert [says for says in found if "constraint" in says or "macro" in says] == [
        "holds a constraint 'main.t' that no release has",
        "holds a macro 'main.m' that no release has",
    ]
    assert compare(plain, more, True, True, ["t", "m", "t.b"]) == []


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"rows": 18}, ["rows"]),
        ({"content": "b"}, ["content"]),
        ({"content_without_times": "b"}, ["content"]),
    ],
)
def test_a_table_against_another_entry(sound, manifest, changes, found):
    for name in ("labels", "responses"):
        entry = manifest.tables[name].model_copy(update=changes)
        findings, table = reread(sound, name, entry)
        assert [(one.check, one.where) for one in findings] == [(f, entry.file) for f in found]
        assert table is not None
    told = manifest.tables["labels"].model_copy(update={"content_without_times": "b"})
    assert "without times" in reread(sound, "labels", told)[0][0].says


def test_a_table_in_many_parts_is_read_to_its_end(sound, manifest, tmp_path, monkeypatch):
    def in_eights(table):
        with pq.ParquetFile(table.path) as file:
            yield from file.iter_batches(8)

    monkeypatch.setattr(StoredTable, "batches", in_eights)
    entry = manifest.tables["labels"]
    whole = pq.read_table(sound / entry.file)
    (tmp_path / "data").mkdir()
    pq.write_table(whole, tmp_path / entry.file, row_group_size=1)
    findings, table = reread(tmp_path, "labels", entry)
    assert (findings, table) == ([], StoredTable(tmp_path / entry.file))
    # Sorted within each part, and not over all of them.
    pq.write_table(whole.take([*range(9, 17), *range(9)]), tmp_path / entry.file, row_group_size=1)
    (only,), table = reread(tmp_path, "labels", entry)
    assert (only.check, table) == ("contract", None)


def test_an_empty_table_is_a_table(sound, manifest):
    findings, table = reread(sound, "removals", manifest.tables["removals"])
    assert (findings, table.num_rows) == ([], 0)


def test_rows_without_their_parent_are_counted_and_three_of_them_shown(sound, manifest):
    tables = tables_of(sound, manifest)
    assert list(check_references(evidence_of(sound, manifest, tables))) == []
    fewer = tables | {
        "queries": pq.read_table(sound / "data/queries.parquet").slice(4),
        "responses": pa.table({"query_id": ["q"], "model_id": ["m0"], "sample": [0]}),
    }
    lost = list(check_references(evidence_of(sound, manifest, fewer)))
    assert {one.check for one in lost} == {"reference"}
    found = {one.where: one.says for one in lost if one.where != "verdicts"}
    ids = "; ".join(f"q{i:020x}" for i in range(3))
    assert found == {
        "responses": "1 query_id not in queries: q",
        "labels": f"4 query_id not in queries: {ids}",
        "splits": f"4 query_id not in queries: {ids}",
    }
    (said,) = [one.says for one in lost if one.where == "verdicts"]
    assert said.startswith("17 query_id/model_id/sample not in responses: ")
    assert list(check_references(evidence_of(sound, manifest, {"labels": tables["labels"]}))) == []


def test_what_was_derived_again_and_differs(sound, manifest, tmp_path):
    fresh = tmp_path / "fresh"
    derive(tables_of(sound, manifest), fresh)
    assert list(check_derived(evidence_of(sound, manifest), fresh)) == []
    wide, few = "data/labels_wide.parquet", "numbered/metered.parquet"
    files = {n: e.model_copy(update={"sha256": "b"}) for n, e in manifest.files.items()}
    told = manifest.model_copy(update={"files": files})
    # Other bytes of the same values, as another library writes them, are no finding.
    assert list(check_derived(evidence_of(sound, told), fresh)) == []
    pq.write_table(pq.read_table(fresh / wide).slice(1), fresh / wide)
    pq.write_table(pa.table({"a": [1]}), fresh / few)
    assert places(check_derived(evidence_of(sound, told), fresh)) == [
        ("content", wide),
        ("content", few),
    ]
    unread = evidence_of(sound, told)
    unread.readable -= {wide, few}
    assert places(check_derived(unread, fresh)) == []
    for name in (wide, few):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"noise" * 99)
    noise = evidence_of(tmp_path, told)
    noise.readable = {wide, few}
    assert places(check_derived(noise, fresh)) == [("parquet", wide), ("parquet", few)]


@pytest.mark.parametrize(
    ("found", "differ"),
    [
        ([1.0, None, np.nan], 0),
        ([1.0 + 1e-10, None, np.nan], 0),
        ([1.0 + 1e-8, None, np.nan], 1),
        ([1.0, None], 1),
        ([1.0, 2.0, np.nan], 1),
        ([1.0, None, 2.0], 1),
        ([None, 1.0, np.nan], 2),  # in another order
    ],
)
def test_sums_may_differ_in_their_last_digits(found, differ):
    expected = pa.table({"a": pa.array([1.0, None, np.nan]), "n": pa.array([1, 2, 3], pa.int32())})
    numbers = pa.array([1, 2, 3][: len(found)], pa.int64())
    assert rows(pa.table({"a": found, "n": numbers}), expected)[0] == differ
    if not differ:
        (bad, examples) = rows(pa.table({"a": found, "n": [1, 2, 4]}), expected)
        assert (bad, examples) == (1, ["row 3 has n 4, expected 3"])
