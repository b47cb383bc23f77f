"""Fingerprints of arms: which questions an arm gets right beyond ability, compared with others.

Two arms of one family miss the same questions. An arm's correlations with all other arms, over
what arm and question do not explain, are alike on every suite, and need nothing but scores.
"""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.audit.answers import Answers, Floats

#: Questions of a suite from which its correlations say something, arms, and most arms.
FEWEST, ARMS, MOST = 30, 5, 400
#: Correlations with different arms are not independent: a sum of them counts half, and as many as
#: 20 of them at most.
COUNTS, DIFFERENT = 0.5, 20
#: How much worse than the median arm fits itself an arm may fit another one.
FITS = 2.0


def correlations(answers: Answers) -> tuple[Floats, Floats]:
    """(suites, arms, arms) residual correlations, NaN where not known; (suites,) questions."""
    arms, suites = len(answers.arms), len(answers.suites)
    found, number = np.full((suites, arms, arms), np.nan), np.zeros(suites)
    if not ARMS <= arms <= MOST:
        return found, number
    known = ~np.isnan(answers.score)
    for s in range(suites):
        rows = np.flatnonzero(known & (answers.suite == s))
        questions, column = np.unique(answers.question[rows], return_inverse=True)
        if len(questions) < FEWEST:
            continue
        number[s] = len(questions)
        table = np.full((arms, len(questions)), np.nan)
        table[answers.arm[rows], column] = answers.score[rows]
        there = ~np.isnan(table)
        left = np.where(there, table, 0.0)
        left -= np.where(there, _mean(left, there, 1), 0.0)
        left -= np.where(there, _mean(left, there, 0), 0.0)
        norm = np.sqrt(np.square(left).sum(axis=1))
        usable = (norm > 0) & (there.mean(axis=1) > 0.5)
        unit = left / np.where(usable, norm, np.inf)[:, None]
        found[s] = np.where(usable[:, None] & usable[None, :], unit @ unit.T, np.nan)
    return found, number


def _mean(values: Floats, there: np.ndarray, axis: int) -> Floats:
    total = there.sum(axis=axis, keepdims=True)
    return np.asarray(values.sum(axis=axis, keepdims=True) / np.maximum(total, 1))


def falls(found: Floats, number: Floats, s: int) -> Floats:
    """(arms, arms) by how much arm a's fingerprint on suite s is nearer to b's than to its own.

    In squared deviations over their variance, which is read off all arms' correlations.
    """
    here, arms = found[s], found.shape[1]
    weight = np.where(np.isnan(found), 0.0, number[:, None, None])
    weight[s] = 0
    total = weight.sum(axis=0)
    if not number[s] or not (total > 0).any():
        return np.zeros((arms, arms))
    with np.errstate(invalid="ignore"):
        rest = np.where(total > 0, (np.nan_to_num(found) * weight).sum(axis=0) / total, np.nan)
    both = ~np.isnan(here) & ~np.isnan(rest)
    np.fill_diagonal(both, False)
    if not both.any():
        return np.zeros((arms, arms))
    x, y = np.where(both, here, 0.0), np.where(both, rest, 0.0)
    variance = max(float(np.median(np.square((here - rest)[both]))) / 0.455, 1e-9)
    # Sum over c of (x[a, c] − y[a, c])² − (x[a, c] − y[b, c])², without c = a and c = b.
    own = np.square(x - y)
    other = np.square(x).sum(1)[:, None] + np.square(y).sum(1)[None, :] - 2 * x @ y.T
    after = other - np.square(y.T) - np.square(x)
    fall = own.sum(axis=1)[:, None] - own - after
    number_of = both.sum(axis=1)
    usable = number_of >= 3
    typical = float(np.median(own.sum(axis=1)[usable])) if usable.any() else 0.0
    # An arm that fits nobody, itself included, has changed places with nobody.
    fall = np.where(after <= FITS * typical, fall, np.minimum(fall, 0.0))
    weight_of = COUNTS * min(1.0, DIFFERENT / max(int(number_of.max(initial=1)), 1))
    return np.where(usable[:, None] & usable[None, :], weight_of * fall / variance, 0.0)
