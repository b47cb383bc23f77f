"""The last build of a benchmark, or a release, as tables that can be audited."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.flows.evaluation.released import Tables, read_release
from routeyard.flows.workspace.tables import read_shards
from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.schemas.recipe import Recipe

#: Table → the stage that makes it.
_MADE_BY = {
    "queries": "ingest", "models": "pool", "responses": "collect", "verdicts": "label",
    "labels": "label",
}  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """What can be audited: questions, answers, verdicts and labels of one benchmark.

    Attributes:
        tables: Its tables, each read when it is asked for.
        folders: Stage → folder of its output in the last build; empty for a release.
    """

    name: str
    recipe: Recipe | None
    tables: Tables
    folders: Mapping[str, Path] = field(default_factory=dict)

    def __getitem__(self, table: str) -> pa.Table:
        if table not in self.tables:
            raise BadInput(
                f"the release has no table {table!r}, which the stage {_MADE_BY[table]!r} makes",
                next_step="name a build of this workspace, which keeps all of them",
            )
        return self.tables[table]

    @property
    def released_labels(self) -> pa.Table:
        """Labels of the questions and models that curation left; all where it has not run."""
        folder, labels = self.folders.get("curate"), self["labels"]
        for name, key in (("queries", "query_id"), ("models", "model_id")):
            path = folder / f"{name}.parquet" if folder else None
            if path and path.is_file():
                left = pq.read_table(path, columns=[key]).column(key).combine_chunks()
                labels = labels.filter(pc.is_in(labels.column(key), value_set=left))
        return labels


def sealed(release: Path) -> Judged:
    """A release folder, anybody's; nothing of a workspace is read.

    Raises:
        BadInput: it lacks a table, or its manifest cannot be read.
        ContractError: a table breaks its contract.
    """
    from routeyard.pipelines.release.manifest import read_manifest

    manifest = read_manifest(release)
    try:
        recipe: Recipe | None = Recipe.model_validate(manifest.recipe)
    except ValueError:
        recipe = None  # of another version of Routeyard, or not made by it
    return Judged(manifest.name, recipe, read_release(release))


def built(benchmark: str, workspace: Path) -> Judged:
    """What the last build stored, by its name or by a recipe of that name, which then decides
    what scorers and policy are.

    Raises:
        BadInput: it was never built up to its labels in this workspace.
    """
    from routeyard.flows.recipe import load

    name, recipe = benchmark, None
    known = (workspace / "runs" / f"{name}.json").is_file()
    if not known and (Path(benchmark).suffix or Path(benchmark).is_file()):
        recipe = load(benchmark)[0]  # it counts, whatever file the last build was made from
        name = recipe.name
    last = LastBuild.of(workspace, name, needs=("ingest", "collect", "label"))
    if recipe is None:
        try:
            recipe = load(last.recipe)[0]
        except BadInput:
            recipe = None  # the recipe was moved: the caller names the default policy
    at = last.folders
    files = {name: [at[s] / f"{name}.parquet"] for name, s in _MADE_BY.items() if s in at}
    files["responses"] = sorted((at["collect"] / "responses").glob("*.parquet"))
    duplicates = at.get("curate", Path("-")) / "duplicates.parquet"
    if duplicates.is_file():
        files["duplicates"] = [duplicates]
    readers = {table: partial(read_shards, paths, table) for table, paths in files.items()}
    return Judged(last.name, recipe, Tables(readers), at)


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
            BadInput: the workspace has no build or several, or a stage of `needs` was not reached.
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
