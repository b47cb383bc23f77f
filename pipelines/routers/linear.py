"""One linear model per candidate: ridge, logistic regression, and the bandit LinUCB.

Read `Ridge` first.
"""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.common.arrays import Floats, Ints, Vectors, shuffled
from routeyard.pipelines.common.matrix import Arms, Examples, Queries
from routeyard.pipelines.routers.base import model_means, usable
from routeyard.pipelines.routers.clusters import sums_in
from routeyard.pipelines.routers.listed import listed
from routeyard.pipelines.routers.training import Trained
from routeyard.schemas.errors import BadInput

# Ridge regressions of rewards on features, one for each arm, learnt one answer at a time.


class LinearArms:
    """A_m = I + Σ x xᵀ, b_m = Σ r x, θ_m = A_m⁻¹ b_m, for m arms and d features.

    The inverse is kept by the Sherman-Morrison formula (Li et al., WWW 2010, disjoint LinUCB).
    """

    def __init__(self, arms: int, features: int) -> None:
        self._inverse = np.tile(np.eye(features), (arms, 1, 1))
        self._moment = np.zeros((arms, features))
        self.theta = np.zeros((arms, features))

    def bounds(self, x: Floats, alpha: float) -> Floats:
        """(m,) θ_m·x + α·sqrt(xᵀ A_m⁻¹ x), rounded: equal rows differ in their last bit by
        their place."""
        spread = self._inverse @ x
        bound = self.theta @ x + alpha * np.sqrt(np.maximum(spread @ x, 0.0))
        return np.asarray(np.round(bound, 12))

    def learn(self, x: Floats, arm: int, reward: float) -> None:
        """One answer of one arm."""
        toward = self._inverse[arm] @ x
        self._inverse[arm] -= np.outer(toward, toward) / (1 + toward @ x)
        self._moment[arm] += reward * x
        self.theta[arm] = self._inverse[arm] @ self._moment[arm]


# LinUCB: a bandit that sees only the answer of the model it chose.


@listed
class LinUCB:
    """LinUCB with disjoint arms (Li et al., WWW 2010).

    A_m = I + Σ x xᵀ, b_m = Σ r x over the questions on which m was chosen; choose
    argmax θ_m·x + α·sqrt(xᵀ A_m⁻¹ x), learn from that model's label alone. One pass
    over the shuffled train questions, then frozen: scores are θ_m·x (α = 0).
    The inverse is kept by the Sherman-Morrison formula. Full information replayed
    offline would be another method; this one hides what a bandit does not see, which
    is why it is below the others.

    Its result depends on the order, so its seeds are orders and five are reported.
    x is the embedding on its leading `size` principal directions with a constant
    (None: the embedding itself, d² work per arm and step). A chosen model without
    a label cannot be: only labelled ones are offered. Arms that were never chosen have one
    bound and are tried in a drawn order: in that of the columns, which is best first, what
    is to be learnt would be known before.
    """

    name = "linucb"

    def __init__(self, alpha: float = 0.5, size: int | None = 64, seed: int = 42):
        self.alpha, self.size, self.seed = alpha, size, seed

    def fit(self, train: Examples) -> LinUCB:
        train = usable(train)
        vectors = train.queries.vectors().astype(np.float64)
        self._centre = vectors.mean(axis=0)
        self._axes = np.eye(vectors.shape[1])
        if self.size is not None and self.size < vectors.shape[1]:
            covariance = np.cov((vectors - self._centre).T) if len(vectors) > 1 else self._axes
            # Largest eigenvalues last; the sign of an axis changes no score.
            self._axes = np.linalg.eigh(np.atleast_2d(covariance))[1][:, ::-1][:, : self.size]
        x = self._features(vectors)
        n, d = x.shape
        m = train.labels.shape[1]
        arms = LinearArms(m, d)
        known = ~np.isnan(train.labels)
        order = shuffled(train.labels, self.seed)
        for row in np.random.default_rng(self.seed).permutation(n):
            now = x[row]
            bound = np.where(known[row], arms.bounds(now, self.alpha), -np.inf)
            arm = int(order[np.argmax(bound[order])])
            arms.learn(now, arm, train.labels[row, arm])
        self._theta = arms.theta
        return self

    def _features(self, vectors: Floats) -> Floats:
        x = (vectors - self._centre) @ self._axes
        # The length of a centred embedding is small against the constant: same scale.
        return np.column_stack([x * np.sqrt(10.0), np.ones(len(x))])

    def scores(self, queries: Queries) -> Floats:
        return np.asarray(self._features(queries.vectors().astype(np.float64)) @ self._theta.T)


# Logistic regression: every model's log odds are a linear function of the embedding.


@listed
class Logistic(Trained):
    """Cross-entropy per model, L2 by weight decay, one linear layer for all models.

    Labels between 0 and 1 (means of samples) are taken as they are.
    """

    name = "logistic"


# Ridge regression: every model's label is a linear function of the embedding.


@listed
class Ridge:
    """Least squares with penalty `alpha` on the weights, not on the level.

    All models share one factorisation; a model with missing labels is solved on
    the questions it has labels for. Scores are clipped to [0, 1].
    """

    name = "ridge"

    def __init__(self, alpha: float = 30.0):
        self.alpha = alpha

    def fit(self, train: Examples) -> Ridge:
        train = usable(train)
        self._weights, self._level = solved(train.queries.vectors(), train.labels, self.alpha)
        return self

    def scores(self, queries: Queries) -> Floats:
        return np.clip(queries.vectors() @ self._weights + self._level, 0.0, 1.0)


def solved(vectors: Vectors, values: Floats, alpha: float) -> tuple[Floats, Floats]:
    """(d, m) weights and (m,) levels of ridge regressions of the known values on the vectors.

    A column without any known value has no weights and the mean of all values.
    """
    x = vectors.astype(np.float64)
    known = ~np.isnan(values)
    weights, level = np.zeros((x.shape[1], values.shape[1])), model_means(values)
    patterns, which = np.unique(known, axis=1, return_inverse=True)
    for pattern in range(patterns.shape[1]):
        rows, models = patterns[:, pattern], np.flatnonzero(which == pattern)
        if not rows.any():
            continue
        some = x[rows]
        centre = some.mean(axis=0)
        some = some - centre
        y = values[np.ix_(rows, models)]
        gram = some.T @ some + alpha * np.eye(x.shape[1])
        coefficients = np.linalg.solve(gram, some.T @ (y - y.mean(axis=0)))
        weights[:, models] = coefficients
        level[models] = y.mean(axis=0) - centre @ coefficients
    return weights, level


# R2-Router: quality of every model at every output budget, and what that answer would cost.

#: Tokens of a word, and of a prompt that is not handed over, as the published code takes them.
TOKENS_PER_WORD, TOKENS = 1.3, 100


@listed
class R2Router(Ridge):
    """R2-Router (Xue et al., arXiv 2602.02823; UCF-ML-Research/R2-Router).

    Task: expected quality of each arm, which is a model with an output budget: one ridge
    regression for each arm on the questions' embeddings, clipped to [0, 1], so that a
    model's arms trace how its quality grows with the length of its answer. Rule: of all
    arms argmax (1−λ)·q̂ − λ·ĉ, which is each model at its best budget and then the best
    model; ĉ in dollars, not scaled: tokens of the prompt × price + tokens of the answer × price.
    An arm with a budget is taken to use all of it; of one without, the code regresses the
    tokens of its answers, and here their dollars, which is the same but for the price.

    `weight` is λ. With 0 scores are the qualities, and selection rules weigh the costs of train
    against them; else scores are the values of the rule. The arms are those of the pool:
    entries of one `endpoint_model` with `parameters: {max_tokens: …}`.
    """

    name = "r2-router"

    def __init__(self, alpha: float = 10.0, weight: float = 0.0):
        super().__init__(alpha)
        self.weight = weight
        if weight:
            self.scale = "strength"  # quality less dollars

    def fit(self, train: Examples) -> R2Router:
        arms = train.arms
        if arms is None or np.isnan(arms.budget).all():
            raise BadInput(
                "this router chooses a model and an output budget, and the pool has no model with "
                "several budgets",
                where="pool.models",
                next_step="list a model several times: one 'endpoint_model', each entry with "
                "'parameters: {max_tokens: …}'",
            )
        train = usable(train)
        super().fit(train)
        self._budget, self._price_in, self._price_out = arms.budget, arms.price_in, arms.price_out
        self._dollars = np.zeros((self._weights.shape[0] + 1, len(train.model_ids)))
        if self.weight:
            self._learn_dollars(train)
        return self

    def _learn_dollars(self, train: Examples) -> None:
        by_price = ~np.isnan(self._budget + self._price_in + self._price_out)
        paid = train.costs.get("usd")
        lacking = ~by_price if paid is None else ~by_price & np.isnan(paid).all(axis=0)
        if lacking.any():
            raise BadInput(
                f"nothing says what {train.model_ids[int(np.argmax(lacking))]!r} costs in dollars: "
                "neither its prices with an output budget nor its answers",
                where="pool.models",
                next_step="give price_in, price_out and price_date, or weigh costs by selection "
                "rules (weight=0)",
            )
        if paid is not None:
            weights, level = solved(train.queries.vectors(), paid, self.alpha)
            self._dollars = np.vstack([weights, level])

    def scores(self, queries: Queries) -> Floats:
        quality = super().scores(queries)
        if not self.weight:
            return quality
        return (1 - self.weight) * quality - self.weight * self.costs(queries)

    def costs(self, queries: Queries) -> Floats:
        """(n, m) dollars that each arm is expected to cost."""
        texts = queries.questions or queries.prompts
        words = np.array([len(text.split()) for text in texts], dtype=np.float64)
        tokens = np.maximum(1, np.floor(TOKENS_PER_WORD * words))
        if not len(texts):
            tokens = np.full(len(queries), float(TOKENS))
        by_price = tokens[:, None] * self._price_in + self._budget * self._price_out
        learnt = np.maximum(0.0, queries.vectors() @ self._dollars[:-1] + self._dollars[-1])
        return np.where(np.isnan(by_price), learnt, by_price)


# A model first, then how much effort: quality of a model, and what an arm adds to it.


@listed
class TwoLevel:
    """Our own router for pools of arms, such as models × efforts.

    Task: first the quality of each model, the mean over its arms, by one ridge regression on the
    questions' embeddings (`alpha`); then how far each of its arms is from that, by another with
    a stronger penalty (`alpha_arm`), since arms of one model answer alike. The score of an arm is
    the sum, clipped to [0, 1]. Rule: the best arm, which is the best arm of the model that has it;
    selection rules weigh its costs. A model without arms has one level, as in `ridge`.

    An arm that lacks labels of some questions is compared with the others by how far each answer
    is from its own arm's mean.
    """

    name = "two-level"

    def __init__(self, alpha: float = 10.0, alpha_arm: float = 100.0):
        self.alpha, self.alpha_arm = alpha, alpha_arm

    def fit(self, train: Examples) -> TwoLevel:
        train = usable(train)
        x, labels = train.queries.vectors(), train.labels
        self._model = models_of(train.arms, labels.shape[1])
        means = model_means(labels)
        models = _by_model(labels - means, self._model) + _by_model(means[None], self._model)
        self._first, self._level = solved(x, models, self.alpha)
        self._then, self._step = solved(x, labels - models[:, self._model], self.alpha_arm)
        return self

    def scores(self, queries: Queries) -> Floats:
        x = queries.vectors()
        models = x @ self._first + self._level
        return np.clip(models[:, self._model] + x @ self._then + self._step, 0.0, 1.0)


def models_of(arms: Arms | None, columns: int) -> Ints:
    """(m,) number of the model that each column is an arm of: 0, 1, …"""
    if arms is None:
        return np.arange(columns)
    return np.asarray(np.unique(arms.model, return_inverse=True)[1], dtype=np.int64)


def _by_model(values: Floats, model: Ints) -> Floats:
    """(n, models) mean of the known values of each model's arms; NaN where none is known."""
    total, n = sums_in(model, values.T, int(model.max()) + 1)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan).T
