"""The certificate's verdict, decided from its figures and reference routers by a written rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from routeyard.pipelines.evaluate.certificate.crossfit import Collapse
from routeyard.pipelines.evaluate.certificate.pool import Figure
from routeyard.schemas.intervals import undecided_words

#: The oracle's gaps to the best single model, of which the smallest counts → what it is
#: corrected for.
GAPS = {
    "gap_query_oracle": "",
    "gap_query_oracle_corrected": ", corrected for sampling noise",
    "gap_query_oracle_chance_corrected": ", corrected for guessing",
}

RULE = (
    "gap = accuracy of the per-query oracle minus that of the best single model (corrected for "
    "guessing where questions have choices, and for sampling noise where responses were sampled "
    "more than once; the smaller). 'not routable': the gap's lower limit is not above zero, or "
    "the gap is smaller than the difference the test questions can resolve. 'routable': "
    "otherwise, and at least one reference router, cross-fitted over all questions, beats the "
    "best single model (Holm-corrected p < 0.05 and a 95 % interval above zero). 'headroom not "
    "reached': otherwise, and no reference router does. 'headroom only': no reference router "
    "could be tried."
)


def verdict_of(
    best_single: str,
    figures: Mapping[str, Figure],
    tried: Sequence[Collapse],
    why_not: str | None,
    *,
    folds: int,
    compared: int,
    queries: int,
    undecided: Sequence[str] = (),
) -> tuple[str, str]:
    """Verdict and its words, by `RULE`.

    Args:
        undecided: Models whose order with `best_single` is open because of missing labels.
        folds: In which the routers were tried.
        compared: Questions on which the best single model has a label, of all `queries`.
    """
    how = f"cross-fitted in {folds} folds over all {compared} questions"
    name = best_single if undecided else f"the best single model ({best_single})"
    verdict, words = _decided(name, figures, tried, why_not, how)
    if undecided:
        words += f" {undecided_words(best_single, undecided)}"
    if compared < queries:
        words += (
            f" All of this is about the {compared} of {queries} questions on which that model has "
            "a label."
        )
    return verdict, words


def _decided(
    single: str,
    figures: Mapping[str, Figure],
    tried: Sequence[Collapse],
    why_not: str | None,
    how: str,
) -> tuple[str, str]:
    known = [name for name in GAPS if figures[name].value is not None]
    smallest = min(known, key=lambda name: figures[name].value or 0.0)
    gap = figures[smallest]
    value, low, high = gap.value or 0.0, gap.low or 0.0, gap.high or 0.0
    resolvable = figures["resolvable_difference"].value
    limit = resolvable if resolvable is not None else math.inf
    start = (
        f"A perfect router would beat {single} by "
        f"{_points(value)} (95 % CI {100 * low:.2f} to {100 * high:.2f}{GAPS[smallest]}). "
    ) + (
        f"This test set detects differences of {_points(limit)} or more."
        if math.isfinite(limit)
        else "Which differences this test set detects is unknown."
    )
    if figures["gap_query_oracle_corrected"].value is None:
        start += " Each response was sampled once, so part of that gap may be sampling noise."
    if low <= 0 or value < limit:
        return "not routable", start + " It cannot tell routers apart."
    if not tried:
        return "headroom only", f"{start} No reference router was tried: {why_not}."
    winners = [r for r in tried if r.gain_low > 0 and r.p_adjusted < 0.05]
    best = _best(tried, how)
    if winners:
        names = ", ".join(sorted(r.router for r in winners))
        return "routable", f"{start} Reference routers beat that model: {names}; {best}."
    return (
        "headroom not reached",
        f"{start} No reference router gains significantly; the best, {best}.",
    )


def _best(tried: Sequence[Collapse], how: str) -> str:
    """The router that gains most; those that are equally good are all named, with the interval of
    the first."""
    most = max(r.gain for r in tried)
    alike = sorted((r for r in tried if most - r.gain < 1e-9), key=lambda r: r.router)
    names, top = " and ".join(r.router for r in alike), alike[0]
    return (
        f"{names} {'gains' if len(alike) == 1 else 'each gain'} {_points(top.gain)} "
        f"(95 % CI {100 * top.gain_low:.2f} to {100 * top.gain_high:.2f}, {how})"
    )


def _points(share: float) -> str:
    return f"{100 * share:.2f} points"
