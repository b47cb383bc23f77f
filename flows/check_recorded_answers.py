"""Faults of recorded answers that show when they are imported as a build would import them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa

from routeyard.flows.recipe_faults import Finding, Place, finding
from routeyard.pipelines.collect.recorded import RecordedImport, import_recorded
from routeyard.pipelines.errors import BadInput, few
from routeyard.pipelines.ingest import ingest
from routeyard.pipelines.ingest.catalog import from_catalog
from routeyard.pipelines.metering.audit import audited
from routeyard.pipelines.metering.findings import GATE, MeteringFinding
from routeyard.pipelines.pool import models_table
from routeyard.schemas.recipe import Recipe

#: Places that a fault shows.
_SHOWN = 3


def recorded_faults(
    recipe: Recipe, base: Path, notes: list[str], faulty: Collection[int] = ()
) -> Iterator[Finding]:
    """Ids that do not fit, repeated answers, and what the metering audit would stop.

    Args:
        base: Folder that the recipe's paths start from.
        faulty: Numbers of entries that are faulty already: they are not imported.
        notes: Gets what a build would print, such as rows about questions that are not asked.
    """
    away = [one.name for one in map(from_catalog, recipe.sources) if one.kind != "files"]
    if away:
        notes.append(
            f"recorded answers are not compared with questions of the hub ({', '.join(away)})"
        )
        return
    try:
        queries = ingest(recipe.sources, base=base).queries
    except BadInput:
        return  # reported for the source itself
    models = models_table(recipe.pool)
    imported, whole = None, not faulty
    for number, entry in enumerate(recipe.collect.recorded):
        if number in faulty:
            continue
        try:
            imported = import_recorded(queries, models, [entry], base=base)
        except BadInput as error:
            whole = False
            place: Place = ("collect", "recorded", number, *_within(error))
            yield finding(place, error, where=True)
    if whole and len(recipe.collect.recorded) > 1:
        try:
            imported = import_recorded(queries, models, recipe.collect.recorded, base=base)
        except BadInput as error:
            whole = False
            yield finding(("collect", "recorded"), error, where=True)
    if whole and imported is not None:
        notes += imported.notes
        yield from _unmetered(recipe, imported, queries, models)


def _within(error: BadInput) -> tuple[str, ...]:
    """The key of an entry that an error names."""
    if "fields." in str(error.where):
        return ("fields", str(error.where).rpartition("fields.")[2].split(",")[0])
    return ()


def _unmetered(
    recipe: Recipe, imported: RecordedImport, queries: pa.Table, models: pa.Table
) -> Iterator[Finding]:
    """One fault for each check of the metering audit that would stop the release."""
    if any(waiver.gate == GATE for waiver in recipe.release.waivers):
        return
    unresolved, _ = audited(recipe, imported.responses, queries, models)
    alike: dict[tuple[str, str], list[MeteringFinding]] = {}
    for one in unresolved:
        alike.setdefault((one.check, one.says), []).append(one)
    for (check, says), found in alike.items():
        which = few([f"{one.model_id} {one.count:,}" for one in found], 5)
        first = found[0]
        keys = [(query, first.model_id, sample) for query, sample in first.rows[:_SHOWN]]
        places = ", ".join(imported.places[key] for key in keys if key in imported.places)
        gate = first.gate
        yield (
            ("release",),
            f"the metering audit would stop this release: {says} ({which}; first {places})",
            f"{_mend(check, says)}; or waive it aloud: release.waivers: "
            f"[{{gate: {gate}, reason: …}}]; `routeyard audit metering --recipe FILE` names more",
        )


def _mend(check: str, says: str) -> str:
    """What to do about a finding of a recording."""
    if check == "price_unknown" and "no price" in says:
        return "give the model price_in, price_out and price_date in the pool, or map cost_usd"
    if check in ("price_unknown", "usage_missing"):
        return "map prompt_tokens and completion_tokens (or cost_usd) under collect.recorded"
    if check in ("implausible_count", "constant_count", "totals", "logprob_count"):
        return "map the columns that hold the provider's counts, or empty those that are not"
    return "correct the recording or its mapping, or the thresholds of collect.metering"
