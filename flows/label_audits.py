"""Labels of a build or a release looked at again: audited, regraded, decided by people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.flows.console import line
from routeyard.flows.evaluation.released import Tables, read_release
from routeyard.flows.workspace import (
    keep_review,
    last_builds,
    read_all,
    read_shards,
    reviews,
    write_table,
)
from routeyard.pipelines.audit.labels import audit, decisions, from_csv, review_queue
from routeyard.pipelines.label.policies import add, decide
from routeyard.pipelines.label.rules import changes, file_verdicts, keep_others, rescored
from routeyard.pipelines.release.manifest import check_core, read_manifest
from routeyard.schemas import VERDICTS
from routeyard.schemas.errors import BadInput, did_you_mean
from routeyard.schemas.questions import looked_for_duplicates
from routeyard.schemas.recipe import Label, Recipe
from routeyard.schemas.text import SIMILARITY

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.audit.labels import Audit
    from routeyard.pipelines.label.rules import LabelChanges, ScorerChange

# The last build of a benchmark, or a release, as tables that can be audited.

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
    if name not in last_builds(workspace) and (Path(benchmark).suffix or Path(benchmark).is_file()):
        recipe = load(benchmark)[0]  # it counts, whatever file the last build was made from
        name = recipe.name
    name, source, at = last_build(workspace, name, needs=("ingest", "collect", "label"))
    if recipe is None:
        try:
            recipe = load(source)[0]
        except BadInput:
            recipe = None  # the recipe was moved: the caller names the default policy
    files = {table: [at[s] / f"{table}.parquet"] for table, s in _MADE_BY.items() if s in at}
    files["responses"] = sorted((at["collect"] / "responses").glob("*.parquet"))
    duplicates = at.get("curate", Path("-")) / "duplicates.parquet"
    if duplicates.is_file():
        files["duplicates"] = [duplicates]
    readers = {table: partial(read_shards, paths, table) for table, paths in files.items()}
    return Judged(name, recipe, Tables(readers), at)


def last_build(
    workspace: Path, benchmark: str | None, *, needs: Sequence[str]
) -> tuple[str, str, dict[str, Path]]:
    """The last build of a benchmark, or of the only one that the workspace holds.

    Its name, its recipe as the command named it, and stage → folder of its output.

    Raises:
        BadInput: the workspace has no build or several, or a stage of `needs` was not reached.
    """
    runs = last_builds(workspace)
    again = f"routeyard build RECIPE --workspace {workspace}"
    if not runs and benchmark is None:
        raise BadInput(
            "this is neither a release (no manifest.json) nor a workspace with a build",
            where=str(workspace),
            next_step=f"build one: {again}",
        )
    if benchmark is None and len(runs) > 1:
        raise BadInput(
            f"the workspace holds {len(runs)} benchmarks: {', '.join(sorted(runs))}",
            where=str(workspace),
            next_step="choose one with --benchmark",
        )
    name = benchmark if benchmark is not None else next(iter(runs))
    if name not in runs:
        raise BadInput(
            f"no build of {name!r} in this workspace",
            where=str(workspace / "runs"),
            next_step=f"{again}, or name one that was built: " + did_you_mean(name, sorted(runs)),
        )
    record = runs[name]
    folders = {stage: workspace / at for stage, at in record.get("folders", {}).items()}
    recipe = str(record.get("recipe", ""))
    for stage in needs:
        if not folders.get(stage, Path("-")).is_dir():
            raise BadInput(
                f"the last build of {name!r} has no {stage} stage on disk",
                where=str(workspace / "runs" / f"{name}.json"),
                next_step=again.replace("RECIPE", recipe or "RECIPE"),
            )
    return name, recipe, folders


#: Bytes of a filled-in queue.
_MOST = 100_000_000


@dataclass(frozen=True)
class LabelAudit:
    """Findings on the labels of a benchmark.

    Attributes:
        losses: Why pairs have no label, as `routeyard.datacards.card.causes` counts them.
        duplicates_looked_for: Whether a rule looked for near-duplicates.
    """

    audit: Audit
    losses: Sequence[dict[str, Any]]
    duplicates_looked_for: bool


def audit_labels(benchmark: str | Path, workspace: Path = Path("yard")) -> LabelAudit:
    """Labels that should not be trusted, of a built benchmark, its recipe, or a release folder.

    Raises:
        BadInput: there is neither a build up to its labels nor a whole release.
    """
    from routeyard.datacards.card import causes

    if (Path(benchmark) / "manifest.json").is_file():
        # What people decided before the release is among its verdicts.
        result, decided = sealed(Path(benchmark)), VERDICTS.empty()
    else:
        result = built(str(benchmark), workspace)
        decided = reviews(workspace, result.name)
    names = ("queries", "responses", "labels", "verdicts", "models")
    tables = {name: result[name] for name in names}
    looked = result.recipe is None or looked_for_duplicates(result.recipe.model_dump(mode="json"))
    return LabelAudit(
        _audited(result, decided, result.tables.get("duplicates")), causes(tables), looked
    )


def _audited(judged: Judged, decided: pa.Table, duplicates: pa.Table | None = None) -> Audit:

    return audit(
        judged["queries"],
        judged["responses"],
        add(judged["verdicts"], decided),
        judged["labels"],
        duplicates,
        policy=None if judged.recipe is None else judged.recipe.label,
    )


def relabel(
    benchmark: str, workspace: Path = Path("yard"), *, jobs: int = 2, out: Path | None = None
) -> tuple[LabelChanges, Judged, list[ScorerChange]]:
    """What changes when scorers and policy of the recipe as it is now run over stored responses.

    Verdicts of verifiers, judges and people are carried over; the build is not touched. The
    third part lists the sources whose questions another scorer reads now.

    Args:
        out: Folder for the new verdicts and labels and the tables of changes.

    Raises:
        BadInput: there is no build up to its labels.
    """

    result = built(benchmark, workspace)
    policy = result.recipe.label if result.recipe else Label()
    queries, responses = result["queries"], result["responses"]
    queries, scorers = rescored(queries, _scorers(result))
    options = policy.model_dump(include={"run_code_without_isolation", "code_modules"})
    ruled = file_verdicts(queries, responses, jobs=jobs, options=options)
    verdicts = keep_others(add(result["verdicts"], reviews(workspace, result.name)), ruled)
    labels = decide(queries, responses, verdicts, policy=policy)
    changed = changes(queries, result["labels"], labels)
    if out is not None:
        tables = {"verdicts": verdicts, "labels": labels, "changed_labels": changed.labels}
        tables |= {"changed_models": changed.models, "changed_tasks": changed.tasks}
        for name, table in tables.items():
            write_table(table, out / f"{name}.parquet")
    return changed, result, scorers


def _scorers(judged: Judged) -> dict[str, str]:
    """Source → scorer that the recipe names now; sources whose rows name their own are left out."""
    from routeyard.pipelines.ingest.catalog import from_catalog

    sources = [from_catalog(source) for source in judged.recipe.sources] if judged.recipe else []
    return {
        source.name: source.scorer
        for source in sources
        if source.scorer and not (source.fields and source.fields.scorer)
    }


class Review:
    """Decisions of one person on the doubtful labels of a build, kept in its workspace.

    Raises:
        BadInput: there is no build up to its labels.
    """

    def __init__(self, benchmark: str, workspace: Path, by: str = "") -> None:
        self.judged = built(benchmark, workspace)
        self.name, self.count = self.judged.name, 0
        self._workspace, self._by = workspace, by

    def queue(self, limit: int = 200) -> list[dict[str, Any]]:
        """Answers to decide, the most consequential first."""

        result, decided = self.judged, reviews(self._workspace, self.name)
        suspects = _audited(result, decided).tables["suspect_gold"]
        # A pruned model or a removed question is nobody's work: no decision on it can show.
        return review_queue(
            result["queries"], result["responses"], add(result["verdicts"], decided),
            result.released_labels, suspects, limit=limit,
        )  # fmt: skip

    def take(self, file: Path) -> tuple[int, Path]:
        """Keep the decisions of a filled-in queue; how many there are, and where they are kept.

        Raises:
            BadInput: the file is not text, or holds no decision.
        """
        from routeyard.pipelines.common.untrusted import short_text

        at = _now("milliseconds")
        try:
            verdicts = from_csv(short_text(file, _MOST), by=self._by, at=at)
        except UnicodeDecodeError as error:
            raise BadInput(f"the file is not text: {error}", where=str(file)) from error
        if not verdicts.num_rows:
            raise BadInput(
                "no decision is filled in", where=str(file), next_step="fill in `decision`"
            )
        return verdicts.num_rows, keep_review(self._workspace, self.name, verdicts, at=at)

    def keep(self, key: tuple[str, str, int], decision: str, note: str) -> None:
        """Keep one decision on (query_id, model_id, sample)."""

        at = _now("microseconds")
        item = decisions([(key, decision, note, "")], by=self._by, at=at)
        keep_review(self._workspace, self.name, item, at=at)
        self.count += 1


def _now(precision: str) -> str:
    return datetime.now(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


# The health report of a workspace or a release, written to a folder.

#: Tables the report reads.
READ = ("queries", "models", "labels", "embeddings", "duplicates", "splits", "responses")


def write_health(
    place: Path,
    out: Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    threshold: float = SIMILARITY,
    trade_off: float | None = None,
    weighting: Literal["query", "task"] = "query",
) -> Path:
    """health.html, health.md, plots/ and one Parquet file per table; returns the page.

    Raises:
        BadInput: the folder is neither a workspace nor a release, or `out` is in
            a release.
    """
    from routeyard.datacards.reports.health import health_report
    from routeyard.pipelines.curate.health import health
    from routeyard.pipelines.release.storage import outside_releases

    outside_releases(out)
    line("health", f"reads {place}")
    title, tables, found_encoder = _read(place, benchmark)
    counts = (f"{tables[name].num_rows:,} {name}" for name in ("queries", "models", "labels"))
    line("health", f"{title}: {', '.join(counts)}")
    result = health(
        tables,
        encoder=encoder if encoder is not None else found_encoder,
        threshold=threshold,
        trade_off=trade_off,
        weighting=weighting,
    )
    line("health", f"draws {len(result.tables)} tables")
    report = health_report(title, result.tables, result.facts)
    out.mkdir(parents=True, exist_ok=True)
    for name, table in result.tables.items():
        write_table(table, out / f"{name}.parquet")
    (out / "plots").mkdir(exist_ok=True)
    for name, plot in report.plots.items():
        (out / "plots" / f"{name}.svg").write_text(plot, encoding="utf-8")
    (out / "facts.json").write_text(
        json.dumps(result.facts, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )
    (out / "health.md").write_text(report.markdown, encoding="utf-8")
    page = out / "health.html"
    page.write_text(report.html, encoding="utf-8")
    return page


def _read(place: Path, benchmark: str | None) -> tuple[str, dict[str, pa.Table], str | None]:
    if (place / "manifest.json").is_file():
        from routeyard.pipelines.release.reader import open_release

        with open_release(place) as release:
            check_core(place, release.manifest)
            tables = {name: release.arrow(name) for name in READ if name in release.tables}
        recipe = json.loads((place / "manifest.json").read_text(encoding="utf-8"))["recipe"]
        if not looked_for_duplicates(recipe):
            tables.pop("duplicates", None)  # empty because nobody looked
        return f"{place.resolve().parent.name} {place.resolve().name}", tables, None
    benchmark, _, folders = last_build(place, benchmark, needs=("curate",))
    result: dict[str, pa.Table] = {}
    for stage in ("embed", "curate"):
        if stage in folders:
            result |= read_all(folders[stage])
    return benchmark, {name: table for name, table in result.items() if name in READ}, None
