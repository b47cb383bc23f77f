"""How long a worker waits before it repeats a call that failed."""

from __future__ import annotations

from routeyard.pipelines.calls.reply import CallFault
from routeyard.schemas.recipe.collect import Retry

#: Attempts after which the next one follows soon, where the model answers other calls.
_SOON = 2
#: A server with one of these has too much to do: 529 is Anthropic's.
_OVERLOADED = (503, 529)


def backoff(
    retry: Retry, fault: CallFault, number: int, jitter: float, *, alone: bool = False
) -> float:
    """Seconds before attempt `number` + 1: exponential, jittered over the upper half.

    Args:
        alone: The model answered other calls while this one failed: a tenth of the wait is
            enough, unless the server says that it is overloaded.
    """
    if fault.retry_after is not None:
        # The gate waits; the jitter keeps waiting requests from being sent all at once.
        return jitter * 0.1
    wait = min(retry.longest_wait_s, retry.first_wait_s * 2.0 ** (number - 1))
    if alone and number <= _SOON and not fault.throttled and fault.status not in _OVERLOADED:
        wait *= 0.1
    return wait * (0.5 + jitter / 2)
