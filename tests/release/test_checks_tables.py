"""Tables and database of a sound release whose manifest says something else."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.verify.database import _undescribed, check_database, objects
from routeyard.pipelines.verify.tables import (
    _files,
    _repeated,
    _same,
    _summaries,
    check_references,
    recount,
    reread,
)
from routeyard.schemas import StoredTable
from tests.support.sound_release import other, places, tables_of


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"code_version": "0.0.1"}, []),
        (
            {"database__content": "b", "tables__splits__content": "b"},
            [
                "its table splits differs from the Parquet file's",
                "its content has another fingerprint than the manifest",
            ],
        ),
    ],
)
def test_the_database_against_another_manifest(sound, manifest, changes, found):
    told, tables = other(manifest, **changes), tables_of(sound, manifest)
    says = [one.says for one in check_database(sound, told, tables)]
    assert len(says) == len(found)
    assert all(one.startswith(start) for one, start in zip(says, found, strict=True))


def test_a_database_of_a_table_that_has_no_file(sound, manifest):
    held = [*manifest.database.tables, "embeddings"]
    (first, *_) = check_database(sound, other(manifest, database__tables=held), {})
    assert (first.check, first.where) == ("database", "tiny.duckdb")
    assert "'embeddings' of no file" in first.says


def test_rows_are_counted_before_they_are_sorted(sound, manifest):
    tables = tables_of(sound, manifest)
    few = tables | {"splits": tables["splits"].slice(2)}
    (only,) = check_database(sound, other(manifest, database__content="b"), few)
    assert only.says == "its table splits has 6 rows, the Parquet file 4"


def test_a_damaged_database_is_a_finding(manifest, tmp_path):
    (tmp_path / "tiny.duckdb").write_bytes(b"DUCK" * 4096)
    found = [("file", "tiny.duckdb.sha256"), ("database", "tiny.duckdb")]
    assert places(check_database(tmp_path, manifest, {})) == found


def test_rules_of_one_table_are_told_apart():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (a INT CHECK (a > 0), b INT CHECK (b > 0))")
        kept = {name for kind, _, name in objects(connection) if kind == "constraint"}
    assert kept == {"t #0", "t #1"}


def test_comments_and_tags_are_the_last_two_words_of_a_definition():
    assert _undescribed({("a", "b", "c"): ("sql", "comment", "tags")}) == {
        ("a", "b", "c"): ("sql",)
    }


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


def test_a_table_in_many_parts_is_read_to_its_end(sound, manifest, tmp_path):
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
    assert list(check_references(tables)) == []
    fewer = tables | {
        "queries": pq.read_table(sound / "data/queries.parquet").slice(4),
        "responses": pa.table({"query_id": ["q"], "model_id": ["m0"], "sample": [0]}),
    }
    assert {one.check for one in check_references(fewer)} == {"reference"}
    found = {one.where: one.says for one in check_references(fewer) if one.where != "verdicts"}
    ids = "; ".join(f"q{i:020x}" for i in range(3))
    assert found == {
        "responses": "1 query_id not in queries: q",
        "labels": f"4 query_id not in queries: {ids}",
        "splits": f"4 query_id not in queries: {ids}",
    }
    (said,) = [one.says for one in check_references(fewer) if one.where == "verdicts"]
    assert said.startswith("17 query_id/model_id/sample not in responses: ")
    assert list(check_references({"labels": tables["labels"]})) == []


def test_nothing_is_counted_again_where_a_table_is_not_sound(sound, manifest):
    tables, readable = tables_of(sound, manifest), set(manifest.files)
    assert recount(sound, manifest, readable, tables, own=True) == []
    broken = other(manifest, tables__outcomes__content="b")
    assert places(recount(sound, broken, readable, tables, own=True)) == [
        ("content", "data/outcomes.parquet")
    ]
    for name in ("queries", "models", "labels", "responses"):
        less = {key: table for key, table in tables.items() if key != name}
        assert recount(sound, broken, readable, less, own=True) == []
    few = recount(sound, manifest, readable - {"numbered/metered.parquet"}, tables, own=True)
    assert places(few) == [("file", "numbered/metered.parquet")]


def test_what_was_counted_again_and_differs(sound, tmp_path):
    wide, few = "data/labels_wide.parquet", {"metered": pa.table({"a": [1]})}
    assert places(_repeated(sound, wide, {wide}, "b")) == [("content", wide)]
    assert places(_repeated(sound, wide, set(), "b")) == []
    assert places(_files(sound, {"numbered/metered.parquet"}, few)) == [
        ("content", "numbered/metered.parquet")
    ]
    assert places(_summaries(sound / "tiny.duckdb", few)) == [("database", "tiny.duckdb")]
    for name in (wide, "numbered/metered.parquet", "tiny.duckdb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"noise" * 99)
    assert places(_repeated(tmp_path, wide, {wide}, "b")) == [("parquet", wide)]
    assert places(_files(tmp_path, {"numbered/metered.parquet"}, few)) == [
        ("parquet", "numbered/metered.parquet")
    ]
    assert places(_summaries(tmp_path / "tiny.duckdb", few)) == [("database", "tiny.duckdb")]


@pytest.mark.parametrize(
    ("found", "same"),
    [
        ([1.0, None, np.nan], True),
        ([1.0 + 1e-10, None, np.nan], True),
        ([1.0 + 1e-8, None, np.nan], False),
        ([1.0, None], False),
        ([1.0, 2.0, np.nan], False),
        ([1.0, None, 2.0], False),
    ],
)
def test_sums_may_differ_in_their_last_digits(found, same):
    expected = pa.table({"a": pa.array([1.0, None, np.nan]), "n": pa.array([1, 2, 3], pa.int32())})
    numbers = pa.array([1, 2, 3][: len(found)], pa.int64())
    assert _same(pa.table({"a": found, "n": numbers}), expected) is same
    assert not _same(pa.table({"b": found, "n": numbers}), expected)
    if same:
        assert not _same(pa.table({"a": found, "n": [1, 2, 4]}), expected)
