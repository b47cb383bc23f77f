"""Fingerprints of arms: which questions an arm gets right beyond ability, compared with others.

Two arms of one family miss the same questions. An arm's correlations with all other arms, over
what arm and question do not explain, are alike on every suite, and need nothing but scores.

Scores alone (`evidence`): under a swap of arms a and b the residual correlations R of a suite have
the rows and columns of a and b changed. With C, what the other suites let expect, and n questions,
the log-likelihood ratio of Gaussian residuals is n/2 · [tr(C⁻¹R) − tr(C⁻¹PRP)]; the same with the
suite's accuracies. Suites differ more than samples of one do, so each ratio is divided by how much
more (quasi-likelihood: McCullagh and Nelder, Generalized Linear Models).
"""

from __future__ import annotations

import warnings

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


#: Questions of a suite that count at most, shrinkage of C towards independence, and clip of what an
#: arm's accuracy on a suite is off, on the logit scale.
QUESTIONS, RIDGE, CLIP = 300, 0.2, 2.5


def evidence(answers: Answers, logit: Floats, noise: Floats) -> Floats:
    """(suites, arms, arms) log-likelihood ratio that two arms' scores there changed places.

    Args:
        logit, noise: (arms, suites) accuracy on the logit scale and its standard error.
    """
    found, number = correlations(answers)
    without = np.stack([_without_first(one) for one in found])
    return _calibrated(*_of_correlations(without, number)) + _calibrated(
        *_of_accuracies(logit, noise)
    )


def _without_first(here: Floats) -> Floats:
    """Correlations less their first component: what a suite asks of all arms, such as yes or no."""
    k = np.flatnonzero(~np.isnan(np.diag(here)))
    left = np.full_like(here, np.nan)
    if len(k) < ARMS:
        return left
    values, vectors = np.linalg.eigh(here[np.ix_(k, k)])
    rest = here[np.ix_(k, k)] - values[-1] * np.outer(vectors[:, -1], vectors[:, -1])
    size = np.sqrt(np.maximum(np.diag(rest), 0.05))
    rest = rest / np.outer(size, size)
    np.fill_diagonal(rest, 1.0)
    left[np.ix_(k, k)] = rest
    return left


def _of_correlations(found: Floats, number: Floats) -> tuple[Floats, Floats]:
    """Log-likelihood ratios of swaps by suites' correlations, and those expected without a swap."""
    ratio, expected = np.full_like(found, np.nan), np.full_like(found, np.nan)
    n = np.minimum(number, QUESTIONS)
    known = ~np.isnan(found)
    values = np.nan_to_num(found)
    alike = _alike(values, known)
    for s in np.flatnonzero(n):
        weight = (n * np.maximum(alike[s], 0.05))[:, None, None] * known
        weight[s] = 0
        total = weight.sum(axis=0)
        k = np.flatnonzero(known[s].diagonal() & (total.diagonal() > 0))
        if len(k) < ARMS:
            continue
        square = np.ix_(k, k)
        rest = ((weight * values).sum(axis=0) / np.maximum(total, 1e-9))[square]
        rest = (1 - RIDGE) * rest + RIDGE * np.eye(len(k))
        inverse = np.linalg.inv(rest)
        ratio[s][square] = n[s] / 2 * _swap_traces(inverse, values[s][square])
        expected[s][square] = n[s] / 2 * _swap_traces(inverse, rest)
    return ratio, expected


def _alike(values: Floats, known: Floats) -> Floats:
    """(suites, suites) correlation of the arms' correlations."""
    upper = np.triu_indices(values.shape[1], 1)
    flat, there = values[:, *upper], known[:, *upper]
    mean = flat.sum(axis=1, keepdims=True) / np.maximum(there.sum(axis=1, keepdims=True), 1)
    left = np.where(there, flat - mean, 0.0)
    size = np.sqrt(np.square(left).sum(axis=1))
    return np.asarray(left @ left.T / np.maximum(np.outer(size, size), 1e-9))


def _swap_traces(q: Floats, x: Floats) -> Floats:
    """[a, b] tr(qx) − tr(qPxP), where P exchanges a and b; q and x are symmetric."""
    own, of_q, of_x = q @ x, np.diag(q), np.diag(x)
    whole = np.diag(own)[:, None] + np.diag(own)[None, :] - own - own.T
    at_a = (of_q[:, None] - q) * (of_x[:, None] - x)
    at_b = (q - of_q[None, :]) * (x - of_x[None, :])
    both = (of_q[:, None] - of_q[None, :]) * (of_x[:, None] - of_x[None, :])
    return np.asarray(2 * (whole - at_a - at_b) + both)


def _of_accuracies(logit: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """The same by the accuracies of a suite, which the arms' accuracies elsewhere let expect."""
    arms, suites = logit.shape
    ratio, expected = (np.full((suites, arms, arms), np.nan) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a suite or an arm without scores
        level = logit - np.nanmedian(logit, axis=0)
        middles = [np.nanmean(np.delete(level, s, axis=1), axis=1) for s in range(suites)]
    for s, middle in enumerate(middles):
        k = np.flatnonzero(~np.isnan(level[:, s]) & ~np.isnan(middle))
        if len(k) < ARMS:
            continue
        rest = np.delete(level, s, axis=1)[k]
        off = np.clip(np.nan_to_num(rest - middle[k, None]), -CLIP, CLIP)
        covariance = off @ off.T / off.shape[1]
        own = np.diag(covariance)
        alone = len(k) / (len(k) + off.shape[1])
        covariance = (1 - alone) * covariance + np.diag(alone * (own + own.mean()) / 2)
        q = np.linalg.inv(covariance + np.diag(np.square(noise[k, s])))
        here = level[k, s] - np.median(level[k, s] - middle[k]) - middle[k]
        scale = max(1.0, float(np.median(np.square(here) / np.diag(covariance))) / 0.455)
        spread = np.diag(q)[:, None] + np.diag(q)[None, :] - 2 * q
        move, score = level[k, s][None, :] - level[k, s][:, None], q @ here
        moved = 2 * move * (score[:, None] - score[None, :]) + np.square(move) * spread
        ratio[s][np.ix_(k, k)] = -0.5 * moved / scale
        expected[s][np.ix_(k, k)] = (
            -0.5 * np.square(middle[k][None, :] - middle[k][:, None]) * spread / scale
        )
    return ratio, expected


def _calibrated(ratio: Floats, expected: Floats) -> Floats:
    """Ratios over how much more they spread than samples of one kind would; 0 where unknown."""
    usable = ~np.isnan(ratio) & (expected < -0.05)
    if not usable.any():
        return np.zeros_like(ratio)
    off = (ratio[usable] - expected[usable]) / np.sqrt(-2 * expected[usable])
    spread = 1.4826 * float(np.median(np.abs(off - np.median(off))))
    return np.nan_to_num(ratio) / max(1.0, spread**2)
