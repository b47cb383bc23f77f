"""A workspace's ledger for commands that only read: it must be there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipelines.errors import BadInput


def ledger_path(workspace: Path) -> Path:
    """Where the ledger lies.

    Raises:
        BadInput: nothing was asked from this workspace.
    """
    path = workspace / "ledger" / "ledger.sqlite"
    if not path.is_file():
        raise BadInput(
            "this workspace has no ledger: no model was asked from it",
            where=str(path),
            next_step="name a workspace in which a recipe with provider 'openai' was built",
        )
    return path


def prompts(workspace: Path) -> Any:
    """`query_id` and `prompt` of every question the workspace has ingested, or null."""
    import duckdb

    if not list(workspace.glob("stages/ingest/*/queries.parquet")):
        return None
    pattern = str(workspace / "stages" / "ingest" / "*" / "queries.parquet")
    with duckdb.connect() as connection:
        return connection.execute(
            "SELECT query_id, min(prompt) AS prompt FROM read_parquet(?) GROUP BY 1 ORDER BY 1",
            [pattern],
        ).to_arrow_table()
