"""The verdict: what the figures and the reference routers together say, by a written rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pipelines.evaluate.certificate.crossfit import Collapse
from pipelines.evaluate.certificate.pool import Figure
from pipelines.matrix.core import Core

#: The oracle's gaps to the best single model, of which the smallest counts.
GAPS = (
    "gap_query_oracle",
    "gap_query_oracle_corrected",
    "gap_query_oracle_chance_corrected",
)

RULE = (
    "gap = accuracy of the per-query oracle minus that of the best single model (corrected for "
    "guessing where questions have choices, and for sampling luck where responses were sampled "
    "more than once; the smaller). 'not routable': the gap's lower limit is not above zero, or "
    "the gap is smaller than the difference the test questions can resolve. 'routable': "
    "otherwise, and at least one reference router, cross-fitted over all questions, beats the "
    "best single model (Holm-corrected p < 0.05 and a 95 % interval above zero). 'headroom not "
    "reached': otherwise, and no reference router does. 'headroom only': no reference router "
    "could be tried."
)


def verdict_of(
    core: Core,
    figures: Mapping[str, Figure],
    tried: Sequence[Collapse],
    why_not: str | None,
    single: int,
    how: str,
) -> tuple[str, str]:
    """Verdict and its words, by `RULE`; `how` says how the routers were tried."""
    corrected = figures["gap_query_oracle_corrected"]
    known = [figures[name] for name in GAPS if figures[name].value is not None]
    gap = min(known, key=lambda one: one.value or 0.0)
    resolvable = figures["resolvable_difference"].value
    value, low = gap.value or 0.0, gap.low or 0.0
    limit = resolvable if resolvable is not None else math.inf
    start = (
        f"The per-query oracle, less what guessing gives it, is {_points(value)} above the best "
        f"single model ({core.model_ids[single]}), interval {_points(low)} to "
        f"{_points(gap.high or 0.0)}; "
        + (
            f"the test questions can resolve {_points(limit)}."
            if math.isfinite(limit)
            else "what the test questions can resolve is unknown."
        )
    )
    if corrected.value is None:
        start += " Each response was sampled once, so part of that gap may be luck."
    if low <= 0 or value < limit:
        return "not routable", start + " Differences between routers cannot be told apart here."
    if not tried:
        return "headroom only", f"{start} No reference router was tried: {why_not}."
    winners = [r for r in tried if r.gain_low > 0 and r.p_adjusted < 0.05]
    top = max(tried, key=lambda r: (r.gain, r.router))
    shown = (
        f"{top.router} gains {_points(top.gain)} "
        f"({_points(top.gain_low)} to {_points(top.gain_high)})"
    )
    if winners:
        names = ", ".join(sorted(r.router for r in winners))
        return "routable", f"{start} Reference routers beat that model: {names}; {shown} ({how})."
    return (
        "headroom not reached",
        f"{start} No reference router gains significantly; the best, {shown} ({how}).",
    )


def _points(share: float) -> str:
    return f"{100 * share:.2f} points"
