"""Why pairs have no label, and what was never looked for: losses in words, with counts.

A figure such as "3,723 pairs without a label" names no cause. Each pair without a label has
exactly one of those below; what a person can mend comes with an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from routeyard.schemas.stored import StoredTable, register

#: One row per cause: cause, scorer, questions, models, pairs, example.
#: A scorer's error comes before an abstention: it is what there is to mend.
_CAUSES = """
WITH short AS ({short}
), pairs AS (
    SELECT q.query_id, m.model_id, q.scorer AS rule
    FROM (FROM queries SEMI JOIN short USING (query_id)) q CROSS JOIN models m
    LEFT JOIN (FROM labels SEMI JOIN short USING (query_id)) l USING (query_id, model_id)
    WHERE l.score IS NULL AND m.kind = 'real'
), answers AS (
    SELECT query_id, model_id, bool_or(status <> 'error') AS answered
    FROM responses SEMI JOIN pairs USING (query_id, model_id) GROUP BY ALL
), errors AS (
    SELECT query_id, model_id, min(scorer) AS scorer, min(reason) AS reason
    FROM verdicts SEMI JOIN pairs USING (query_id, model_id)
    WHERE outcome = 'error' GROUP BY ALL
), abstained AS (
    SELECT query_id, model_id, bool_and(outcome = 'abstain') AS every
    FROM verdicts SEMI JOIN pairs USING (query_id, model_id) GROUP BY ALL
), told AS (
    SELECT p.query_id, p.model_id, CASE
        WHEN e.scorer IS NOT NULL THEN 'scorer error'
        WHEN a.answered IS NULL THEN 'no response'
        WHEN NOT a.answered THEN 'the call failed'
        WHEN b.every IS NULL THEN 'no scorer has judged it'
        WHEN b.every THEN 'unreadable'
        ELSE 'scorers disagree or one is missing' END AS cause,
        coalesce(e.scorer, CASE WHEN a.answered THEN p.rule END, '') AS scorer, e.reason
    FROM pairs p LEFT JOIN answers a USING (query_id, model_id)
    LEFT JOIN errors e USING (query_id, model_id)
    LEFT JOIN abstained b USING (query_id, model_id)
)
SELECT cause, scorer, count(DISTINCT query_id) AS questions, count(DISTINCT model_id) AS models,
       count(*) AS pairs, coalesce(min(reason), '') AS example,
       min(query_id) AS query_id
FROM told GROUP BY cause, scorer ORDER BY pairs DESC, cause, scorer
"""
#: Questions with a pair that lacks a label: of most, all pairs have one, and none is listed.
_SHORT = """
    SELECT query_id FROM queries ANTI JOIN (
        SELECT query_id FROM labels WHERE score IS NOT NULL GROUP BY query_id
        HAVING count(*) = (SELECT count(*) FROM models)) USING (query_id)"""
#: The same without comparing text: outcomes carry row numbers of `queries`.
_SHORT_BY_NUMBER = """
    SELECT query_id
    FROM (SELECT row_number() OVER () - 1 AS query_no, query_id FROM queries) ANTI JOIN (
        SELECT query_no FROM outcomes WHERE score IS NOT NULL GROUP BY query_no
        HAVING count(*) = (SELECT count(*) FROM models)) USING (query_no)"""
_NEEDED = ("queries", "models", "labels", "responses", "verdicts")
_NOT_RECORDED = "no recorded answer"
_NEXT = {
    "scorer error": "mend the references or choose another scorer, then build again: no model "
    "is asked twice",
    "no response": "`routeyard plan` says what is not asked yet",
    _NOT_RECORDED: "add it to the files under collect.recorded, and set a new version",
    "the call failed": "`routeyard build --reask error` asks them again",
    "no scorer has judged it": "name a verifier or judge under label.default.then",
    "unreadable": "name a verifier or judge under label.default.then",
    "scorers disagree or one is missing": "`routeyard review` decides them by hand",
}


def causes(tables: Mapping[str, pa.Table | StoredTable]) -> list[dict[str, Any]]:
    """Why pairs of a question and a real model have no label, the most frequent cause first.

    Args:
        tables: queries, models, labels, responses and verdicts in contract form. Without
            one of them nothing can be told, and the list is empty.

    Returns:
        cause, scorer, questions, models, pairs, example, query_id and next of each.
    """
    if any(name not in tables for name in _NEEDED):
        return []
    import duckdb

    numbered = "outcomes" in tables
    sql = _CAUSES.format(short=_SHORT_BY_NUMBER if numbered else _SHORT)
    with duckdb.connect(config={"threads": 1, "memory_limit": "2GB"}) as connection:
        for name in (*_NEEDED, *(["outcomes"] if numbered else [])):
            register(connection, name, tables[name])
        found: list[dict[str, Any]] = connection.sql(sql).to_arrow_table().to_pylist()
        recorded = _recorded(connection, tables["responses"])
    for row in found:
        if recorded and row["cause"] == "no response":
            row["cause"] = _NOT_RECORDED
        row["example"] = " ".join(row["example"].split())[:160]
        row["next"] = _NEXT[row["cause"]]
    return found


def _recorded(connection: Any, responses: pa.Table | StoredTable) -> bool:
    """Whether no response was ever requested: they were recorded elsewhere."""
    if not responses.num_rows or "request_hash" not in responses.column_names:
        return False
    sql = "SELECT count(request_hash) = 0 FROM responses SEMI JOIN real USING (model_id)"
    connection.execute("CREATE TEMP VIEW real AS SELECT model_id FROM models WHERE kind = 'real'")
    row = connection.execute(sql).fetchone()
    return bool(row[0])


def sentence(row: Mapping[str, Any]) -> str:
    """One cause in words."""
    by = f" of {row['scorer']!r}" if row["cause"] == "scorer error" else ""
    for_ = f" (scorer {row['scorer']!r})" if row["scorer"] and not by else ""
    example = f": {row['example']}" if row["example"] else ""
    return (
        f"{row['pairs']:,} pairs without a label: {row['cause']}{by}{for_}, "
        f"{row['questions']:,} questions x {row['models']:,} models, "
        f"e.g. {row['query_id']}{example}"
    )
