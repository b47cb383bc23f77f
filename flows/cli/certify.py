"""`routeyard certify`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routeyard.flows.cli.options import CACHE, Resamples, WrittenPath
from routeyard.flows.cli.results import Output

if TYPE_CHECKING:
    from routeyard.pipelines.evaluate.certificate import Certificate


def command(
    release: Path,
    out: WrittenPath,
    embeddings: Path | None = None,
    embed: Annotated[bool | None, typer.Option("--embed/--no-embed")] = None,
    encoder: str | None = None,
    cache: Path = CACHE,
    scheme: str | None = None,
    measure: str | None = None,
    cluster: str | None = None,
    resamples: Resamples = 10_000,
    seed: int = 0,
    gate: Annotated[bool, typer.Option("--gate")] = False,
) -> Output:
    """Certify whether a release can tell routers apart, and how surely.

    Gaps between the best single model, a cost-matched random mix, the per-task
    and the per-query oracle, each with an interval; stability of specialists;
    what difference the test questions can resolve; whether reference routers
    collapse; a verdict with its rule.

    Examples:

        routeyard certify yard/releases/demo/1.0.0 --out results/demo

        routeyard certify RELEASE --out results --embed --gate

    Args:
        embed: Compute embeddings that the release lacks; default: where its certificate had some.
        encoder: Of the questions; default: the release's own, else its certificate's or tfidf.
        gate: Exit 3 when the verdict is 'not routable'.
    """
    from routeyard.flows.evaluation.evaluate import certify
    from routeyard.flows.evaluation.released import out_folder
    from routeyard.pipelines.errors import GateFailed
    from routeyard.pipelines.io.staging import write_json

    file = out_folder(release, out) / "certificate.json"
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
    write_json(file, found.to_json())
    failed = GateFailed(
        "the release cannot tell routers apart",
        where=str(file),
        next_step="more questions, more tasks, or models that differ in what they are good at",
    )
    return Output(
        {**found.to_json(), "path": file},
        [f"{found.verdict}: {found.words}", *tried(found), f"certificate: {file}"],
        error=failed if gate and found.verdict == "not routable" else None,
    )


def tried(found: Certificate) -> Iterator[str]:
    """Which reference routers were tried, which were not, and what that does to the p-values."""
    from routeyard.pipelines.evaluate.certificate.crossfit import REFERENCE

    names = [one.router for one in found.routers]
    others = [name for name in REFERENCE if name not in names]
    rest = f"; not tried: {', '.join(others)} ({found.routers_reason})" if others else ""
    yield f"reference routers tried: {', '.join(names) or 'none'}{rest}"
    if names and others:
        yield (
            f"p-values are corrected for {len(names)} of {len(REFERENCE)} routers: a build that "
            "tries them all gives larger ones"
        )
