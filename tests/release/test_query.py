from __future__ import annotations

import json
import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from routeyard.pipelines.common.errors import BadInput, SourceError, Unsafe
from routeyard.pipelines.release.query import (
    QueryError,
    SqlProcess,
    query_release,
    to_text,
)
from routeyard.pipelines.release.reader import open_release

PER_TASK = (
    "SELECT model_id, task, avg(score) FROM labels JOIN queries USING (query_id) GROUP BY ALL"
)


def test_answers_from_any_directory_while_read_only(release, tmp_path, monkeypatch):
    for folder in (release, release / "data"):
        folder.chmod(0o555)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    try:
        relative = Path(os.path.relpath(release, elsewhere))
        assert query_release(relative, PER_TASK).num_rows == 6
        assert query_release(release, "SELECT count(*) n FROM responses").to_pylist() == [{"n": 17}]
    finally:
        release.chmod(0o755)
        (release / "data").chmod(0o755)


def test_bare_duckdb_file_answers_without_our_code(release, tmp_path, monkeypatch):
    import duckdb

    monkeypatch.chdir(tmp_path)
    with duckdb.connect(str(release / "tiny.duckdb"), read_only=True) as connection:
        assert len(connection.execute(PER_TASK).fetchall()) == 6
        assert connection.execute("SELECT count(*) FROM accuracy").fetchone() == (6,)


FORBIDDEN = (
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/hostname'",
    "SELECT * FROM read_text('{release}/manifest.json')",
    "SELECT * FROM glob('/*')",
    "COPY labels TO '/tmp/stolen.csv'",
    "ATTACH '/tmp/other.duckdb'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "DELETE FROM labels",
    "CREATE TABLE t AS SELECT 1",
    "SET memory_limit = '64GB'",
    "EXPLAIN ANALYZE COPY labels TO '{release}/data/labels.parquet'",
)


def test_nothing_but_reading_the_release(release):
    before = (release / "data/labels.parquet").read_bytes()
    with closing(SqlProcess(release)) as process:
        for sql in FORBIDDEN:
            with pytest.raises((Unsafe, QueryError)):
                process.table(sql.replace("{release}", str(release)), timeout_s=60)
    assert (release / "data/labels.parquet").read_bytes() == before


def test_python_variables_are_not_tables(release):
    import pandas as pd

    secret = pd.DataFrame({"a": [1]})  # noqa: F841  DuckDB would find it by its name
    with pytest.raises(QueryError):
        query_release(release, "SELECT * FROM secret")


def test_wrong_sql_names_the_tables(release):
    with pytest.raises(QueryError) as error:
        query_release(release, "SELECT * FROM label")
    assert error.value.exit_code == 2
    assert "labels" in str(error.value)
    with pytest.raises(QueryError, match="2 statements"):
        query_release(release, "SELECT 1; SELECT 2")


def test_describe_and_pivot_work(release):
    assert query_release(release, "DESCRIBE labels").num_rows == 7
    wide = query_release(
        release,
        "PIVOT (SELECT query_id, model_id, score FROM labels) ON model_id USING any_value(score)",
    )
    assert wide.num_rows == 6


def test_a_folder_that_is_no_release(tmp_path):
    with pytest.raises(SourceError, match="not a release"):
        open_release(tmp_path)


def test_a_time_out_is_a_time(release):
    for seconds in (float("nan"), float("inf"), 1e300, 0.0, -1.0):
        with pytest.raises(BadInput, match="no time-out"):
            query_release(release, "SELECT 1", timeout_s=seconds)


def test_a_value_that_python_cannot_hold_is_named_and_not_a_traceback(release):
    answer = query_release(release, "SELECT DATE '290000-01-01' AS far")
    for form in ("table", "csv", "json", "markdown"):
        with pytest.raises(BadInput, match="'far' holds a value that cannot be shown"):
            to_text(answer, form)


def test_two_columns_of_one_name_do_not_become_one_in_json(release):
    answer = query_release(release, "SELECT 1 AS x, 2 AS x")
    assert to_text(answer, "csv").splitlines() == ["x,x", "1,2"]
    with pytest.raises(BadInput, match="two columns of the answer are called 'x'"):
        to_text(answer, "json")


#: As they were before: months alone, 00:00:00, no zone, -1, digits that Parquet has no room for.
INEXACT = [
    "INTERVAL '1 month 3.5 seconds'",
    "TIME '24:00:00'",
    "[TIME '24:00:00', NULL]",
    "MAP {'a': {'b': [INTERVAL 1 DAY]}}",
    "'10:00:00+15:30'::TIMETZ",
    "340282366920938463463374607431768211455::UHUGEINT",
    "100000000000000000000000000000000000000::HUGEINT",
    "[-100000000000000000000000000000000000000::HUGEINT]",
    "'infinity'::TIMESTAMP_NS",
    "'00:00:00.123456789'::TIME_NS",
    "'101'::BIT",
    "1::VARIANT",
]


def test_a_value_that_would_come_out_as_another_is_refused_with_its_cast(release):
    with closing(SqlProcess(release)) as process:
        for value in INEXACT:
            with pytest.raises(QueryError, match=r'CAST\("v" AS VARCHAR\)'):
                process.table(f"SELECT {value} AS v", timeout_s=60)


def test_what_comes_out_is_exact(release):
    answer = query_release(
        release,
        "SELECT 99999999999999999999999999999999999999::HUGEINT h, sum(2::BIGINT) s, "
        "TIME '23:59:59.999999' t, [NULL, TIME '00:00:00'] l, CAST(INTERVAL 1 MONTH AS VARCHAR) i, "
        "NULL::HUGEINT n, TIMESTAMP_NS '2020-01-01 00:00:00.123456789' e, 1.50::DECIMAL(5,2) d",
    )
    assert json.loads(to_text(answer, "json")) == [
        {
            "h": 10**38 - 1,
            "s": 2,
            "t": "23:59:59.999999",
            "l": [None, "00:00:00"],
            "i": "1 month",
            "n": None,
            "e": "2020-01-01 00:00:00.123456789",
            "d": "1.50",
        }
    ]


def test_label_rates_join_the_measured_rates_to_labels(release, tmp_path):
    copy = tmp_path / "release"
    shutil.copytree(release, copy)
    kind = {"task": "mathematics", "format": "number", "length": "short", "script": "Latin"}
    kinds = [
        {"scorer": "numeric", **kind, "verdict": "correct", "labels": 30, "p_correct": 0.9},
        {"scorer": "numeric", **kind, "verdict": "correct", "labels": 10, "p_correct": 0.5},
        {"scorer": "numeric", **kind, "verdict": "correct", "labels": 60, "p_correct": None},
        {"scorer": "numeric", **kind, "verdict": "abstain", "labels": 5, "p_correct": 0.2},
        {"scorer": "code", **kind, "verdict": "incorrect", "labels": 7, "p_correct": None},
    ]
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    manifest["figures"]["label_errors"] = {"kinds": kinds}
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    found = query_release(copy, "SELECT * FROM label_rates").to_pylist()
    assert found == [
        {"decided_by": "code", "correct": False, "labels": 7, "measured": 0, "p_correct": None},
        {"decided_by": "numeric", "correct": True, "labels": 100, "measured": 40, "p_correct": 0.8},
    ]
    assert query_release(copy, "SELECT count(*) n FROM label_kinds").to_pylist() == [{"n": 5}]
    assert not query_release(release, "SELECT * FROM label_rates").num_rows


def test_rates_that_are_none_are_refused(release, tmp_path):
    copy = tmp_path / "release"
    shutil.copytree(release, copy)
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    manifest["figures"]["label_errors"] = {"kinds": ["numeric"]}
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(SourceError, match="no list of kinds"):
        query_release(copy, "SELECT 1")
