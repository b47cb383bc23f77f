"""The last build of a benchmark, or a release, as tables."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flows.workspace.tables import read_shards
from pipelines.errors import BadInput
from schemas.recipe import Recipe


class Judged(ABC):
    """What can be audited: questions, answers, verdicts and labels of one benchmark."""

    name: str
    recipe: Recipe | None

    @abstractmethod
    def table(self, stage: str, table: str) -> pa.Table:
        """A table that a stage made."""

    @property
    def queries(self) -> pa.Table:
        return self.table("ingest", "queries")

    @property
    @abstractmethod
    def responses(self) -> pa.Table: ...

    @property
    def verdicts(self) -> pa.Table:
        return self.table("label", "verdicts")

    @property
    def labels(self) -> pa.Table:
        return self.table("label", "labels")

    @property
    @abstractmethod
    def duplicates(self) -> pa.Table | None: ...


@dataclass(frozen=True)
class Built(Judged):
    """What the last build of a benchmark stored, up to its labels."""

    name: str
    recipe: Recipe | None
    folders: dict[str, Path]

    def table(self, stage: str, table: str) -> pa.Table:
        return read_shards([self.folders[stage] / f"{table}.parquet"], table)

    @property
    def responses(self) -> pa.Table:
        files = sorted((self.folders["collect"] / "responses").glob("*.parquet"))
        return read_shards(files, "responses")

    @property
    def released_labels(self) -> pa.Table:
        """Labels of the questions and models that curation left; all where it has not run."""
        folder, labels = self.folders.get("curate"), self.labels
        for name, key in (("queries", "query_id"), ("models", "model_id")):
            path = folder / f"{name}.parquet" if folder else None
            if path and path.is_file():
                left = pq.read_table(path, columns=[key]).column(key).combine_chunks()
                labels = labels.filter(pc.is_in(labels.column(key), value_set=left))
        return labels

    @property
    def duplicates(self) -> pa.Table | None:
        folder = self.folders.get("curate")
        path = folder / "duplicates.parquet" if folder else None
        return read_shards([path], "duplicates") if path and path.is_file() else None


@dataclass(frozen=True)
class Sealed(Judged):
    """A release, anybody's; nothing of a workspace is read."""

    name: str
    recipe: Recipe | None
    tables: Mapping[str, pa.Table]

    def table(self, stage: str, table: str) -> pa.Table:
        if table not in self.tables:
            raise BadInput(
                f"the release has no table {table!r}, which the stage {stage!r} makes",
                next_step="name a build of this workspace, which keeps all of them",
            )
        return self.tables[table]

    @property
    def responses(self) -> pa.Table:
        return self.table("collect", "responses")

    @property
    def duplicates(self) -> pa.Table | None:
        return self.tables.get("duplicates")


def sealed(release: Path) -> Sealed:
    """A release folder, anybody's.

    Raises:
        BadInput: it lacks a table, or its manifest cannot be read.
        ContractError: a table breaks its contract.
    """
    from flows.evaluation.released import read_release
    from pipelines.release.manifest import read_manifest

    manifest = read_manifest(release)
    try:
        recipe: Recipe | None = Recipe.model_validate(manifest.recipe)
    except ValueError:
        recipe = None  # of another version of Routeyard, or not made by it
    return Sealed(manifest.name, recipe, read_release(release))


def built(benchmark: str, workspace: Path) -> Built:
    """The last build, by benchmark name or by its recipe.

    Raises:
        BadInput: it was never built up to its labels in this workspace.
    """
    from flows.recipe import load
    from pipelines.errors import did_you_mean

    runs = workspace / "runs"
    known = [path.stem for path in runs.glob("*.json")]
    name = benchmark
    if name not in known and (Path(benchmark).suffix or Path(benchmark).is_file()):
        name = load(benchmark)[0].name
    if name not in known:
        raise BadInput(
            f"no build of {name!r} in this workspace",
            where=str(runs),
            next_step=f"routeyard build RECIPE --workspace {workspace}, or name one that was "
            f"built: {did_you_mean(name, known)}",
        )
    record: dict[str, Any] = json.loads((runs / f"{name}.json").read_text(encoding="utf-8"))
    folders = {stage: workspace / folder for stage, folder in record.get("folders", {}).items()}
    lacking = [s for s in ("ingest", "collect", "label") if not folders.get(s, Path("-")).is_dir()]
    if lacking:
        raise BadInput(
            f"the last build of {name!r} has no {lacking[0]} stage on disk",
            where=str(runs / f"{name}.json"),
            next_step=f"routeyard build {record.get('recipe', 'RECIPE')} --workspace {workspace}",
        )
    try:
        recipe: Recipe | None = load(str(record.get("recipe", "")))[0]
    except BadInput:
        recipe = None  # the recipe was moved: the default policy is said aloud by the caller
    return Built(name, recipe, folders)
