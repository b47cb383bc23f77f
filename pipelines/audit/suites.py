"""Cells and suites that fit nothing: anomalies, exchanged arms, broken graders, solved suites."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import numpy as np

from routeyard.pipelines.audit.answers import Answers
from routeyard.pipelines.audit.cells import GAP, Grid, grid_of, odd_cells
from routeyard.pipelines.audit.finding import Found
from routeyard.pipelines.audit.swapped import exchanged

#: Best accuracy on a suite, and median of the arms' own medians elsewhere, of a broken grader.
FAILED, GOOD = 0.25, 0.5
#: Lowest accuracy on a solved suite.
SOLVED = 0.98
#: Arms from which their order says something, and rank correlation with the other suites.
ARMS, INVERTED = 6, -0.5


def anomalies(answers: Answers) -> Iterator[Found]:
    """Cells that fit neither their arm nor their suite, unless two arms changed places there."""
    grid = answers.cached("grid", grid_of)
    swaps = answers.cached("swaps", exchanged)
    explained = {cell for a, b, s in swaps for cell in ((a, s), (b, s))}
    whole = {s for s, _ in _broken(answers, grid)}
    for a, s in odd_cells(grid):
        if (a, s) in explained or s in whole:
            continue
        yield Found(
            f"{answers.arms[a]} on {answers.suites[s]}",
            f"{100 * grid.p[a, s]:.0f} % of {int(grid.n[a, s]):,} answers are right, where its "
            f"siblings have {100 * grid.low[a, s]:.0f} to {100 * grid.high[a, s]:.0f} %"
            + _explained(grid.z[a, s]),
            _rows(answers, a, s),
        )


def _explained(z: float) -> str:
    far = f" ({abs(z):.1f} standard deviations from what arm and suite explain)"
    return "" if np.isnan(z) else far


def swapped_arms(answers: Answers) -> Iterator[Found]:
    """Suites on which two arms' answers have changed places."""
    for a, b, s in answers.cached("swaps", exchanged):
        first, second = _rows(answers, a, s), _rows(answers, b, s)
        yield Found(
            f"{answers.arms[a]} and {answers.arms[b]} on {answers.suites[s]}",
            "each one's figures there are what the other one's other suites let expect: "
            "their answers have changed places",
            np.concatenate([first, second]),
            swap=np.concatenate([np.full(len(first), b), np.full(len(second), a)]),
        )


def broken_graders(answers: Answers) -> Iterator[Found]:
    """Suites on which every arm fails that succeeds elsewhere, or whose order is turned round."""
    grid = answers.cached("grid", grid_of)
    for s, why in _broken(answers, grid):
        yield Found(answers.suites[s], why, np.flatnonzero(answers.suite == s))


def _broken(answers: Answers, grid: Grid) -> Iterator[tuple[int, str]]:
    for s, name in enumerate(answers.suites):
        here = ~np.isnan(grid.p[:, s])
        if here.sum() < 2 or len(answers.suites) < 2:
            continue
        p, rest = grid.p[here, s], np.delete(grid.p[here], s, axis=1)
        known = (~np.isnan(rest)).any(axis=1)
        if known.sum() < 2:
            continue
        elsewhere = np.nanmedian(rest[known], axis=1)
        shown = f"{100 * p.min():.0f} to {100 * p.max():.0f} %"
        sibling = _sibling(answers.suites, s)
        if sibling is not None and np.nanmin(grid.p[here, sibling]) - p.max() > GAP:
            other = grid.p[here, sibling]
            yield (
                s,
                f"all {int(here.sum())} arms have {shown} here and {100 * np.nanmin(other):.0f} "
                f"to {100 * np.nanmax(other):.0f} % on {answers.suites[sibling]!r}",
            )
        elif p.max() <= FAILED and np.median(elsewhere) >= GOOD and not _told_apart(answers, s):
            yield (
                s,
                f"all {int(here.sum())} arms have {shown} here and a median of "
                f"{100 * np.median(elsewhere):.0f} % on the other suites, and what is right is "
                "right at random",
            )
        elif known.sum() >= ARMS and np.ptp(p) > 0.1:
            order, arms = _rank_correlation(p[known], elsewhere), int(known.sum())
            turned = order <= max(INVERTED, -3.5 / np.sqrt(arms - 1))
            if turned and np.median(_orders(grid, s)) > 0:
                yield (
                    s,
                    f"the better an arm is elsewhere, the worse it is on {name!r} (rank "
                    f"correlation {order:.2f} over {arms} arms)",
                )


def _told_apart(answers: Answers, s: int) -> bool:
    """Whether the arms' right answers fall on the same questions, as on a hard suite.

    The variance of right answers per question is that of independent draws where a grader lets
    some through by chance; on a suite that is only hard it is more.
    """
    rows = np.flatnonzero((answers.suite == s) & ~np.isnan(answers.score))
    arms, arm = np.unique(answers.arm[rows], return_inverse=True)
    if len(arms) < 4:
        return False
    questions, question = np.unique(answers.question[rows], return_inverse=True)
    table = np.full((len(arms), len(questions)), np.nan)
    table[arm, question] = answers.score[rows] > 0.5
    whole = table[:, ~np.isnan(table).any(axis=0)]
    p = whole.mean(axis=1) if whole.size else np.zeros(1)
    chance = float(np.sum(p * (1 - p)))
    if whole.shape[1] < 20 or chance == 0:
        return False
    ratio = whole.sum(axis=0).var(ddof=1) / chance
    return bool(ratio > 1.2 + 4 * np.sqrt(2 / whole.shape[1]))


def _orders(grid: Grid, without: int) -> list[float]:
    """Rank correlation of each other suite with the mean of the rest."""
    found = [0.0]
    for s in range(grid.p.shape[1]):
        rest = np.delete(grid.p, [s, without], axis=1)
        known = ~np.isnan(grid.p[:, s]) & (~np.isnan(rest)).any(axis=1)
        if s != without and known.sum() >= ARMS:
            found.append(_rank_correlation(grid.p[known, s], np.nanmedian(rest[known], axis=1)))
    return found[1:] or found


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    from scipy.stats import spearmanr

    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(spearmanr(a, b).statistic)


def _sibling(suites: list[str], s: int) -> int | None:
    """The suite with the likest name, where one is another's with a word more or less."""
    ratios = [
        difflib.SequenceMatcher(None, suites[s].lower(), other.lower()).ratio() if k != s else 0.0
        for k, other in enumerate(suites)
    ]
    k = int(np.argmax(ratios))
    return k if ratios[k] >= 0.75 and len(suites[s]) >= 4 else None


def solved_suites(answers: Answers) -> Iterator[Found]:
    """Suites that every arm solves: they tell no arm from another."""
    grid = answers.cached("grid", grid_of)
    for s, name in enumerate(answers.suites):
        p = grid.p[~np.isnan(grid.p[:, s]), s]
        if len(p) >= 3 and p.min() >= SOLVED:
            says = (
                f"all {len(p)} arms have {100 * p.min():.1f} % or more: it tells none from another"
            )
            yield Found(name or "all questions", says, np.flatnonzero(answers.suite == s))


def _rows(answers: Answers, a: int, s: int) -> np.ndarray:
    return np.flatnonzero(answers.cell == a * len(answers.suites) + s)
