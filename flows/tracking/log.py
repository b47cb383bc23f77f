"""Lines for the log of a tracked run; each names benchmark, stage and shard.

    [gsm8k verdicts 3/8] 1,319 verdicts, in 4.2 s

Without Prefect there is no log: `routeyard.flows.console` tells the person who waits.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any

from routeyard.schemas.errors import RouteyardError
from routeyard.schemas.untrusted_text import visible


def log(
    benchmark: str,
    stage: str,
    text: str,
    *,
    shard: tuple[int, int] | None = None,
    error: bool = False,
) -> None:
    """Write one line to the log of the Prefect run we are in, if we are in one.

    Args:
        shard: (number from 1, how many), where the stage works in several.
        error: The run ends here and has no release; one such line per run.
    """
    if "prefect" not in sys.modules:
        return
    from prefect.exceptions import MissingContextError
    from prefect.logging import get_run_logger

    try:
        logger = get_run_logger()
    except MissingContextError:
        return
    part = f" {shard[0]}/{shard[1]}" if shard else ""
    level = logging.ERROR if error else logging.INFO
    logger.log(level, "[%s %s%s] %s", benchmark, stage, part, visible(text))


def counts(figures: Mapping[str, Any]) -> str:
    """The whole numbers among some figures: `1,319 verdicts, 0 removed`."""
    sizes = [
        f"{value:,} {name}"
        for name, value in figures.items()
        if isinstance(value, int) and not isinstance(value, bool)
    ]
    return ", ".join(sizes) or "done"


class _Stops(logging.Filter):
    """Drops the frames that Prefect logs for an error whose text is shown already."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, RouteyardError)


_STOPS = _Stops()


def stops_in_words() -> None:
    """From here on bad input, a gate or a spent budget is logged without a traceback.

    Each flow and task that such an error passes through would log it whole; the state of the
    run keeps its text. Errors of other kinds are logged as ever.
    """
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logging.getLogger(name).addFilter(_STOPS)
