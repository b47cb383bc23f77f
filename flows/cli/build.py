"""`routeyard build`."""

from __future__ import annotations

from typing import Any

from routeyard.flows.cli.options import YARD, Jobs, ReaskTruncated, Shards, WrittenWorkspace
from routeyard.flows.cli.results import Output


def command(
    recipe: str,
    workspace: WrittenWorkspace = YARD,
    jobs: Jobs = 2,
    shards: Shards = 1,
    until: str = "release",
    reask: list[str] | None = None,
    reask_truncated: ReaskTruncated = None,
    scale: float | None = None,
    reuse: bool = False,
    ask_again: bool = False,
) -> Output:
    """Build a benchmark release from a recipe.

    Finished stages are reused, so a stopped build continues where it was.
    `--reask-truncated` and `--reask` are for one run; set `collect.reask_truncated` in the
    recipe to keep to it. After a key was mended, `--reask error` asks what it had refused.

    A release that exists is never overwritten: set a new version in the recipe.

    Examples:

        routeyard build my_benchmark.yaml --workspace yard

        ROUTEYARD_DATA=~/recordings routeyard build zeroeval_gsm

    Args:
        until: Last stage: ingest, collect, label, curate, certify, release.
    """
    from routeyard.flows.build import run_build
    from routeyard.flows.console.summary import show_build
    from routeyard.flows.stages import UNTIL
    from routeyard.pipelines.errors import BadInput, did_you_mean

    if until not in UNTIL:
        raise BadInput(f"there is no stage {until!r}", next_step=did_you_mean(until, UNTIL))
    if reuse and ask_again:
        raise BadInput(
            "--reuse and --ask-again say opposite things", next_step="give one of the two"
        )
    summary = run_build(
        recipe,
        str(workspace),
        jobs=jobs,
        until=until,
        collect=collect_changes(reask, reask_truncated),
        shards=shards,
        scale=scale,
        ports="reuse" if reuse else "ask_again" if ask_again else None,
    )
    return Output(summary, lambda: show_build(summary))


def collect_changes(reask: list[str] | None, reask_truncated: int | None) -> dict[str, Any]:
    """Keys of the recipe's section `collect` that options of one run replace."""
    given = {"reask": reask or None, "reask_truncated": reask_truncated}
    return {key: value for key, value in given.items() if value is not None}
