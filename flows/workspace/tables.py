"""Reading and joining the tables that stages left in the workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.flows.workspace.stage_folders import StageResult, digest
from routeyard.pipelines.io.files import sha256
from routeyard.schemas import CONTRACTS


def read(done: StageResult, table: str) -> pa.Table:
    """One table of a finished stage, in contract form."""
    return CONTRACTS[table].conform(pq.read_table(done.path(table)), where=str(done.path(table)))


def read_shards(shards: Iterable[Path], table: str) -> pa.Table:
    """Shard files of one table, one after the other in file order."""
    contract = CONTRACTS[table]
    parts = [contract.conform(pq.read_table(path), where=str(path)) for path in shards]
    return pa.concat_tables(parts) if parts else contract.empty()


def read_all(folder: Path) -> dict[str, pa.Table]:
    """Every contract table that a stage folder holds."""
    found = {}
    for path in sorted(folder.glob("*.parquet")):
        if path.stem in CONTRACTS:
            contract = CONTRACTS[path.stem]
            found[path.stem] = contract.conform(pq.read_table(path), where=str(path))
    return found


def content(paths: Iterable[Path]) -> str:
    """Fingerprint of some files by what they hold."""
    return digest([[path.name, sha256(path)] for path in sorted(paths)])[:24]


def slug(name: str) -> str:
    """A model id as a file name; the digest keeps different ids apart."""
    plain = "".join(c if c.isalnum() or c in "-." else "_" for c in name)
    return f"{plain[:60]}-{digest(name)[:8]}"


def figures_of(*stages: StageResult) -> Mapping[str, Any]:
    """stage → figures, for manifest and card."""
    return {done.stage: done.figures for done in stages}
