"""The health report of a workspace or a release, written to a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pyarrow as pa

from routeyard.flows.audits.judged import LastBuild
from routeyard.flows.console import line
from routeyard.flows.workspace.stage_folders import write_table
from routeyard.flows.workspace.tables import read_all
from routeyard.schemas.leaks import looked_for_duplicates
from routeyard.schemas.near import SIMILARITY

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
    from routeyard.pipelines.release.sealed_files import outside_releases

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
        from routeyard.pipelines.release.manifest import check_core
        from routeyard.pipelines.release.reader import open_release

        with open_release(place) as release:
            check_core(place, release.manifest)
            tables = {name: release.arrow(name) for name in READ if name in release.tables}
        recipe = json.loads((place / "manifest.json").read_text(encoding="utf-8"))["recipe"]
        if not looked_for_duplicates(recipe):
            tables.pop("duplicates", None)  # empty because nobody looked
        return f"{place.resolve().parent.name} {place.resolve().name}", tables, None
    last = LastBuild.of(place, benchmark, needs=("curate",))
    found: dict[str, pa.Table] = {}
    for stage in ("embed", "curate"):
        if stage in last.folders:
            found |= read_all(last.folders[stage])
    return last.name, {name: table for name, table in found.items() if name in READ}, None
