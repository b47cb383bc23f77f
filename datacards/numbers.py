"""Every number of a card, computed from the tables of the release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from routeyard.schemas.stored import StoredTable, register

_COUNTS = """
SELECT count(score) AS labelled, count(*) FILTER (score NOT IN (0, 1)) AS graded,
       count(*) FILTER (contested) AS contested,
       count(*) FILTER (decided_by = 'unreadable') AS unreadable,
       count(*) FILTER (score IS NULL) AS undecided,
       avg(score) AS mean_score
FROM labels
"""
#: What the labels of one question say together, once for all that asks for it.
_PER_QUESTION = """
CREATE TEMP TABLE of_question AS
SELECT question, count(score) AS labelled, sum(score) AS total, max(score) AS top,
       bool_or(correct) FILTER (score IS NOT NULL) AS solvable,
       bool_and(correct) FILTER (score IS NOT NULL) AS every
FROM cells GROUP BY question
"""
#: `lead`: how far a model is above the mean of the questions it was asked, added up.
_PER_MODEL = """
CREATE TEMP TABLE of_model AS
SELECT model, count(score) AS labelled, avg(score) AS accuracy,
       avg(top) FILTER (score IS NOT NULL) AS oracle,
       round(sum(score - total / labelled), 9) AS lead
FROM cells JOIN of_question USING (question) GROUP BY model
"""
_MODELS = """
SELECT m.model_id, m.provider, m.params_b, m.price_in, m.price_out, m.kind, m.simulated,
       coalesce(labelled, 0) AS labelled, accuracy, oracle
FROM pool m LEFT JOIN of_model USING (model)
ORDER BY accuracy DESC NULLS LAST, m.model_id
"""
_TASKS = """
SELECT q.task, q.domain, any_value(q.scorer) AS scorer, count(*) AS queries,
       coalesce(sum(labelled), 0)::BIGINT AS labelled,
       sum(total) / nullif(sum(labelled), 0) AS accuracy
FROM asked q LEFT JOIN of_question USING (question) GROUP BY q.task, q.domain ORDER BY ALL
"""
#: The model to deploy if there were only one: the one that is furthest above the mean of the
#: questions it was asked, and the oracle on those same questions. Without missing labels it
#: is the most accurate; with some, who was asked easy questions only does not lead, and no
#: model stands above an oracle of other questions.
_BEST_SINGLE = """
SELECT model_id, accuracy, oracle, labelled,
       (SELECT count(*) FROM of_question WHERE labelled > 0) AS judged
FROM of_model JOIN pool USING (model) WHERE labelled > 0
ORDER BY lead DESC, labelled DESC, model_id LIMIT 1
"""
_ORACLE = """
SELECT avg(top) AS oracle, avg(CAST(NOT solvable AS INT)) AS unsolved,
       avg(CAST(every AS INT)) AS solved_by_all, count(*) AS judged
FROM of_question WHERE labelled > 0
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
#: Models with an answer whose cost is not known.
_UNPRICED = """
SELECT model_id FROM responses WHERE status NOT IN ('error', 'unanswered')
GROUP BY model_id HAVING count(cost_usd) < count(*) ORDER BY model_id
"""
_SOURCES = "SELECT source, count(*) AS queries FROM queries GROUP BY ALL ORDER BY source"
_STATUS = "SELECT status, count(*) AS n FROM responses GROUP BY ALL ORDER BY status"
_SPLITS = """
SELECT scheme, split, count(*) AS queries FROM splits GROUP BY ALL
ORDER BY scheme, min(array_position(['train', 'validation', 'test'], split))
"""
DUPLICATES = """
SELECT encoder, threshold, count(DISTINCT group_id) AS groups, count(*) AS queries,
       count(DISTINCT group_id) FILTER (label_conflict) AS conflicts
FROM duplicates GROUP BY ALL ORDER BY ALL
"""
REMOVALS = """
SELECT stage, entity, reason, count(*) AS n FROM removals GROUP BY ALL ORDER BY ALL
"""

_QUERIES = {
    "labels": {
        "counts": _COUNTS,
        "oracle": _ORACLE,
        "best_single": _BEST_SINGLE,
        "decided": _DECIDED,
    },
    "responses": {"cost": _COST, "status": _STATUS, "unpriced": _UNPRICED},
    "splits": {"splits": _SPLITS},
    "duplicates": {"duplicates": DUPLICATES},
    "removals": {"removals": REMOVALS},
}
_ONE_ROW = {"counts", "oracle", "cost", "best_single"}


def card_numbers(tables: Mapping[str, pa.Table | StoredTable]) -> dict[str, Any]:
    """Counts, accuracies, costs, splits, duplicates and removals of a release.

    A table the release does not hold gives an empty list, or None where one
    row is expected. Sums run in one thread over rows in their released order,
    so the last digit does not depend on the machine.
    """
    import duckdb

    found: dict[str, Any] = dict.fromkeys(_ONE_ROW)
    with duckdb.connect(config={"threads": 1, "memory_limit": "2GB"}) as connection:
        for name, table in tables.items():
            register(connection, name, table)
        _count(connection, tables)
        queries = {"models": _MODELS, "tasks": _TASKS, "sources": _SOURCES}
        for table, of_table in _QUERIES.items():
            if table in tables:
                queries |= of_table
            else:
                found |= {name: [] for name in of_table if name not in _ONE_ROW}
        for name, sql in queries.items():
            rows = connection.sql(sql).to_arrow_table().to_pylist()
            found[name] = next(iter(rows), None) if name in _ONE_ROW else rows
    found["unpriced"] = [row["model_id"] for row in found["unpriced"]]
    found["rows"] = {name: table.num_rows for name, table in tables.items()}
    found["simulated"] = sum(bool(model["simulated"]) for model in found["models"])
    return found


def _count(connection: Any, tables: Mapping[str, pa.Table | StoredTable]) -> None:
    """`of_question` and `of_model`, over labels under whatever names a question and a model."""
    if "labels" not in tables:
        connection.execute(
            "CREATE TEMP TABLE labels (query_id VARCHAR, model_id VARCHAR, score DOUBLE)"
        )
    # Labels of a question lie together in outcomes, under a number: no text is compared.
    if "outcomes" in tables:
        cells = "SELECT query_no AS question, model_no AS model, score, correct FROM outcomes"
        question = model = "row_number() OVER () - 1"
    else:
        correct = "correct" if "labels" in tables else "NULL::BOOLEAN AS correct"
        cells = f"SELECT query_id AS question, model_id AS model, score, {correct} FROM labels"
        question, model = "query_id", "model_id"
    connection.execute(f"CREATE TEMP VIEW cells AS {cells}")
    connection.execute(f"CREATE TEMP VIEW asked AS SELECT {question} AS question, * FROM queries")
    connection.execute(f"CREATE TEMP VIEW pool AS SELECT {model} AS model, * FROM models")
    connection.execute(_PER_QUESTION)
    connection.execute(_PER_MODEL)
