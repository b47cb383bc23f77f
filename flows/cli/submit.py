"""`routeyard submit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import CACHE, Embed
from routeyard.flows.cli.results import Output


def command(
    router: str,
    to: Annotated[str, typer.Option()],
    release: Path | None = None,
    name: str | None = None,
    scheme: str | None = None,
    seed: int = 0,
    embed: Embed = False,
    encoder: str | None = None,
    cache: Path = CACHE,
) -> Output:
    """Run a router on a leaderboard's benchmark and send what it chose as a checked bundle.

    This RUNS the router. The bundle holds no code: a score for every test question and model,
    seconds of questions asked one by one, hashes of the router's files, and the findings of
    `audit router`. If a check fails, nothing is sent (exit 3).

    Examples:

        routeyard submit my_router.py --to board

        routeyard submit my_router.py:Mine --to s3://bucket/board --name team-a

        routeyard submit knn --to board --embed --encoder tfidf

    Args:
        router: file.py or file.py:Class, module:Class, a registered router, or a CSV or
            Parquet file of predictions.
        to: Folder or address of the leaderboard; the bundle goes to submissions/NAME there.
        release: The benchmark; default: the folder `benchmark` at --to.
        name: Name of the entry; default: that of the router.
        seed: Seed of the router, where it takes one.
    """
    from routeyard.flows.leaderboard.submit import submit

    done = submit(
        router, to, release=release, name=name, scheme=scheme, seed=seed,
        embed=embed, encoder=encoder, cache=cache,
    )  # fmt: skip
    lines = [f"{one.level:<5} {one.name}: {one.says}" for one in done.found]
    times, of = done.about.times, done.about.benchmark
    if times.p50_s is not None and times.p95_s is not None:
        lines.append(
            f"time  {1000 * times.p50_s:.3g} ms to choose in the median, {1000 * times.p95_s:.3g} "
            f"ms at the 95th percentile, of {times.asked} questions asked one by one; "
            f"{times.moved} of them go elsewhere than together with the others"
        )
    lines.append(f"for   {of.name} {of.version}, split scheme {of.scheme}")
    if done.where is None:
        lines.append("not sent: a check failed")
    else:
        lines.append(f"sent  {done.where}")
    data = {"where": done.where, "submission": done.about.model_dump()}
    return Output(data, lines, exit_code=0 if done.where else 3)
