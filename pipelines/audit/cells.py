"""Cells of arm × suite that fit neither their arm nor their suite, and their siblings."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.audit.answers import Answers, Floats, counts, sums

#: Answers below which a cell is not judged.
FEWEST = 10
#: Standard deviations and accuracy between a cell and its siblings from which it is a finding.
#: (z, gap): a smaller gap asks for more deviation.
ODD = ((3.6, 0.15), (2.8, 0.25))
GAP = 0.25
#: Siblings: arms nearest in accuracy on the other suites. Arms further off, in the mean, count only
#: where too few are near.
SIBLINGS, FAR, ENOUGH = 5, 0.25, 3


def polish(values: Floats, rounds: int = 20) -> Floats:
    """Residuals of a two-way table after row and column medians (Tukey 1977, median polish).

    Args:
        values: (arms, suites); NaN where nothing is known.
    """
    left = values.copy()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a row of which nothing is known
        for _ in range(rounds):
            for axis in (1, 0):
                middle = np.nanmedian(left, axis=axis, keepdims=True)
                left -= np.where(np.isnan(middle), 0.0, middle)
    return left


def residuals(values: Floats) -> tuple[Floats, float]:
    """Residuals of `polish` where a table is large enough, else NaN; and their robust spread."""
    known = ~np.isnan(values)
    left = polish(values)
    few = (known.sum(axis=1, keepdims=True) < 3) | (known.sum(axis=0, keepdims=True) < 3)
    left[few | ~known] = np.nan
    size = np.abs(left[~np.isnan(left)])
    # Half of a polished table may be 0, so the spread is read off a high quantile too.
    spread = (
        max(1.4826 * float(np.median(size)), float(np.quantile(size, 0.8)) / 1.2816, 1e-9)
        if len(size)
        else np.inf
    )
    return left, spread


@dataclass(frozen=True, eq=False)
class CellGrid:
    """Accuracy of arms on suites.

    Attributes:
        n: (arms, suites) scored answers.
        p: (arms, suites) accuracy; NaN below `FEWEST` answers.
        z: (arms, suites) residual on the logit scale over its standard deviation.
        low, high: (arms, suites) range of the siblings' accuracy on the suite.
    """

    n: Floats
    p: Floats
    z: Floats
    low: Floats
    high: Floats


def grid_of(answers: Answers) -> CellGrid:
    """Accuracy, residuals and siblings of every cell."""
    shape = (len(answers.arms), len(answers.suites))
    size = shape[0] * shape[1]
    score = np.clip(answers.score, 0, 1)
    n = counts(answers.cell, size, ~np.isnan(score)).reshape(shape)
    right = sums(answers.cell, score, size).reshape(shape)
    p = np.where(n >= FEWEST, right / np.maximum(n, 1), np.nan)
    smooth = (right + 0.5) / (n + 1)
    logit = np.where(n >= FEWEST, np.log(smooth / (1 - smooth)), np.nan)
    left, spread = residuals(logit)
    noise = 1 / ((n + 1) * smooth * (1 - smooth))
    low, high = siblings(p)
    return CellGrid(n, p, left / np.sqrt(spread**2 + noise), low, high)


def siblings(p: Floats) -> tuple[Floats, Floats]:
    """(arms, suites) 20th and 80th percentile of each arm's siblings' accuracy on each suite.

    Siblings of an arm, for one suite, are the arms whose accuracies on all other suites are
    nearest to its own.
    """
    low, high = np.full_like(p, np.nan), np.full_like(p, np.nan)
    known = ~np.isnan(p)
    for a in range(len(p)):
        away = np.abs(p - p[a])
        away[~known | ~known[a][None, :]] = np.nan
        total, shared = np.nansum(away, axis=1), (~np.isnan(away)).sum(axis=1)
        for s in np.flatnonzero(known[a]):
            other = total - np.nan_to_num(away[:, s])
            number = shared - ~np.isnan(away[:, s])
            usable = (number > 0) & known[:, s]
            usable[a] = False
            if not usable.any():
                continue
            distance = np.where(usable, other / np.maximum(number, 1), np.inf)
            nearest = np.argsort(distance, kind="stable")[: min(SIBLINGS, int(usable.sum()))]
            if (near := distance[nearest] <= FAR).sum() >= ENOUGH:
                nearest = nearest[near]
            # Of five, the outermost are left out: one odd sibling widens no range.
            low[a, s], high[a, s] = np.quantile(p[nearest, s], (0.2, 0.8))
    return low, high


def odd_cells(grid: CellGrid) -> list[tuple[int, int]]:
    """(arm, suite) of cells that fit neither, the strangest first."""
    noise = np.sqrt(np.clip(grid.p * (1 - grid.p), 0.01, None) / np.maximum(grid.n, 1))
    beside = np.fmax(grid.low - grid.p, grid.p - grid.high)
    with np.errstate(invalid="ignore"):
        odd = np.any([(np.abs(grid.z) > z) & (beside > gap) for z, gap in ODD], axis=0)
        odd &= beside > 4 * noise
        # Not one right answer, where the weakest sibling's rate lets expect a dozen.
        odd |= (grid.p == 0) & (grid.low * grid.n > 12)
    found = np.argwhere(odd)
    order = np.argsort([-abs(grid.z[a, s]) for a, s in found], kind="stable")
    return [(int(found[k][0]), int(found[k][1])) for k in order]
