"""Scores and costs that were not measured: means and running totals in each row, values that were
filled in, arms that are made of the other arms, and verdicts at random."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from routeyard.pipelines.audit.answers import Answers, Floats, means
from routeyard.pipelines.audit.exchanges.aligned import SuiteScores, suite_scores
from routeyard.pipelines.audit.finding import Found

#: Answers of a cell from which it is judged, rows and share of them with one value that is filled
#: in, and share of the other arms' scores that are 0 or 1.
FEWEST, FILLED, SHARE, WHOLE = 20, 10, 0.03, 0.98
#: Questions on which an arm is compared with others, equal scores from which it is made of them,
#: and those with each single arm up to which it is.
COMMON, MADE, SINGLE = 100, 0.995, 0.95
#: Arms and questions from which verdicts can be at random, accuracies of arms that tell it,
#: correlation below which they are, and above which they are not.
ARMS, QUESTIONS, TELLING, RANDOM, RELATED = 3, 100, (0.2, 0.9), 0.05, 0.15


def filled_scores(answers: Answers) -> Iterator[Found]:
    """Cells in which one value between 0 and 1 is in every row, or where others have 0 or 1."""
    score = answers.score
    part = (score > 0) & (score < 1)
    order = np.argsort(answers.cell, kind="stable")
    cells, starts = np.unique(answers.cell[order], return_index=True)
    for cell, rows in zip(cells, np.split(order, starts[1:]), strict=True):
        rows = rows[~np.isnan(score[rows])]
        own = rows[part[rows]]
        if len(rows) < FEWEST or len(own) < max(FILLED, SHARE * len(rows)):
            continue
        value = float(score[own[0]])
        if np.ptp(score[own]) > 1e-12:
            continue
        a, s = divmod(int(cell), len(answers.suites))
        every = len(own) == len(rows)
        others = np.flatnonzero((answers.suite == s) & (answers.arm != a) & ~np.isnan(score))
        if not every and (len(others) < FEWEST or np.mean(~part[others]) < WHOLE):
            continue
        where = f" on {answers.suites[s]}" if answers.suites[s] else ""
        says = (
            f"the score of all {len(rows):,} answers is {value:.4g}: not what each one got (a "
            "mean, or an arm that is compared with itself)"
            if every
            else f"{len(own):,} of {len(rows):,} scores are {value:.4g}, where the other arms have "
            "0 or 1: filled in"
        )
        yield Found(f"{answers.arms[a]}{where}", says, np.sort(own))


def made_of_others(answers: Answers) -> Iterator[Found]:
    """Arms whose score is the best, the worst or the majority of the others' on each question."""
    arms = len(answers.arms)
    if not ARMS <= arms <= 400 or len(answers) > 2_000_000:
        return
    table = np.full((arms, answers.n_questions), np.nan)
    known = ~np.isnan(answers.score)
    table[answers.arm[known], answers.question[known]] = answers.score[known]
    there = ~np.isnan(table)
    number = there.sum(axis=0)
    filled = np.where(there, table, 0.0)
    top, low = _two(np.where(there, table, -np.inf)), -_two(np.where(there, -table, -np.inf))
    for a in range(arms):
        both = there[a] & (number >= ARMS)
        if both.sum() < COMMON:
            continue
        own, others = table[a, both], number[both] - 1
        mean = (filled[:, both].sum(axis=0) - own) / others
        made = {
            "the best": np.where(own == top[0, both], top[1, both], top[0, both]),
            "the worst": np.where(own == low[0, both], low[1, both], low[0, both]),
            "the majority": np.where(mean == 0.5, own, np.round(mean)),
        }
        for what, of in made.items():
            if np.mean(np.abs(own - of) < 1e-9) < MADE or not 0.02 < float(np.mean(own)) < 0.98:
                continue
            rest = [b for b in range(arms) if b != a]
            single = max(_equal(table[a], table[b]) for b in rest)
            if single >= SINGLE:
                continue
            says = (
                f"its score is {what} of the other arms' on {int(both.sum()):,} questions, and no "
                f"single arm's (at most {100 * single:.0f} % equal): it is made of them"
            )
            yield Found(answers.arms[a], says, np.flatnonzero(answers.arm == a))
            break


def _two(values: Floats) -> Floats:
    """(2, questions) the highest value of each question, and the next."""
    return np.asarray(-np.partition(-values, 1, axis=0)[:2])


def _equal(a: Floats, b: Floats) -> float:
    both = ~np.isnan(a) & ~np.isnan(b)
    return float(np.mean(np.abs(a[both] - b[both]) < 1e-9)) if both.sum() >= FEWEST else 0.0


def at_random(answers: Answers) -> Iterator[Found]:
    """Suites, or a recording, on which right answers of the arms fall on questions at random.

    What is hard for one arm is hard for others, also where a suite is hard for all.
    """
    if not ARMS <= len(answers.arms) <= 400:
        return
    found = {
        s: (*_relation(answers, s, one), int(one.known.any(axis=0).sum()))
        for s, one in answers.cached("suite scores", suite_scores).items()
    }
    told = {s: one for s, one in found.items() if one[1] > 0}
    off = [s for s, (mean, error, _) in told.items() if mean + 2 * error < RANDOM]
    rest = [mean for s, (mean, *_) in told.items() if s not in off]
    means = [mean for mean, *_ in told.values()]
    whole = len(off) >= len(rest) > 0 and float(np.mean(means)) < RANDOM and max(rest) < RELATED
    if whole:
        off, rest = list(told), []
    if rest and (float(np.median(rest)) < RELATED or len(off) > len(rest)):
        return
    for s in off:
        mean, _, number = told[s]
        usual = f", and of {float(np.median(rest)):.2f} on the other suites" if rest else ""
        says = (
            f"scores of any two arms have a correlation of {mean:.2f} over {number:,} questions"
            f"{usual}: labels at random, or of other questions"
        )
        rows = np.flatnonzero(answers.suite == s)
        yield Found(answers.suites[s] or "all questions", says, rows)


def _relation(answers: Answers, s: int, one: SuiteScores) -> tuple[float, float]:
    """Mean correlation of pairs of arms that tell something, and its standard error; 0 without."""
    number = one.known.sum(axis=1)
    # Arms at the same level of right answers by guessing find no question hard.
    size = len(answers.arms) * len(answers.suites)
    level = means(answers.cell, answers.score, size).reshape(-1, len(answers.suites))[:, s]
    use = np.flatnonzero((number >= QUESTIONS) & (level >= TELLING[0]) & (level <= TELLING[1]))
    if len(use) < ARMS or np.ptp(level[use]) < 0.1:
        return 0.0, 0.0
    pair, common = one.correlations()
    upper = np.triu_indices(len(use), 1)
    values, together = pair[np.ix_(use, use)][upper], common[np.ix_(use, use)][upper]
    usable = together >= QUESTIONS
    if not usable.any():
        return 0.0, 0.0
    return float(values[usable].mean()), float(1 / np.sqrt(together[usable].sum()))


def running_totals(answers: Answers) -> Iterator[Found]:
    """Arms whose costs only rise down the file: each row has the sum of those before it."""
    cost = answers.numbers("cost_usd")
    for a, name in enumerate(answers.arms):
        rows = np.flatnonzero((answers.arm == a) & ~np.isnan(cost))
        steps = np.diff(cost[rows])
        if len(rows) >= FEWEST and np.all(steps >= 0) and np.mean(steps > 0) >= 0.9:
            says = (
                f"its costs only rise down the file, from ${cost[rows[0]]:.3g} to "
                f"${cost[rows[-1]]:.3g}: a running total, not what each answer cost"
            )
            yield Found(name, says, rows)


def suites_of_two_names(answers: Answers) -> Iterator[Found]:
    """Suites whose names differ in case, spaces and signs alone."""
    spelled: dict[str, list[int]] = {}
    for s, name in enumerate(answers.suites):
        plain = "".join(x for x in name.casefold() if x.isalnum())
        if plain:
            spelled.setdefault(plain, []).append(s)
    for same in spelled.values():
        if len(same) > 1:
            names = ", ".join(repr(answers.suites[s]) for s in same)
            says = "are one name in several spellings: its questions are not compared"
            yield Found(names, says, np.flatnonzero(np.isin(answers.suite, same)))
