"""`routeyard replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import Resamples
from routeyard.flows.cli.results import Output


def command(
    steps: Path,
    policy: Annotated[list[str] | None, typer.Option("--policy", "-p")] = None,
    pool: Path | None = None,
    cache: list[str] | None = None,
    session: str | None = None,
    resamples: Resamples = 1_000,
    seed: int = 0,
) -> Output:
    """Compute what recorded steps would have cost with other arms, prompt caches included.

    A switch of arms pays the prompt again: each provider's rules (time to live, least prefix,
    price of writes) decide what is read from its cache. Every trajectory is taken to be the same
    under every policy; whether another arm would have succeeded is not said. What it assumes is
    printed.

    Examples:

        routeyard replay yard/imports/tau_bench --pool prices.yaml -p recorded -p always:gpt-4o-mini

        routeyard replay gateway.jsonl --pool prices.yaml -p recorded -p first:3:large:small

    Args:
        steps: A release with steps, the folder of an import, a Parquet file, or a gateway's log.
        policy: recorded, always:ARM, first:N:ARM:THEN, every:N:ARM:ELSE, or a file; again for more.
        pool: YAML file of models with price_in, price_out, price_cache_read, price_cache_write.
        cache: ARM=RULE, or RULE for all arms: anthropic, openai, deepseek, none, …; again for more.
        session: Key that names the trajectory of a call in a log, such as metadata.session_id.
    """
    from routeyard.flows.traffic.replay import replay_steps

    found = replay_steps(
        steps, policy or ["recorded"], pool=pool, caches=cache or (), session=session,
        resamples=resamples, seed=seed,
    )  # fmt: skip
    return Output(found.data(), found.lines())
