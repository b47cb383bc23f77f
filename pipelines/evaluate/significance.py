"""Tests between routers: multiple comparisons, exact McNemar, spread over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Floats


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (1979): controls the chance of any false finding.

    NaN stays NaN and does not count as a comparison.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    at = np.flatnonzero(~np.isnan(p))
    order = at[np.argsort(p[at], kind="stable")]
    out, highest = p.copy(), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, float(p[i]) * (len(order) - rank)))
        out[i] = highest
    return [float(value) for value in out]


@dataclass(frozen=True)
class McNemar:
    """Exact test that two routers are equally often right.

    Attributes:
        first_only: queries that only the first gets right.
        second_only: queries that only the second gets right.
        p: binomial p-value; 1 when nothing is discordant.
    """

    first_only: int
    second_only: int
    p: float


def mcnemar(first: Floats, second: Floats) -> McNemar:
    """Exact McNemar test on paired scores (n,); queries where either is NaN are left out.

    For scores between 0 and 1 it is the sign test on their difference.

    >>> mcnemar(np.array([1, 1, 1, 1, 1, 0.0]), np.array([0, 0, 0, 0, 0, 0.0]))
    McNemar(first_only=5, second_only=0, p=0.0625)
    """
    return _mcnemar(first, second, "two-sided")


def mcnemar_one_sided(first: Floats, second: Floats) -> McNemar:
    """The same against the alternative that the first is more often right (CSCR, Table 16).

    n10 = `first_only`, n01 = `second_only`; p = P(X ≥ n10), X binomial over the
    discordant questions with chance one half.

    >>> mcnemar_one_sided(np.array([1, 1, 1, 1, 1, 0.0]), np.array([0, 0, 0, 0, 0, 0.0]))
    McNemar(first_only=5, second_only=0, p=0.03125)
    """
    return _mcnemar(first, second, "greater")


def _mcnemar(first: Floats, second: Floats, alternative: str) -> McNemar:
    # `scipy.stats` alone takes a second to import.
    from scipy.special import bdtr, bdtrc

    won, lost = int(np.sum(first > second)), int(np.sum(second > first))
    n = won + lost
    if not n:
        return McNemar(0, 0, 1.0)
    if alternative == "greater":
        return McNemar(won, lost, float(bdtrc(won - 1, n, 0.5)) if won else 1.0)
    return McNemar(won, lost, min(1.0, 2 * float(bdtr(min(won, lost), n, 0.5))))


def seed_spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation over seeds; no deviation for a single seed."""
    found = np.asarray(values, dtype=np.float64)
    return float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else None
