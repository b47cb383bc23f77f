"""Reading and joining the tables that stages left in the workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
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
    key = tuple((str(one), one.stat().st_mtime_ns, one.stat().st_size) for one in files)
    if _kept is None or key not in _kept:
        found = {one.stem: read_shards([one], one.stem) for one in files if one.stem in CONTRACTS}
        if _kept is None:
            return found
        _kept.clear()
        _kept[key] = found
    return dict(_kept[key])


#: Files → the tables of the folder that was last read whole, while they are kept.
_kept: dict[tuple[tuple[str, int, int], ...], dict[str, pa.Table]] | None = None


@contextmanager
def keeping() -> Iterator[None]:
    """Tables of the folder that `read_all` read last are kept: several stages ask for the same."""
    global _kept
    before, _kept = _kept, {}
    try:
        yield
    finally:
        _kept = before


def of_models(table: pa.Table, models: pa.Table) -> pa.Table:
    """Rows about some models, by `model_id`; the table itself where all of them are."""
    wanted = pc.is_in(table.column("model_id"), models.column("model_id"))
    # Texts are copied only where a row is left out.
    return table if pc.all(wanted, min_count=0).as_py() else table.filter(wanted)


def content(paths: Iterable[Path]) -> str:
    """Fingerprint of some files by what they hold."""
    return digest([[path.name, sha256(path)] for path in sorted(paths)])[:24]


def slug(name: str) -> str:
    """A model id as a file name; the digest keeps different ids apart."""
    plain = "".join(c if c.isalnum() or c in "-." else "_" for c in name)
    return f"{plain[:60]}-{digest(name)[:8]}"
