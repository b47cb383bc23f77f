"""Cells and suites that fit nothing: anomalies, exchanged arms, broken graders, solved suites."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator

import numpy as np

from routeyard.pipelines.audit.answers import (
    GAP,
    Answers,
    CellGrid,
    Floats,
    Found,
    Mask,
    grid_of,
    odd_cells,
    ranks,
)
from routeyard.pipelines.audit.exchanges import exchanged, in_blocks

#: Best accuracy on a suite, and median of the arms' own medians elsewhere, of a broken grader.
FAILED, GOOD = 0.25, 0.33
#: Robust standard deviations by which a suite is harder than all others, so that its being hard
#: does not explain it; a spread of suites below 0.4 on the logit scale counts as 0.4.
HARDER, LEAST = 4.5, 0.4
#: Lowest accuracy on a solved suite.
SOLVED = 0.98
#: Arms from which their order says something, and rank correlation with the other suites.
ARMS, INVERTED = 6, -0.5
#: Rank correlation with one other suite from which the order of the arms is no chance.
ALIKE = 0.85
#: Arms below which a suite that all fail may be a hard one.
FEW = 4


def anomalies(answers: Answers) -> Iterator[Found]:
    """Cells that fit neither their arm nor their suite, unless two arms changed places there."""
    grid = answers.cached("grid", grid_of)
    swaps = answers.cached("swaps", exchanged)
    explained = {cell for a, b, s in swaps for cell in ((a, s), (b, s))}
    whole = answers.cached("broken", _broken)
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
    """Suites, or stretches of a file without them, on which two arms' answers changed places."""
    answers = in_blocks(answers)
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
    """Suites on which every arm fails that succeeds elsewhere, or whose order is turned round.

    Of two or three arms nobody can tell a broken grader from a hard suite: that is a note.
    """
    grid = answers.cached("grid", grid_of)
    for s, why in answers.cached("broken", _broken).items():
        few = int((~np.isnan(grid.p[:, s])).sum()) < FEW
        rows = np.flatnonzero(answers.suite == s)
        yield Found(answers.suites[s], why, rows, "note" if few else None)


def _broken(answers: Answers) -> dict[int, str]:
    """Suite → why its grader is broken."""
    grid = answers.cached("grid", grid_of)
    found = {}
    for s in range(len(answers.suites) if answers.has("suite") else 0):
        here = ~np.isnan(grid.p[:, s]) & (np.delete(~np.isnan(grid.p), s, axis=1)).any(axis=1)
        if here.sum() < 2:
            continue
        why = _below_sibling(answers, grid, s, here) or _failed_or_turned(answers, grid, s, here)
        if why:
            found[s] = why
    return found


def _below_sibling(answers: Answers, grid: CellGrid, s: int, here: Mask) -> str:
    sibling = _sibling(answers.suites, s)
    if sibling is None or np.isnan(grid.p[here, sibling]).all():
        return ""
    p, other = grid.p[here, s], grid.p[here, sibling]
    if np.nanmin(other) - p.max() <= GAP:
        return ""
    return (
        f"all {len(p)} arms have {_span(p)} here and {_span(other)} on {answers.suites[sibling]!r}"
    )


def _failed_or_turned(answers: Answers, grid: CellGrid, s: int, here: Mask) -> str:
    p, elsewhere = grid.p[here, s], np.nanmedian(np.delete(grid.p[here], s, axis=1), axis=1)
    order = _rank_correlation(p, elsewhere) if len(p) >= ARMS else 0.0
    if p.max() <= FAILED and np.median(elsewhere) >= GOOD:
        # On a suite that is only hard the better arms are still better, on the same questions.
        hard = order >= -INVERTED or _told_apart(answers, s) or _ordered_as_another(grid, s)
        if hard and _ease(grid)[s] > -HARDER:
            return ""
        return (
            f"all {len(p)} arms have {_span(p)} here and a median of "
            f"{100 * np.median(elsewhere):.0f} % on the other suites, harder than any suite is"
            if hard
            else f"all {len(p)} arms have {_span(p)} here and a median of "
            f"{100 * np.median(elsewhere):.0f} % on the other suites, and what is right is right "
            "at random"
        )
    turned = order <= max(INVERTED, -2.8 / np.sqrt(len(p) - 1)) and np.ptp(p) > 0.1
    if turned and np.median(_orders(grid, s)) > 0:
        return (
            f"the better an arm is elsewhere, the worse it is here (rank correlation {order:.2f} "
            f"over {len(p)} arms)"
        )
    return ""


def _ordered_as_another(grid: CellGrid, s: int) -> bool:
    """Whether a suite orders the arms as one other suite does, such as another of its subject."""
    known = ~np.isnan(grid.p[:, s])
    others = [t for t in range(grid.p.shape[1]) if t != s and not np.isnan(grid.p[known, t]).any()]
    return bool(known.sum() >= ARMS) and any(
        _rank_correlation(grid.p[known, s], grid.p[known, t]) >= ALIKE for t in others
    )


def _ease(grid: CellGrid) -> Floats:
    """(suites,) how much easier a suite is than the others, in robust standard deviations."""
    smooth = np.clip(grid.p, 0.5 / (grid.n + 1), 1 - 0.5 / (grid.n + 1))
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", RuntimeWarning
        )  # a suite or an arm of which too little is known
        logit = np.log(smooth / (1 - smooth))
        ease = np.nanmedian(logit - np.nanmedian(logit, axis=1, keepdims=True), axis=0)
        middle = np.nanmedian(ease)
        spread = 1.4826 * np.nanmedian(np.abs(ease - middle))
    return np.asarray((ease - middle) / max(float(spread), LEAST))


def _span(p: Floats) -> str:
    return f"{100 * np.nanmin(p):.0f} to {100 * np.nanmax(p):.0f} %"


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
    return bool(ratio > 1 + 3 * np.sqrt(2 / whole.shape[1]))


def _orders(grid: CellGrid, without: int) -> list[float]:
    """Rank correlation of each other suite with the mean of the rest."""
    found = [0.0]
    for s in range(grid.p.shape[1]):
        rest = np.delete(grid.p, [s, without], axis=1)
        known = ~np.isnan(grid.p[:, s]) & (~np.isnan(rest)).any(axis=1)
        if s != without and known.sum() >= ARMS:
            found.append(_rank_correlation(grid.p[known, s], np.nanmedian(rest[known], axis=1)))
    return found[1:] or found


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's; NaN where a value is unknown."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    if np.isnan(a).any() or np.isnan(b).any():
        return float("nan")
    return float(np.asarray(np.corrcoef(ranks(a), ranks(b)))[1, 0])


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
