"""One task per stage: read tables, call the stage, write tables.

Paths and fingerprints cross task borders, Arrow crosses function borders. Each
task is safe to run again: a finished output is reused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from prefect import task

from flows.attempts import AT_HOME, ATTEMPTS
from flows.tables import content, read, read_all, read_shards, slug
from flows.workspace import Done, run_stage, write_table
from schemas.recipe import Recipe

#: Modules at the root of pipelines that several stages use.
_SHARED = ("schemas", "pipelines.jinja", "pipelines.files", "pipelines.instructions")
_OPTIONS: dict[str, Any] = {"persist_result": True, **AT_HOME}


@task(name="ingest", persist_result=True, timeout_seconds=6 * 3600.0, **ATTEMPTS)
def ingest_task(recipe: Recipe, base: str, root: str) -> Done:
    """Sources → queries."""
    from pipelines import files
    from pipelines.curate.result import removals
    from pipelines.ingest import compared, ingest, pin

    sources = [pin(source) for source in recipe.sources]
    others = [pin(source) for source in recipe.compared_with]
    inputs: dict[str, str] = {}
    for source in (*sources, *others):
        if source.kind == "hub":
            inputs[source.name] = str(source.revision)
        else:
            found = files.expand(str(source.path), base=Path(base), where=f"source {source.name!r}")
            inputs[source.name] = content(found)

    def make(folder: Path) -> Mapping[str, Any]:
        done = ingest(sources, base=Path(base))
        write_table(done.queries, folder / "queries.parquet")
        left_out = removals("ingest", "query", done.removed)
        write_table(left_out, folder / "removals.parquet")
        if others:
            write_table(compared(others, base=Path(base)), folder / "external.parquet")
        return {
            "queries": done.queries.num_rows,
            "removed": left_out.num_rows,
            "sources": done.provenance,
        }

    return run_stage(
        Path(root),
        "ingest",
        parameters={
            "sources": [source.model_dump(mode="json") for source in sources],
            "compared_with": [source.model_dump(mode="json") for source in others],
        },
        inputs=inputs,
        rooms=(*_SHARED, "pipelines.ingest"),
        make=make,
        benchmark=recipe.name,
    )


@task(name="pool", **_OPTIONS)
def pool_task(recipe: Recipe, root: str) -> Done:
    """Pool → models."""
    from pipelines.pool import models_table

    def make(folder: Path) -> Mapping[str, Any]:
        models = models_table(recipe.pool)
        write_table(models, folder / "models.parquet")
        return {"models": models.num_rows}

    return run_stage(
        Path(root),
        "pool",
        parameters=recipe.pool.model_dump(mode="json"),
        inputs={},
        rooms=("schemas", "pipelines.pool"),
        make=make,
        benchmark=recipe.name,
    )


@task(name="import recorded", **_OPTIONS)
def recorded_task(recipe: Recipe, base: str, root: str, queries: Done, pool: Done) -> Done:
    """Recorded files → responses, one file per model."""
    from pipelines import files
    from pipelines.collect.recorded import import_recorded

    inputs = {"queries": queries.fingerprint, "pool": pool.fingerprint}
    for number, entry in enumerate(recipe.collect.recorded):
        found = files.expand(entry.path, base=Path(base), where="collect.recorded")
        inputs[f"recorded.{number}"] = content(found)

    def make(folder: Path) -> Mapping[str, Any]:
        imported = import_recorded(
            read(queries, "queries"),
            read(pool, "models"),
            recipe.collect.recorded,
            base=Path(base),
        )
        write_by_model(imported.responses, folder)
        return {"responses": imported.responses.num_rows, "recorded": imported.provenance}

    return run_stage(
        Path(root),
        "collect",
        parameters=recipe.collect.model_dump(mode="json"),
        inputs=inputs,
        rooms=(*_SHARED, "pipelines.collect.recorded"),
        make=make,
        benchmark=recipe.name,
    )


def write_by_model(responses: Any, folder: Path) -> None:
    """`responses/<model>.parquet`, so that later stages work model by model."""
    import pyarrow.compute as pc

    for model_id in sorted(pc.unique(responses.column("model_id")).to_pylist()):
        part = responses.filter(pc.equal(responses.column("model_id"), model_id))
        write_table(part, folder / "responses" / f"{slug(model_id)}.parquet")


def response_files(collected: Done) -> list[Path]:
    """The response files of a collect stage, in name order."""
    return sorted((Path(collected.folder) / "responses").glob("*.parquet"))


def file_model_verdicts(
    recipe: Recipe, root: str, queries: Done, responses: str, shard: tuple[int, int] | None = None
) -> Done:
    """Rule verdicts over one model's responses, the shard's."""
    import pyarrow.parquet as pq

    from pipelines.label.stage import file_verdicts, versions

    named = pq.read_table(queries.path("queries"), columns=["scorer"]).column("scorer")

    def make(folder: Path) -> Mapping[str, Any]:
        verdicts = file_verdicts(
            read(queries, "queries"),
            read_shards([Path(responses)], "responses"),
            options={"run_code_without_isolation": recipe.label.run_code_without_isolation},
        )
        write_table(verdicts, folder / "verdicts.parquet")
        return {"verdicts": verdicts.num_rows}

    return run_stage(
        Path(root),
        "verdicts",
        parameters={
            "run_code_without_isolation": recipe.label.run_code_without_isolation,
            "scorers": versions(named),
        },
        inputs={"queries": queries.fingerprint, "responses": content([Path(responses)])},
        rooms=("schemas", "pipelines.label"),
        make=make,
        benchmark=recipe.name,
        shard=shard,
    )


# The plain function keeps its own name: worker processes find it by that.
verdicts_task = task(name="file verdicts", **_OPTIONS)(file_model_verdicts)


@task(name="decide labels", **_OPTIONS)
def labels_task(
    recipe: Recipe, root: str, queries: Done, collected: Done, verdicts: list[Done]
) -> Done:
    """Verdicts → labels, by the court's policy."""
    from pipelines.label.court import decide

    def make(folder: Path) -> Mapping[str, Any]:
        filed = read_shards([done.path("verdicts") for done in verdicts], "verdicts")
        labels = decide(
            read(queries, "queries"),
            read_shards(response_files(collected), "responses"),
            filed,
            policy=recipe.label,
        )
        write_table(filed, folder / "verdicts.parquet")
        write_table(labels, folder / "labels.parquet")
        undecided = labels.column("score").null_count
        return {
            "labels": labels.num_rows,
            "undecided": undecided,
            "verdicts": filed.num_rows,
        }

    return run_stage(
        Path(root),
        "label",
        parameters=recipe.label.model_dump(mode="json"),
        inputs={
            "queries": queries.fingerprint,
            "responses": collected.fingerprint,
            "verdicts": ",".join(done.fingerprint for done in verdicts),
        },
        rooms=("schemas", "pipelines.label.court", "pipelines.label.bench"),
        make=make,
        benchmark=recipe.name,
    )


@task(name="curate", **_OPTIONS)
def curate_task(
    recipe: Recipe,
    root: str,
    queries: Done,
    pool: Done,
    collected: Done,
    labelled: Done,
    embedded: Done | None,
) -> Done:
    """Curation rules in recipe order, then the split."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from flows.entailment import ROOMS, inputs_of, made_for
    from pipelines.curate.apply import curate
    from pipelines.curate.split import split

    names = {rule.rule for rule in recipe.curate}

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
        if "splits" not in result or "split" in recipe.model_fields_set:
            shares = recipe.split.model_dump()
            result["splits"] = split(
                result["queries"],
                result.get("duplicates"),
                beside=result.get("splits"),
                **shares,
            )
        for name, table in result.items():
            write_table(table, folder / f"{name}.parquet")
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
        rooms=("schemas", "pipelines.curate", *(ROOMS if "preference" in names else ())),
        make=make,
        benchmark=recipe.name,
    )


def curated_tables(curated: Done) -> dict[str, Any]:
    """All tables after curation."""
    return read_all(Path(curated.folder))
