"""Macros of a release's database: what people ask, and with which arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from routeyard.pipelines.release.database import MACROS
from routeyard.pipelines.release.query import QueryError, query_release, saved
from routeyard.pipelines.release.reader import open_release

#: Call → rows of the release of `small_release.py`: m0 is right on all, m1 on even questions, m2 on
#: none and without an answer to the last.
ANSWERS: dict[str, Any] = {
    "SELECT model_id, n_labelled FROM leaderboard()": [("m0", 6), ("m1", 6), ("m2", 5)],
    "SELECT task, accuracy FROM accuracy('m1')": [("even", 1.0), ("odd", 0.0)],
    "SELECT count(*) FROM accuracy()": [(6,)],
    "SELECT count(*) FROM disagreements('m0', 'm1')": [(3,)],
    "SELECT DISTINCT right_model, wrong_model FROM disagreements('m1', 'm0')": [("m0", "m1")],
    "SELECT DISTINCT task FROM solved_only_by('m0')": [("odd",)],
    "SELECT count(*) FROM solved_only_by('m1')": [(0,)],
    "SELECT task, solved_by FROM hardest(1)": [("odd", 1)],
    "SELECT count(*) FROM hardest()": [(6,)],
    "SELECT sum(m0), sum(m1), count(m2) FROM matrix('odd')": [(3.0, 0.0, 2)],
    "SELECT count(*) FROM matrix(NULL)": [(6,)],
    "SELECT model_id, correct, priced FROM cost_of('m2')": [("m2", 0, 5)],
}


@pytest.mark.parametrize("sql", ANSWERS)
def test_people_ask_the_database_and_the_command_alike(release: Path, sql: str) -> None:
    with duckdb.connect(str(release / "tiny.duckdb"), read_only=True) as connection:
        connection.execute("SET enable_external_access = false")
        assert connection.sql(sql).fetchall() == ANSWERS[sql]
    with open_release(release) as opened:
        assert opened.connection.sql(sql).fetchall() == ANSWERS[sql]


def test_each_macro_has_a_comment(release: Path) -> None:
    with duckdb.connect(str(release / "tiny.duckdb"), read_only=True) as connection:
        listed = "FROM duckdb_functions() WHERE NOT internal AND schema_name = 'main'"
        says = dict(connection.sql(f"SELECT function_name, comment {listed}").fetchall())
    assert says == {name: macro.asks for name, macro in MACROS.items()}


def test_a_saved_query_takes_arguments(release: Path) -> None:
    assert saved("hardest(5)") == "FROM hardest(5)"
    assert saved("leaderboard") == "FROM leaderboard()"
    with pytest.raises(QueryError, match=r"disagreements\(a, b\)"):
        query_release(release, saved("disagreements"))
