"""Which faults leave a trace in a matrix, so that anything could name them."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.audit.answers import Answers

#: Share of a suite's right answers that a broken grader leaves.
KEPT = 0.1


def cells_of(answers: Answers) -> dict[tuple[int, int], float]:
    """(arm, suite) → accuracy, of cells with 30 answers and more."""
    found = {}
    for cell in np.unique(answers.cell):
        score = answers.score[answers.cell == cell]
        if np.sum(~np.isnan(score)) >= 30:
            found[divmod(int(cell), len(answers.suites))] = float(np.nanmean(score))
    return found


def graded_alike(cells: dict[tuple[int, int], float], *, turned: bool) -> list[int]:
    """Suites on which another grader leaves a trace: right elsewhere, or ordered as elsewhere.

    A suite on which a tenth of the right answers is left is only a hard one where another suite of
    the matrix is as hard.
    """
    from scipy.stats import spearmanr

    found = []
    suites = sorted({s for _, s in cells})
    level = {t: float(np.median([p for (_, u), p in cells.items() if u == t])) for t in suites}
    for s in suites:
        arms = [a for a, t in cells if t == s]
        rest = [
            np.mean([p for (b, t), p in cells.items() if b == a and t != s] or [0]) for a in arms
        ]
        here = [cells[a, s] for a in arms]
        if turned and len(arms) >= 8 and spearmanr(here, rest).statistic > 0.7:
            found.append(s)
        hardest = min((p for t, p in level.items() if t != s), default=1.0)
        harder = KEPT * level[s] < hardest
        if not turned and harder and np.median(here) >= 0.5 and np.median(rest) >= 0.35:
            found.append(s)
    return found


def tellable(answers: Answers, pairs: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Exchanges that scores alone can tell: of N a log-likelihood ratio of ln(N / 0.05) is asked.

    Without any exchange, the likelihood ratio of each exceeds x with a probability of 1 / x at most
    (Markov), so that the largest of N stays below N / 0.05 in 95 of 100 matrices. The ratio that
    an exchange lets expect is read off the honest matrix.
    """
    from routeyard.pipelines.audit.exchanges import evidence_of_scores

    expected = -evidence_of_scores(answers)
    number = len(answers.suites) * len(answers.arms) * (len(answers.arms) - 1) / 2
    return [one for one in pairs if expected[one[2], one[0], one[1]] >= np.log(number / 0.05)]
