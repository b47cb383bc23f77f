"""How well entropy tells wrong answers from right ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def auroc(scores: npt.ArrayLike, positive: npt.ArrayLike) -> float | None:
    """Probability that a positive scores above a negative; ties count one half.

    The Mann-Whitney statistic over average ranks (Hanley and McNeil 1982).

    Args:
        scores: float of shape (n,), finite.
        positive: bool of shape (n,).

    Returns:
        None when one of the two classes is empty.
    """
    values = np.asarray(scores, dtype=np.float64)
    flags = np.asarray(positive, dtype=bool)
    n_positive, n_negative = int(flags.sum()), int((~flags).sum())
    if not n_positive or not n_negative:
        return None
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[codes]
    above = ranks[flags].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * n_negative))
