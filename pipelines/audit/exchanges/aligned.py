"""Scores that are stored under other questions than the other arms' scores do.

What is hard for one arm is hard for another: scores of any two arms correlate over the questions of
a suite. Where the ids are row numbers and a file has its rows in another order, they do not, and
every comparison of questions is one of different questions.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from routeyard.pipelines.audit.answers import Answers, Floats
from routeyard.pipelines.audit.finding import Found

#: Arms from which, and up to which, pairs are compared; questions of a suite that are compared.
ARMS, MOST, FEWEST = 3, 400, 20
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
        usable = (size > 1e-9) & (common >= FEWEST)
        found = np.where(usable, self.z @ self.z.T / np.where(usable, size, 1.0), 0.0)
        return found, np.where(usable, common, 0.0)

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
    if not ARMS <= len(answers.arms) <= MOST:
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
    found = {}
    known = ~np.isnan(answers.score)
    for s in range(len(answers.suites)):
        rows = np.flatnonzero(known & (answers.suite == s))
        questions, column = np.unique(answers.first[answers.question[rows]], return_inverse=True)
        if len(questions) < FEWEST:
            continue
        shape = (len(answers.arms), len(questions))
        cell = answers.arm[rows] * shape[1] + column
        number = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
        total = np.bincount(cell, answers.score[rows], shape[0] * shape[1]).reshape(shape)
        there = number > 0
        mean = np.where(there, total / np.maximum(number, 1), 0.0)
        level = mean.sum(axis=1, keepdims=True) / np.maximum(there.sum(axis=1, keepdims=True), 1)
        found[s] = SuiteScores(np.where(there, mean - level, 0.0), there.astype(np.float64))
    return found


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
        between = np.ix_(group, rest)
        judged = ~np.isnan(pair[between])
        if group is largest or len(group) < 2 or judged.mean() < APART:
            continue
        usual = min(_within(pair, group), _within(pair, largest))
        high = float(np.median((pair + 2 * error)[between][judged]))
        if high >= max(UNRELATED, PART * usual):
            continue
        within = _within(pair, group)
        says = (
            f"their scores have a correlation of {within:.2f} with one another and of "
            f"{float(np.nanmedian(pair[between])):.2f} with the other arms': under one id are "
            "different questions, as where ids are numbers of rows that are in another order"
        )
        yield group, says


def _within(pair: Floats, group: list[int]) -> float:
    return float(np.nanmedian(pair[np.ix_(group, group)]))


def _pairs(suites: dict[int, SuiteScores], arms: int) -> tuple[Floats, Floats]:
    """(arms, arms) correlations over all suites, NaN of an arm with itself; questions in common."""
    total, common = np.zeros((arms, arms)), np.zeros((arms, arms))
    for one in suites.values():
        found, number = one.correlations()
        total += found * number
        common += number
    pair = total / np.maximum(common, 1)
    np.fill_diagonal(pair, np.nan)
    return pair, common


def _components(related: np.ndarray) -> list[list[int]]:
    from scipy.sparse.csgraph import connected_components

    label = connected_components(related, directed=False)[1]
    return [np.flatnonzero(label == k).tolist() for k in np.unique(label)]


def _rows(offset: int) -> str:
    rows = "one row" if abs(offset) == 1 else f"{abs(offset)} rows"
    return f"{rows} {'before' if offset < 0 else 'behind'}"


def _offset(suites: dict[int, SuiteScores], arm: int) -> int | None:
    """Rows by which an arm's scores are off; None where no offset makes them related."""
    best, most = None, 0.0
    for offset in OFFSETS:
        found = [one.with_others(arm, offset) for one in suites.values()]
        number = sum(n for _, n in found)
        mean = sum(value * n for value, n in found) / max(number, 1)
        if mean - ERRORS / np.sqrt(max(number, 1)) > max(RELATED, most):
            best, most = offset, mean
    return best


def _single(answers: Answers, suites: dict[int, SuiteScores]) -> Iterator[Found]:
    """Arms that are unrelated to the mean of the others, or are so on one suite alone."""
    arms = range(len(answers.arms))
    found = np.array([[one.with_others(a) for one in suites.values()] for a in arms])
    if not found.size:
        return
    value, number = found[:, :, 0], found[:, :, 1]
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
    if not ARMS <= len(answers.arms) <= MOST:
        return
    pair, common = _pairs(answers.cached("suite scores", suite_scores), len(answers.arms))
    for a, b in np.argwhere(np.triu(np.nan_to_num(pair) >= COPY, 1) & (common >= FEWEST)):
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
