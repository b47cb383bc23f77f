"""The saved queries that were made fast answer as their plain forms do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from routeyard.pipelines.release.query import SAVED
from routeyard.pipelines.release.reader import open_release
from routeyard.schemas import LABELS, RESPONSES, SPLITS

#: The question as one would write it down: join everything, then count.
PLAIN = {
    "oracle": """
        WITH asked AS (
            SELECT query_id, task, avg(score) AS middle, max(score) AS top
            FROM labels JOIN queries USING (query_id) WHERE score IS NOT NULL
            GROUP BY query_id, task
        ), lead AS (
            SELECT task, model_id, sum(score - middle) AS lead
            FROM labels JOIN asked USING (query_id) WHERE score IS NOT NULL GROUP BY ALL
        ), single AS (SELECT task, arg_max(model_id, lead) AS model_id FROM lead GROUP BY task)
        SELECT task, count(*) || ' of ' || any_value(total) AS labelled, count(*) AS queries,
               avg(top) AS oracle, avg(score) AS best_single,
               any_value(model_id) AS best_model, avg(top) - avg(score) AS gap
        FROM labels JOIN asked USING (query_id) JOIN single USING (task, model_id)
        JOIN (SELECT task, count(*) AS total FROM queries GROUP BY task) USING (task)
        WHERE score IS NOT NULL GROUP BY task ORDER BY gap DESC, task""",
    "hardest": """
        SELECT query_id, task, count(score) AS judged, count(*) FILTER (correct) AS solved_by,
               min(model_id) FILTER (correct) AS for_example, left(question, 60) AS question
        FROM labels JOIN queries USING (query_id)
        GROUP BY query_id, task, question HAVING count(*) FILTER (correct) > 0
        ORDER BY solved_by / judged, judged DESC, query_id LIMIT 20""",
    "unsolved": """
        SELECT query_id, task, count(score) AS judged, left(question, 60) AS question
        FROM labels JOIN queries USING (query_id) GROUP BY query_id, task, question
        HAVING count(score) > 0 AND count(*) FILTER (correct) = 0
        ORDER BY judged DESC, query_id LIMIT 20""",
    "cheapest_correct": """
        WITH costs AS (
            SELECT query_id, model_id,
                   CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS cost_usd
            FROM responses GROUP BY ALL
        ), cheapest AS (
            SELECT query_id, min((cost_usd, model_id)) FILTER (cost_usd IS NOT NULL) AS best,
                   count(*) > count(cost_usd) AS unsure
            FROM labels JOIN costs USING (query_id, model_id) WHERE correct GROUP BY query_id
        )
        SELECT best[2] AS model_id, count(*) AS queries, count(*) FILTER (unsure) AS unsure,
               avg(best[1]) AS mean_cost_usd
        FROM cheapest WHERE best IS NOT NULL GROUP BY ALL ORDER BY queries DESC, model_id""",
    "cost_of": """
        WITH costs AS (
            SELECT query_id, model_id,
                   CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS cost_usd
            FROM responses GROUP BY ALL
        )
        SELECT model_id, count(*) FILTER (correct) AS correct, count(cost_usd) AS priced,
               sum(cost_usd) AS known_cost_usd,
               CASE WHEN count(cost_usd) = count(*)
                    THEN sum(cost_usd) / nullif(count(*) FILTER (correct), 0) END
                   AS usd_per_correct
        FROM labels JOIN costs USING (query_id, model_id)
        GROUP BY model_id ORDER BY usd_per_correct NULLS LAST, model_id""",
    "contested": """
        SELECT query_id, task, count(*) FILTER (contested) AS contested,
               list(model_id ORDER BY model_id) FILTER (contested) AS models
        FROM labels JOIN queries USING (query_id)
        GROUP BY query_id, task HAVING count(*) FILTER (contested) > 0
        ORDER BY contested DESC, query_id LIMIT 20""",
    "pairs": """
        SELECT a.model_id AS model_a, b.model_id AS model_b,
               count(*) || ' of ' || (SELECT count(*) FROM queries) AS labelled,
               count(*) AS queries,
               avg(greatest(a.score, b.score)) AS either,
               avg(greatest(a.score, b.score)) - greatest(avg(a.score), avg(b.score)) AS gain
        FROM labels a JOIN labels b ON a.query_id = b.query_id AND a.model_id < b.model_id
        WHERE a.score IS NOT NULL AND b.score IS NOT NULL
        GROUP BY ALL ORDER BY gain DESC, model_a, model_b LIMIT 20""",
    "splits": """
        SELECT scheme, split, count(DISTINCT query_id) AS queries,
               count(score) || ' of '
               || count(DISTINCT query_id) * (SELECT count(*) FROM models) AS labelled,
               count(score) AS n_labelled,
               avg(score) AS mean_score
        FROM splits LEFT JOIN labels USING (query_id)
        GROUP BY scheme, split ORDER BY scheme, split""",
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A release with gaps: absent labels, null scores, unknown costs, several samples."""
    from benchmarks.release import make
    from routeyard.datacards.card import render
    from routeyard.pipelines.release.build import write_release

    tables = make(1_800, 6)
    random = np.random.default_rng(7)
    labels = tables["labels"].to_pylist()
    for row in labels:
        if random.random() < 0.1:
            row.update(score=None, correct=None)
        elif random.random() < 0.2:
            # A share that no float32 holds exactly.
            row.update(score=0.1 + 0.8 * random.random(), correct=bool(random.random() < 0.5))
    labels = [row for row in labels if random.random() > 0.1]
    never = {row["query_id"] for row in labels[::60]}
    for row in labels:
        if row["query_id"] in never and row["score"] is not None:
            row.update(score=0.0, correct=False)
    responses = []
    for row in tables["responses"].to_pylist():
        if row["model_id"] == "model-001" and random.random() < 0.05:
            row.update(cost_usd=None, cost_source=None)
        responses += [{**row, "sample": s} for s in range(1 + int(random.random() < 0.2))]
    splits = tables["splits"].to_pylist()
    splits += [{**row, "scheme": "sparse", "split": "test"} for row in splits[:50]]
    tables |= {
        "labels": LABELS.from_rows(labels),
        "responses": RESPONSES.from_rows(responses),
        "splits": SPLITS.from_rows(splits),
    }
    root = tmp_path_factory.mktemp("saved")
    recipe = {"name": "gaps", "version": "1.0.0"}
    path = write_release(tables, recipe=recipe, root=root, render_card=render).path
    with open_release(path) as release:
        yield release


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-15)
    return bool(a == b)


@pytest.mark.parametrize("name", PLAIN)
def test_the_fast_form_answers_as_the_plain_one(opened, name):
    plain, fast = opened.sql(PLAIN[name]), opened.sql(SAVED[name].sql)
    assert fast.schema == plain.schema
    assert plain.num_rows > 1
    for row, expected in zip(fast.to_pylist(), plain.to_pylist(), strict=True):
        assert all(_equal(row[column], expected[column]) for column in expected), (row, expected)
