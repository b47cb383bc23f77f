"""The runner of statements in files, and checks that select the rows that break them."""

from __future__ import annotations

import functools
import operator
from pathlib import Path

import pyarrow as pa
import pytest

from routeyard.pipelines.common.sql import Check, runner

COSTS = pa.table({"model": ["b", "a", "a"], "usd": [0.1, 0.2, 0.1]})
HEAD = """\
-- kind: proved
-- says: costs are below the limit
-- severity: error
-- needs: costs
-- key: model, usd
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "costs.sql"
    path.write_text(
        "-- name: all_rows\nFROM costs\n\n-- name: of_model\nFROM costs WHERE model = $model\n\n"
        "-- name: total\nSELECT model, exact(usd) AS usd FROM costs GROUP BY model\n\n"
        "-- name: last_first\nSELECT * FROM costs ORDER BY model DESC, usd DESC\n"
    )
    return path


def test_rows_come_in_a_stated_order_and_values_are_bound(file: Path) -> None:
    with runner(file, {"costs": COSTS}) as run:
        assert run.table("all_rows").column("usd").to_pylist() == [0.1, 0.2, 0.1]
        assert run.table("last_first").column("model").to_pylist() == ["b", "a", "a"]
        assert run.table("of_model", model="a' OR true --").num_rows == 0
        assert run.table("of_model", model="b").num_rows == 1
        assert [part.num_rows for part in run.batches("all_rows")] == [3]
        run.keep("total")
        assert run.connection.table("total").count("*").fetchall() == [(2,)]


def test_sums_of_money_are_exact(file: Path) -> None:
    usd = [0.1] * 10
    with runner(file, {"costs": pa.table({"model": ["a"] * 10, "usd": usd})}) as run:
        assert functools.reduce(operator.add, usd) != 1.0
        assert run.table("total").to_pylist() == [{"model": "a", "usd": 1.0}]


def test_a_runner_has_limits_and_leaves_nothing_on_the_disk(file: Path) -> None:
    with runner(file, threads=1, memory="100MB") as run:
        settings = (
            "SELECT current_setting('threads'), current_setting('memory_limit'), "
            "current_setting('temp_directory')"
        )
        threads, memory, folder = run.connection.execute(settings).fetchone()
        assert (threads, memory) == (1, "95.3 MiB")
    assert not Path(folder).exists()


def test_a_check_gives_the_rows_that_break_it() -> None:
    sql = "SELECT model, usd, 'usd ' || usd AS found, 'at most ' || $most AS expected\n"
    text = f"{HEAD}{sql}FROM costs WHERE usd > $most\n"
    check = Check.of("limit", text)
    assert check.text == text
    assert (check.name, check.kind, check.severity) == ("limit", "proved", "error")
    assert (check.needs, check.key) == (("costs",), ("model", "usd"))
    with runner(tables={"costs": COSTS}) as run:
        assert check.broken(run, most=0.15) == (1, ["a|0.2: usd 0.2, expected at most 0.15"])
        assert check.broken(run, most=1.0) == (0, [])
        count, some = check.broken(run, most=0.0)
        assert (count, some[0]) == (3, "a|0.1: usd 0.1, expected at most 0.0")


@pytest.mark.parametrize("lost", HEAD.splitlines())
def test_a_head_that_lacks_a_line_is_refused(lost: str) -> None:
    with pytest.raises(ValueError, match="the head of a check has the lines"):
        Check.of("limit", HEAD.replace(f"{lost}\n", "") + "SELECT 1\n")
