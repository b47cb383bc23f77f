"""The routability certificate: can this pool and these queries tell routers apart?

`certify` takes the pool's figures (`pool_figures`), tries the reference routers (`crossfitted`)
and decides on a verdict (`verdict_of`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from routeyard.pipelines.common.arrays import (
    Array,
    Bools,
    Floats,
    Ints,
    Names,
    allocate,
    by_rows,
    counts_of,
    distinct,
    evened,
    known,
    levels,
    mean_costs,
    means_of,
    ranked,
    ratio,
    side_by_side,
    single_means,
    sums_of,
    take_rows,
)
from routeyard.pipelines.common.machine import one_thread_each
from routeyard.pipelines.common.matrix import Core, first_measure, near, verbatim, withheld
from routeyard.pipelines.evaluate.experiment import default_scheme, registered
from routeyard.pipelines.evaluate.fit import Fit, PredictionStore
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval, p_value
from routeyard.pipelines.evaluate.metrics.selection import (
    Choice,
    alone,
    at_choice,
    best,
    best_single,
    hard_subset,
    mix_weights,
    query_oracle,
    random_mean,
    right,
    selection_entropy,
    selection_profile,
    solvable,
    task_oracle,
)
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import traits_of
from routeyard.schemas.errors import BadInput
from routeyard.schemas.release import order_undecided, undecided_words, widened
from routeyard.schemas.text import html_card

# Tests between routers: multiple comparisons, exact McNemar, spread over seeds.


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (1979): controls the chance of any false finding.

    NaN stays NaN and does not count as a comparison.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    at = np.flatnonzero(~np.isnan(p))
    order = at[np.argsort(p[at], kind="stable")]
    out, highest = p.copy(), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, float(p[i]) * (len(order) - rank)))
        out[i] = highest
    return [float(value) for value in out]


@dataclass(frozen=True)
class McNemar:
    """Exact test that two routers are equally often right.

    Attributes:
        first_only: queries that only the first gets right.
        second_only: queries that only the second gets right.
        p: binomial p-value; 1 when nothing is discordant.
    """

    first_only: int
    second_only: int
    p: float


def mcnemar(first: Floats, second: Floats, *, one_sided: bool = False) -> McNemar:
    """Exact McNemar test on paired scores (n,); queries where either is NaN are left out.

    For scores between 0 and 1 it is the sign test on their difference.

    Args:
        one_sided: against the alternative that the first is more often right (CSCR, Table 16):
            P(X ≥ `first_only`), X binomial over the discordant questions with chance one half.

    >>> mcnemar(np.array([1, 1, 1, 1, 1, 0.0]), np.array([0, 0, 0, 0, 0, 0.0]))
    McNemar(first_only=5, second_only=0, p=0.0625)
    >>> mcnemar(np.array([1, 1, 1, 1, 1, 0.0]), np.array([0, 0, 0, 0, 0, 0.0]), one_sided=True)
    McNemar(first_only=5, second_only=0, p=0.03125)
    """
    # `scipy.stats` alone takes a second to import.
    from scipy.special import bdtr, bdtrc

    won, lost = int(np.sum(first > second)), int(np.sum(second > first))
    n = won + lost
    if not n:
        return McNemar(0, 0, 1.0)
    if one_sided:
        return McNemar(won, lost, float(bdtrc(won - 1, n, 0.5)) if won else 1.0)
    return McNemar(won, lost, min(1.0, 2 * float(bdtr(min(won, lost), n, 0.5))))


def seed_spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation over seeds; no deviation for a single seed."""
    result = np.asarray(values, dtype=np.float64)
    return float(result.mean()), float(result.std(ddof=1)) if len(result) > 1 else None


# Power: which difference these questions can show, and how many a difference needs.

#: Models that are compared, error of the first kind, power, share of questions one of two is right
#: on alone; the last is on the large side of what the routing plateau paper finds between routers
#: (its Table 4), so it errs on the safe side.
TOP, LEVEL, POWER, DISCORDANT = 5, 0.05, 0.8, 0.2


#: z₁₋α/₂ + z_power, as `scipy.special.ndtri` gives them: its import takes longer than the rest.
_Z = 1.959963984540054 + 0.8416212335729143


def resolvable_difference(labels: Floats) -> float | None:
    """Smallest detectable difference in accuracy: a paired test on these queries finds it with
    that power.

    (z₁₋α/₂ + z_power)·√(σ²/n), where σ² is the variance of the difference
    between two models on a query, averaged over pairs of the `TOP` most
    accurate models (Card et al., 2020, With Little Power Comes Great
    Responsibility, in its normal approximation).

    >>> y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]] * 100, float)
    >>> round(resolvable_difference(y), 4)
    0.0991
    """
    order = ranked(labels)[:TOP]
    results = []
    for i, a in enumerate(order):
        for b in order[i + 1 :]:
            difference = labels[:, a] - labels[:, b]
            known = difference[~np.isnan(difference)]
            if len(known) > 1:
                results.append(float(np.var(known)) / len(known))
    if not results:
        return None
    return _Z * math.sqrt(float(np.mean(results)))


def questions_needed(difference: float) -> int:
    """Test questions on which a paired test finds a difference in accuracy with that power.

    n = (z₁₋α/₂ + z_power)²·(δ − d²)/d²: the variance of the difference of two
    0/1 scores is δ − d², δ the share of questions that only one of the two gets
    right. The inverse of `resolvable_difference`, for planning.

    Args:
        difference: d, a share (0.02 for two points).

    Raises:
        BadInput: the difference is not above 0, or above the discordant share.

    >>> questions_needed(0.02), questions_needed(0.05)
    (3917, 621)
    """
    if not 0 < difference <= DISCORDANT:
        raise BadInput(
            f"a difference of {difference:g} cannot come from {DISCORDANT:g} of the questions",
            next_step=f"give a share above 0 and at most {DISCORDANT:g}",
        )
    return math.ceil(_Z**2 * (DISCORDANT - difference**2) / difference**2)


def difference_shown(questions: int) -> float:
    """Smallest detectable difference in accuracy on so many questions, as a share.

    >>> round(difference_shown(621), 3)
    0.05
    """
    z = _Z
    # d² = z²(δ − d²)/n, solved for d.
    return math.sqrt(z**2 * DISCORDANT / (questions + z**2)) if questions > 0 else math.inf


# Possible gain: the oracle corrected for sampling noise and guessing, stability of specialists.

#: One-sided 5 % quantile of the normal distribution.
POSSIBLE_GAIN_SURE = 1.645


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
            knows[accuracy - g <= POSSIBLE_GAIN_SURE * np.sqrt(g * (1 - g) / n)] = 0.0
            surely = np.where(accuracy > 0, knows / np.maximum(accuracy, 1e-300), 0.0)
            nobody = _nobody(decided, surely)
            result = 1 - nobody + nobody * min(g, accuracy.max())
            known = ~np.isnan(out[at])
            raw, mean = out[at][known].sum(), result[known].sum()
            out[at] = np.where(known, result * min(1.0, raw / mean) if mean > 0 else result, np.nan)
    return out


def _nobody(correct: Floats, surely: Floats) -> Floats:
    """(n,) chance that no model that is right knows the answer."""
    rows = by_rows(lambda part: np.where(right(part), 1 - surely, 1.0).prod(axis=1), correct)
    return np.asarray(rows)


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
    results = []
    for _ in range(50):
        half = _halves(t, generator)
        with np.errstate(invalid="ignore"):
            a = specialist_scores(labels, t[half == 0], use[half == 0]).ravel()
            b = specialist_scores(labels, t[half == 1], use[half == 1]).ravel()
        both = ~np.isnan(a) & ~np.isnan(b)
        if both.sum() > 2 and a[both].std() > 1e-12 and b[both].std() > 1e-12:
            r = float(np.corrcoef(a[both], b[both])[0, 1])
            # The correction is for reliabilities; a negative value is not one.
            results.append(2 * r / (1 + r) if r > 0 else r)
    return np.array(results) if results else None


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


# Figures of the pool: single models, oracles, random mixes, redundancy, each with its interval.

#: (lower, upper): what no release can have the other way round.
IN_ORDER = (
    ("best_single", "task_oracle"),
    ("task_oracle", "query_oracle"),
    ("query_oracle_chance_corrected", "query_oracle"),
    ("uniform_random", "query_oracle"),
    ("cost_matched_mix", "query_oracle"),
)


#: Figures that need the cost of every labelled answer.
OF_COST = ("cost_matched_mix", "gap_mix", "dominated_share")


@dataclass(frozen=True)
class Figure:
    """A value with its 95 % interval; null with a reason where it does not exist."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ModelFigure:
    """One model: accuracy over the queries it has a label for, with an interval that missing and
    undecided labels widen (`schemas.release.widened`), and the mean cost of its answers; null
    where the cost of any labelled answer of the pool is unknown."""

    model_id: str
    accuracy: float | None
    low: float | None
    high: float | None
    n_labels: int
    mean_cost: float | None
    dominated: bool | None


def pool_figures(
    core: Core, cost: Floats | None, single: int, draws: Draws, no_cost: str
) -> tuple[dict[str, Figure], list[ModelFigure]]:
    """Figures by name, and those of every model.

    Every figure is over the questions on which the best single model has a
    label: it, the oracles and the mix are only comparable on the same questions.
    A model's own accuracy is over all the questions that it has a label for.

    Args:
        cost: (n, m) of the certificate's measure, known of every labelled answer, or None.
        single: position of the best single model.
        no_cost: why it is missing.
    """
    y = core.labels
    compared = np.flatnonzero(~np.isnan(y[:, single]))
    some = core.take(compared)
    paid = None if cost is None else cost if some is core else take_rows(cost, compared)
    columns, reasons = _columns(some, paid, single, draws.seed)
    names = list(columns)
    wide = allocate((core.n_queries, len(names)), fill=np.nan)
    wide[compared] = side_by_side([columns[name] for name in names])
    replicates = draws.means(by_rows(lambda *part: np.concatenate(part, axis=1), wide, y))
    figures: dict[str, Figure] = {}
    for k, name in enumerate(names):
        figures[name] = _figure(wide[:, k], replicates[:, k], "no query has a value")
    if cost is None:
        reasons |= dict.fromkeys(OF_COST, no_cost)
    figures.update({name: Figure(None, reason=reason) for name, reason in reasons.items()})
    _agree(figures)
    singles = replicates[:, len(names) :]
    off = _dominance(core, cost, draws, figures)
    figures["specialist_stability"] = _stability(core)
    figures["contested_share"] = _share(core.contested)
    figures["unreadable_share"] = _share(core.unreadable)
    return figures, _models(core, cost, singles, off)


def _agree(figures: dict[str, Figure]) -> None:
    """Figures over the same questions cannot contradict each other; if they do, it is our fault."""
    value = {name: figure.value for name, figure in figures.items()}
    for lower, upper in IN_ORDER:
        low, high = value[lower], value[upper]
        if low is not None and high is not None and low > high + 1e-9:
            raise AssertionError(f"{lower} {low} is above {upper} {high}")


def _columns(
    core: Core, cost: Floats | None, single: int, seed: int
) -> tuple[dict[str, Floats], dict[str, str]]:
    """(n,) columns whose means are figures, and why the others are absent."""
    y, decided = core.labels, core.decided
    oracle = query_oracle(y, cost)
    top = at_choice(y, oracle)
    # The best single model first: it has a label on all of these questions.
    order = np.array([single, *(k for k in ranked(y).tolist() if k != single)])
    per_task = at_choice(y, task_oracle(y, core.tasks, order=order))
    can = solvable(decided)
    all_right = by_rows(lambda d, v: right(d).sum(axis=1) == (~np.isnan(v)).sum(axis=1), decided, y)
    covered = by_rows(lambda part: right(part)[:, single], decided)
    by_chance = chance_corrected_oracle(y, decided, core.tasks, core.chance)
    columns: dict[str, Floats] = {
        "best_single": y[:, single],
        "uniform_random": random_mean(y),
        "task_oracle": per_task,
        "task_oracle_crossfitted": crossfitted_task_oracle(y, core.tasks, seed=seed),
        "query_oracle": top,
        "query_oracle_chance_corrected": by_chance,
        "gap_task_oracle": per_task - y[:, single],
        "gap_query_oracle": top - y[:, single],
        "gap_query_oracle_chance_corrected": by_chance - y[:, single],
        "hard_share": np.where(can, hard_subset(decided, single).astype(np.float64), np.nan),
        "unsolved_share": (~can).astype(np.float64),
        "all_right_share": all_right.astype(np.float64),
        "best_covers": np.where(can & ~np.isnan(y[:, single]), covered, np.nan),
        "redundancy": agreement(decided),
    }
    _mix(core, cost, oracle, top, columns)
    return columns, _noise(core, single, seed, columns)


def _mix(
    core: Core, cost: Floats | None, oracle: Choice, top: Floats, columns: dict[str, Floats]
) -> None:
    """At the oracle's own mean cost: what the same money buys without looking at queries."""
    if cost is None:
        return
    y = core.labels
    spent = float(np.nanmean(at_choice(cost, oracle)))
    who = alone(known(y), ranked(y))
    singles = at_choice(y, who)
    weights = mix_weights(mean_costs(at_choice(cost, who)), singles.mean(axis=0), spent)
    mixed = singles @ weights
    columns["cost_matched_mix"], columns["gap_mix"] = mixed, top - mixed


def _noise(core: Core, single: int, seed: int, columns: dict[str, Floats]) -> dict[str, str]:
    """The oracle corrected for sampling noise, where there are samples."""
    if core.samples is None:
        why = (
            "every response was sampled once, so sampling noise is unknown: "
            "the oracle is an upper limit"
        )
        return {"query_oracle_corrected": why, "gap_query_oracle_corrected": why}
    corrected = corrected_oracle(core.samples, seed=seed)
    columns["query_oracle_corrected"] = corrected
    columns["gap_query_oracle_corrected"] = corrected - core.labels[:, single]
    return {}


def _models(
    core: Core, cost: Floats | None, singles: Floats, off: Bools | None
) -> list[ModelFigure]:
    y = core.labels
    price = mean_costs(cost) if cost is not None else None
    models = []
    for k, name in enumerate(core.model_ids):
        figure = _figure(y[:, k], singles[:, k], "no label")
        cost_of = None if price is None else float(price[k])
        dominated_by = None if off is None else bool(off[k])
        n = int((~np.isnan(y[:, k])).sum())
        low, high = figure.low, figure.high
        if low is not None and high is not None:
            low, high = widened(low, high, n, len(y))
        accuracy = (figure.value, low, high)
        models.append(ModelFigure(name, *accuracy, n, cost_of, dominated_by))
    return models


def _figure(column: Floats, replicates: Floats, reason: str) -> Figure:
    if np.isnan(column).all():
        return Figure(None, reason=reason)
    low, high = interval(replicates)
    return Figure(
        float(np.nanmean(column)),
        None if math.isnan(low) else low,
        None if math.isnan(high) else high,
    )


def _dominance(
    core: Core, cost: Floats | None, draws: Draws, figures: dict[str, Figure]
) -> Bools | None:
    """Share of models that another beats in accuracy at no more cost, on the same questions."""
    if cost is None:
        return None
    labels = core.labels
    off = dominated(levels(cost), np.nan_to_num(levels(labels), nan=0.0))
    accuracy = np.nan_to_num(draws.means(evened(labels)), nan=0.0)
    shares = dominated(draws.means(evened(cost)), accuracy).mean(axis=-1)
    low, high = interval(shares, value=float(off.mean()))
    figures["dominated_share"] = Figure(float(off.mean()), low, high)
    return off


def _stability(core: Core) -> Figure:
    result = specialist_stability(core.labels, core.tasks)
    if result is None:
        return Figure(None, reason="needs two tasks with at least four queries and two models")
    # The interval is over random halvings of the same queries.
    low, high = interval(result)
    return Figure(float(result.mean()), low, high)


def _share(value: float | None) -> Figure:
    return Figure(None, reason="no label is decided") if value is None else Figure(value)


# Reference routers, cross-fitted over all questions: do they learn, or collapse to one model?

#: Routers whose collapse the certificate reports.
REFERENCE = ("kmeans", "knn", "mf", "mlp", "task-map")
#: A router is better when its corrected p-value is below this.
CROSSFIT_SURE = 0.05


def least_resamples(routers: int) -> int:
    """Resamples with which the best of so many routers can be found better, after Holm.

    The least p-value of a two-sided bootstrap test is 2/(resamples + 1), times the routers.

    >>> least_resamples(5)
    200
    """
    return math.ceil(2 * routers / CROSSFIT_SURE)


@dataclass(frozen=True)
class Collapse:
    """One reference router on all questions, asked without regard to cost.

    Each question is routed by a router that was fitted without its fold.

    Attributes:
        accuracy: mean score of its choices.
        gain: accuracy minus that of the single model that is best on the same
            train questions, with a paired interval and a Holm-corrected p-value. Where
            that model has no label the next best replaces it, as for the router.
        top_model, top_share: the model it asks most (all of them where equal), and how often.
        entropy: selection entropy over log m; 0 is collapse.
    """

    router: str
    accuracy: float
    gain: float
    gain_low: float
    gain_high: float
    p_adjusted: float
    top_model: str
    top_share: float
    entropy: float


def fold_of(core: Core, folds: int, seed: int) -> Ints:
    """(n,) fold of each question: near-duplicates together, tasks in proportion, seeded.

    Within every task the groups are shuffled and dealt in turn; a group that
    spans tasks follows its first question.
    """
    generator = np.random.default_rng(seed)
    first = np.unique(core.groups, return_index=True)[1]
    place = generator.permutation(len(first))
    order = np.lexsort((place, core.tasks[first]))
    dealt = np.empty(len(first), dtype=np.int64)
    dealt[order] = np.arange(len(first)) % folds
    return np.asarray(dealt[np.searchsorted(core.groups[first], core.groups)])


def crossfitted(
    core: Core,
    *,
    routers: Sequence[str] = REFERENCE,
    folds: int = 5,
    draws: Draws,
    store: PredictionStore | None = None,
) -> tuple[list[Collapse], str | None]:
    """Every question routed by routers fitted on the other folds.

    In each turn the next fold's neighbours (one eighth of what is left) serve
    as validation questions, on which hyperparameters are chosen.

    Args:
        draws: resamples of the core's questions, for the paired intervals.
        store: where predictions are kept.

    Returns:
        The routers tried, and why others (or all) were not.

    Raises:
        BadInput: `folds` is below 2, or the resamples are too few to decide.
    """
    if folds < 2:
        raise BadInput(f"{folds} fold(s) leave nothing to fit on", next_step="give at least 2")
    if not routers:
        return [], "no reference router was asked for"
    blind = core.embeddings is None
    reads = {name: "embeddings" in traits_of(ROUTERS.get(name)).needs for name in routers}
    names = [name for name in routers if not (blind and reads[name])]
    why_not = "the questions have no embeddings" if len(names) < len(routers) else None
    if core.n_queries < 4 * folds:
        return [], f"{core.n_queries} questions are too few for {folds} folds"
    if not names:
        return [], why_not
    if draws.resamples < (least := least_resamples(len(names))):
        raise BadInput(
            f"{draws.resamples:,} resamples cannot show that any of {len(names)} reference routers "
            f"is better: with Holm's correction no p-value can fall below {CROSSFIT_SURE:g}",
            where="resamples",
            next_step=f"give at least {least:,} (the default is 10,000)",
        )
    specs = {spec.name: spec for spec in registered(names)}
    fold = fold_of(core, folds, draws.seed)
    choices = {name: np.zeros(core.n_queries, dtype=np.int64) for name in names}
    singles = np.zeros(core.n_queries, dtype=np.int64)
    for k in range(folds):
        test, rest = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        held = core.take(rest)
        inner = fold_of(held, 8, draws.seed + 1 + k) == 0
        train = held.take(np.flatnonzero(~inner)).examples(
            held.take(np.flatnonzero(inner)).examples()
        )
        price = mean_costs(held.costs["usd"]) if "usd" in held.costs else np.zeros(core.n_models)
        part = core.take(test)
        order = ranked(held.labels, price)
        singles[test] = alone(~np.isnan(part.labels), order)[:, order[0]]
        queries = part.queries()
        for name in names:
            scores = Fit(specs[name], train, store).scores(queries)
            choices[name][test] = best(scores, ~np.isnan(part.labels), order)
    return _collapses(core, choices, singles, draws), why_not


def _collapses(
    core: Core, choices: Mapping[str, Choice], singles: Choice, draws: Draws
) -> list[Collapse]:
    names = list(choices)
    scores = np.stack([at_choice(core.labels, choices[name]) for name in names], axis=1)
    gains = scores - at_choice(core.labels, singles)[:, None]
    replicates = draws.means(gains)
    adjusted = holm([p_value(replicates[:, k]) for k in range(len(names))])
    collapses = []
    for k, name in enumerate(names):
        low, high = interval(replicates[:, k])
        profile = selection_profile(choices[name], core.n_models)
        collapses.append(
            Collapse(
                router=name,
                accuracy=float(scores[:, k].mean()),
                gain=float(gains[:, k].mean()),
                gain_low=low,
                gain_high=high,
                p_adjusted=adjusted[k],
                top_model=" and ".join(
                    core.model_ids[m] for m in np.flatnonzero(profile == profile.max())
                ),
                top_share=float(profile.max()),
                entropy=selection_entropy(profile),
            )
        )
    return collapses


# The certificate's verdict, decided from its figures and reference routers by a written rule.

#: The oracle's gaps to the best single model, of which the smallest counts → what it is
#: corrected for.
GAPS = {
    "gap_query_oracle": "",
    "gap_query_oracle_corrected": ", corrected for sampling noise",
    "gap_query_oracle_chance_corrected": ", corrected for guessing",
}

RULE = (
    "gap = accuracy of the per-query oracle minus that of the best single model (corrected for "
    "guessing where questions have choices, and for sampling noise where responses were sampled "
    "more than once; the smaller). 'not routable': the gap's lower limit is not above zero, or "
    "the gap is smaller than the difference the test questions can resolve. 'routable': "
    "otherwise, and at least one reference router, cross-fitted over all questions, beats the "
    "best single model (Holm-corrected p < 0.05 and a 95 % interval above zero). 'headroom not "
    "reached': otherwise, and no reference router does. 'headroom only': no reference router "
    "could be tried."
)


def verdict_of(
    best_single: str,
    figures: Mapping[str, Figure],
    tried: Sequence[Collapse],
    why_not: str | None,
    *,
    folds: int,
    compared: int,
    queries: int,
    undecided: Sequence[str] = (),
) -> tuple[str, str]:
    """Verdict and its words, by `RULE`.

    Args:
        undecided: Models whose order with `best_single` is open because of missing labels.
        folds: In which the routers were tried.
        compared: Questions on which the best single model has a label, of all `queries`.
    """
    how = f"cross-fitted in {folds} folds over all {compared} questions"
    name = best_single if undecided else f"the best single model ({best_single})"
    verdict, words = _decided(name, figures, tried, why_not, how)
    if undecided:
        words += f" {undecided_words(best_single, undecided)}"
    if compared < queries:
        words += (
            f" All of this is about the {compared} of {queries} questions on which that model has "
            "a label."
        )
    return verdict, words


def _decided(
    single: str,
    figures: Mapping[str, Figure],
    tried: Sequence[Collapse],
    why_not: str | None,
    how: str,
) -> tuple[str, str]:
    known = [name for name in GAPS if figures[name].value is not None]
    smallest = min(known, key=lambda name: figures[name].value or 0.0)
    gap = figures[smallest]
    value, low, high = gap.value or 0.0, gap.low or 0.0, gap.high or 0.0
    resolvable = figures["resolvable_difference"].value
    limit = resolvable if resolvable is not None else math.inf
    start = (
        f"A perfect router would beat {single} by "
        f"{_points(value)} (95 % CI {100 * low:.2f} to {100 * high:.2f}{GAPS[smallest]}). "
    ) + (
        f"This test set detects differences of {_points(limit)} or more."
        if math.isfinite(limit)
        else "Which differences this test set detects is unknown."
    )
    if figures["gap_query_oracle_corrected"].value is None:
        start += " Each response was sampled once, so part of that gap may be sampling noise."
    if low <= 0 or value < limit:
        return "not routable", start + " It cannot tell routers apart."
    if not tried:
        return "headroom only", f"{start} No reference router was tried: {why_not}."
    winners = [r for r in tried if r.gain_low > 0 and r.p_adjusted < 0.05]
    best = _best(tried, how)
    if winners:
        names = ", ".join(sorted(r.router for r in winners))
        return "routable", f"{start} Reference routers beat that model: {names}; {best}."
    return (
        "headroom not reached",
        f"{start} No reference router gains significantly; the best, {best}.",
    )


def _best(tried: Sequence[Collapse], how: str) -> str:
    """The router that gains most; those that are equally good are all named, with the interval of
    the first."""
    most = max(r.gain for r in tried)
    alike = sorted((r for r in tried if most - r.gain < 1e-9), key=lambda r: r.router)
    names, top = " and ".join(r.router for r in alike), alike[0]
    return (
        f"{names} {'gains' if len(alike) == 1 else 'each gain'} {_points(top.gain)} "
        f"(95 % CI {100 * top.gain_low:.2f} to {100 * top.gain_high:.2f}, {how})"
    )


def _points(share: float) -> str:
    return f"{100 * share:.2f} points"


# Numbers of test questions that are also in train.


def leaks(core: Core, scheme: str) -> dict[str, int | None]:
    """Numbers of test questions of a scheme, and of those that are in train as well.

    `verbatim`: with the same words as a train question; null where texts are withheld.
    `near_duplicates`: in a group of near-duplicates with one; null when nobody looked for any.
    """
    split = core.splits[scheme]
    test, train = np.flatnonzero(split == "test"), np.flatnonzero(split == "train")
    alike = near(core, test, train)
    shared = int(verbatim(core, test, train).sum()) if len(core.prompts) else 0
    return {
        "test": len(test),
        "verbatim": None if withheld(core, np.concatenate([test, train])) else shared,
        "near_duplicates": None if alike is None else int(alike.sum()),
    }


# The certificate itself: figures of the pool, reference routers tried, a verdict in words.


@dataclass(frozen=True)
class Certificate:
    """JSON-ready (`to_json`). Accuracies and gaps are shares, not per cent.

    `figures` holds, by name: best_single, uniform_random, cost_matched_mix,
    task_oracle, task_oracle_crossfitted, query_oracle, query_oracle_corrected,
    query_oracle_chance_corrected, the gaps gap_task_oracle, gap_query_oracle,
    gap_query_oracle_corrected, gap_query_oracle_chance_corrected (all against
    the best single model) and gap_mix (oracle against the mix),
    specialist_stability, hard_share, unsolved_share, all_right_share,
    best_covers, dominated_share, redundancy, contested_share,
    unreadable_share, resolvable_difference (of the test questions) and
    resolvable_difference_crossfitted (of all questions, as the reference
    routers are tried).
    They are over the `n_compared` questions on which the
    best single model has a label, so that they can be compared.

    Attributes:
        order_undecided: models whose order with `best_single` is open because labels are missing
            or undecided, and for that reason alone.
        encoder: what made the vectors that the reference routers learn from; None without any.
    """

    n_queries: int
    n_compared: int
    n_test: int | None
    n_models: int
    coverage: float
    scheme: str | None
    measure: str | None
    resamples: int
    seed: int
    clustered_by: str | None
    best_single: str
    figures: Mapping[str, Figure]
    models: Sequence[ModelFigure]
    routers: Sequence[Collapse]
    routers_reason: str | None
    folds: int | None
    test_in_train: Mapping[str, Mapping[str, int | None]]
    verdict: str
    words: str
    order_undecided: Sequence[str] = ()
    encoder: str | None = None
    rule: str = RULE

    def __repr__(self) -> str:
        return f"Certificate: {self.verdict}. {self.words}"

    def _repr_html_(self) -> str:
        rows = [
            {"router": row.router, "accuracy": row.accuracy, "gain over the best model": row.gain,
             "low": row.gain_low, "high": row.gain_high}
            for row in self.routers
        ]  # fmt: skip
        facts = {"verdict": self.verdict, "questions": self.n_queries, "models": self.n_models}
        return html_card("certificate", {**facts, "": self.words}, rows)

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers; keys in a fixed order."""
        return {"format": 1, **asdict(self)}


@one_thread_each()
def certify(
    core: Core,
    *,
    scheme: str | None = None,
    measure: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    routers: Sequence[str] = REFERENCE,
    folds: int = 5,
    store: PredictionStore | None = None,
) -> Certificate:
    """Certificate of a release or of staged tables.

    Figures of the pool are over the queries on which the best single model has a
    label; the reference routers are cross-fitted over the same queries; the
    resolvable difference is that of the test questions of `scheme`, on which
    others will compare.

    Args:
        scheme: split scheme; by default `upstream`, `dense`, or the first in order.
        measure: cost measure; by default the first known of usd, tokens,
            latency, params. Figures of cost are null unless it is known of every
            labelled answer.
        cluster: `duplicates` or `task` to resample whole groups.
        routers: reference routers to try, names of `ROUTERS`;
            none when empty.
        folds: folds of the cross-fitting.
        store: where predictions are kept.

    Raises:
        BadInput: no query has a label, or a name is unknown.
    """
    core = core.labelled()
    if not core.n_queries:
        raise BadInput(
            "no query has a label, so there is nothing to certify: every answer is missing, or "
            "undecided because no scorer could read it",
            next_step="label the responses first (`routeyard relabel`); where they are undecided, "
            "name another `scorer`, a judge under `label.default.then`, or `unreadable: incorrect`",
        )
    measure = first_measure(core.costs, measure)
    part = "" if measure is None else core.part_priced(measure)
    no_cost = f"{measure} is {part}; figures of cost need all of them" if part else core.no_cost
    scheme = None if scheme is None and not core.splits else default_scheme(core, scheme)
    cost = core.costs[measure] if measure and not part else None
    price = mean_costs(cost) if cost is not None else None
    single = best_single(core.labels, price)
    draws = Draws(core.n_queries, resamples, seed, core.clusters(cluster))
    figures, models = pool_figures(core, cost, single, draws, no_cost)
    test = _test(core, scheme)
    compared = core.take(np.flatnonzero(~np.isnan(core.labels[:, single])))
    if compared.n_queries < core.n_queries:
        draws = Draws(compared.n_queries, resamples, seed, compared.clusters(cluster))
    for name, among in (
        ("resolvable_difference", test or core),
        ("resolvable_difference_crossfitted", compared),
    ):
        result = resolvable_difference(among.labels)
        why = "fewer than two models share questions" if result is None else None
        figures[name] = Figure(result, reason=why)
    tried, why_not = crossfitted(compared, routers=routers, folds=folds, draws=draws, store=store)
    undecided = order_undecided(counts_of(core.labels, core.model_ids), core.model_ids[single])
    verdict, words = verdict_of(
        core.model_ids[single], figures, tried, why_not,
        folds=folds, compared=compared.n_queries, queries=core.n_queries, undecided=undecided,
    )  # fmt: skip
    return Certificate(
        n_queries=core.n_queries,
        n_compared=compared.n_queries,
        n_test=None if test is None else test.n_queries,
        n_models=core.n_models,
        coverage=core.coverage,
        scheme=scheme,
        measure=measure,
        resamples=resamples,
        seed=seed,
        clustered_by=cluster,
        best_single=core.model_ids[single],
        figures=figures,
        models=models,
        routers=tried,
        routers_reason=why_not,
        folds=folds if tried else None,
        test_in_train={name: leaks(core, name) for name in sorted(core.splits)},
        verdict=verdict,
        words=words,
        order_undecided=undecided,
        encoder=core.encoder,
    )


def _test(core: Core, scheme: str | None) -> Core | None:
    if scheme is None:
        return None
    rows = np.flatnonzero(core.splits[scheme] == "test")
    return core.take(rows) if len(rows) else None


__all__ = ["Certificate", "certify"]
