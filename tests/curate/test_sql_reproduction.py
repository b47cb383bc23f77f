"""Scores, ranks, similarities and pruning order on MMLU-Pro, told a second time in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from routeyard.pipelines.common.matrix import label_matrix
from routeyard.pipelines.curate.prune import ONE, jaccard_fixed, prune
from routeyard.pipelines.curate.task_analysis import average_ranks, specialist_scores
from tests.support.mmlu_pro import mmlu_pro

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def tables(data: Path) -> Any:
    return mmlu_pro(data)


@pytest.fixture(scope="module")
def connection(tables: Any) -> Any:
    opened = duckdb.connect()
    for name, table in tables.items():
        opened.register(f"{name}_arrow", table)
        opened.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow")
    opened.execute(
        "CREATE TABLE cells AS SELECT query_id, model_id, task, correct FROM labels "
        "JOIN queries USING (query_id) WHERE correct IS NOT NULL"
    )
    # Any cost does: what is compared is the arithmetic over budgets.
    opened.execute(
        "CREATE TABLE costs AS SELECT model_id, "
        "CASE WHEN n % 7 = 6 THEN NULL ELSE (n % 5 + 1)::DOUBLE END AS cost FROM "
        "(SELECT model_id, row_number() OVER (ORDER BY model_id) AS n FROM models)"
    )
    yield opened
    opened.close()


def test_specialist_scores(tables: Any, connection: Any) -> None:
    rows = connection.execute(
        """
        WITH overall AS (SELECT model_id, avg(correct::INT) AS acc FROM cells GROUP BY 1),
        by_task AS (SELECT model_id, task, avg(correct::INT) AS acc FROM cells GROUP BY 1, 2),
        budgets AS (SELECT DISTINCT cost AS budget FROM costs WHERE cost IS NOT NULL),
        inside AS (SELECT budget, model_id, cost, acc FROM budgets
            JOIN costs ON cost <= budget JOIN overall USING (model_id)),
        generalist AS (SELECT budget, first(model_id ORDER BY acc DESC, cost, model_id) AS g,
            count(*) AS n FROM inside GROUP BY 1),
        best AS (SELECT budget, task, max(by_task.acc) AS acc FROM inside
            JOIN generalist USING (budget) JOIN by_task USING (model_id)
            WHERE model_id <> g AND n > 1 GROUP BY 1, 2)
        SELECT best.task, avg(best.acc - by_task.acc) FROM best JOIN generalist USING (budget)
        JOIN by_task ON by_task.model_id = g AND by_task.task = best.task
        GROUP BY 1 ORDER BY 1
        """
    ).fetchall()
    cost = dict(connection.execute("SELECT model_id, cost FROM costs").fetchall())
    ours = specialist_scores(label_matrix(tables, where="test"), cost)
    assert len(rows) == 14
    assert [name for name, _ in rows] == list(ours.tasks)
    assert ours.score.tolist() == pytest.approx([score for _, score in rows], abs=1e-12)
    assert len(ours.without_cost) == 4


def test_average_ranks(tables: Any, connection: Any) -> None:
    rows = connection.execute(
        """
        WITH acc AS (SELECT model_id, task, avg(correct::INT) AS a FROM cells GROUP BY 1, 2),
        ranks AS (SELECT model_id, task, rank() OVER (PARTITION BY task ORDER BY a DESC)
            + (count(*) OVER (PARTITION BY task, a) - 1) / 2.0 AS r FROM acc)
        SELECT model_id, avg(r) FROM ranks GROUP BY 1 ORDER BY 1
        """
    ).fetchall()
    matrix = label_matrix(tables, where="test")
    assert [name for name, _ in rows] == list(matrix.models)
    assert average_ranks(matrix)[0].tolist() == pytest.approx([rank for _, rank in rows])


def test_similarities_and_pruning_order(tables: Any, connection: Any) -> None:
    connection.execute(
        """
        CREATE OR REPLACE TABLE similarity AS
        SELECT a.model_id AS i, b.model_id AS j,
            count(*) FILTER (a.correct AND b.correct) AS n_both,
            count(*) FILTER (a.correct OR b.correct) AS n_either
        FROM cells a JOIN cells b ON a.query_id = b.query_id AND a.model_id <> b.model_id
        GROUP BY 1, 2
        """
    )
    matrix = label_matrix(tables, where="test")
    ours = jaccard_fixed(matrix.correct, matrix.known)
    place = {name: i for i, name in enumerate(matrix.models)}
    rows = connection.execute("SELECT i, j, n_both, n_either FROM similarity").fetchall()
    assert len(rows) == 29 * 28
    for i, j, both, either in rows:
        assert ours[place[i], place[j]] == both * ONE // either

    # Greedy pruning, each step as a query over those still in.
    connection.execute("CREATE OR REPLACE TABLE alive AS SELECT model_id FROM models")
    order = []
    for _ in range(20):
        name, score = connection.execute(
            """
            SELECT model_id, any_value(0.5 * acc) - 0.5 * avg(n_both / n_either) AS score
            FROM (SELECT model_id, avg(correct::INT) AS acc FROM cells GROUP BY 1)
            JOIN similarity ON i = model_id
            WHERE i IN (FROM alive) AND j IN (FROM alive)
            GROUP BY 1 ORDER BY score LIMIT 1
            """
        ).fetchone()
        order.append((name, score))
        connection.execute("DELETE FROM alive WHERE model_id = ?", [name])
    steps = prune(tables, trade_off=0.5, target=9).figures["order"]
    assert [step["model_id"] for step in steps] == [name for name, _ in order]
    assert [step["score"] for step in steps] == pytest.approx([s for _, s in order], abs=1e-8)
    assert np.all(np.diff([step["score"] for step in steps]) > -1)
