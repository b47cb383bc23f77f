"""Reading and joining the tables that stages left in the workspace."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.flows.workspace.stage_folders import StageResult, digest
from routeyard.pipelines.io.files import sha256
from routeyard.schemas import CONTRACTS


def read(done: StageResult, table: str) -> pa.Table:
    """One table of a finished stage, in contract form."""
    return read_shards([done.path(table)], table)


def read_shards(shards: Iterable[Path], table: str) -> pa.Table:
    """Shard files of one table, one after the other in file order."""
    contract = CONTRACTS[table]
    parts = [contract.conform(pq.read_table(path), where=str(path)) for path in shards]
    return pa.concat_tables(parts) if parts else contract.empty()


def read_all(folder: Path) -> dict[str, pa.Table]:
    """Every contract table that a stage folder holds."""
    files = sorted(folder.glob("*.parquet"))
    return {one.stem: read_shards([one], one.stem) for one in files if one.stem in CONTRACTS}


def content(paths: Iterable[Path]) -> str:
    """Fingerprint of some files by what they hold."""
    return digest([[path.name, sha256(path)] for path in sorted(paths)])[:24]


def slug(name: str) -> str:
    """A model id as a file name; the digest keeps different ids apart."""
    plain = "".join(c if c.isalnum() or c in "-." else "_" for c in name)
    return f"{plain[:60]}-{digest(name)[:8]}"
