"""Decision time and cost: what asking the router itself takes."""

from __future__ import annotations

from routeyard.pipelines.evaluate.metrics.spec import MetricValue, Routed, metric


def decision_cost(seconds: float, usd_per_hour: float) -> float:
    """USD per 1,000 decisions of so many seconds each on a machine of that price.

    >>> decision_cost(0.018, 2.0)
    0.01
    """
    return 1000 * seconds * usd_per_hour / 3600


@metric
def decision_time_metric(routed: Routed) -> MetricValue | None:
    """Wall time per query of scoring the test questions, and of embedding them when given; with
    `--timed` or `--usd-per-hour`.
    """
    seconds = routed.shared.seconds.get(routed.router)
    return None if seconds is None else MetricValue(1000 * seconds)


@metric
def decision_cost_metric(routed: Routed) -> MetricValue | None:
    """What the router itself costs: `decision_cost_usd` of its predictions, which costs of routed
    questions then hold, or decision time at the price per hour of the machine that routes.
    """
    stated = routed.shared.decision_usd.get(routed.router)
    if stated is not None:
        return MetricValue(1000 * float(stated.mean()))
    seconds, price = routed.shared.seconds.get(routed.router), routed.shared.usd_per_hour
    if seconds is None or price is None:
        return None
    return MetricValue(decision_cost(seconds, price))
