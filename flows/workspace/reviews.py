"""Decisions of people on a benchmark's answers, one file per session.

<workspace>/reviews/<benchmark>/*.parquet    verdicts of `human:<name>`
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from routeyard.flows.workspace.stage_folders import write_table
from routeyard.flows.workspace.tables import read_shards
from routeyard.schemas import VERDICTS

_FOLDER = "reviews"


def review_files(workspace: Path, benchmark: str) -> list[Path]:
    """Reviews of a benchmark, oldest first."""
    return sorted((workspace / _FOLDER / benchmark).glob("*.parquet"))


def reviews(workspace: Path, benchmark: str) -> pa.Table:
    """All decisions of people on a benchmark, as verdicts."""
    return read_shards(review_files(workspace, benchmark), "verdicts")


def keep_review(workspace: Path, benchmark: str, verdicts: pa.Table, *, at: str) -> Path:
    """Add decisions; files are never changed, a later decision counts instead."""
    scorer = verdicts.column("scorer")[0].as_py().partition(":")[2]
    stamp = "".join(c for c in at if c.isalnum())
    path = workspace / _FOLDER / benchmark / f"{stamp}-{scorer}.parquet"
    write_table(VERDICTS.check(verdicts), path)
    return path
