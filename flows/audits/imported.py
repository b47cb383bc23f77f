"""The audit of an import: its answers and questions as a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.audit.run import RecordingAudit

_JOINED = """
SELECT a.model AS arm, a.query AS question, q.task AS suite, a.sample, a.score, a.cost_usd,
       a.prompt_tokens, a.completion_tokens, a.latency_s, a.served_model, a.text,
       q.question || coalesce(chr(10) || array_to_string(q.choices, chr(10)), '') AS prompt,
       coalesce(a.graded_against[1], q.references[1]) AS reference
FROM read_parquet(?) a JOIN read_parquet(?) q ON a.query = q.id
ORDER BY a.query, a.model, a.sample
"""


#: What `routeyard import` writes.
_FILES = ("responses.parquet", "queries.parquet", "recipe.yaml")


def is_import(folder: Path) -> bool:
    """Whether `routeyard import` wrote the folder."""
    return all((folder / name).is_file() for name in _FILES)


def audit_import(folder: Path) -> RecordingAudit:
    """Findings over the files that `routeyard import` wrote.

    A source's own split is not looked at: a build reports what it leaks.
    """
    from routeyard.pipelines.audit.run import audit_recording

    return audit_recording(imported_recording(folder))


def imported_recording(folder: Path) -> pa.Table:
    """Answers and questions of an import as a recording."""
    import duckdb

    from routeyard.schemas.recording import RECORDING, recording

    files = [str(folder / name) for name in _FILES[:2]]
    with duckdb.connect(config={"threads": 2}) as connection:
        found = connection.sql(_JOINED, params=files).to_arrow_table()
    given = [name for name in RECORDING.names if name in found.column_names]
    return recording({name: found.column(name) for name in given})
