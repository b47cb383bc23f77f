"""`routeyard latency`."""

from __future__ import annotations

from pathlib import Path

from routeyard.flows.cli.options import Resamples
from routeyard.flows.cli.results import Output


def command(
    path: Path,
    by: str = "arm",
    limit: float | None = None,
    share: float = 0.95,
    decision: float = 0.0,
    session: str | None = None,
    resamples: Resamples = 2_000,
) -> Output:
    """Print p50, p95 and p99 of recorded calls with intervals, and who keeps a promise.

    With --limit the calls of later hours say for each arm, and for a rule that was fitted on the
    earlier hours, whether the promise is kept, by how much it fails, and what accuracy and cost
    then are.

    Examples:

        routeyard latency yard/releases/demo/1.0.0 --limit 2

        routeyard latency gateway.jsonl --by hour

    Args:
        path: A release, the folder of an import, a Parquet file of steps, or a gateway's log.
        by: What the percentiles are of: arm, task or hour.
        limit: Seconds that are promised.
        share: Share of the calls that the promise is about.
        decision: Seconds a router takes to decide, added to each call of the rule.
        session: Key that names the trajectory of a call in a log, such as metadata.session_id.
    """
    from routeyard.flows.traffic.latency import latency_report

    found = latency_report(
        path, by=by, limit_s=limit, share=share, decision_s=decision, session=session,
        resamples=resamples,
    )  # fmt: skip
    return Output(found.data(), found.lines())
