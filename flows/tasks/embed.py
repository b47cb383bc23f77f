"""The embed stage: queries → embeddings, through the cache; in shards where there is much to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeyard.flows.tracking.log import log
from routeyard.flows.tracking.retries import ON_THIS_MACHINE
from routeyard.flows.tracking.run import Deferred, each
from routeyard.flows.workspace.stage_folders import (
    BuildContext,
    StageResult,
    StageWork,
    write_table,
)
from routeyard.flows.workspace.tables import read
from routeyard.pipelines.io.staging import staging
from routeyard.schemas.recipe import Embed


def embed_queries(context: BuildContext, *, embed: Embed, queries: StageResult) -> StageWork:
    """Queries → embeddings, through the cache."""
    from routeyard.pipelines.embed import embed as embedded

    def make(folder: Path) -> Mapping[str, Any]:
        from routeyard.flows import console

        with console.counter("embed", "questions") as count:
            vectors = embedded(
                read(queries, "queries"),
                encoder=embed.encoder,
                cache=_cache(context.root),
                batch_size=embed.batch_size,
                on_progress=count,
            )
        write_table(vectors, folder / "embeddings.parquet")
        cut = len(vectors) - vectors.column("seen_chars").null_count
        return {"embeddings": vectors.num_rows, "truncated": cut}

    return StageWork(embed.model_dump(mode="json"), {"queries": queries.fingerprint}, make)


def embed_in_shards(context: BuildContext, *, embed: Embed, queries: StageResult) -> None:
    """Fill the cache, from which the stage reads, with tasks that work at the same time.

    The cache's files are cut before the shards are, so vectors do not depend on them.
    """
    from routeyard.flows import console
    from routeyard.pipelines.embed import CHUNK, lacking

    texts = lacking(read(queries, "queries"), encoder=embed.encoder, cache=_cache(context.root))
    shards = min(context.shards, -(-texts.num_rows // CHUNK))
    if shards < 2:
        return
    # A folder of this build: another one that embeds the same texts removes its own.
    with staging(context.root / "cache" / "to-embed") as folder:
        listed = folder / "texts.parquet"
        write_table(texts, listed)
        given = [
            {"context": context, "embed": embed, "texts": listed, "shard": (number, shards)}
            for number in range(1, shards + 1)
        ]
        with console.counter("embed", "shards") as count:
            each(embed_shard_task, given, processes=context.jobs, on_done=count)


def embed_shard(context: BuildContext, embed: Embed, texts: Path, shard: tuple[int, int]) -> int:
    """Fill the cache with every `of`-th of its files to come; returns texts embedded now."""
    import pyarrow.parquet as pq

    from routeyard.pipelines.embed import fill

    log(context.benchmark, "embed", "begins", shard=shard)
    done = fill(
        pq.read_table(texts),
        encoder=embed.encoder,
        cache=_cache(context.root),
        batch_size=embed.batch_size,
        shard=shard,
    )
    log(context.benchmark, "embed", f"{done:,} questions", shard=shard)
    return done


# The plain function keeps its own name: worker processes find it by that.
embed_shard_task = Deferred("task", embed_shard, {"name": "embed shard", **ON_THIS_MACHINE})


def _cache(root: Path) -> Path:
    return root / "cache" / "embeddings"
