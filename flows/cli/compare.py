"""`routeyard compare`."""

from __future__ import annotations

from pathlib import Path

from routeyard.flows.cli.options import Resamples
from routeyard.flows.cli.results import Output


def command(
    release: Path,
    first: str,
    second: str,
    scheme: str | None = None,
    decision: list[float] | None = None,
    resamples: Resamples = 2_000,
    seed: int = 0,
) -> Output:
    """Print accuracy, cost and p50, p95 and p99 of two routers on the same questions, paired.

    Intervals of the differences resample whole questions, the same for both routers.

    Examples:

        routeyard compare yard/releases/demo/1.0.0 results:ridge always:sim-atlas-xl

        routeyard compare RELEASE mine.csv results:knn --decision 0.05 --decision 0.2

    Args:
        first: A router: always:MODEL, RESULTS:ROUTER of a folder that `evaluate` wrote, or a file
            of choices with query_id and model_id.
        second: The router that it is compared with, in the same forms.
        scheme: Split scheme whose test questions count.
        decision: Seconds that the routers take to decide, added to each call; twice: the second's.
    """
    from routeyard.flows.traffic.compare import compare_routers

    seconds = decision or [0.0]
    found = compare_routers(
        release, first, second, scheme=scheme, decision_s=(seconds[0], seconds[-1]),
        resamples=resamples, seed=seed,
    )  # fmt: skip
    return Output(found.data(), found.lines())
