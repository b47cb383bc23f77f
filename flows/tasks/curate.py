"""The curate stage: rules in recipe order, then the split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from routeyard.flows.workspace.stage_folders import (
    BuildContext,
    StageResult,
    StageWork,
    write_table,
)
from routeyard.flows.workspace.tables import read, read_all, read_shards
from routeyard.schemas.recipe import Collect, CurationRule, Pool, Split


def apply_rules(
    context: BuildContext,
    *,
    curate: Sequence[CurationRule],
    split: Split,
    split_is_written: bool,
    pool: Pool,
    collect: Collect,
    queries: StageResult,
    models: StageResult,
    responses: StageResult,
    labels: StageResult,
    embeddings: StageResult | None,
) -> StageWork:
    """Curation rules in recipe order, then the split; `pool` serves a rule's judge."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from routeyard.flows.tasks.entailment import inputs_of, made_for, parts_of
    from routeyard.pipelines.curate import RULES
    from routeyard.pipelines.curate import apply as rules
    from routeyard.pipelines.curate.split import split as split_queries
    from routeyard.pipelines.published_split import SCHEME

    def make(folder: Path) -> Mapping[str, Any]:
        tables = {
            "queries": read(queries, "queries"),
            "models": read(models, "models"),
            "responses": read_shards(responses.parts("responses"), "responses"),
            "verdicts": read(labels, "verdicts"),
            "labels": read(labels, "labels"),
        }
        if embeddings is not None:
            tables["embeddings"] = read(embeddings, "embeddings")
        if queries.path("external").is_file():
            tables["external"] = pq.read_table(queries.path("external"))
        applied = rules.curate(
            tables,
            [(rule.rule, rule.parameters) for rule in curate],
            make=partial(made_for, context, pool, collect),
        )
        result = {name: table for name, table in applied.tables.items() if name != "external"}
        result["removals"] = pa.concat_tables([read(queries, "removals"), applied.removals])
        # A rule's schemes are written beside the recipe's own; without a written split they
        # replace it, unless they leave its name free and none is the split that was published.
        made = set(result["splits"].column("scheme").to_pylist()) if "splits" in result else set()
        if split_is_written or not made & {split.scheme, SCHEME}:
            result["splits"] = split_queries(
                result["queries"],
                result.get("duplicates"),
                beside=result.get("splits"),
                **split.model_dump(),
            )
        for name, table in result.items():
            write_table(table, folder / f"{name}.parquet")
        _warn(applied.figures)
        return {"rules": [dict(one) for one in applied.figures]}

    inputs = {
        "queries": queries.fingerprint,
        "pool": models.fingerprint,
        "responses": responses.fingerprint,
        "labels": labels.fingerprint,
        **({} if embeddings is None else {"embeddings": embeddings.fingerprint}),
        **inputs_of(curate),
    }
    parameters = {
        "rules": [rule.model_dump(mode="json") for rule in curate],
        "split": split.model_dump(mode="json"),
        "split_is_written": split_is_written,
    }
    uses = [
        *RULES.modules(rule.rule for rule in curate),
        *parts_of(curate, queries.path("queries")),
    ]
    return StageWork(parameters, inputs, make, uses)


def _warn(figures: Sequence[Mapping[str, Any]]) -> None:
    from routeyard.flows import console

    for one in figures:
        if "warning" in one["figures"]:
            console.line("curate", f"rule {one['rule']!r}: {one['figures']['warning']}")


def curated_tables(curated: StageResult) -> dict[str, Any]:
    """All tables after curation."""
    return read_all(Path(curated.folder))
