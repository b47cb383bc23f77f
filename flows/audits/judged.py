"""The last build of a benchmark, or a release, as tables that can be audited."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.flows.workspace.tables import read_shards
from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.schemas.recipe import Recipe


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
    from routeyard.flows.evaluation.released import read_release
    from routeyard.pipelines.release.manifest import read_manifest

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
    from routeyard.flows.recipe import load

    name = benchmark
    known = (workspace / "runs" / f"{name}.json").is_file()
    if not known and (Path(benchmark).suffix or Path(benchmark).is_file()):
        name = load(benchmark)[0].name
    last = LastBuild.of(workspace, name, needs=("ingest", "collect", "label"))
    try:
        recipe: Recipe | None = load(last.recipe)[0]
    except BadInput:
        recipe = None  # the recipe was moved: the caller names the default policy
    return Built(last.name, recipe, last.folders)


@dataclass(frozen=True)
class LastBuild:
    """The last build of a benchmark in a workspace.

    Attributes:
        recipe: What it was built from, as the command named it.
        folders: Stage → folder of its output.
    """

    name: str
    recipe: str
    folders: dict[str, Path]

    @classmethod
    def of(cls, workspace: Path, benchmark: str | None, *, needs: Sequence[str]) -> LastBuild:
        """The last build of `benchmark`, or of the only one that the workspace holds.

        Raises:
            BadInput: there is none, there are several, or a stage of `needs` was not reached.
        """
        runs = {path.stem: path for path in sorted((workspace / "runs").glob("*.json"))}
        again = f"routeyard build RECIPE --workspace {workspace}"
        if not runs and benchmark is None:
            raise BadInput(
                "this is neither a release (no manifest.json) nor a workspace with a build",
                where=str(workspace),
                next_step=f"build one: {again}",
            )
        if benchmark is None and len(runs) > 1:
            raise BadInput(
                f"the workspace holds {len(runs)} benchmarks: {', '.join(runs)}",
                where=str(workspace),
                next_step="choose one with --benchmark",
            )
        name = benchmark if benchmark is not None else next(iter(runs))
        if name not in runs:
            raise BadInput(
                f"no build of {name!r} in this workspace",
                where=str(workspace / "runs"),
                next_step=f"{again}, or name one that was built: {did_you_mean(name, runs)}",
            )
        record: dict[str, Any] = json.loads(runs[name].read_text(encoding="utf-8"))
        folders = {stage: workspace / at for stage, at in record.get("folders", {}).items()}
        recipe = str(record.get("recipe", ""))
        for stage in needs:
            if not folders.get(stage, Path("-")).is_dir():
                raise BadInput(
                    f"the last build of {name!r} has no {stage} stage on disk",
                    where=str(runs[name]),
                    next_step=again.replace("RECIPE", recipe or "RECIPE"),
                )
        return cls(name, recipe, folders)
