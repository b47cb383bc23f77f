"""Tables of MMLU-Pro as recorded: a label is the run's own letter against its own key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from routeyard.schemas import LABELS, MODELS, QUERIES


def mmlu_pro(data: Path) -> dict[str, pa.Table]:
    """`queries`, `models` and `labels`; answers without a letter are undecided, not wrong."""
    folder = data / "mmlu_pro"
    with duckdb.connect() as connection:

        def read(sql: str, *names: str) -> Any:
            paths = [str(folder / name) for name in names]
            return connection.sql(sql, params=paths).to_arrow_table()

        queries = read(
            """SELECT 'q' || substr(sha256(question_id::VARCHAR), 1, 20) AS query_id,
                'mmlu_pro' AS source, question_id::VARCHAR AS source_id, category::VARCHAR AS task,
                'knowledge' AS domain, question, question AS prompt, options AS choices,
                [answer::VARCHAR] AS "references", 'mcq' AS scorer, '{}' AS metadata
            FROM read_parquet(?) ORDER BY question_id""",
            "queries.parquet",
        )
        models = read(
            """SELECT DISTINCT model::VARCHAR AS model_id, NULL AS provider, NULL AS family,
                NULL AS params_b, NULL AS price_in, NULL AS price_out, NULL AS price_date,
                NULL AS price_source, NULL AS context_window, 'real' AS kind, false AS simulated
            FROM read_parquet(?) ORDER BY 1""",
            "responses.parquet",
        )
        labels = read(
            """SELECT 'q' || substr(sha256(question_id::VARCHAR), 1, 20) AS query_id,
                model::VARCHAR AS model_id, (pred = answer_in_run)::DOUBLE AS score,
                pred = answer_in_run AS correct,
                CASE WHEN pred IS NOT NULL THEN 'mcq' END AS decided_by,
                false AS contested, 1::INTEGER AS n_samples
            FROM read_parquet(?) ORDER BY 1, 2""",
            "responses.parquet",
        )
    return {
        "queries": QUERIES.check(queries),
        "models": MODELS.check(models),
        "labels": LABELS.check(labels),
    }
