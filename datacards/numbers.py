"""Every number of a card, computed from the tables of the release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from schemas.stored import Stored, register

_COUNTS = """
SELECT count(*) AS pairs, count(score) AS labelled,
       count(*) FILTER (contested) AS contested,
       count(*) FILTER (decided_by = 'unreadable') AS unreadable,
       count(*) FILTER (score IS NULL) AS undecided,
       avg(score) AS mean_score
FROM labels
"""
_MODELS = """
WITH asked AS (SELECT query_id, max(score) AS top FROM labels GROUP BY query_id)
SELECT m.model_id, m.provider, m.params_b, m.price_in, m.price_out, m.kind, m.simulated,
       count(l.score) AS labelled, avg(l.score) AS accuracy,
       avg(top) FILTER (l.score IS NOT NULL) AS oracle
FROM models m LEFT JOIN (labels JOIN asked USING (query_id)) l USING (model_id) GROUP BY ALL
ORDER BY accuracy DESC NULLS LAST, m.model_id
"""
_TASKS = """
WITH judged AS (SELECT question, count(score) AS labelled, sum(score) AS total
                FROM cells GROUP BY question)
SELECT q.task, q.domain, any_value(q.scorer) AS scorer, count(*) AS queries,
       coalesce(sum(labelled), 0)::BIGINT AS labelled,
       sum(total) / nullif(sum(labelled), 0) AS accuracy
FROM asked q LEFT JOIN judged USING (question) GROUP BY q.task, q.domain ORDER BY ALL
"""
#: The model to deploy if there were only one, over `labels`: the one that is furthest above
#: the mean of the questions it was asked, and the oracle on those same questions. Without
#: missing labels it is the most accurate; with some, who was asked easy questions only does
#: not lead, and no model stands above an oracle of other questions.
BEST_SINGLE = """
WITH asked AS (
    SELECT query_id, avg(score) AS middle, max(score) AS top FROM labels
    WHERE score IS NOT NULL GROUP BY query_id
)
SELECT model_id, avg(score) AS accuracy, avg(top) AS oracle, count(*) AS labelled,
       (SELECT count(*) FROM asked) AS judged
FROM labels JOIN asked USING (query_id) WHERE score IS NOT NULL GROUP BY model_id
ORDER BY round(sum(score - middle), 9) DESC, labelled DESC, model_id LIMIT 1
"""
_ORACLE = """
WITH best AS (SELECT question, max(score) AS top, bool_or(correct) AS solvable,
              bool_and(correct) AS every FROM cells
              WHERE score IS NOT NULL GROUP BY question)
SELECT avg(top) AS oracle, avg(CAST(NOT solvable AS INT)) AS unsolved,
       avg(CAST(every AS INT)) AS solved_by_all, count(*) AS judged FROM best
"""
_DECIDED = """
SELECT coalesce(decided_by, 'undecided') AS decided_by, count(*) AS labels
FROM labels GROUP BY ALL ORDER BY labels DESC, decided_by
"""
_COST = """
SELECT count(*) AS responses, count(cost_usd) AS priced, sum(cost_usd) AS cost_usd,
       sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
       count(completion_tokens) AS metered
FROM responses
"""
_SOURCES = "SELECT source, count(*) AS queries FROM queries GROUP BY ALL ORDER BY source"
_STATUS = "SELECT status, count(*) AS n FROM responses GROUP BY ALL ORDER BY status"
_SPLITS = """
SELECT scheme, split, count(*) AS queries FROM splits GROUP BY ALL
ORDER BY scheme, min(array_position(['train', 'validation', 'test'], split))
"""
_DUPLICATES = """
SELECT encoder, threshold, count(DISTINCT group_id) AS groups, count(*) AS queries,
       count(DISTINCT group_id) FILTER (label_conflict) AS conflicts
FROM duplicates GROUP BY ALL ORDER BY ALL
"""
_REMOVALS = """
SELECT stage, entity, reason, count(*) AS n FROM removals GROUP BY ALL ORDER BY ALL
"""

_QUERIES = {
    "labels": {
        "counts": _COUNTS,
        "oracle": _ORACLE,
        "best_single": BEST_SINGLE,
        "decided": _DECIDED,
    },
    "responses": {"cost": _COST, "status": _STATUS},
    "splits": {"splits": _SPLITS},
    "duplicates": {"duplicates": _DUPLICATES},
    "removals": {"removals": _REMOVALS},
}
_ONE_ROW = {"counts", "oracle", "cost", "best_single"}


def card_numbers(tables: Mapping[str, pa.Table | Stored]) -> dict[str, Any]:
    """Counts, accuracies, costs, splits, duplicates and removals of a release.

    A table the release does not hold gives an empty list, or None where one
    row is expected. Sums run in one thread over rows in their released order,
    so the last digit does not depend on the machine.
    """
    import duckdb

    found: dict[str, Any] = dict.fromkeys(_ONE_ROW)
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, table in tables.items():
            register(connection, name, table)
        for table in ("labels",):
            if table not in tables:
                connection.execute(
                    "CREATE TEMP TABLE labels (query_id VARCHAR, model_id VARCHAR, score DOUBLE)"
                )
        # Labels of a question lie together in outcomes, under a number: no text is compared.
        if "outcomes" in tables:
            cells = "SELECT query_no AS question, score, correct FROM outcomes"
            asked = "SELECT row_number() OVER () - 1 AS question, * FROM queries"
        else:
            correct = "correct" if "labels" in tables else "NULL::BOOLEAN AS correct"
            cells = f"SELECT query_id AS question, score, {correct} FROM labels"
            asked = "SELECT query_id AS question, * FROM queries"
        connection.execute(f"CREATE TEMP VIEW cells AS {cells}")
        connection.execute(f"CREATE TEMP VIEW asked AS {asked}")
        queries = {"models": _MODELS, "tasks": _TASKS, "sources": _SOURCES}
        for table, of_table in _QUERIES.items():
            if table in tables:
                queries |= of_table
            else:
                found |= {name: [] for name in of_table if name not in _ONE_ROW}
        for name, sql in queries.items():
            rows = connection.sql(sql).to_arrow_table().to_pylist()
            found[name] = next(iter(rows), None) if name in _ONE_ROW else rows
    found["rows"] = {name: table.num_rows for name, table in tables.items()}
    found["simulated"] = sum(bool(model["simulated"]) for model in found["models"])
    return found
