"""The workspace: where stage outputs are stored, under the fingerprint of what made them.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from routeyard.flows.tracking.log import counts, log
from routeyard.flows.workspace.code import made_by
from routeyard.flows.workspace.seal import RECORD, clear, intact, sealed
from routeyard.pipelines.io.staging import alone, place, staging, write_json


@dataclass(frozen=True, slots=True)
class BuildContext:
    """What every stage of a build is given beside its sections of the recipe.

    Attributes:
        benchmark: The recipe's name.
        root: The workspace.
        base: Folder that the recipe's paths start from.
        jobs: Worker processes.
        shards: Parts that each model's questions, and the embedding, are cut into.
    """

    benchmark: str
    root: Path
    base: Path
    jobs: int = 1
    shards: int = 1


@dataclass(frozen=True, slots=True)
class StageWork:
    """What a stage's output is made of, and the function that makes it.

    Attributes:
        parameters: JSON-ready; all that steers the stage.
        inputs: Name → fingerprint of each input.
        make: Writes tables into a folder and returns JSON-ready figures. The code that it and
            the function around it can reach enters the fingerprint.
        uses: Modules of registered parts that it uses (`Registry.modules`).
    """

    parameters: Mapping[str, Any]
    inputs: Mapping[str, str]
    make: Callable[[Path], Mapping[str, Any]]
    uses: Iterable[str] = ()

    def made_of(self, stage: str) -> dict[str, Any]:
        """What is hashed: stage, parameters, inputs and the code's modules, JSON-ready."""
        content = {
            "stage": stage,
            "parameters": dict(self.parameters),
            "inputs": dict(self.inputs),
            "code": made_by(self.make, self.uses),
        }
        # Canonical JSON once, so that what is compared later equals what was hashed.
        return dict(json.loads(json.dumps(content)))


@dataclass(frozen=True, slots=True)
class PendingAnswers:
    """Answers of models that a stage still lacks; nothing is sent before `ask` is called.

    Attributes:
        count: Missing answers.
        ask: Asks for them, and returns the stage's work.
    """

    count: int
    ask: Callable[[], StageWork]


class StageResult(BaseModel):
    """A finished stage: where its tables are stored, and whether they were already there."""

    model_config = ConfigDict(frozen=True)

    stage: str
    fingerprint: str
    folder: str
    reused: bool
    figures: dict[str, Any]

    def path(self, table: str) -> Path:
        """Parquet file of one of the stage's tables."""
        return Path(self.folder) / f"{table}.parquet"

    def parts(self, table: str) -> list[Path]:
        """Parquet files of a table that is written in parts, in name order."""
        return sorted((Path(self.folder) / table).glob("*.parquet"))


def digest(content: Any) -> str:
    """SHA-256 over canonical JSON."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def find_stage(
    root: Path, made_of: Mapping[str, Any], *, thoroughly: bool = True
) -> StageResult | None:
    """The stored output of a stage; None where it is missing or damaged.

    Args:
        made_of: See `StageWork.made_of`.
        thoroughly: Read every file; else only sizes are compared.
    """
    folder = _folder(root, made_of)
    record = intact(folder, thoroughly=thoroughly)
    if record is None:
        return None
    return StageResult(
        stage=made_of["stage"],
        fingerprint=folder.name,
        folder=str(folder),
        reused=True,
        figures=record["figures"],
    )


def complete_stage(
    stage: str,
    function: Callable[..., StageWork | PendingAnswers],
    context: BuildContext,
    given: Mapping[str, Any],
    shard: tuple[int, int] | None = None,
) -> StageResult:
    """Output of a stage's function: asked for what is missing, stored, or reused."""
    work = function(context, **given)
    if isinstance(work, PendingAnswers):
        work = work.ask()
    return run_stage(context.root, stage, work, benchmark=context.benchmark, shard=shard)


def run_stage(
    root: Path,
    stage: str,
    work: StageWork,
    *,
    benchmark: str = "",
    shard: tuple[int, int] | None = None,
) -> StageResult:
    """Output of `work.make`, which runs unless it is stored already.

    Args:
        benchmark, shard: For the log only; (number from 1, how many) where there are several.
    """
    made_of = work.made_of(stage)
    if (stored := find_stage(root, made_of)) is not None:
        log(benchmark, stage, f"unchanged: {counts(stored.figures)}", shard=shard)
        return stored
    folder = _folder(root, made_of)
    with alone(folder, lambda: _note(f"{stage}: waiting for another build that makes it")):
        # What another build finished meanwhile is its and ours: only what is damaged is cleared.
        if (stored := find_stage(root, made_of)) is not None:
            log(benchmark, stage, f"made by another build: {counts(stored.figures)}", shard=shard)
            return stored
        if clear(folder):
            _note(f"{stage} is made again: {folder} was damaged")
        log(benchmark, stage, "begins", shard=shard)
        begun = time.monotonic()
        with staging(folder) as unfinished:
            figures = dict(work.make(unfinished))
            record = {**made_of, "fingerprint": folder.name, "figures": figures}
            write_json(unfinished / RECORD, sealed(unfinished, record))
            try:
                place(unfinished, folder)
            except OSError:
                if intact(folder, thoroughly=False) is None:
                    raise
                # Another process was faster, without a lock; the content is the same.
    log(benchmark, stage, f"{counts(figures)}, in {time.monotonic() - begun:.1f} s", shard=shard)
    return StageResult(
        stage=stage,
        fingerprint=folder.name,
        folder=str(folder),
        reused=False,
        figures=json.loads(json.dumps(figures)),
    )


def _note(text: str) -> None:
    from routeyard.flows import console

    console.line("note", text)


def _folder(root: Path, made_of: Mapping[str, Any]) -> Path:
    return root / "stages" / str(made_of["stage"]) / digest(made_of)[:24]


def write_table(table: Any, path: Path) -> None:
    """Parquet, zstd, in the table's own order."""
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", row_group_size=100_000)
