"""Agreement between scorers: Cohen's kappa and Krippendorff's alpha."""

from __future__ import annotations

from typing import Any

import numpy as np


def cohen_kappa(both: int, first: int, second: int, none: int) -> float | None:
    """κ = (p_o − p_e) / (1 − p_e), Cohen 1960, of two raters who say yes or no.

    Args:
        both, first, second, none: Units to which both, only one or neither says yes.

    Returns:
        None without units, and where chance alone would always agree.
    """
    n = both + first + second + none
    a, b = (both + first) / max(n, 1), (both + second) / max(n, 1)
    chance = a * b + (1 - a) * (1 - b)
    return None if not n or chance == 1 else ((both + none) / n - chance) / (1 - chance)


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
