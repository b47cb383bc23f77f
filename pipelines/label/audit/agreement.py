"""Agreement between scorers: Cohen's kappa and Krippendorff's alpha."""

from __future__ import annotations

from typing import Any

import numpy as np


def cohen_kappa(a: Any, b: Any) -> float:
    """κ = (p_o − p_e) / (1 − p_e), Cohen 1960.

    Args:
        a, b: Ratings of the same units, any values that compare equal; None or NaN
            where a rater said nothing. Units without both are left out.

    Returns:
        NaN without common units, and where chance alone would agree always.
    """
    left, right = _codes(a, b)
    both = (left >= 0) & (right >= 0)
    left, right = left[both], right[both]
    if not len(left):
        return float("nan")
    k = int(max(left.max(), right.max())) + 1
    table = np.zeros((k, k))
    np.add.at(table, (left, right), 1)
    table /= len(left)
    observed, expected = np.trace(table), float(table.sum(axis=1) @ table.sum(axis=0))
    return float("nan") if expected == 1 else float((observed - expected) / (1 - expected))


def krippendorff_alpha(ratings: Any, *, level: str = "nominal") -> float:
    """α = 1 − D_o / D_e over the coincidence matrix, Krippendorff 2004, ch. 11.

    Args:
        ratings: (raters, units) floats; NaN where a rater said nothing.
        level: `nominal` (δ² = 1[c ≠ k]) or `interval` (δ² = (c − k)²).

    Returns:
        NaN when no unit has two ratings, and when all ratings are equal.
    """
    values = np.asarray(ratings, dtype=float)
    known = ~np.isnan(values)
    paired = known.sum(axis=0) >= 2
    values, known = values[:, paired], known[:, paired]
    if not paired.any():
        return float("nan")
    levels, codes = np.unique(values[known], return_inverse=True)
    counts = np.zeros((values.shape[1], len(levels)))  # units x values
    np.add.at(counts, (np.nonzero(known)[1], codes), 1)
    sizes = counts.sum(axis=1)
    # o_ck = Σ_u n_uc (n_uk − 1[c = k]) / (m_u − 1)
    weights = 1 / (sizes - 1)
    coincidence = (counts * weights[:, None]).T @ counts
    coincidence -= np.diag((counts * weights[:, None]).sum(axis=0))
    totals = coincidence.sum(axis=1)
    gap = levels[:, None] - levels[None, :]
    distance = gap**2 if level == "interval" else (gap != 0).astype(float)
    observed = float((coincidence * distance).sum()) * (totals.sum() - 1)
    expected = float((np.outer(totals, totals) * distance).sum())
    return float("nan") if expected == 0 else 1 - observed / expected


def _codes(a: Any, b: Any) -> tuple[Any, Any]:
    names: dict[Any, int] = {}

    def code(value: Any) -> int:
        missing = value is None or (isinstance(value, float) and np.isnan(value))
        return -1 if missing else names.setdefault(value, len(names))

    return tuple(np.array([code(v) for v in values], np.int64) for values in (a, b))  # type: ignore[return-value]
