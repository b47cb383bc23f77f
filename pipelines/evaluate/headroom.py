"""What there is to gain: sampling luck in the oracle, stability of specialists, power."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.baselines import single_means
from pipelines.evaluate.selection import at_choice, mean_costs

Floats = NDArray[np.float64]


def corrected_oracle(samples: Floats, *, rounds: int = 10, seed: int = 0) -> Floats:
    """(n,) score of an oracle that cannot see the luck of the answers it is scored on.

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
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(weight > 0, total / weight, np.nan)


def crossfitted_task_oracle(labels: Floats, tasks: NDArray[np.str_], *, seed: int = 0) -> Floats:
    """(n,) score of the per-task oracle when a task's best model is found on its other half.

    In small tasks the best model is partly the luckiest; choosing on one half
    and scoring on the other removes that. NaN for tasks of a single query.
    """
    half = _halves(tasks, np.random.default_rng(seed))
    out = np.full(len(labels), np.nan)
    for task in np.unique(tasks):
        for side in (0, 1):
            fit = np.flatnonzero((tasks == task) & (half == side))
            score = np.flatnonzero((tasks == task) & (half != side))
            if len(fit) and len(score):
                accuracy = np.nan_to_num(single_means(labels[fit]), nan=-1.0)
                order = np.lexsort((np.arange(len(accuracy)), -accuracy))
                known = ~np.isnan(labels[score][:, order])
                chosen = order[np.argmax(known, axis=1)]
                out[score] = at_choice(labels[score], chosen)
    return out


def _halves(tasks: NDArray[np.str_], generator: np.random.Generator) -> NDArray[np.int64]:
    """(n,) 0 or 1: a random half within every task."""
    half = np.zeros(len(tasks), dtype=np.int64)
    for task in np.unique(tasks):
        at = generator.permutation(np.flatnonzero(tasks == task))
        half[at[: len(at) // 2]] = 1
    return half


def specialist_scores(labels: Floats, tasks: NDArray[np.str_]) -> Floats:
    """(t, m) how much better a model is on a task than its level and the task's let expect.

    The interaction a(t, m) − a(t, ·) − a(·, m) + a(·, ·) of the task accuracies:
    zero everywhere when one order of models holds in all tasks.

    >>> y = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> specialist_scores(y, np.array(["a", "b"])).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    table = np.array([single_means(labels[tasks == task]) for task in np.unique(tasks)])
    table = np.where(np.isnan(table), np.nan, table)
    rows = np.nanmean(table, axis=1, keepdims=True)
    columns = np.nanmean(table, axis=0, keepdims=True)
    return np.asarray(table - rows - columns + np.nanmean(table))


def specialist_stability(
    labels: Floats, tasks: NDArray[np.str_], *, rounds: int = 50, seed: int = 0
) -> Floats | None:
    """(rounds,) split-half correlations of specialist scores, Spearman-Brown corrected.

    Half of each task's queries against the other half: near 1, specialists are
    a property of the models; near 0, of the draw of questions. None when there
    are fewer than two tasks with four queries or fewer than two models.
    """
    names, sizes = np.unique(tasks, return_counts=True)
    use = np.isin(tasks, names[sizes >= 4])
    if len(names[sizes >= 4]) < 2 or labels.shape[1] < 2:
        return None
    y, t = labels[use], tasks[use]
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(rounds):
        half = _halves(t, generator)
        with np.errstate(invalid="ignore"):
            a = specialist_scores(y[half == 0], t[half == 0]).ravel()
            b = specialist_scores(y[half == 1], t[half == 1]).ravel()
        both = ~np.isnan(a) & ~np.isnan(b)
        if both.sum() > 2 and a[both].std() > 1e-12 and b[both].std() > 1e-12:
            r = float(np.corrcoef(a[both], b[both])[0, 1])
            # The correction is for reliabilities; a negative one is none.
            found.append(2 * r / (1 + r) if r > 0 else r)
    return np.array(found) if found else None


def resolvable_difference(
    labels: Floats, *, top: int = 5, level: float = 0.05, power: float = 0.8
) -> float | None:
    """Smallest accuracy difference a paired test on these queries finds with that power.

    (z₁₋α/₂ + z_power)·√(σ²/n), where σ² is the variance of the difference
    between two models on a query, averaged over pairs of the `top` most
    accurate models (Card et al., 2020, With Little Power Comes Great
    Responsibility, section 4, in its normal approximation).

    >>> y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]] * 100, float)
    >>> round(resolvable_difference(y), 4)
    0.0991
    """
    from scipy.stats import norm

    accuracy = np.nan_to_num(single_means(labels), nan=-1.0)
    order = np.lexsort((np.arange(len(accuracy)), -accuracy))[:top]
    found = []
    for i, a in enumerate(order):
        for b in order[i + 1 :]:
            difference = labels[:, a] - labels[:, b]
            known = difference[~np.isnan(difference)]
            if len(known) > 1:
                found.append(float(np.var(known)) / len(known))
    if not found:
        return None
    z = float(norm.ppf(1 - level / 2) + norm.ppf(power))
    return z * math.sqrt(float(np.mean(found)))


def dominated(cost: Floats, accuracy: Floats) -> NDArray[np.bool_]:
    """(..., m) models to which another is at least equal in both and better in one.

    >>> dominated(np.array([1.0, 2.0, 2.0]), np.array([0.5, 0.4, 0.6]))
    array([False,  True, False])
    """
    out = np.zeros_like(cost + accuracy, dtype=bool)
    for other in range(cost.shape[-1]):
        c, a = cost[..., other : other + 1], accuracy[..., other : other + 1]
        out |= (c <= cost) & (a >= accuracy) & ((c < cost) | (a > accuracy))
    return out


def agreement(labels: Floats) -> Floats:
    """(n,) share of pairs of models that are both right or both wrong; NaN below two labels."""
    known = ~np.isnan(labels)
    k = known.sum(axis=1)
    r = (known & (np.nan_to_num(labels) >= 0.5)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(k > 1, (r * (r - 1) + (k - r) * (k - r - 1)) / (k * (k - 1)), np.nan)


__all__ = [
    "agreement",
    "corrected_oracle",
    "crossfitted_task_oracle",
    "dominated",
    "resolvable_difference",
    "specialist_scores",
    "specialist_stability",
]
