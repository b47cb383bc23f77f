"""Decision time and cost: what asking the router itself takes."""

from __future__ import annotations

from pipelines.evaluate.metrics.spec import Found, MetricSpec, Routed


def decision_cost(seconds: float, usd_per_hour: float) -> float:
    """USD per 1,000 decisions of so many seconds each on a machine of that price.

    >>> decision_cost(0.018, 2.0)
    0.01
    """
    return 1000 * seconds * usd_per_hour / 3600


def _time(shown: Routed) -> Found | None:
    seconds = shown.rivals.seconds.get(shown.router)
    return None if seconds is None else Found(1000 * seconds)


def _cost(shown: Routed) -> Found | None:
    seconds, price = shown.rivals.seconds.get(shown.router), shown.rivals.usd_per_hour
    if seconds is None or price is None:
        return None
    return Found(decision_cost(seconds, price))


_SOURCE = "vllm semantic-router, issue 3727: overhead of the router itself"

DECISION_TIME = MetricSpec(
    name="decision_time",
    direction="lower",
    unit="ms per query",
    source=_SOURCE,
    says="wall time per query of scoring the test questions, and of embedding them when given; "
    "with `--timed` or `--usd-per-hour`",
    needs=("clock",),
    compute=_time,
)
DECISION_COST = MetricSpec(
    name="decision_cost",
    direction="lower",
    unit="USD per 1,000 decisions",
    source=_SOURCE,
    says="decision time at the price per hour of the machine that routes",
    needs=("clock",),
    compute=_cost,
)
