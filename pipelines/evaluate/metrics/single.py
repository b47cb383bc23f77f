"""Metrics of one router at its own choices: accuracy, calibration, RouterArena, optimality."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.common.arrays import Bools, Floats, Names, by_rows, distinct, ratio
from routeyard.pipelines.evaluate.metrics.selection import (
    Choice,
    at_choice,
    best,
    query_oracle,
    random_mean,
)
from routeyard.pipelines.evaluate.metrics.spec import MetricValue, Routed, metric

# BCE, Brier score and ECE: whether predicted scores are the chances they claim to be.

#: Predictions are kept this far from 0 and 1 in BCE, so that one certain error is not infinite.
CLIP = 1e-7

#: Bins of equal width of ECE.
BINS = 15

_NOT = "the scores are no probabilities"


def bce_cells(p: Floats, y: Floats) -> Floats:
    """Cross-entropy −y·ln p − (1−y)·ln(1−p) of each cell, in nats; NaN without a label.

    >>> round(float(bce_cells(np.array(0.5), np.array(1.0))), 6)
    0.693147
    """
    q = np.clip(p, CLIP, 1 - CLIP)
    return np.asarray(-(y * np.log(q) + (1 - y) * np.log(1 - q)))


def brier_cells(p: Floats, y: Floats) -> Floats:
    """(p − y)² of each cell; NaN without a label.

    >>> float(brier_cells(np.array(0.5), np.array(1.0)))
    0.25
    """
    return np.asarray((p - y) ** 2)


def bin_sums(p: Floats, y: Floats) -> Floats:
    """(n, 2·BINS) per question: Σ(p − y) and the number of labels in every bin of p."""

    def work(p: Floats, y: Floats) -> Floats:
        known = ~np.isnan(y)
        where = np.clip((p * BINS).astype(np.int64), 0, BINS - 1)
        out = np.zeros((len(p), 2 * BINS))
        rows = np.broadcast_to(np.arange(len(p))[:, None], p.shape)
        np.add.at(out, (rows[known], where[known]), (p - y)[known])
        np.add.at(out, (rows[known], BINS + where[known]), 1.0)
        return out

    return np.asarray(by_rows(work, p, y))


def ece(sums: Floats) -> Floats:
    """(...,) Σ_b n_b/n · |mean p − mean y| from the sums of `bin_sums` (..., 2·BINS).

    >>> round(float(ece(bin_sums(np.array([[0.9, 0.2]]), np.array([[1.0, 0.0]])).sum(axis=0))), 6)
    0.15
    """
    n = sums[..., BINS:].sum(axis=-1)
    return ratio(np.abs(sums[..., :BINS]).sum(axis=-1), n)


def _mean_of_cells(routed: Routed, cells: Callable[[Floats, Floats], Floats]) -> MetricValue:
    if routed.no_chances:
        return MetricValue(float("nan"), None, _NOT)

    def work(p: Floats, y: Floats) -> Floats:
        result = cells(p, y)
        known = ~np.isnan(result)
        return np.stack([np.where(known, result, 0.0).sum(axis=1), known.sum(axis=1)], axis=1)

    columns = np.asarray(by_rows(work, routed.scores, routed.data.test.labels))
    total, drawn = columns.sum(axis=0), routed.data.draws.sums(columns)
    return MetricValue(float(total[0] / total[1]), drawn[:, 0] / drawn[:, 1])


@metric
def bce_metric(routed: Routed) -> MetricValue:
    """Mean cross-entropy of the predicted scores against the labels, over all labels."""
    return _mean_of_cells(routed, bce_cells)


@metric
def brier_metric(routed: Routed) -> MetricValue:
    """Mean squared difference between predicted score and label, over all labels."""
    return _mean_of_cells(routed, brier_cells)


@metric
def ece_metric(routed: Routed) -> MetricValue:
    """Mean over bins, by size, of |mean predicted score − mean label|."""
    if routed.no_chances:
        return MetricValue(float("nan"), None, _NOT)
    sums = bin_sums(routed.scores, routed.data.test.labels)
    return MetricValue(float(ece(sums.sum(axis=0))), ece(routed.data.draws.sums(sums)))


# Answer quality by a judge, bounds where labels are undecided, accuracy without leaks.


@metric
def answer_quality_metric(routed: Routed) -> MetricValue | None:
    """Score(i) = 100 × questions on which the judge selects router i, over questions judged."""
    column = routed.shared.picks.get(routed.router)
    return None if column is None else routed.mean(100 * column, "no question is judged")


@metric
def accuracy_floor_metric(routed: Routed) -> MetricValue | None:
    """Accuracy of the models it would choose if none were left out, missing labels as wrong."""
    return _with_missing_as(routed, 0.0)


@metric
def accuracy_ceiling_metric(routed: Routed) -> MetricValue | None:
    """Accuracy of the models it would choose if none were left out, missing labels as right."""
    return _with_missing_as(routed, 1.0)


@metric
def accuracy_without_leaks_metric(routed: Routed) -> MetricValue | None:
    """Mean score of the chosen answers over the test questions that are not also in train,
    with the same words or as near-duplicates; absent where none is.
    """
    leaked = routed.data.leaked
    if leaked is None or not leaked.any():
        return None
    hit = at_choice(routed.data.test.labels, routed.choice)
    return routed.mean(np.where(leaked, np.nan, hit), "every test question is in train")


def wanted(routed: Routed) -> Choice:
    """(n,) the models it would choose if none were left out for want of a label."""
    if not np.isnan(routed.data.test.labels).any():
        return routed.choice
    return best(routed.scores, np.ones(routed.scores.shape, dtype=bool), routed.data.order)


def _with_missing_as(routed: Routed, score: float) -> MetricValue | None:
    """Manski's (1989) worst-case bound; None where the chosen models have all labels."""
    hit = at_choice(routed.data.test.labels, routed.once(wanted))
    if not np.isnan(hit).any():
        return None
    return routed.mean(np.where(np.isnan(hit), score, hit))


# Macro accuracy, its gains over chance and the best single model, its gap to the oracle.


def macro(column: Floats, tasks: Names) -> float:
    """Mean over tasks of a column's (n,) mean in the task; unknown values do not count.

    >>> macro(np.array([1.0, 0.0, 1.0]), np.array(["a", "a", "b"]))
    0.75
    """
    means = [
        float(np.nanmean(column[tasks == task]))
        for task in distinct(tasks)
        if not np.isnan(column[tasks == task]).all()
    ]
    return float(np.mean(means)) if means else float("nan")


def _drawn(routed: Routed, columns: Floats) -> Floats:
    """(resamples, c) macro means of columns (n, c), tasks as drawn.

    The questions of a task are side by side, so that each is looked at once, not once a task.
    """
    draws, width = routed.data.draws, columns.shape[1]
    task = np.unique(routed.data.test.tasks, return_inverse=True)[1]
    order = np.argsort(task, kind="stable")
    ends = np.cumsum(np.bincount(task))
    known = ~np.isnan(columns)
    values = np.concatenate([np.where(known, columns, 0.0), known], axis=1)[order]
    total = np.zeros((draws.resamples, width))
    seen = np.zeros_like(total)
    for here, counts in draws.passing():
        sorted_counts = counts[:, order]
        for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            sums = sorted_counts[:, start:end] @ values[start:end]
            means = ratio(sums[:, :width], sums[:, width:])
            mask = ~np.isnan(means)
            total[here] += np.where(mask, means, 0.0)
            seen[here] += mask
    return ratio(total, seen)


@dataclass(frozen=True, eq=False)
class Macros:
    """A router's scores beside what they are compared with, all resampled together.

    Attributes:
        met: name of what is compared → ((n,) the router's scores on the questions of both,
            (n,) the other's). `own`: its scores alone, twice.
        drawn: the same names → ((r,), (r,)) macro means of both over resamples.
    """

    met: Mapping[str, tuple[Floats, Floats]]
    drawn: Mapping[str, tuple[Floats, Floats]]


def macros(routed: Routed) -> Macros:
    """Macro means of a router, a model at random, the best one on test, and the oracle."""
    data = routed.data
    y = data.test.labels
    hit = at_choice(y, routed.choice)
    others = {
        "own": hit,
        "random": random_mean(y),
        "best": data.own(data.best_on_test),
        "oracle": at_choice(y, query_oracle(y)),
    }
    met = {name: (np.where(np.isnan(other), np.nan, hit), other) for name, other in others.items()}
    columns = np.stack([column for pair in met.values() for column in pair], axis=1)
    drawn = _drawn(routed, columns)
    return Macros(met, {name: (drawn[:, 2 * k], drawn[:, 2 * k + 1]) for k, name in enumerate(met)})


@metric
def macro_accuracy_metric(routed: Routed) -> MetricValue:
    """Mean over tasks of the accuracy in the task."""
    result = routed.once(macros)
    return MetricValue(macro(result.met["own"][0], routed.data.test.tasks), result.drawn["own"][0])


def _against(routed: Routed, name: str, sign: float = 1.0) -> MetricValue:
    tasks = routed.data.test.tasks
    result = routed.once(macros)
    hit, other = result.met[name]
    mine, theirs = macro(hit, tasks), macro(other, tasks)
    if not theirs > 0:
        return MetricValue(float("nan"), None, "what it is compared with has accuracy 0")
    replicates = sign * (ratio(*result.drawn[name]) - 1)
    n = int(np.count_nonzero(~np.isnan(other)))
    return MetricValue(sign * (mine / theirs - 1), replicates, n=n)


@metric
def gain_r_metric(routed: Routed) -> MetricValue:
    """Macro accuracy over that of a model drawn at random, minus 1 (Gain@R)."""
    return _against(routed, "random")


@metric
def gain_b_metric(routed: Routed) -> MetricValue:
    """Macro accuracy over that of the best single model on test, minus 1 (Gain@B)."""
    return _against(routed, "best")


@metric
def gap_o_metric(routed: Routed) -> MetricValue:
    """1 minus macro accuracy over that of the per-query oracle (Gap@O)."""
    return _against(routed, "oracle", -1.0)


# Decision time and cost: what asking the router itself takes.


def decision_cost(seconds: float, usd_per_hour: float) -> float:
    """USD per 1,000 decisions of so many seconds each on a machine of that price.

    >>> decision_cost(0.018, 2.0)
    0.01
    """
    return 1000 * seconds * usd_per_hour / 3600


@metric
def decision_time_metric(routed: Routed) -> MetricValue | None:
    """Wall time per query of scoring the test questions, and of embedding them when given; with
    `--timed` or `--usd-per-hour`.
    """
    seconds = routed.shared.seconds.get(routed.router)
    return None if seconds is None else MetricValue(1000 * seconds)


@metric
def decision_cost_metric(routed: Routed) -> MetricValue | None:
    """What the router itself costs: `decision_cost_usd` of its predictions, which costs of routed
    questions then hold, or decision time at the price per hour of the machine that routes.
    """
    stated = routed.shared.decision_usd.get(routed.router)
    if stated is not None:
        return MetricValue(1000 * float(stated.mean()))
    seconds, price = routed.shared.seconds.get(routed.router), routed.shared.usd_per_hour
    if seconds is None or price is None:
        return None
    return MetricValue(decision_cost(seconds, price))


# RCI: how often a router calls a model it did not need to call, or misses the best answer.


def rci_column(labels: Floats, mean_cost: Floats, choice: Choice) -> Floats:
    """(n,) 0 where the choice was in order, 1 where it was not.

    In order: the chosen answer is as good as any and its model is not the
    dearest of the pool, or it is as good as any and only dearest models are.

    Args:
        labels: (n, m) scores; NaN is missing and never the best.
        mean_cost: (m,) mean cost of every model; the dearest may be several.

    >>> y = np.array([[1, 1], [0, 1], [1, 0], [0, 0.0]])
    >>> rci_column(y, np.array([1.0, 9.0]), np.array([1, 1, 1, 0])).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    dearest = mean_cost == np.nanmax(mean_cost)

    def work(part: Floats, chosen: Choice) -> Floats:
        y = np.where(np.isnan(part), -np.inf, part)
        top = y == y.max(axis=1, keepdims=True)
        good = at_choice(top.astype(np.float64), chosen) > 0
        only_dearest = ~(top & ~dearest).any(axis=1)
        return np.where(good & (~dearest[chosen] | only_dearest), 0.0, 1.0)

    return np.asarray(by_rows(work, labels, choice))


@metric
def rci_metric(routed: Routed) -> MetricValue | None:
    """1 − share of questions on which the chosen answer is as good as any and, unless only the
    dearest model could give it, not the dearest model's.
    """
    measure = routed.data.measure
    if measure is None:
        return None
    cost = routed.data.single_means(measure)
    return routed.mean(rci_column(routed.data.test.labels, cost, routed.choice))


# V_R, V_B and E_p: RouterEval's three numbers beside the mean score.


def entropies(scores: Floats) -> Floats:
    """(n,) −Σ p log₂ p of the softmaxed scores (n, m) of each question, in bits.

    >>> entropies(np.zeros((1, 4))).tolist()
    [2.0]
    """

    def work(part: Floats) -> Floats:
        shifted = np.exp(part - part.max(axis=1, keepdims=True))
        p = shifted / shifted.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-np.where(p > 0, p * np.log2(p), 0.0).sum(axis=1)) + 0.0

    return np.asarray(by_rows(work, scores))


def over(routed: Routed, model: int) -> MetricValue:
    """Mean score of the choices over that of one model, on the questions it has a label for."""
    alone = routed.data.own(model)
    met = ~np.isnan(alone)
    hit = np.where(met, at_choice(routed.data.test.labels, routed.choice), np.nan)
    if not met.any():
        return MetricValue(float("nan"), None, "the model it is compared with has no label")
    columns = np.stack([hit, alone], axis=1)
    below = float(columns[met, 1].mean())
    if not below > 0:
        return MetricValue(float("nan"), None, "the model it is compared with is never right")
    drawn = routed.data.draws.means(columns)
    replicates = ratio(drawn[:, 0], drawn[:, 1])
    return MetricValue(float(columns[met, 0].mean()) / below, replicates, n=int(met.sum()))


@metric
def v_r_metric(routed: Routed) -> MetricValue:
    """Accuracy over that of a reference model: the one named, else the best single on train."""
    reference = routed.shared.reference
    return over(routed, routed.data.single if reference is None else reference)


@metric
def v_b_metric(routed: Routed) -> MetricValue:
    """Accuracy over that of the best single model on test."""
    return over(routed, routed.data.best_on_test)


@metric
def e_p_metric(routed: Routed) -> MetricValue:
    """Mean entropy of the softmaxed scores; higher is more diverse."""
    return routed.mean(entropies(routed.scores))


# TRR and U_token: what routing between a plain and a reasoning model saves in tokens.


def trr(spent: Floats | float, strong: Floats | float) -> Floats:
    """TRR = 1 − tokens of the router/tokens of the strong model; NaN where those are 0.

    >>> float(trr(30.0, 100.0))
    0.7
    """
    return 1 - ratio(spent, strong)


def u_token(accuracy: Floats | float, small: Floats | float, saved: Floats | float) -> Floats:
    """U_token = (Acc − Acc_LLM)/(1 − TRR): accuracy gained per share of the strong one's tokens.

    >>> round(float(u_token(0.75, 0.6, 0.7)), 6)
    0.5
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        result = (np.asarray(accuracy) - small) / (1 - np.asarray(saved))
    return np.where(np.isfinite(result), result, np.nan)


def _columns(routed: Routed) -> Floats | None:
    """(n, 4) score and tokens of the choice, score of the small model, tokens of the large one.

    Questions on which either model lacks a label or its tokens are left out (NaN rows).
    """
    pair, test = routed.shared.pair, routed.data.test
    if pair is None or "tokens" not in test.costs:
        return None
    at = np.array(pair)
    y, tokens = test.labels[:, at], test.costs["tokens"][:, at]
    chosen = best(routed.scores[:, at], np.ones(y.shape, dtype=bool), np.arange(2))
    rows = np.arange(len(y))
    out = np.stack([y[rows, chosen], tokens[rows, chosen], y[:, 0], tokens[:, 1]], axis=1)
    out[np.isnan(y).any(axis=1) | np.isnan(tokens).any(axis=1)] = np.nan
    return out


def _token_savings(routed: Routed, useful: bool) -> MetricValue | None:
    columns = _columns(routed)
    if columns is None:
        return None
    if np.isnan(columns).all():
        return MetricValue(float("nan"), None, "no question has labels and tokens of both models")
    drawn = np.vstack([np.nanmean(columns, axis=0), routed.data.draws.means(columns)])
    values = trr(drawn[:, 1], drawn[:, 3])
    if useful:
        values = u_token(drawn[:, 0], drawn[:, 2], values)
    return MetricValue(float(values[0]), values[1:], "no token is spent")


@metric
def trr_metric(routed: Routed) -> MetricValue | None:
    """1 − tokens spent between small and large, over those of always asking the large model."""
    return _token_savings(routed, useful=False)


@metric
def u_token_metric(routed: Routed) -> MetricValue | None:
    """(accuracy − accuracy of the small model)/(1 − TRR)."""
    return _token_savings(routed, useful=True)


#: USD per 1,000 queries at which the cost part is 1 and 0.
CHEAP, DEAR = 0.0044, 200.0

#: Weight of cost against accuracy.
BETA = 0.1


def arena_score(accuracy: Floats | float, usd_per_1000: Floats | float) -> Floats:
    """S = (1+β)·A·C/(β·A + C), C = (log₂ 200 − log₂ c)/(log₂ 200 − log₂ 0.0044), β = 0.1.

    Args:
        accuracy: A, a share.
        usd_per_1000: c, USD per 1,000 queries, clipped to [0.0044, 200].

    Returns:
        (...,) scores; 0 where A and C are both 0.

    >>> round(float(arena_score(0.7518957671, 8.5434721952)), 10)
    0.6586468316
    """
    c = np.clip(usd_per_1000, CHEAP, DEAR)
    cheap = (np.log2(DEAR) - np.log2(c)) / (np.log2(DEAR) - np.log2(CHEAP))
    below = BETA * np.asarray(accuracy) + cheap
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > 0, (1 + BETA) * accuracy * cheap / below, 0.0)


@metric
def arena_score_metric(routed: Routed) -> MetricValue | None:
    """Harmonic mean of accuracy and of log₂ cost scaled between 0.0044 and 200 USD per 1,000
    queries, β = 0.1.
    """
    test = routed.data.test
    if "usd" not in test.costs:
        return None
    paid = at_choice(test.costs["usd"], routed.choice) + routed.decisions("usd")
    columns = np.stack([at_choice(test.labels, routed.choice), paid], axis=1)
    if np.isnan(columns[:, 1]).any():
        return MetricValue(float("nan"), None, "the cost of a chosen answer is unknown")
    value, drawn = columns.mean(axis=0), routed.data.draws.means(columns)
    return MetricValue(
        float(arena_score(value[0], 1000 * value[1])), arena_score(drawn[:, 0], 1000 * drawn[:, 1])
    )


_UNSOLVED = "no model is right on any test question"
_UNKNOWN = "a cost of a right answer is unknown on every question"


def cheapest_right(decided: Floats, cost: Floats) -> Floats:
    """(n,) least known cost of a right answer; NaN where no right answer has a known cost.

    >>> right, cost = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[3.0, 2.0], [1.0, 1.0]])
    >>> cheapest_right(right, cost).tolist()
    [2.0, nan]
    """
    paid = np.where((decided == 1) & ~np.isnan(cost), cost, np.inf).min(axis=1)
    return np.where(np.isinf(paid), np.nan, paid)


def _right(routed: Routed) -> Bools:
    return np.asarray(at_choice(routed.data.test.decided, routed.choice) == 1)


@metric
def opt_selection_metric(routed: Routed) -> MetricValue | None:
    """Share of the questions that some model gets right on which the chosen model is right and
    no model that is right costs less.
    """
    if routed.data.measure is None:
        return None
    test = routed.data.test
    cost = test.costs[routed.data.measure]
    least = cheapest_right(test.decided, cost)
    hit = _right(routed) & (at_choice(cost, routed.choice) <= least)
    return routed.mean(np.where(np.isnan(least), np.nan, hit.astype(np.float64)), _UNSOLVED)


@metric
def opt_cost_metric(routed: Routed) -> MetricValue | None:
    """Cost of the cheapest right answers over what was paid, both summed over the questions that
    the router gets right.
    """
    if routed.data.measure is None:
        return None
    test = routed.data.test
    cost = test.costs[routed.data.measure]
    paid, least = at_choice(cost, routed.choice), cheapest_right(test.decided, cost)
    paid = paid + routed.decisions(routed.data.measure)
    return _ratio(routed, least, paid, _right(routed) & ~np.isnan(paid), _UNKNOWN)


@metric
def opt_accuracy_metric(routed: Routed) -> MetricValue:
    """Accuracy over the per-question oracle's, on the questions that some model gets right."""
    labels, decided = routed.data.test.labels, routed.data.test.decided
    reached, best = (at_choice(labels, item) for item in (routed.choice, query_oracle(labels)))
    return _ratio(routed, reached, best, (decided == 1).any(axis=1), _UNSOLVED)


def _ratio(routed: Routed, above: Floats, below: Floats, rows: Bools, reason: str) -> MetricValue:
    """Sum of `above` over that of `below` on some rows; 1 where both sums are 0."""
    if not rows.any():
        return MetricValue(float("nan"), None, reason)
    columns = np.where(rows[:, None], np.stack([above, below], axis=1), 0.0)
    value, drawn = columns.mean(axis=0), routed.data.draws.means(columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        result, replicates = (
            np.where(item[..., 1] > 0, item[..., 0] / item[..., 1], 1.0) for item in (value, drawn)
        )
    return MetricValue(float(result), replicates, n=int(rows.sum()))


def robustness(choice: Mapping[str, str], reworded: Mapping[str, str]) -> float | None:
    """Share of reworded questions that go to the model that the original goes to; None where
    no question is in both (RouterArena: 420 paraphrased and perturbed questions).

    >>> robustness({"a": "x", "b": "y"}, {"a": "x", "b": "x", "c": "x"})
    0.5
    """
    both = [query for query in reworded if query in choice]
    if not both:
        return None
    return sum(choice[query] == reworded[query] for query in both) / len(both)
