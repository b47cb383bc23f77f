"""The audit of an import: its answers and questions as a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routeyard.pipelines.audit.run import RecordingAudit

_JOINED = """
SELECT a.model AS arm, a.query AS question, q.task AS suite, a.sample, a.score, a.cost_usd,
       a.prompt_tokens, a.completion_tokens, a.latency_s, a.served_model, a.text,
       q.question || coalesce(chr(10) || array_to_string(q.choices, chr(10)), '') AS prompt,
       coalesce(a.graded_against[1], q.references[1]) AS reference
FROM read_parquet(?) a JOIN read_parquet(?) q ON a.query = q.id
ORDER BY a.query, a.model, a.sample
"""


def audit_import(folder: Path) -> RecordingAudit:
    """Findings over the files that `routeyard import` wrote.

    A source's own split is not looked at: a build reports what it leaks.
    """
    import duckdb

    from routeyard.pipelines.audit.run import audit_recording
    from routeyard.schemas.recording import RECORDING, recording

    files = [str(folder / "responses.parquet"), str(folder / "queries.parquet")]
    with duckdb.connect(config={"threads": 2}) as connection:
        found = connection.sql(_JOINED, params=files).to_arrow_table()
    given = [name for name in RECORDING.names if name in found.column_names]
    return audit_recording(recording({name: found.column(name) for name in given}))
