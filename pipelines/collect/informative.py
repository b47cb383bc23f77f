"""Spends calls where models are not told apart yet (`collect.strategy: informative`).

A seeded pilot asks every model the same few questions. Each round after it draws new
questions, with a known chance each, and asks them of the models that some other model is
still too close to. A model that surely differs from all others is asked no more.

Each round estimates every model it asked without bias: answers known before count as they
are, the others as predicted, and the drawn ones correct the prediction, weighted by the
inverse of their chance (Horvitz and Thompson's estimator of the difference). Predictions
for one half of the questions never see the answers drawn from that half in the same round.
Rounds are added up by weights that were known before their answers were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.common.arrays import Array
from routeyard.schemas.recipe.collect import Informative

#: Two-sided 95 % of a normal distribution.
Z = 1.959964
#: Standard errors apart at which a model is asked no more: it is looked at after each round,
#: so that the bound is wider than that of the last interval.
_APART = 2.8
#: Share of a round's chances that is the same for every question.
_FLOOR = 0.3


@dataclass(frozen=True)
class InformativeRound:
    """What one round asked.

    Attributes:
        models: Numbers of the models asked, ascending.
        drawn: Rows of the questions drawn, ascending.
        chance: Chance with which each question not drawn before would be, float [queries];
            0 for those drawn before.
        unresolved: Pairs of models that were open before the round.
    """

    models: Array
    drawn: Array
    chance: Array
    unresolved: int


@dataclass(frozen=True)
class RankedModels:
    """What the rounds say about the models.

    Attributes:
        asked: Which pairs were asked, bool [queries, models].
        plain: Mean score over what was asked and judged, float [models]; NaN without any.
        weighted: Estimate of the mean score over all questions, float [models].
        covariance: Of the errors of `weighted`, float [models, models].
        rounds: In order.
    """

    asked: Array
    plain: Array
    weighted: Array
    covariance: Array
    rounds: tuple[InformativeRound, ...]

    @property
    def standard_error(self) -> Array:
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def unresolved(self, difference: float, apart: float = Z) -> Array:
        """Pairs that are neither told apart nor known to differ by at most `difference`,
        bool [models, models]."""
        gap = np.abs(self.weighted[:, None] - self.weighted)
        variance = np.diag(self.covariance)
        asked = self.asked.astype(np.float64)
        both, n = np.maximum(asked.T @ asked, 1.0), len(asked)
        # Models that agreed on all they were asked may differ on the next question.
        one_more = (1 - both / n) / both**2
        apart_by = variance[:, None] + variance - 2 * self.covariance
        spread = np.sqrt(np.maximum(apart_by, 0.0) + one_more)
        open_ = (gap <= apart * spread) & (Z * spread > difference)
        np.fill_diagonal(open_, False)
        return np.asarray(open_)


def collect_informatively(
    tasks: Array,
    models: int,
    plan: Informative,
    answer: Callable[[Array], Array],
    *,
    always: Array | None = None,
    apart: float = _APART,
    floor: float = _FLOOR,
    rounds: int = 16,
    growth: float = 1.3,
    seed: int = 0,
) -> RankedModels:
    """Ask round after round until the stated difference is resolved for every pair.

    Args:
        tasks: Task of each question as a number from 0, int [queries].
        models: How many models there are.
        plan: Pilot, the difference to resolve, and the most calls.
        answer: Given which pairs are asked by now, bool [queries, models], gives their
            scores in [0, 1], float [queries, models]; NaN where a pair has no score. A question
            without a score counts as what was predicted of it.
        always: Questions that every model is asked, bool [queries].
        apart: Standard errors apart at which a model is asked no more.
        floor: Share of a round's chances that is the same for every question.
        rounds: Rounds at most, the pilot included.
        growth: Questions of a round by those of the round before.
        seed: Seed of the pilot and of what each round asks.

    The same seed and the same answers give the same rounds, so a run that was stopped asks
    on where it was.
    """
    random = np.random.default_rng(seed)
    n = len(tasks)
    state = _State(tasks, models, seed)
    if always is not None and always.any():
        state.asked[always] = True
        state.scores = answer(state.asked)
    size = float(min(n, max(plan.pilot, 2)))
    active = np.arange(models)
    unresolved = models * (models - 1) // 2
    ranking = state.ranking()
    for number in range(rounds):
        free = ~state.asked[:, active[0]]
        left = int(free.sum())
        room = left if plan.calls is None else (plan.calls - int(state.asked.sum())) // len(active)
        # How many are drawn is chance: three standard deviations are kept in hand.
        wanted = min(size, left if room >= left else room - 3 * max(room, 0) ** 0.5)
        if wanted < 1:
            break
        chance = _chances(state.spread(active), free, wanted, floor)
        drawn = np.flatnonzero(random.random(n) < chance)
        while len(drawn) > room:  # once in a thousand rounds
            drawn = np.flatnonzero(random.random(n) < chance)
        if not len(drawn):
            continue
        before = state.asked.copy()
        state.asked[np.ix_(drawn, active)] = True
        state.scores = answer(state.asked)
        state.add(InformativeRound(active, drawn, chance, unresolved), before)
        ranking = state.ranking()
        last = number + 1 == rounds or len(drawn) == left
        open_ = ranking.unresolved(plan.resolve, Z if last else apart)
        unresolved = int(open_.sum()) // 2
        if not unresolved:
            break
        active = np.flatnonzero(open_.any(axis=1) & np.isin(np.arange(models), active))
        if len(active) < 2:
            break
        size = growth * len(drawn)
    return ranking


def _chances(spread: Array, free: Array, wanted: float, floor: float) -> Array:
    """Chances in proportion to the spread, none above 1, that add up to `wanted`."""
    relative = spread / max(spread[free].mean(), 1e-12)
    weight = np.where(free, floor + (1 - floor) * relative, 0.0)
    low, high = 0.0, wanted / max(weight[free].min(), 1e-12)
    for _ in range(60):
        middle = (low + high) / 2
        if np.minimum(middle * weight, 1.0).sum() < wanted:
            low = middle
        else:
            high = middle
    return np.asarray(np.minimum(high * weight, 1.0))


class _State:
    """Answers so far, and the sums that rounds have added to the estimates."""

    def __init__(self, tasks: Array, models: int, seed: int) -> None:
        self.tasks, self.models = tasks, models
        self.asked = np.zeros((len(tasks), models), dtype=bool)
        self.scores = np.full((len(tasks), models), np.nan)
        # Halves by a separate stream, so that chances do not depend on them.
        self._half = np.random.default_rng((seed, 1)).random(len(tasks)) < 0.5
        self._rounds: list[InformativeRound] = []
        self._estimates: list[tuple[Array, Array, Array]] = []
        self._errors: list[tuple[Array, Array, Array]] = []

    def spread(self, active: Array) -> Array:
        """Predicted standard deviation of an answer of the active models, per question."""
        chance = self._predict(self.asked)[:, active]
        return np.asarray(np.sqrt((chance * (1 - chance)).mean(axis=1)))

    def _predict(self, seen: Array) -> Array:
        """Scores by task and model, drawn to the model's and the task's mean where few."""
        known = seen & ~np.isnan(self.scores)
        score = np.where(known, self.scores, 0.0)
        overall = (score.sum() + 0.5) / (known.sum() + 1)
        model = (score.sum(axis=0) + overall) / (known.sum(axis=0) + 1)
        tasks = int(self.tasks.max(initial=0)) + 1
        total, count = np.zeros((tasks, self.models)), np.zeros((tasks, self.models))
        np.add.at(total, self.tasks, score)
        np.add.at(count, self.tasks, known)
        # A task that is easy for the others is easier for this model too.
        expected = (count * model).sum(axis=1)
        ease = (total.sum(axis=1) - expected) / (count.sum(axis=1) + 8)
        prior = np.clip(model + ease[:, None], 0.01, 0.99)
        return np.asarray(((total + 8 * prior) / (count + 8))[self.tasks])

    def add(self, made: InformativeRound, before: Array) -> None:
        """Estimates of the models of a round from its answers."""
        n, asked = len(self.tasks), made.models
        known = before & ~np.isnan(self.scores)
        predicted = np.empty((n, len(asked)))
        drawn = np.zeros(n, dtype=bool)
        drawn[made.drawn] = True
        for half in (self._half, ~self._half):
            seen = before | (self.asked & (drawn & ~half)[:, None])
            predicted[half] = self._predict(seen)[np.ix_(half, asked)]
        rest = ~before[:, asked]
        expected = np.where(known[:, asked], self.scores[:, asked], predicted)
        # How many questions a round draws is known before it is asked: so are its weights.
        chance = np.maximum(made.chance, 1e-9)[:, None]
        variance = np.where(rest, (1 - chance) / chance, 0.0).sum(axis=0)
        inverse = 1.0 / chance[made.drawn]
        error = np.nan_to_num(self.scores[np.ix_(made.drawn, asked)] - predicted[made.drawn])
        error *= inverse / n
        self._rounds.append(made)
        self._estimates.append(
            (asked, expected.mean(axis=0) + error.sum(axis=0), n**2 / np.maximum(variance, 1e-9))
        )
        self._errors.append((asked, error, np.sqrt(1 - made.chance[made.drawn])[:, None]))

    def ranking(self) -> RankedModels:
        weight, total = np.zeros(self.models), np.zeros(self.models)
        for asked, estimate, share in self._estimates:
            weight[asked] += share
            total[asked] += share * estimate
        covariance = np.zeros((self.models, self.models))
        for (asked, error, thin), (_, _, share) in zip(self._errors, self._estimates, strict=True):
            part = error * thin * (share / weight[asked])
            covariance[np.ix_(asked, asked)] += part.T @ part
        judged = self.asked & ~np.isnan(self.scores)
        with np.errstate(invalid="ignore", divide="ignore"):
            plain = np.where(judged, self.scores, 0.0).sum(axis=0) / judged.sum(axis=0)
            weighted = total / weight
        return RankedModels(self.asked.copy(), plain, weighted, covariance, tuple(self._rounds))
