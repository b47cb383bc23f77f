"""The workspace: where stage outputs lie, under the fingerprint of what made them.

    <workspace>/ledger/                       answers that were paid for
    <workspace>/stages/<stage>/<fingerprint>/ tables and stage.json of one stage
    <workspace>/cache/embeddings/             vectors by encoder and text
    <workspace>/releases/<name>/<version>/    releases
    <workspace>/runs/<name>.json              the last build of each benchmark

A stage folder appears whole or not at all: it is written beside and renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from flows.tracking.log import counts, log
from pipelines.ledger.owner import runs

#: True while `routeyard status` asks what a build would do: nothing is made.
PROBING: ContextVar[bool] = ContextVar("probing", default=False)


class Stale(Exception):
    """A stage would have to run; `made_of` is what its output would be made of."""

    def __init__(self, stage: str, made_of: Mapping[str, Any]):
        self.stage = stage
        self.made_of = made_of
        super().__init__(stage)


class Done(BaseModel):
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


@cache
def code_version(*rooms: str) -> str:
    """Hash of the source files of some packages or modules, e.g. `pipelines.label`.

    A stage whose code changed is stale; that of another room is not.
    """
    import importlib.util

    hashed = hashlib.sha256()
    for room in sorted(rooms):
        spec = importlib.util.find_spec(room)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(room)
        origin = Path(spec.origin)
        found = [origin] if origin.name != "__init__.py" else sorted(origin.parent.rglob("*"))
        for path in found:
            if path.suffix in (".py", ".yaml", ".txt", ".jinja", ".json"):
                name = path.relative_to(origin.parent).as_posix()
                hashed.update(f"{room}/{name}\0".encode() + path.read_bytes() + b"\0")
    return hashed.hexdigest()[:16]


def run_stage(
    root: Path,
    stage: str,
    *,
    parameters: Mapping[str, Any],
    inputs: Mapping[str, str],
    rooms: Sequence[str],
    make: Callable[[Path], Mapping[str, Any]],
    benchmark: str = "",
    shard: tuple[int, int] | None = None,
) -> Done:
    """Run `make(folder)` unless its output is already there.

    Args:
        parameters: JSON-ready; all that steers the stage.
        inputs: name → fingerprint of each input.
        rooms: Packages whose code makes the output.
        make: Writes tables into the folder and returns JSON-ready figures.
        benchmark, shard: For the log only; (number from 1, how many) where there are several.
    """
    made_of = {
        "stage": stage,
        "parameters": dict(parameters),
        "inputs": dict(inputs),
        "code": code_version(*rooms),
    }
    # Canonical JSON once, so that what is compared later equals what was hashed.
    made_of = json.loads(json.dumps(made_of))
    fingerprint = digest(made_of)[:24]
    folder = root / "stages" / stage / fingerprint
    if (folder / "stage.json").is_file():
        said = json.loads((folder / "stage.json").read_text(encoding="utf-8"))
        if not PROBING.get():
            log(benchmark, stage, f"unchanged: {counts(said['figures'])}", shard=shard)
        return Done(
            stage=stage,
            fingerprint=fingerprint,
            folder=str(folder),
            reused=True,
            figures=said["figures"],
        )
    if PROBING.get():
        raise Stale(stage, made_of)
    staging = folder.with_name(f".{fingerprint}.{uuid.uuid4().hex[:8]}.{_host()}.{os.getpid()}")
    _sweep(folder.parent)
    staging.mkdir(parents=True)
    log(benchmark, stage, "begins", shard=shard)
    begun = time.monotonic()
    try:
        figures = dict(make(staging))
        record = {**made_of, "fingerprint": fingerprint, "figures": figures}
        write_json(staging / "stage.json", record)
        try:
            staging.rename(folder)
        except OSError:
            if not (folder / "stage.json").is_file():
                raise
            # Another process was faster; the content is the same.
            shutil.rmtree(staging)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    log(benchmark, stage, f"{counts(figures)}, in {time.monotonic() - begun:.1f} s", shard=shard)
    return Done(
        stage=stage,
        fingerprint=fingerprint,
        folder=str(folder),
        reused=False,
        figures=json.loads(json.dumps(figures)),
    )


def write_json(path: Path, content: Any) -> None:
    """JSON with sorted keys, replaced in one step."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
    unfinished.write_text(text + "\n", encoding="utf-8")
    unfinished.replace(path)


def write_table(table: Any, path: Path) -> None:
    """Parquet, zstd, in the table's own order."""
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", row_group_size=100_000)


def _sweep(folder: Path) -> None:
    """Remove what killed processes of this host left half-written; others may be at work."""
    if not folder.is_dir():
        return
    for left in folder.glob(f".*.*.{_host()}.*"):
        pid = left.name.rpartition(".")[2]
        if pid.isdigit() and not runs(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


@cache
def _host() -> str:
    """This host as part of a file name."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
