"""The workspace: where stage outputs lie, under the fingerprint of what made them.

    <workspace>/ledger/                       answers that were paid for
    <workspace>/stages/<stage>/<fingerprint>/ tables and stage.json of one stage
    <workspace>/cache/embeddings/             vectors by encoder and text
    <workspace>/releases/<name>/<version>/    releases
    <workspace>/runs/<name>.json              the last build of each benchmark

A stage folder appears whole or not at all: it is written beside and renamed. One that was
damaged since is made again (`seal.py`).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from flows.tracking.log import counts, log
from flows.workspace.code import made_by
from flows.workspace.seal import RECORD, clear, intact, sealed
from pipelines.io.staging import place, staging, write_json

#: True while `routeyard status` asks what a build would do: nothing is made.
PROBING: ContextVar[bool] = ContextVar("probing", default=False)


class Stale(Exception):
    """A stage would have to run; `made_of` is what its output would be made of."""

    def __init__(self, stage: str, made_of: Mapping[str, Any]):
        self.stage = stage
        self.made_of = made_of
        super().__init__(stage)


class StageResult(BaseModel):
    """A finished stage: where its tables lie, and whether they were already there."""

    model_config = ConfigDict(frozen=True)

    stage: str
    fingerprint: str
    folder: str
    reused: bool
    figures: dict[str, Any]

    def path(self, table: str) -> Path:
        """Parquet file of one of the stage's tables."""
        return Path(self.folder) / f"{table}.parquet"


def digest(content: Any) -> str:
    """SHA-256 over canonical JSON."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def run_stage(
    root: Path,
    stage: str,
    *,
    parameters: Mapping[str, Any],
    inputs: Mapping[str, str],
    make: Callable[[Path], Mapping[str, Any]],
    uses: Iterable[str] = (),
    benchmark: str = "",
    shard: tuple[int, int] | None = None,
) -> StageResult:
    """Run `make(folder)` unless its output is already there.

    Args:
        parameters: JSON-ready; all that steers the stage.
        inputs: name → fingerprint of each input.
        make: Writes tables into the folder and returns JSON-ready figures. The code
            that it and the function around it can reach enters the fingerprint.
        uses: Modules of registered parts that it uses (`Registry.modules`).
        benchmark, shard: For the log only; (number from 1, how many) where there are several.
    """
    made_of = {
        "stage": stage,
        "parameters": dict(parameters),
        "inputs": dict(inputs),
        "code": made_by(make, uses),
    }
    # Canonical JSON once, so that what is compared later equals what was hashed.
    made_of = json.loads(json.dumps(made_of))
    fingerprint = digest(made_of)[:24]
    folder = root / "stages" / stage / fingerprint
    said = intact(folder, thoroughly=not PROBING.get())
    if said is not None:
        if not PROBING.get():
            log(benchmark, stage, f"unchanged: {counts(said['figures'])}", shard=shard)
        return StageResult(
            stage=stage,
            fingerprint=fingerprint,
            folder=str(folder),
            reused=True,
            figures=said["figures"],
        )
    if PROBING.get():
        raise Stale(stage, made_of)
    if clear(folder):
        from flows import console  # which asks this module whether it probes

        console.line("note", f"{stage} is made again: {folder} was damaged")
    log(benchmark, stage, "begins", shard=shard)
    begun = time.monotonic()
    with staging(folder) as unfinished:
        figures = dict(make(unfinished))
        record = {**made_of, "fingerprint": fingerprint, "figures": figures}
        write_json(unfinished / RECORD, sealed(unfinished, record))
        try:
            place(unfinished, folder)
        except OSError:
            if intact(folder, thoroughly=False) is None:
                raise
            # Another process was faster; the content is the same.
    log(benchmark, stage, f"{counts(figures)}, in {time.monotonic() - begun:.1f} s", shard=shard)
    return StageResult(
        stage=stage,
        fingerprint=fingerprint,
        folder=str(folder),
        reused=False,
        figures=json.loads(json.dumps(figures)),
    )


def write_table(table: Any, path: Path) -> None:
    """Parquet, zstd, in the table's own order."""
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", row_group_size=100_000)
