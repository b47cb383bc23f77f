"""How often a Prefect task is tried again, how long it waits, and what is not worth it."""

from __future__ import annotations

from typing import Any

from routeyard.pipelines.errors import BadInput, BudgetReached, GateFailed


def worth_retrying(task: Any, run: Any, state: Any) -> bool:
    """False where the same inputs give the same refusal: bad input, a gate, a spent budget."""
    try:
        state.result()
    except (BadInput, GateFailed, BudgetReached):
        return False
    except Exception:
        return True
    return True


#: For tasks that load from elsewhere: after about 5, 10 and 20 seconds, jittered.
ATTEMPTS: dict[str, Any] = {
    "retries": 3,
    "retry_delay_seconds": [5, 10, 20],
    "retry_jitter_factor": 0.5,
    "retry_condition_fn": worth_retrying,
}

#: For tasks whose every call was tried again already, as the recipe's `retry` says.
AFTER_CALLS = ATTEMPTS | {"retries": 1}
#: For tasks on this machine's disk and processors.
ON_THIS_MACHINE = ATTEMPTS | {"retries": 1, "retry_delay_seconds": 2}
