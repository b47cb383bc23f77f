"""An evaluation written for people and programs: tables, plots and one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.evaluate.run import Evaluation

_TABLES = ("metrics", "curves", "comparisons", "profiles", "exchanges", "choices", "ood")


def write_evaluation(
    folder: Path,
    release: Path,
    done: Evaluation,
    tables: Mapping[str, pa.Table],
    certificate: Mapping[str, Any] | None,
    *,
    page: bool = True,
) -> Path:
    """Everything of an evaluation into a folder; returns the page, or without one the folder."""
    from routeyard.datacards.reports.evaluation import report
    from routeyard.datacards.reports.evaluation_plots import plot_all
    from routeyard.datacards.reports.lookup import lookup
    from routeyard.datacards.site.evaluation_tables import EvaluationTables
    from routeyard.pipelines.io.staging import write_json
    from routeyard.pipelines.release.manifest import MANIFEST, read_manifest

    write_tables(folder, {name: getattr(done, name) for name in _TABLES})
    told: dict[str, Any] = {"facts": done.facts, "ranking": done.ranking}
    if (release / MANIFEST).is_file():
        # Beside the figures, so that no page shows them under another version.
        sealed = read_manifest(release)
        told["release"] = {"name": sealed.name, "version": sealed.version}
        told["release"]["fingerprint"] = sealed.fingerprint
    write_json(folder / "evaluation.json", told)
    if not page:
        return folder
    one = EvaluationTables(
        title=f"Routers on {release.resolve().parent.name} {release.resolve().name}",
        metrics=done.metrics,
        curves=done.curves,
        profiles=done.profiles,
        comparisons=done.comparisons,
        ood=done.ood,
        ranking=done.ranking,
        facts=done.facts,
    )
    models = sorted(tables["models"].column("model_id").to_pylist())
    simulated = any(tables["models"].column("simulated").to_pylist())
    plot_all(folder, one, models, simulated=simulated)
    ids = sorted(set(done.choices.column("query_id").to_pylist()))
    text = report(
        one,
        models=models,
        simulated=simulated,
        certificate=certificate,
        lookup=lookup(tables, ids, done.choices),
    )
    written = folder / "report.html"
    written.write_text(text, encoding="utf-8")
    return written


def write_tables(out: Path, tables: Mapping[str, pa.Table | None]) -> None:
    """Parquet files, written beside and renamed, zstd."""

    from routeyard.pipelines.io.staging import write_parquet

    for name, table in tables.items():
        if table is not None:
            write_parquet(out / f"{name}.parquet", table)
