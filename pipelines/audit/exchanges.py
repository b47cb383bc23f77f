"""Exchanged answers of two arms, told by measures, styles and scores."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from routeyard.pipelines.audit.answers import (
    FEWEST,
    Answers,
    Floats,
    Found,
    components,
    counts,
    means,
    sums,
)

# Scores that are stored under other questions than the other arms' scores do.
#
# What is hard for one arm is hard for another: scores of any two arms correlate over the questions
# of
# a suite. Where the ids are row numbers and a file has its rows in another order, they do not, and
# every comparison of questions is one of different questions.

#: Arms from which, and up to which, pairs are compared; questions of a suite that are compared.
ALIGNED_ARMS, ALIGNED_MOST, ALIGNED_FEWEST = 3, 400, 20
#: Questions that a pair has in common, correlation below which groups are unrelated, above which a
#: pair is related, and standard errors by which it has to be above.
COMMON, UNRELATED, RELATED, ERRORS = 200, 0.1, 0.15, 3.0
#: Share of pairs between two groups that have to have questions in common.
APART = 0.8
#: Questions from which one arm is compared with the mean of the others, correlation that the other
#: arms have with it in the median, and part of that below which an arm is unrelated.
OF_ARM, OTHERS, PART = 100, 0.3, 0.4
#: Accuracy outside which scores say too little.
LOWEST = 0.1
#: Rows by which a file may be offset.
OFFSETS = (-3, -2, -1, 1, 2, 3)


@dataclass(frozen=True, eq=False)
class SuiteScores:
    """Scores of the arms on one suite, less each arm's mean; questions in the order of the file.

    Attributes:
        z: (arms, questions); 0 where nothing is known.
        known: (arms, questions) 1 where a score is.
    """

    z: Floats
    known: Floats

    def correlations(self) -> tuple[Floats, Floats]:
        """(arms, arms) correlations, 0 where not known, and (arms, arms) questions in common."""
        square = np.square(self.z) @ self.known.T
        size = np.sqrt(square * square.T)
        common = self.known @ self.known.T
        usable = (size > 1e-9) & (common >= ALIGNED_FEWEST)
        values = np.where(usable, self.z @ self.z.T / np.where(usable, size, 1.0), 0.0)
        return values, np.where(usable, common, 0.0)

    @cached_property
    def totals(self) -> tuple[Floats, Floats]:
        """(questions,) sums of the arms' scores, and arms that have one."""
        return self.z.sum(axis=0), self.known.sum(axis=0)

    def with_others(self, arm: int, offset: int = 0) -> tuple[float, int]:
        """Correlation of an arm's scores with the mean of the others' `offset` rows on."""
        total, number = self.totals
        rest = (total - self.z[arm]) / np.maximum(number - self.known[arm], 1)
        both = (self.known[arm] > 0) & (np.roll(number - self.known[arm], -offset) > 0)
        x, y = self.z[arm][both], np.roll(rest, -offset)[both]
        size = float(np.sqrt(np.square(x).sum() * np.square(y).sum()))
        return (float(x @ y) / size if size > 1e-9 else 0.0), int(both.sum())


def misaligned(answers: Answers) -> Iterator[Found]:
    """Arms whose scores are unrelated to the other arms': groups, arms and single suites."""
    if not ALIGNED_ARMS <= len(answers.arms) <= ALIGNED_MOST:
        return
    suites = answers.cached("suite scores", suite_scores)
    groups = list(_groups(answers, suites))
    for group, says in groups:
        rows = np.flatnonzero(np.isin(answers.arm, group))
        names = ", ".join(answers.arms[a] for a in group[:3])
        more = f" and {len(group) - 3} more" if len(group) > 3 else ""
        yield Found(names + more, says, rows, "grave")
    if not groups:
        yield from _single(answers, suites)


def suite_scores(answers: Answers) -> dict[int, SuiteScores]:
    """Suite → scores of the arms, of suites with enough questions."""
    result = {}
    known = ~np.isnan(answers.score)
    for s in range(len(answers.suites)):
        rows = np.flatnonzero(known & (answers.suite == s))
        questions, column = np.unique(answers.first[answers.question[rows]], return_inverse=True)
        if len(questions) < ALIGNED_FEWEST:
            continue
        shape = (len(answers.arms), len(questions))
        cell = answers.arm[rows] * shape[1] + column
        number = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
        total = np.bincount(cell, answers.score[rows], shape[0] * shape[1]).reshape(shape)
        there = number > 0
        mean = np.where(there, total / np.maximum(number, 1), 0.0)
        level = mean.sum(axis=1, keepdims=True) / np.maximum(there.sum(axis=1, keepdims=True), 1)
        result[s] = SuiteScores(np.where(there, mean - level, 0.0), there.astype(np.float64))
    return result


def _groups(answers: Answers, suites: dict[int, SuiteScores]) -> Iterator[tuple[list[int], str]]:
    """Groups of arms that are unrelated to all other arms, all but the largest; what to say."""
    arms = len(answers.arms)
    pair, common = _pairs(suites, arms)
    pair = np.where(common >= COMMON, pair, np.nan)
    error = 1 / np.sqrt(np.maximum(common, 1))
    with np.errstate(invalid="ignore"):
        groups = _components(pair - ERRORS * error > RELATED)
    largest = max(groups, key=lambda group: (len(group), -group[0]))
    for group in groups:
        rest = [a for a in range(arms) if a not in group]
        block = np.ix_(group, rest)
        judged = ~np.isnan(pair[block])
        if group is largest or len(group) < 2 or judged.mean() < APART:
            continue
        usual = min(_within(pair, group), _within(pair, largest))
        high = float(np.median((pair + 2 * error)[block][judged]))
        if high >= max(UNRELATED, PART * usual):
            continue
        within = _within(pair, group)
        says = (
            f"their scores have a correlation of {within:.2f} with one another and of "
            f"{float(np.nanmedian(pair[block])):.2f} with the other arms': under one id are "
            "different questions, as where ids are numbers of rows that are in another order"
        )
        yield group, says


def _within(pair: Floats, group: list[int]) -> float:
    return float(np.nanmedian(pair[np.ix_(group, group)]))


def _pairs(suites: dict[int, SuiteScores], arms: int) -> tuple[Floats, Floats]:
    """(arms, arms) correlations over all suites, NaN of an arm with itself; questions in common."""
    total, common = np.zeros((arms, arms)), np.zeros((arms, arms))
    for suite in suites.values():
        result, number = suite.correlations()
        total += result * number
        common += number
    pair = total / np.maximum(common, 1)
    np.fill_diagonal(pair, np.nan)
    return pair, common


def _components(related: np.ndarray) -> list[list[int]]:
    arm, other = np.nonzero(related | np.eye(len(related), dtype=bool))
    label = components(arm, other, len(related), len(related))
    return [np.flatnonzero(label == k).tolist() for k in np.unique(label)]


def _rows(offset: int) -> str:
    rows = "one row" if abs(offset) == 1 else f"{abs(offset)} rows"
    return f"{rows} {'before' if offset < 0 else 'behind'}"


def _offset(suites: dict[int, SuiteScores], arm: int) -> int | None:
    """Rows by which an arm's scores are off; None where no offset makes them related."""
    best, most = None, 0.0
    for offset in OFFSETS:
        results = [suite.with_others(arm, offset) for suite in suites.values()]
        number = sum(n for _, n in results)
        mean = sum(value * n for value, n in results) / max(number, 1)
        if mean - ERRORS / np.sqrt(max(number, 1)) > max(RELATED, most):
            best, most = offset, mean
    return best


def _single(answers: Answers, suites: dict[int, SuiteScores]) -> Iterator[Found]:
    """Arms that are unrelated to the mean of the others, or are so on one suite alone."""
    arms = range(len(answers.arms))
    values = np.array([[suite.with_others(a) for suite in suites.values()] for a in arms])
    if not values.size:
        return
    value, number = values[:, :, 0], values[:, :, 1]
    total = number.sum(axis=1)
    whole = (value * number).sum(axis=1) / np.maximum(total, 1)
    for a in arms:
        own = answers.arm == a
        if _unrelated(whole[a], total[a], np.delete(whole, a)) and _tells(answers.score[own]):
            says = _says(whole[a], float(np.median(np.delete(whole, a))), _offset(suites, a))
            yield Found(answers.arms[a], says, np.flatnonzero(own))
            continue
        for k, s in enumerate(suites):
            if len(suites) < 2:
                break
            others, elsewhere = np.delete(value[:, k], a), np.delete(value[a], k)
            usual = np.array([min(np.median(others), np.median(elsewhere))])
            rows = np.flatnonzero(own & (answers.suite == s))
            if _unrelated(value[a, k], number[a, k], usual) and _tells(answers.score[rows]):
                says = _says(value[a, k], float(np.median(others)), _offset({s: suites[s]}, a))
                yield Found(f"{answers.arms[a]} on {answers.suites[s]}", says, rows)


def _unrelated(value: float, number: float, others: Floats) -> bool:
    """Whether a correlation is far below those of others, even three standard errors up."""
    usual = float(np.median(others))
    high = value + ERRORS / np.sqrt(max(number, 1))
    return bool(number >= OF_ARM and usual >= OTHERS and high < PART * usual)


def _tells(score: Floats) -> bool:
    """Whether scores vary enough to say something."""
    mean = float(np.nanmean(score))
    return LOWEST <= mean <= 1 - LOWEST and float(np.nanstd(score)) > 0.1


def _says(value: float, usual: float, offset: int | None) -> str:
    about = (
        f"its scores have a correlation of {value:.2f} with the other arms', where these have one "
        f"of {usual:.2f}"
    )
    if offset is not None:
        return f"{about}: they are {_rows(offset)} the question that they are stored under"
    if value < -UNRELATED:
        return f"{about}: right and wrong are exchanged, or other questions"
    return f"{about}: answers at random, or rows of other questions"


#: Correlation of two arms' scores from which one is a copy of the other, and part of their names
#: in common from which they are of one model.
COPY, ONE_MODEL = 0.85, 0.6


def same_scores(answers: Answers) -> Iterator[Found]:
    """Arms of other names whose scores are those of another arm, but for a few."""
    if not ALIGNED_ARMS <= len(answers.arms) <= ALIGNED_MOST:
        return
    pair, common = _pairs(answers.cached("suite scores", suite_scores), len(answers.arms))
    for a, b in np.argwhere(np.triu(np.nan_to_num(pair) >= COPY, 1) & (common >= ALIGNED_FEWEST)):
        names = answers.arms[a], answers.arms[b]
        shared = difflib.SequenceMatcher(None, *names).find_longest_match().size
        if common[a, b] < COMMON or shared >= ONE_MODEL * min(map(len, names)):
            continue
        accuracy = [float(np.nanmean(answers.score[answers.arm == k])) for k in (a, b)]
        if not LOWEST <= min(accuracy) <= max(accuracy) <= 1 - LOWEST:
            continue
        says = (
            f"their scores on {int(common[a, b]):,} questions have a correlation of "
            f"{pair[a, b]:.2f}: scores of one are stored under the other, or both are one model"
        )
        rows = np.flatnonzero((answers.arm == a) | (answers.arm == b))
        yield Found(f"{names[0]} and {names[1]}", says, rows)


# Fingerprints of arms: which questions an arm gets right beyond ability, compared with others.
#
# Two arms of one family miss the same questions. An arm's correlations with all other arms, over
# what arm and question do not explain, are alike on every suite, and need nothing but scores.
#
# Scores alone (`evidence`): under a swap of arms a and b the residual correlations R of a suite
# have
# the rows and columns of a and b changed. With C, what the other suites let expect, and n
# questions,
# the log-likelihood ratio of Gaussian residuals is n/2 · [tr(C⁻¹R) − tr(C⁻¹PRP)]; the same with the
# suite's accuracies. Suites differ more than samples of one do, so each ratio is divided by how
# much
# more (quasi-likelihood: McCullagh and Nelder, Generalized Linear Models).

#: Questions of a suite from which its correlations say something, arms, and most arms.
FINGERPRINTS_FEWEST, FINGERPRINTS_ARMS, FINGERPRINTS_MOST = 30, 5, 400
#: Correlations with different arms are not independent: a sum of them counts half, and as many as
#: 20 of them at most.
FINGERPRINTS_COUNTS, DIFFERENT = 0.5, 20
#: How much worse than the median arm fits itself an arm may fit another one.
FITS = 2.0


def correlations(answers: Answers) -> tuple[Floats, Floats]:
    """(suites, arms, arms) residual correlations, NaN where not known; (suites,) questions."""
    arms, suites = len(answers.arms), len(answers.suites)
    result, number = np.full((suites, arms, arms), np.nan), np.zeros(suites)
    if not FINGERPRINTS_ARMS <= arms <= FINGERPRINTS_MOST:
        return result, number
    known = ~np.isnan(answers.score)
    for s in range(suites):
        rows = np.flatnonzero(known & (answers.suite == s))
        questions, column = np.unique(answers.question[rows], return_inverse=True)
        if len(questions) < FINGERPRINTS_FEWEST:
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
        result[s] = np.where(usable[:, None] & usable[None, :], unit @ unit.T, np.nan)
    return result, number


def _mean(values: Floats, there: np.ndarray, axis: int) -> Floats:
    total = there.sum(axis=axis, keepdims=True)
    return np.asarray(values.sum(axis=axis, keepdims=True) / np.maximum(total, 1))


def falls(values: Floats, number: Floats, s: int) -> Floats:
    """(arms, arms) by how much arm a's fingerprint on suite s is nearer to b's than to its own.

    In squared deviations over their variance, which is read off all arms' correlations.
    """
    here, arms = values[s], values.shape[1]
    weight = np.where(np.isnan(values), 0.0, number[:, None, None])
    weight[s] = 0
    total = weight.sum(axis=0)
    if not number[s] or not (total > 0).any():
        return np.zeros((arms, arms))
    with np.errstate(invalid="ignore"):
        rest = np.where(total > 0, (np.nan_to_num(values) * weight).sum(axis=0) / total, np.nan)
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
    weight_of = FINGERPRINTS_COUNTS * min(1.0, DIFFERENT / max(int(number_of.max(initial=1)), 1))
    return np.where(usable[:, None] & usable[None, :], weight_of * fall / variance, 0.0)


#: Questions of a suite that count at most, shrinkage of C towards independence, and clip of what an
#: arm's accuracy on a suite is off, on the logit scale.
QUESTIONS, RIDGE, CLIP = 300, 0.2, 2.5


def evidence(answers: Answers, logit: Floats, noise: Floats) -> Floats:
    """(suites, arms, arms) log-likelihood ratio that two arms' scores there changed places.

    Args:
        logit, noise: (arms, suites) accuracy on the logit scale and its standard error.
    """
    result, number = correlations(answers)
    without = np.stack([_without_first(item) for item in result])
    return _calibrated(*_of_correlations(without, number)) + _calibrated(
        *_of_accuracies(logit, noise)
    )


def _without_first(here: Floats) -> Floats:
    """Correlations less their first component: what a suite asks of all arms, such as yes or no."""
    k = np.flatnonzero(~np.isnan(np.diag(here)))
    left = np.full_like(here, np.nan)
    if len(k) < FINGERPRINTS_ARMS:
        return left
    values, vectors = np.linalg.eigh(here[np.ix_(k, k)])
    rest = here[np.ix_(k, k)] - values[-1] * np.outer(vectors[:, -1], vectors[:, -1])
    size = np.sqrt(np.maximum(np.diag(rest), 0.05))
    rest = rest / np.outer(size, size)
    np.fill_diagonal(rest, 1.0)
    left[np.ix_(k, k)] = rest
    return left


def _of_correlations(matrices: Floats, number: Floats) -> tuple[Floats, Floats]:
    """Log-likelihood ratios of swaps by suites' correlations, and those expected without a swap."""
    ratio, expected = np.full_like(matrices, np.nan), np.full_like(matrices, np.nan)
    n = np.minimum(number, QUESTIONS)
    known = ~np.isnan(matrices)
    values = np.nan_to_num(matrices)
    alike = _alike(values, known)
    for s in np.flatnonzero(n):
        weight = (n * np.maximum(alike[s], 0.05))[:, None, None] * known
        weight[s] = 0
        total = weight.sum(axis=0)
        k = np.flatnonzero(known[s].diagonal() & (total.diagonal() > 0))
        if len(k) < FINGERPRINTS_ARMS:
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
        if len(k) < FINGERPRINTS_ARMS:
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


# How often texts hold signs: counted over the bytes of many texts at a time.

#: Texts that are looked at together: few enough that their bytes stay in the processor's cache.
_TOGETHER = 1024


def occurrences(texts: pa.Array, signs: Sequence[str]) -> Floats:
    """(signs, n) how often each text holds each sign; anything where the text is missing.

    Args:
        texts: strings.
        signs: one or two ASCII characters each, two different ones.
    """
    values = np.zeros((len(signs), len(texts)))
    for start in range(0, len(texts), _TOGETHER):
        content, ends = _bytes(texts.slice(start, _TOGETHER))
        for k, sign in enumerate(signs):
            first, *second = sign.encode()
            at = np.flatnonzero(content == first)
            if second:
                at = at[np.append(content, 0)[at + 1] == second[0]]
            # Two characters are in one text where the second one is before its end.
            before = np.searchsorted(at, ends[:-1])
            upto = np.searchsorted(at, np.maximum(ends[1:] - len(second), ends[:-1]))
            values[k, start : start + len(ends) - 1] = upto - before
    return values


def _bytes(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all texts, and (n + 1,) where each begins and the last one ends."""
    _, offsets, data = texts.buffers()
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    ends = np.frombuffer(offsets or b"", kind)[texts.offset :][: len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]], ends - ends[0]


# Styles of arms: the words with which their answers open and close, compared over suites.
#
# A model opens and closes its answers with its own words, whatever it is asked. Over what a
# suite's questions bring, an arm's shares of such words are alike on every suite.

#: Texts of a cell that are looked at, fewest of them, and characters of each at its two ends.
TEXTS, STYLES_FEWEST, OPENING, CLOSING = 60, 8, 300, 150
#: Words are counted in so many bins.
BINS = 512
#: What a typical distance is worth, in squared deviations, and the most that styles count.
STYLES_COUNTS, STYLES_MOST = 25.0, 60.0
_WORD = re.compile(r"[^\W\d_]+|[^\w\s]|\n")
#: The same in ASCII, several times as fast.
_ASCII = re.compile(r"[a-z]+|[^a-z0-9_\t-\r\x1c- ]|\n")


def styles(answers: Answers) -> Floats | None:
    """(arms, suites, bins) share of the texts that hold a word; NaN where a cell has too few.

    None where there are no texts.
    """
    if not answers.has("text"):
        return None
    arms, suites = len(answers.arms), len(answers.suites)
    values = np.full((arms * suites, BINS), np.nan)
    rows = np.flatnonzero(answers.lengths("text") > 0)
    order = rows[np.argsort(answers.cell[rows], kind="stable")]
    cells, starts = np.unique(answers.cell[order], return_index=True)
    bins = _Bins()
    for cell, own in zip(cells, np.split(order, starts[1:]), strict=True):
        if len(own) < STYLES_FEWEST:
            continue
        some = own[:: max(1, len(own) // TEXTS)][:TEXTS]
        texts = answers.texts("text").take(pa.array(some)).to_pylist()
        held = chain.from_iterable(set(map(bins.__getitem__, _marked(text))) for text in texts)
        number = np.bincount(np.fromiter(held, np.int64), minlength=BINS)
        values[cell] = np.arcsin(np.sqrt((number + 0.5) / (len(texts) + 1)))
    return values.reshape(arms, suites, BINS)


class _Bins(dict[str, int]):
    """Bin of each word; most words recur."""

    def __missing__(self, word: str) -> int:
        self[word] = result = crc32(word.encode("utf-8", "surrogatepass")) % BINS
        return result


def _marked(text: str) -> list[str]:
    """Words, signs and pairs of words at both ends of a text."""
    opening, closing = text[:OPENING].lower(), text[-CLOSING:].lower()
    first, last = (
        (_ASCII if part.isascii() else _WORD).findall(part) for part in (opening, closing)
    )
    pairs = [f"{a} {b}" for a, b in pairwise(first[:12])]
    return [*first, *pairs, *(f"… {word}" for word in last)]


def levels(made: Floats) -> Floats:
    """(arms, suites, bins) styles less what a suite's questions bring."""
    return made - _median(made, 0)


def style_falls(level: Floats, s: int) -> Floats:
    """(arms, arms) by how much arm a's style on suite s is nearer to arm b's than to its own.

    Args:
        level: see `levels`.
    """
    own = _median(np.delete(level, s, axis=1), 1)[:, 0]
    here = level[:, s]
    known = ~np.isnan(here[:, 0]) & ~np.isnan(own[:, 0])
    fall = np.zeros((len(level), len(level)))
    k = np.flatnonzero(known)
    if len(k) < 3:
        return fall
    x, y = here[k], own[k]
    off = np.square(x).sum(1)[:, None] + np.square(y).sum(1)[None, :] - 2 * x @ y.T
    mine = np.diag(off)
    typical = max(float(np.median(mine)), 1e-9)
    fall[np.ix_(k, k)] = np.clip(
        STYLES_COUNTS * (mine[:, None] - off) / typical, -STYLES_MOST, STYLES_MOST
    )
    return fall


def _median(values: Floats, axis: int) -> Floats:
    """`np.nanmedian` with its axis kept, which calls Python for every line of a short axis."""
    known = np.sum(~np.isnan(values), axis=axis, keepdims=True)
    ordered = np.sort(values, axis=axis)  # unknown ones last
    middle = (
        np.take_along_axis(ordered, at, axis) for at in (np.maximum(known - 1, 0) // 2, known // 2)
    )
    return np.asarray(sum(middle) / 2)


# Suites on which two arms' answers have changed places.

#: Signs whose share of a text tells one model's style from another's.
_SIGNS = ("\n", "*", "#", "\\", "`", ",", ":", "I ")
#: By how much an exchange betters the fit at least, by how many times what the next best one
#: betters it, and exchanges of one recording at most: more of them are no exchanges.
GAIN, TIMES, SWAPPED_MOST = 24.0, 1.8, 3
#: Suites from which figures alone tell an arm from another; with texts fewer do.
SUITES = 5
#: Log-likelihood ratio of an exchange by scores alone, by how many times it is above any other, and
#: arms that tell such an exchange from an odd arm.
LIKELIER, RIVAL, SWAPPED_ARMS, MOST_ARMS = 4.0, 1.3, 10, 400
#: The largest ratios on other suites fall off exponentially: how many of them give their spread,
#: and by how many spreads the largest is exceeded with a probability of 0.01.
TAIL, UNLIKELY = 20, 4.6
#: Stretches of a file without suites.
BLOCKS = 8
#: Cap of a squared deviation, so that one measure alone decides nothing.
CAP = 25.0

#: (measures, arms, suites)
Cube = NDArray[np.float64]


def exchanged(answers: Answers) -> list[tuple[int, int, int]]:
    """(arm, arm, suite) whose exchange makes all that is measured of them fit far better.

    Measured are accuracy, length and signs of texts, tokens, cost, price and latency. Without the
    suite's own level, an arm's cells are alike over suites; so are its correlations with other
    arms, and the words its texts open and close with. A cell
    that is nearer to another arm's other cells, while that arm's is nearer to its own, has changed
    places with it. Where nothing but scores is known, those of enough arms tell it (`evidence`).
    """
    if len(answers.arms) < 3 or len(answers.suites) < (3 if answers.has("text") else SUITES):
        return []
    if any(answers.has(name) for name in ("text", "completion_tokens", "cost_usd", "latency_s")):
        return _by_gains(gains_of(answers))
    return _by_scores(answers) if SWAPPED_ARMS <= len(answers.arms) <= MOST_ARMS else []


def _by_scores(answers: Answers) -> list[tuple[int, int, int]]:
    """(arm, arm, suite) of the exchange that scores alone make far likelier than any other.

    An arm that is only odd on a suite fits several others there, none of them far better. Two arms
    whose scores are alike on the other suites cannot be told apart: little evidence is expected.
    Of made matrices whose arms are known, 3 in 100 honest ones have a finding. Of 210 exchanges
    that move an accuracy of 19 models on 38 tasks (Open LLM Leaderboard) by 10 points or more, 65 %
    are found and 2 % wrongly; of the 57 with an expected log-likelihood ratio of ln(N / 0.05) =
    11.8, N the number of possible exchanges, 96 %; of the 40 below 4, 2 %.
    """
    ratio = np.triu(evidence_of_scores(answers), 1)
    s, a, b = (int(x) for x in np.unravel_index(int(np.argmax(ratio)), ratio.shape))
    best, rest = float(ratio[s, a, b]), ratio.copy()
    rest[s, a, b] = 0
    rival = float(rest.max())
    rest[s] = 0  # the exchange makes others of its suite likelier too
    tail = np.sort(rest[rest > 0])[::-1][: TAIL + 1]
    spread = float(np.mean(tail[:-1] - tail[-1])) if len(tail) > 5 else 1.0
    beyond = float(tail[0]) + UNLIKELY * spread if len(tail) else 0.0
    return [(a, b, s)] if best >= max(LIKELIER, RIVAL * rival, beyond) else []


def evidence_of_scores(answers: Answers) -> Floats:
    """(suites, arms, arms) log-likelihood ratio that two arms' scores there changed places."""
    cube, noise = _measured(answers)
    return evidence(answers, cube[0], noise[0])


def _by_gains(gains: NDArray[np.float64]) -> list[tuple[int, int, int]]:
    """(arm, arm, suite) of exchanges that better the fit far more than the next best one."""
    numbers: list[tuple[float, tuple[int, int, int]]] = []
    seen: set[tuple[int, int]] = set()
    for k in np.argsort(-gains, axis=None, kind="stable")[:200]:
        s, a, b = (int(x) for x in np.unravel_index(k, gains.shape))
        # With few suites one exchange makes the pair's other suites look exchanged too.
        if gains[s, a, b] > 0 and not seen & {(-1 - a, b), (s, a), (s, b)}:
            seen |= {(-1 - a, b), (s, a), (s, b)}
            numbers.append((float(gains[s, a, b]), (a, b, s)))
    rest = [gain for gain, _ in numbers[1:]] + [0.0]
    for k, (gain, _) in enumerate(numbers[:SWAPPED_MOST]):
        if gain >= max(GAIN, TIMES * rest[k]):
            return [item for _, item in numbers[: k + 1]]
    return []


def gains_of(answers: Answers) -> NDArray[np.float64]:
    """[suite, arm, arm] by how much an exchange betters the fit."""
    cube, noise = _measured(answers)
    result, number = correlations(answers)
    made = styles(answers)
    level = None if made is None else levels(made)
    arms, gains = len(answers.arms), []
    for s in range(len(answers.suites)):
        fall = _falls(*_deviations(cube, noise, s)) + falls(result, number, s)
        if level is not None:
            fall = fall + style_falls(level, s)
        both = (fall > 0) & (fall.T > 0)
        gains.append(np.where(both & np.triu(np.ones((arms, arms), bool), 1), fall + fall.T, 0.0))
    return np.stack(gains)


def _deviations(cube: Cube, noise: Cube, s: int) -> tuple[Cube, NDArray[np.bool_]]:
    """[measure, a, b] by how much arm a's cell on suite s is off arm b's other cells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a suite that no arm has
        level = cube - np.nanmedian(cube, axis=1, keepdims=True)
        own = np.nanmedian(np.delete(level, s, axis=2), axis=2)
        left = level - np.nanmedian(level, axis=2, keepdims=True)
        common = np.nanquantile(np.abs(left), 0.75, axis=(1, 2)) / 1.15
        here = np.nanquantile(np.abs(left[:, :, s]), 0.6, axis=1) / 0.84
    spread = np.sqrt(np.fmax(common, 0.75 * here)[:, None] ** 2 + noise[:, :, s] ** 2 + 1e-12)
    off = (level[:, :, s][:, :, None] - own[:, None, :]) / spread[:, :, None]
    return off, np.isfinite(off)


def _falls(off: Cube, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(a, b) by how much a's cell is nearer to b's other cells than to its own."""
    usable = known & np.swapaxes(known, 1, 2)
    diagonal = np.arange(off.shape[1])
    squares = np.minimum(np.square(np.where(known, off, 0.0)), CAP)
    own = squares[:, diagonal, diagonal][:, :, None]
    return np.asarray(np.where(usable, own - squares, 0.0).sum(axis=0))


def in_blocks(answers: Answers) -> Answers:
    """The answers with stretches of the file as suites, where the source has none.

    Two files of one model each, cut into the same stretches, are exchanged by stretches.
    """
    if answers.has("suite") or answers.n_questions < 2 * BLOCKS * FEWEST:
        return answers
    order = np.argsort(answers.first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    size = -(-len(order) // BLOCKS)
    names = np.array([f"questions {k * size + 1:,} to {(k + 1) * size:,}" for k in range(BLOCKS)])
    made = pa.array(names[rank[answers.question] // size].tolist(), pa.string())
    at = answers.table.column_names.index("suite")
    blocked = Answers.of(answers.table.set_column(at, "suite", made), answers.free)
    return blocked if np.array_equal(blocked.arm, answers.arm) else answers


def _measured(answers: Answers) -> tuple[Cube, Cube]:
    """The measures of every cell, and their standard errors."""
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
    # A table of nothing says nothing, and accuracies are kept so that there is one.
    whole = [k for k, table in enumerate(tables) if k == 0 or np.isfinite(table).any()]
    return tuple(np.stack([made[k].reshape(shape) for k in whole]) for made in (tables, noises))  # type: ignore[return-value]


def _measures(answers: Answers) -> Iterator[Floats]:
    """(n,) each measure of an answer beside its score, on a scale on which arms and suites add."""
    for name in ("completion_tokens", "cost_usd", "latency_s"):
        if answers.has(name):
            yield _log(answers.numbers(name))
    if answers.has("cost_usd") and answers.has("completion_tokens"):
        prompt = np.nan_to_num(answers.numbers("prompt_tokens"))
        yield _log(answers.numbers("cost_usd")) - _log(
            prompt + answers.numbers("completion_tokens")
        )
    if answers.has("text"):
        length = answers.lengths("text")
        yield _log(length)
        texts = answers.texts("text")
        for number in occurrences(texts, _SIGNS):
            yield np.sqrt(number / np.maximum(length, 1))


def _log(values: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.log(np.where(values > 0, values, np.nan)))
