"""Suites on which two arms' answers have changed places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from routeyard.pipelines.audit.answers import Answers, Floats, counts, means, sums
from routeyard.pipelines.audit.cells import FEWEST, polish

#: Signs whose share of a text tells one model's style from another's.
_SIGNS = ("\n", "*", "#", "\\", "`", ",", ":", "I ")
#: How far both cells are off before, and may be off after, in standard deviations.
BEFORE, AFTER = 3.0, 1.75
#: By how much the exchange betters the fit: the fall of the sum of squared deviations, each
#: capped, over what is measured.
GAIN, CAP = 25.0, 36.0

#: (arms, suites) of one measure.
Tables = list[NDArray[np.float64]]


def exchanged(answers: Answers) -> list[tuple[int, int, int]]:
    """(arm, arm, suite) whose exchange makes all that is measured of them fit far better.

    Measured are accuracy, length and style of texts, tokens, cost and latency. Each is a two-way
    table; what an arm has on the other suites and what the other arms have on the suite say what
    its cell should hold.
    """
    arms, suites = len(answers.arms), len(answers.suites)
    if arms < 3 or suites < 3:
        return []
    tables, noises = _tables(answers)
    before, after = np.zeros((2, suites, arms, arms)), np.zeros((2, suites, arms, arms))
    gain, worst_before = np.zeros((suites, arms, arms)), np.zeros((2, suites, arms, arms))
    for table, noise in zip(tables, noises, strict=True):
        expected = _expected(table)
        spread = _spread(table - expected, noise)
        own = np.abs((table - expected) / spread).T  # suites × arms
        # [s, a, b]: what b holds on s against what a should hold there.
        other = np.abs((table.T[:, None, :] - expected.T[:, :, None]) / spread.T[:, :, None])
        mine = np.broadcast_to(own[:, :, None], other.shape)
        theirs = np.swapaxes(mine, 1, 2)
        swapped = (other, np.swapaxes(other, 1, 2))
        known = np.isfinite(mine) & np.isfinite(theirs) & np.isfinite(other)
        known &= np.swapaxes(known, 1, 2)
        capped = [np.minimum(np.square(x), CAP) for x in (mine, theirs, *swapped)]
        gain += np.where(known, capped[0] + capped[1] - capped[2] - capped[3], 0.0)
        for k, (old, new) in enumerate(zip((mine, theirs), swapped, strict=True)):
            worst_before[k] = np.fmax(worst_before[k], np.where(known, old, 0.0))
            before[k] += np.where(known, np.minimum(np.square(old), CAP), 0.0)
            after[k] += np.where(known, np.minimum(np.square(new), CAP), 0.0)
    measures = len(tables)
    fits = (after <= AFTER**2 * measures).all(axis=0) & (worst_before > BEFORE).all(axis=0)
    found: list[tuple[int, int, int]] = []
    taken: set[tuple[int, int]] = set()
    wanted = np.argwhere(fits & (gain > GAIN))
    for s, a, b in sorted(wanted.tolist(), key=lambda x: (-gain[x[0], x[1], x[2]], x)):
        if a < b and (s, a) not in taken and (s, b) not in taken:
            taken |= {(s, a), (s, b)}
            found.append((a, b, s))
    return found


def _expected(table: Floats) -> Floats:
    """(arms, suites) what the other cells of arm and suite let expect; NaN where few are known."""
    left = polish(table)
    fit = table - left
    out = np.full_like(table, np.nan)
    known = ~np.isnan(table)
    for s in range(table.shape[1]):
        rest = np.delete(left, s, axis=1)
        enough = (~np.isnan(rest)).sum(axis=1) >= 2
        out[enough, s] = fit[enough, s]
    # A suite that only one or two arms have says nothing of either.
    out[:, known.sum(axis=0) < 3] = np.nan
    return out


def _spread(left: Floats, noise: Floats) -> Floats:
    """(arms, suites) standard deviation of a cell: of interactions, of its arm and of sampling."""
    size = np.abs(left)
    known = size[np.isfinite(size)]
    if not len(known):
        return np.ones_like(left)
    common = max(float(np.quantile(known, 0.75)) / 1.1503, 1e-6)
    arms = np.array([_quantile(row) for row in size]) / 1.1503
    suites = np.array([_quantile(column) for column in size.T]) / 1.1503
    scale = np.maximum(common, 0.75 * np.maximum(arms[:, None], suites[None, :]))
    return np.asarray(np.sqrt(scale**2 + noise**2))


def _quantile(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.quantile(known, 0.6)) * 1.367 if len(known) else 0.0


def _tables(answers: Answers) -> tuple[Tables, Tables]:
    """The measures as (arms, suites) tables, and the standard error of each cell."""
    shape = (len(answers.arms), len(answers.suites))
    size = shape[0] * shape[1]
    score = np.clip(answers.score, 0, 1)
    n = counts(answers.cell, size, ~np.isnan(score))
    smooth = (sums(answers.cell, score, size) + 0.5) / (n + 1)
    logit = np.where(n >= FEWEST, np.log(smooth / (1 - smooth)), np.nan)
    tables, noises = [logit], [1 / np.sqrt((n + 1) * smooth * (1 - smooth))]
    for values in _measures(answers):
        known = counts(answers.cell, size, ~np.isnan(values))
        mean = means(answers.cell, values, size)
        square = means(answers.cell, np.square(values), size) - np.square(mean)
        tables.append(np.where(known >= FEWEST, mean, np.nan))
        noises.append(np.sqrt(np.maximum(square, 0) / np.maximum(known, 1)))
    whole = [k for k, table in enumerate(tables) if np.isfinite(table).any()]
    return [tables[k].reshape(shape) for k in whole], [noises[k].reshape(shape) for k in whole]


def _measures(answers: Answers) -> Iterator[Floats]:
    """(n,) each measure of an answer beside its score, on a scale on which arms and suites add."""
    for name in ("completion_tokens", "cost_usd", "latency_s"):
        if answers.has(name):
            yield _log(answers.numbers(name))
    if answers.has("text"):
        length = answers.lengths("text")
        yield _log(length)
        texts = answers.texts("text")
        for sign in _SIGNS:
            number = pc.count_substring(texts, sign).cast("float64").to_numpy(zero_copy_only=False)
            yield np.sqrt(number / np.maximum(length, 1))


def _log(values: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.log(np.where(values > 0, values, np.nan)))
