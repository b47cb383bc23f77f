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
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from routeyard.flows.tracking.run import counts, log
from routeyard.flows.workspace.code import made_by
from routeyard.pipelines.common.files import sha256
from routeyard.pipelines.common.staging import alone, beside, place, staging, write_json
from routeyard.schemas import CONTRACTS, VERDICTS

# Whether a stage's folder holds what its stage wrote: sizes and SHA-256 of its files.
#
# A file kept on a disk for months can lose a file, end early or have a bit flipped. A folder that
# does not match its seal counts as not made, so that the stage is run again; nothing in it was
# paid for that the ledger does not hold.

RECORD = "stage.json"


def sealed(folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a finished stage with its files, and with a hash over all of it."""
    files = {
        path.relative_to(folder).as_posix(): [path.stat().st_size, sha256(path)]
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    whole = {**record, "files": files}
    return {**whole, "seal": _digest(whole)}


def intact(folder: Path, *, thoroughly: bool = True) -> dict[str, Any] | None:
    """The record of a stage's folder; None where the record is missing or damaged.

    Args:
        thoroughly: Read every file; else their sizes are compared.
    """
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        seal = record.pop("seal")
        if seal != _digest(record):
            return None
        for name, (size, digest) in record["files"].items():
            path = folder / name
            if path.stat().st_size != size or (thoroughly and sha256(path) != digest):
                return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return dict(record)


def clear(folder: Path) -> bool:
    """Take a damaged folder out of the way; True when there was one.

    Of a link only the link is taken: what it leads to, if anything, is somebody else's.
    """
    if not os.path.lexists(folder):
        return False
    aside = beside(folder)
    try:
        folder.rename(aside)
    except FileNotFoundError:
        return False  # another process was faster
    if aside.is_symlink():
        aside.unlink(missing_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    return True


def _digest(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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


# Reading and joining the tables that stages left in the workspace.


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


# Decisions of people on a benchmark's answers, one file per session.
#
# <workspace>/reviews/<benchmark>/*.parquet    verdicts of `human:<name>`

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
