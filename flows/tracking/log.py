"""Lines for the log of a tracked run; each names benchmark, stage and shard.

    [gsm8k verdicts 3/8] 1,319 verdicts, in 4.2 s

Without Prefect there is no log: `flows.show.console` tells the person who waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def log(benchmark: str, stage: str, text: str, *, shard: tuple[int, int] | None = None) -> None:
    """Write one line to the log of the Prefect run we are in, if we are in one.

    Args:
        shard: (number from 1, how many), where the stage works in several.
    """
    from prefect.exceptions import MissingContextError
    from prefect.logging import get_run_logger

    try:
        logger = get_run_logger()
    except MissingContextError:
        return
    part = f" {shard[0]}/{shard[1]}" if shard else ""
    logger.info("[%s %s%s] %s", benchmark, stage, part, text)


def counts(figures: Mapping[str, Any]) -> str:
    """The whole numbers among some figures: `1,319 verdicts, 0 removed`."""
    told = [
        f"{value:,} {name}"
        for name, value in figures.items()
        if isinstance(value, int) and not isinstance(value, bool)
    ]
    return ", ".join(told) or "done"
