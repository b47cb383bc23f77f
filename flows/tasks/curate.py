"""The curate stage: rules in recipe order, then the split."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from prefect import task

from flows.console import line
from flows.tasks.recorded import response_files
from flows.tracking.retries import AT_HOME
from flows.workspace.stage_folders import StageResult, run_stage, write_table
from flows.workspace.tables import read, read_all, read_shards
from schemas.recipe import Recipe

_OPTIONS: dict[str, Any] = {"persist_result": True, **AT_HOME}


@task(name="curate", **_OPTIONS)
def curate_task(
    recipe: Recipe,
    root: str,
    queries: StageResult,
    pool: StageResult,
    collected: StageResult,
    labelled: StageResult,
    embedded: StageResult | None,
) -> StageResult:
    """Curation rules in recipe order, then the split."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from flows.tasks.entailment import inputs_of, made_for, parts_of
    from pipelines.curate import RULES
    from pipelines.curate.apply import curate
    from pipelines.curate.split import split

    inputs = {
        "queries": queries.fingerprint,
        "pool": pool.fingerprint,
        "responses": collected.fingerprint,
        "labels": labelled.fingerprint,
    }
    if embedded is not None:
        inputs["embeddings"] = embedded.fingerprint
    inputs |= inputs_of(recipe)

    def make(folder: Path) -> Mapping[str, Any]:
        tables = {
            "queries": read(queries, "queries"),
            "models": read(pool, "models"),
            "responses": read_shards(response_files(collected), "responses"),
            "verdicts": read(labelled, "verdicts"),
            "labels": read(labelled, "labels"),
        }
        if embedded is not None:
            tables["embeddings"] = read(embedded, "embeddings")
        if recipe.compared_with:
            tables["external"] = pq.read_table(queries.path("external"))
        applied = curate(
            tables,
            [(rule.rule, rule.parameters) for rule in recipe.curate],
            make=partial(made_for, recipe, Path(root)),
        )
        result = dict(applied.tables)
        result.pop("external", None)
        result["removals"] = pa.concat_tables([read(queries, "removals"), applied.removals])
        # Rules bring schemes of their own; the recipe's stands beside them when it is written.
        # A rule that makes other schemes only must not take the default one away.
        made = set(result["splits"].column("scheme").to_pylist()) if "splits" in result else set()
        if recipe.split.scheme not in made or "split" in recipe.model_fields_set:
            shares = recipe.split.model_dump()
            result["splits"] = split(
                result["queries"],
                result.get("duplicates"),
                beside=result.get("splits"),
                **shares,
            )
        for name, table in result.items():
            write_table(table, folder / f"{name}.parquet")
        for one in applied.figures:
            if "warning" in one["figures"]:
                line("curate", f"rule {one['rule']!r}: {one['figures']['warning']}")
        return {"rules": [dict(one) for one in applied.figures]}

    return run_stage(
        Path(root),
        "curate",
        parameters={
            "rules": [rule.model_dump(mode="json") for rule in recipe.curate],
            "split": recipe.split.model_dump(mode="json"),
            "split_is_written": "split" in recipe.model_fields_set,
        },
        inputs=inputs,
        make=make,
        uses=[
            *RULES.modules(rule.rule for rule in recipe.curate),
            *parts_of(recipe, queries.path("queries")),
        ],
        benchmark=recipe.name,
    )


def curated_tables(curated: StageResult) -> dict[str, Any]:
    """All tables after curation."""
    return read_all(Path(curated.folder))
