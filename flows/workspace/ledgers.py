"""A workspace's ledger for commands that only read: it must be there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from routeyard.flows.workspace.shares import LEDGER, open_ledger
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.ledger.ledger import Ledger


def ledger_exists(workspace: Path) -> bool:
    """Whether there is a ledger to read: the shared one, or the workspace's own file."""
    return bool(os.environ.get(LEDGER)) or (workspace / "ledger" / "ledger.sqlite").is_file()


@contextmanager
def existing_ledger(workspace: Path) -> Iterator[Ledger]:
    """The ledger to read: the shared one, or the workspace's own file.

    Raises:
        BadInput: nothing was asked from this workspace.
    """
    if not ledger_exists(workspace):
        raise BadInput(
            "this workspace has no ledger: no model was asked from it",
            where=str(workspace / "ledger" / "ledger.sqlite"),
            next_step="name a workspace in which a recipe with provider 'openai' was built",
        )
    with open_ledger(workspace) as ledger:
        yield ledger


def prompts(workspace: Path) -> Any:
    """`query_id` and `prompt` of every question the workspace has ingested, or null."""
    import duckdb

    files = [str(path) for path in workspace.glob("stages/ingest/*/queries.parquet")]
    if not files:
        return None
    with duckdb.connect() as connection:
        return connection.sql(
            "SELECT query_id, min(prompt) AS prompt FROM read_parquet(?) GROUP BY 1 ORDER BY 1",
            params=[files],
        ).to_arrow_table()
