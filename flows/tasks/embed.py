"""The embed stage: queries → embeddings, through the cache; in shards where there is much to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect import task

from flows import console
from flows.tracking.log import log
from flows.tracking.retries import AT_HOME
from flows.tracking.run import call, each
from flows.workspace.stage_folders import PROBING, StageResult, run_stage, write_table
from flows.workspace.tables import read
from schemas.recipe import Recipe


def embed_stage(
    recipe: Recipe, root: Path, queries: StageResult, *, shards: int = 1, jobs: int = 1
) -> StageResult:
    """Embeddings of a benchmark; each shard fills the cache, from which all are read.

    The cache's files are cut before the shards are, so vectors do not depend on them.
    """
    if shards > 1 and not PROBING.get():
        _fill_in_shards(recipe, root, queries, shards=shards, jobs=jobs)
    return call(embed_task, recipe=recipe, root=str(root), queries=queries)  # type: ignore[no-any-return]


def _fill_in_shards(
    recipe: Recipe, root: Path, queries: StageResult, *, shards: int, jobs: int
) -> None:
    from pipelines.embed import CHUNK, lacking

    texts = lacking(read(queries, "queries"), encoder=recipe.embed.encoder, cache=_cache(root))
    shards = min(shards, -(-texts.num_rows // CHUNK))
    if shards < 2:
        return
    listed = root / "cache" / f"to-embed-{queries.fingerprint}.parquet"
    write_table(texts, listed)
    given = [
        {"recipe": recipe, "root": str(root), "texts": str(listed), "shard": (number, shards)}
        for number in range(1, shards + 1)
    ]
    with console.counter("embed", "shards") as count:
        each(embed_shard_task, given, processes=jobs, on_done=count)
    listed.unlink()


def embed_shard(recipe: Recipe, root: str, texts: str, shard: tuple[int, int]) -> int:
    """Fill the cache with every `of`-th of its files to come; returns texts embedded now."""
    import pyarrow.parquet as pq

    from pipelines.embed import fill

    log(recipe.name, "embed", "begins", shard=shard)
    done = fill(
        pq.read_table(texts),
        encoder=recipe.embed.encoder,
        cache=_cache(Path(root)),
        batch_size=recipe.embed.batch_size,
        shard=shard,
    )
    log(recipe.name, "embed", f"{done:,} questions", shard=shard)
    return done


# The plain function keeps its own name: worker processes find it by that.
embed_shard_task = task(name="embed shard", **AT_HOME)(embed_shard)


@task(name="embed", persist_result=True, **AT_HOME)
def embed_task(recipe: Recipe, root: str, queries: StageResult) -> StageResult:
    """Queries → embeddings, through the cache."""
    from pipelines.embed import embed

    def make(folder: Path) -> Mapping[str, Any]:
        with console.counter("embed", "questions") as count:
            vectors = embed(
                read(queries, "queries"),
                encoder=recipe.embed.encoder,
                cache=_cache(Path(root)),
                batch_size=recipe.embed.batch_size,
                on_progress=count,
            )
        write_table(vectors, folder / "embeddings.parquet")
        cut = len(vectors) - vectors.column("seen_chars").null_count
        return {"embeddings": vectors.num_rows, "truncated": cut}

    return run_stage(
        Path(root),
        "embed",
        parameters=recipe.embed.model_dump(mode="json"),
        inputs={"queries": queries.fingerprint},
        make=make,
        benchmark=recipe.name,
    )


def _cache(root: Path) -> Path:
    return root / "cache" / "embeddings"
