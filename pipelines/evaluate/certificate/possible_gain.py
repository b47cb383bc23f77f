"""Possible gain: the oracle corrected for sampling noise and guessing, stability of specialists."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Array, Bools, Floats, Ints, Names, ratio
from routeyard.pipelines.matrix.memmap import take_rows
from routeyard.pipelines.matrix.ranking import mean_costs, means_of, ranked, single_means
from routeyard.pipelines.matrix.row_blocks import by_rows, distinct, sums_of
from routeyard.pipelines.metrics.baselines import alone
from routeyard.pipelines.metrics.plateau import right
from routeyard.pipelines.metrics.selection import at_choice

#: One-sided 5 % quantile of the normal distribution.
SURE = 1.645


def corrected_oracle(samples: Floats, *, rounds: int = 10, seed: int = 0) -> Floats:
    """(n,) score of an oracle, corrected for the sampling noise of the answers it is scored on.

    The best of m noisy scores is biased upward. With several samples the model
    is chosen on one half of them and scored on the other, both ways round, for
    `rounds` random halvings; ties go to the model with the better mean over
    all queries. Unbiased for that oracle and never above the ideal one in
    expectation, so it errs on the safe side when samples are few.

    Args:
        samples: (n, m, s) scores; NaN is missing.

    Returns:
        NaN for queries on which no model has a score in both halves.
    """
    n, m, s = samples.shape
    generator = np.random.default_rng(seed)
    overall = np.nan_to_num(mean_costs(samples.transpose(0, 2, 1).reshape(-1, m)), nan=-1.0)
    order = np.lexsort((np.arange(m), -overall))
    known = ~np.isnan(samples)
    filled = np.where(known, samples, 0.0)
    total, weight = np.zeros(n), np.zeros(n)
    for _ in range(rounds):
        shuffled = generator.permutation(s)
        for half, other in (
            (shuffled[: s // 2], shuffled[s // 2 :]),
            (shuffled[s // 2 :], shuffled[: s // 2]),
        ):
            n_a, n_b = known[:, :, half].sum(2), known[:, :, other].sum(2)
            both = (n_a > 0) & (n_b > 0)
            mean_a = np.where(both, filled[:, :, half].sum(2) / np.maximum(n_a, 1), -np.inf)
            mean_b = filled[:, :, other].sum(2) / np.maximum(n_b, 1)
            chosen = order[np.argmax(mean_a[:, order], axis=1)]
            usable = both.any(axis=1)
            total += np.where(usable, at_choice(mean_b, chosen), 0.0)
            weight += usable
    return ratio(total, weight)


def chance_corrected_oracle(
    labels: Floats, correct: Floats, tasks: Names, chance: Floats
) -> Floats:
    """(n,) score of an oracle that sees who knows the answer, not who guessed it.

    Among many models that guess between few options one is nearly always right,
    and an oracle that sees the labels picks it. A model whose accuracy is a on
    the questions of a task with guessing rate g knows k = (a − g)/(1 − g) of
    them (at least none); a right answer of its is known with probability k/a.
    The oracle finds a model that knows with probability P = 1 − Π(1 − k/a) over
    the models that are right; otherwise it guesses: P + (1 − P)·g. For a pool
    of one model that is its accuracy again, and for guessers alone it is g. It
    takes the models' guesses to be independent of each other. A model knows
    something only where its accuracy is above guessing by more than chance gives
    one guesser in twenty; among many, the luckiest would else seem to know.

    On no task is it above the raw oracle: models that answer below chance do not guess
    (then the best of them takes the place of g), and models that are right on the same
    questions would count as many independent ones.

    Args:
        chance: (n,) g, one over the number of options; 0 where nothing can be
            guessed, and there the oracle is the raw one.

    >>> y = np.array([[1, 0], [0, 1], [1, 0], [0, 1.0]])
    >>> chance_corrected_oracle(y, y, np.array(["a"] * 4), np.full(4, 0.5)).tolist()
    [0.5, 0.5, 0.5, 0.5]
    >>> chance_corrected_oracle(y, y, np.array(["a"] * 4), np.zeros(4)).tolist()
    [1.0, 1.0, 1.0, 1.0]
    >>> low = np.array([[1, 0], [0, 0], [0, 0], [0, 0.0], [0, 0]])
    >>> chance_corrected_oracle(low, low, np.array(["a"] * 5), np.full(5, 0.5)).tolist()
    [0.2, 0.2, 0.2, 0.2, 0.2]
    """

    def best(part: Floats) -> Floats:
        top = np.where(np.isnan(part), -np.inf, part).max(axis=1)
        return np.where(top > -np.inf, top, np.nan)

    out = np.asarray(by_rows(best, labels))
    for task in distinct(tasks):
        for g in np.unique(chance[(tasks == task) & (chance > 0)]):
            at = np.flatnonzero((tasks == task) & (chance == g))
            decided = take_rows(correct, at)
            accuracy = np.nan_to_num(single_means(decided))
            knows = np.maximum(accuracy - g, 0.0) / (1 - g) if g < 1 else np.zeros_like(accuracy)
            n = np.maximum(sums_of(lambda part: ~np.isnan(part), decided), 1)
            knows[accuracy - g <= SURE * np.sqrt(g * (1 - g) / n)] = 0.0
            surely = np.where(accuracy > 0, knows / np.maximum(accuracy, 1e-300), 0.0)
            nobody = _nobody(decided, surely)
            found = 1 - nobody + nobody * min(g, accuracy.max())
            known = ~np.isnan(out[at])
            raw, mean = out[at][known].sum(), found[known].sum()
            out[at] = np.where(known, found * min(1.0, raw / mean) if mean > 0 else found, np.nan)
    return out


def _nobody(correct: Floats, surely: Floats) -> Floats:
    """(n,) chance that no model that is right knows the answer."""
    found = by_rows(lambda part: np.where(right(part), 1 - surely, 1.0).prod(axis=1), correct)
    return np.asarray(found)


def crossfitted_task_oracle(labels: Floats, tasks: Names, *, seed: int = 0) -> Floats:
    """(n,) score of the per-task oracle when a task's best model is found on its other half.

    In small tasks the best model is partly the luckiest; choosing on one half
    and scoring on the other removes that. NaN for tasks of a single query.
    """
    half = _halves(tasks, np.random.default_rng(seed))
    out = np.full(len(labels), np.nan)
    for task in distinct(tasks):
        for side in (0, 1):
            fit = np.flatnonzero((tasks == task) & (half == side))
            score = np.flatnonzero((tasks == task) & (half != side))
            if len(fit) and len(score):
                order = ranked(take_rows(labels, fit))
                out[score] = _first_of(take_rows(labels, score), order)
    return out


def _first_of(labels: Floats, order: Ints) -> Floats:
    """(n,) score of the first model in order that has a label."""

    def work(part: Floats) -> Floats:
        return at_choice(part, alone(~np.isnan(part), order)[:, order[0]])

    return np.asarray(by_rows(work, labels))


def _halves(tasks: Array, generator: np.random.Generator) -> Ints:
    """(n,) 0 or 1: a random half within every task."""
    half = np.zeros(len(tasks), dtype=np.int64)
    for task in distinct(tasks):
        at = generator.permutation(np.flatnonzero(tasks == task))
        half[at[: len(at) // 2]] = 1
    return half


def specialist_scores(labels: Floats, tasks: Array, rows: Ints | None = None) -> Floats:
    """(t, m) how much better a model is on a task than its level and the task's let expect.

    The interaction a(t, m) − a(t, ·) − a(·, m) + a(·, ·) of the task accuracies:
    zero everywhere when one order of models holds in all tasks.

    Args:
        tasks: (k,) task of each of `rows`.
        rows: (k,) the rows of `labels` that count; all by default.

    >>> y = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> specialist_scores(y, np.array(["a", "b"])).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    rows = np.arange(len(labels)) if rows is None else rows
    each = [rows[tasks == task] for task in distinct(tasks)]
    table = np.array([means_of(lambda at: labels[at], some) for some in each])
    overall = mean_costs(table.reshape(-1, 1))
    return np.asarray(table - mean_costs(table.T)[:, None] - mean_costs(table) + overall)


def specialist_stability(labels: Floats, tasks: Names) -> Floats | None:
    """(50,) split-half correlations of specialist scores, Spearman-Brown corrected.

    Half of each task's queries against the other half: near 1, specialists are
    a property of the models; near 0, of the draw of questions. None when there
    are fewer than two tasks with four queries or fewer than two models.
    """
    names = distinct(tasks)
    number = by_rows(lambda part: np.searchsorted(names, part), tasks)
    large = np.bincount(number) >= 4
    if large.sum() < 2 or labels.shape[1] < 2:
        return None
    use = np.flatnonzero(large[number])
    t = number[use]
    generator = np.random.default_rng(0)
    found = []
    for _ in range(50):
        half = _halves(t, generator)
        with np.errstate(invalid="ignore"):
            a = specialist_scores(labels, t[half == 0], use[half == 0]).ravel()
            b = specialist_scores(labels, t[half == 1], use[half == 1]).ravel()
        both = ~np.isnan(a) & ~np.isnan(b)
        if both.sum() > 2 and a[both].std() > 1e-12 and b[both].std() > 1e-12:
            r = float(np.corrcoef(a[both], b[both])[0, 1])
            # The correction is for reliabilities; a negative value is not one.
            found.append(2 * r / (1 + r) if r > 0 else r)
    return np.array(found) if found else None


def dominated(cost: Floats, accuracy: Floats) -> Bools:
    """(..., m) models to which another is at least equal in both and better in one.

    >>> dominated(np.array([1.0, 2.0, 2.0]), np.array([0.5, 0.4, 0.6]))
    array([False,  True, False])
    """
    out = np.zeros_like(cost + accuracy, dtype=bool)
    for other in range(cost.shape[-1]):
        c, a = cost[..., other : other + 1], accuracy[..., other : other + 1]
        out |= (c <= cost) & (a >= accuracy) & ((c < cost) | (a > accuracy))
    return out


def agreement(correct: Floats) -> Floats:
    """(n,) share of pairs of models that are both right or both wrong; NaN below two labels."""
    k = by_rows(lambda part: (~np.isnan(part)).sum(axis=1), correct)
    r = by_rows(lambda part: right(part).sum(axis=1), correct)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(k > 1, (r * (r - 1) + (k - r) * (k - r - 1)) / (k * (k - 1)), np.nan)
