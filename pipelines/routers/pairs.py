"""Routers between a small and a large model, and RouteLLM's routers in their published form.

Read `Battles` first: preference data as they take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.arrays import Array, Bools, Floats, Ints, Vectors, ranked
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.routers.base import in_blocks, mean_cost, model_means, strongest, usable
from routeyard.pipelines.routers.factors import RATES
from routeyard.pipelines.routers.listed import listed
from routeyard.pipelines.routers.neighbours import KNN, KNNAsPrinted, Wins, half, ratings, strengths
from routeyard.pipelines.routers.networks import MLP, bradley_terry, pairs_of
from routeyard.pipelines.routers.training import (
    Trained,
    TrainingBatch,
    best_network,
    masked_mean,
    probabilities,
    train_network,
)
from routeyard.pipelines.routers.trees import strong_and_cheap
from routeyard.schemas.errors import BadInput

# Preference data as pair routers take it: who won which question.


@dataclass(frozen=True, eq=False)
class Battles:
    """b comparisons of two models on one question each.

    Attributes:
        vectors: (b, d) float32 embedding of the question of each battle.
        model_ids: the models, sorted.
        first, second: (b,) positions in `model_ids`.
        outcome: (b,) 1 when the first won, 0 when the second did, 0.5 for a tie.
        validation: battles kept apart for choosing hyperparameters.
    """

    vectors: Vectors
    model_ids: tuple[str, ...]
    first: Ints
    second: Ints
    outcome: Floats
    validation: Battles | None = None

    def position(self, model: str) -> int:
        """Position of a model in `model_ids`.

        Raises:
            BadInput: it fought no battle.
        """
        if model not in self.model_ids:
            raise BadInput(
                f"model {model!r} is in no preference record",
                next_step=f"known models: {', '.join(self.model_ids)}",
            )
        return self.model_ids.index(model)

    def of_pair(self, small: str, large: str) -> tuple[Vectors, Floats]:
        """(k, d) questions of this pair's battles, and (k,) how far the large model won.

        Raises:
            BadInput: the two never met.
        """
        s, t = self.position(small), self.position(large)
        ahead = (self.first == t) & (self.second == s)
        behind = (self.first == s) & (self.second == t)
        use = ahead | behind
        if not use.any():
            raise BadInput(
                f"{small!r} and {large!r} never meet in the preference records",
                next_step="pair them with the `preference` curation rule",
            )
        won = np.where(ahead, self.outcome, 1 - self.outcome)
        return self.vectors[use], won[use]

    def as_examples(self, small: str, large: str) -> Examples:
        """This pair's battles as questions with one column, how far the large model won."""
        vectors, won = self.of_pair(small, large)
        ids = tuple(map(str, range(len(won))))
        held = None if self.validation is None else self.validation.as_examples(small, large)
        queries = Queries(ids, np.full(len(ids), ""), vectors)
        return Examples(queries, (large,), won[:, None], validation=held)

    def take(self, rows: Ints | Bools) -> Battles:
        """Only these battles; those that are kept apart stay."""
        per_battle = ("vectors", "first", "second", "outcome")
        return replace(self, **{name: getattr(self, name)[rows] for name in per_battle})


def from_preferences(
    preferences: pa.Table,
    vectors: Mapping[str, Vectors],
    *,
    validation: frozenset[str] = frozenset(),
    leave_out: frozenset[str] = frozenset(),
) -> Battles:
    """Battles of a `preferences` table (contract in `schemas`).

    Args:
        vectors: embedding of each query_id.
        validation: queries whose battles go to `Battles.validation`.
        leave_out: queries whose battles are not used: those of the test.
            Battles of two bases (`semantic_entropy`, `correctness`, `judge:<name>`, `imported`)
            are two opinions of the same questions and are never in one training set.

    Raises:
        BadInput: a question has no embedding, no battle is left, or there are several bases.
    """
    columns = ("query_id", "model_a", "model_b", "winner_model_a", "winner_tie")
    rows = of_one_basis(preferences).select(list(columns)).to_pylist()
    rows = [row for row in rows if row["query_id"] not in leave_out]
    missing = sorted({row["query_id"] for row in rows} - set(vectors))
    if missing:
        raise BadInput(
            f"{len(missing)} question(s) with preferences have no embedding, such as {missing[0]}",
            next_step="pass --embed (from Python: embed=True), or --embeddings FILE with all "
            "questions of the release",
        )
    names = tuple(sorted({row[side] for row in rows for side in ("model_a", "model_b")}))
    held = np.array([row["query_id"] in validation for row in rows], dtype=np.bool_)
    if held.all():
        raise BadInput(
            "no preference record is left to train on",
            next_step="pair the answers first (`preference` curation rule)",
        )
    first, second = (
        np.array([names.index(row[side]) for row in rows]) for side in ("model_a", "model_b")
    )
    won = [1.0 if row["winner_model_a"] else 0.5 * bool(row["winner_tie"]) for row in rows]
    asked = np.stack([vectors[row["query_id"]] for row in rows])
    every = Battles(asked, names, first, second, np.array(won))
    return replace(every.take(~held), validation=every.take(held) if held.any() else None)


def of_one_basis(preferences: pa.Table, basis: str | None = None) -> pa.Table:
    """The records that one basis decided; see `from_preferences`."""
    if "basis" not in preferences.column_names:
        return preferences
    column = preferences.column("basis").to_pylist()
    known = sorted(set(column))
    if basis is None and len(known) > 1:
        raise BadInput(
            f"the preferences were decided on {len(known)} bases: {', '.join(known)}",
            next_step=f"train on one of them: --basis {known[0]}",
        )
    if basis is not None and basis not in known:
        raise BadInput(
            f"no preference record was decided on the basis {basis!r}",
            next_step=f"known: {', '.join(known) or 'none'}",
        )
    return preferences.filter(pa.array([item == (basis or item) for item in column], pa.bool_()))


def from_labels(examples: Examples, small: str, large: str) -> Battles:
    """Battles from correctness: the higher label wins, equal labels tie.

    Questions on which either has no label are left out.
    """
    s, t = examples.model_ids.index(small), examples.model_ids.index(large)
    y_small, y_large = examples.labels[:, s], examples.labels[:, t]
    use = ~np.isnan(y_small) & ~np.isnan(y_large)
    names = tuple(sorted((small, large)))
    n = int(use.sum())
    held = examples.validation
    return Battles(
        examples.queries.vectors()[use],
        names,
        np.full(n, names.index(large)),
        np.full(n, names.index(small)),
        (np.sign(y_large[use] - y_small[use]) + 1) / 2,
        None if held is None else from_labels(held, small, large),
    )


# Similarity-weighted Bradley-Terry: a ranking of models fitted anew for every question.

#: Questions ranked at once.
BLOCK = 256


class SimilarityBradleyTerry:
    """Each battle counts γ^(1+s), s its question's similarity over the greatest one.

    RouteLLM (arXiv 2406.18665), "similarity-weighted ranking", with
    its γ = 10. The strengths maximise the weighted Bradley-Terry likelihood;
    they are found by Hunter's MM iteration (2004), all questions together. A
    tie is half a win for each. Nothing is trained, so nothing is chosen.
    """

    name = "pair-bt"
    #: Wins each way between models that met, which keep every strength finite.
    prior = 0.5

    def __init__(self, gamma: float = 10.0, iterations: int = 200):
        self.gamma, self.iterations = gamma, iterations

    def fit(self, train: Battles, small: str, large: str) -> SimilarityBradleyTerry:
        self._pair = (train.position(small), train.position(large))
        self._vectors = train.vectors
        m = len(train.model_ids)
        wins = np.zeros((len(train.outcome), m * m))
        rows = np.arange(len(train.outcome))
        wins[rows, train.first * m + train.second] = train.outcome
        wins[rows, train.second * m + train.first] = 1 - train.outcome
        self._wins, self._m = wins, m
        return self

    def scores(self, queries: Queries) -> Floats:
        return in_blocks(self._block, queries.vectors(), BLOCK, None)

    def _greatest(self, similarity: Floats) -> Floats:
        """What similarities (questions, battles) are divided by: each question's greatest."""
        return np.asarray(np.maximum(similarity.max(axis=1, keepdims=True), 1e-12))

    def _block(self, vectors: Vectors) -> Floats:
        similarity = (vectors @ self._vectors.T).astype(np.float64)
        weights = self.gamma ** (1 + similarity / self._greatest(similarity))
        won = (weights @ self._wins).reshape(-1, self._m, self._m)
        won = won + self.prior * ((won + won.transpose(0, 2, 1)) > 0)
        strength = strengths(won, self.iterations, 1e-10, (1e-300, 1e-300))
        small, large = (strength[:, at] for at in self._pair)
        return np.asarray(large / (large + small))


class SimilarityBradleyTerryAsPrinted(SimilarityBradleyTerry):
    """The same ranking with the similarity as it is printed: the plain cosine.

    The confidence-driven router paper, appendix A.1, equation (6), divides by the
    greatest similarity between the train question and all train questions, itself
    among them, and that is 1. `pair-bt` divides by the greatest similarity of the
    asked question, as RouteLLM's code does, so that its nearest battle always
    weighs γ². Here a question far from everything hears all battles about alike.
    Equation (7) has no prior either: a model that lost every battle wins with chance 0.
    """

    name = "pair-bt-as-printed"
    prior = 0.0

    def _greatest(self, similarity: Floats) -> Floats:
        return np.ones((len(similarity), 1))


# Routers of a whole pool on the battles of two models: how far the large one won is the one column.


class OfPool:
    """A router of a whole pool that learns and predicts how far the large model wins."""

    name: ClassVar[str]
    pool: ClassVar[Any]

    def __init__(self, **settings: Any) -> None:
        self._router = self.pool(**settings)

    def fit(self, train: Battles, small: str, large: str) -> Self:
        self._router.fit(train.as_examples(small, large))
        return self

    def scores(self, queries: Queries) -> Floats:
        return np.asarray(self._router.scores(queries)[:, 0])


class PairKNN(OfPool):
    """Mean outcome of the k nearest battles between the two models; ties are one half."""

    name, pool = "pair-knn", partial(KNN, choices=(10, 20, 40, 80, 160, 320))


class PairNearest(OfPool):
    """Outcome of the single nearest battle between the two models.

    The confidence-driven router paper (appendix A.1) takes the most similar
    preference record and nothing else.
    """

    name, pool = "pair-knn-as-printed", partial(KNNAsPrinted, k=1)


class PairMLP(OfPool):
    """One hidden layer on the battles between the two models; ties are one half."""

    name, pool = "pair-mlp", partial(MLP, widths=(32, 128))


# Matrix factorisation on preference data: every model has a vector, every battle counts.


class PairMatrixFactorisation:
    """P(a beats b on q) = σ(δ(a, q) − δ(b, q)), δ(m, q) = w·(v_m ⊙ (W q + b)) + β_m.

    RouteLLM (arXiv 2406.18665), "matrix factorization". Battles of
    other models help to place the two. The dimension is chosen on the
    validation battles by loss.
    """

    name = "pair-mf"

    #: Whether models and the map of a question have biases.
    bias = True

    def __init__(self, dimensions: tuple[int, ...] = (16, 64), seed: int = 0):
        self.dimensions, self.seed = dimensions, seed
        self._how: Mapping[str, Any] = RATES

    def fit(self, train: Battles, small: str, large: str) -> Self:
        self._pair = (train.position(large), train.position(small))
        width, models = train.vectors.shape[1], len(train.model_ids)
        self.dimension, self._network = best_network(
            [(d, factors(width, d, models, bias=self.bias), self._how) for d in self.dimensions],
            train,
            self.seed,
            lambda item: (_inputs(item.vectors, item.first, item.second), item.outcome[:, None]),
        )
        return self

    def scores(self, queries: Queries) -> Floats:
        vectors = queries.vectors()
        first, second = (np.full(len(vectors), at, dtype=np.int64) for at in self._pair)
        return probabilities(self._network, _inputs(vectors, first, second))[:, 0]


def _inputs(vectors: Vectors, first: Ints, second: Ints) -> Vectors:
    """Embedding and, in the last two columns, the two models' positions."""
    return np.column_stack([vectors, first, second]).astype(np.float32)


def factors(inputs: int, dimension: int, models: int, *, bias: bool = True) -> Any:
    """Builder of a network from `_inputs` to the logit that the first model wins."""

    def build() -> Any:
        import torch
        from torch import nn

        class Difference(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.project = nn.Linear(inputs, dimension, bias=bias)
                self.models = nn.Parameter(torch.randn(models, dimension) / dimension**0.5)
                if bias:
                    self.bias = nn.Parameter(torch.zeros(models))

            def forward(self, x: Any) -> Any:
                question = self.project(x[:, :-2])
                a, b = x[:, -2].long(), x[:, -1].long()
                won = (question * (self.models[a] - self.models[b])).sum(dim=1)
                return (won + self.bias[a] - self.bias[b] if bias else won)[:, None]

        return Difference()

    return build


# Matrix factorisation and MLP of the confidence-driven router paper, as its appendix prints them.
#
# Similarity-weighted ranking and kNN of that paper are `pair-bt-as-printed` and
# `pair-knn-as-printed`. A training record is (question, winner, loser): ties teach these two
# nothing. No setting is chosen and no epoch kept on validation questions.


class PairBilinear(PairMatrixFactorisation):
    """P(a beats b) = σ(s(a, q) − s(b, q)), s(m, q) = v_mᵀ·W·q (appendix A.1, equation 9).

    s is "a bilinear function of the model and query embeddings": no bias anywhere. The
    size, 128, is RouteLLM's, whose approach the paper names. `pair-mf` has biases, learns from
    ties and chooses its size.
    """

    name, bias = "pair-mf-as-printed", False

    def __init__(self, size: int = 128, epochs: int = 30, seed: int = 0):
        super().__init__((size,), seed)
        self._how = {"epochs": epochs}

    def fit(self, train: Battles, small: str, large: str) -> Self:
        return super().fit(
            replace(train.take(decided(train.outcome)), validation=None), small, large
        )


def _perceptron(inputs: int, width: int) -> Any:
    def build() -> Any:
        from torch import nn

        class Perceptron(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.layers = nn.Sequential(
                    nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 2)
                )

            def forward(self, x: Any) -> Any:
                small, large = self.layers(x).split(1, dim=1)
                return large - small

        return Perceptron()

    return build


def decided(outcome: Floats) -> Ints:
    """Positions of the battles that somebody won.

    Raises:
        BadInput: all are ties.
    """
    rows = np.flatnonzero(outcome != 0.5)
    if not len(rows):
        raise BadInput(
            "all preference records are ties, and this router learns from winners alone",
            next_step="lower the rule's `tau`, or train `pair-mf` or `pair-mlp`, which read ties",
        )
    return rows


class PairSoftmaxMLP:
    """Softmax over the two models of a two-layer perceptron (appendix A.1, equation 10).

    The paper gives no width; 100 is RouterBench's. Of two outputs the softmax is the sigmoid
    of their difference, which is what is trained. Battles of other models teach nothing.
    """

    name = "pair-mlp-as-printed"

    def __init__(self, width: int = 100, epochs: int = 30, seed: int = 0):
        self.width, self.epochs, self.seed = width, epochs, seed

    def fit(self, train: Battles, small: str, large: str) -> PairSoftmaxMLP:
        vectors, won = train.of_pair(small, large)
        rows = decided(won)
        build = _perceptron(vectors.shape[1], self.width)
        self._network, _ = train_network(
            build, vectors[rows], won[rows, None], None, seed=self.seed, epochs=self.epochs
        )
        return self

    def scores(self, queries: Queries) -> Floats:
        return probabilities(self._network, queries.vectors())[:, 0]


# RouteLLM's classifier: strong wins, tie, weak wins, from the question.


@listed
class RouteLLMClassifier(Trained):
    """BERT classifier of RouteLLM (Ong et al., arXiv 2406.18665) on a frozen embedding.

    Task: three classes of a pair; P(strong) = 1 − (P(tie) + P(weak)). Loss:
    cross-entropy. Rule: the strong model where the probability reaches a threshold.

    Over a pool there is such a triple for every model against the most accurate
    one: the score of a model is P(it wins) − P(it loses), 0 for the reference.
    The preset `code` has the one pair of the most accurate and the cheapest model:
    the strong one scores P(strong), the weak one the rest, all others nothing.
    RouteLLM's causal form, a fine-tuned 8-billion model that writes a grade, has no
    frozen counterpart and is not here.
    """

    name = "routellm-bert"

    def fit(self, train: Examples) -> RouteLLMClassifier:
        self._pair = (strongest(train), -1)
        if self.as_published:
            usable(train, least_models=2)
            cost = mean_cost(train)
            order = ranked(train.labels, cost)
            self._pair = strong_and_cheap(model_means(train.labels), cost, order)
        super().fit(train)
        return self

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        width, m = self.settings["width"], len(start)
        out = nn.Linear(width, 3 * m)
        with torch.no_grad():
            out.weight.mul_(0.1)
            out.bias.zero_()
            level = torch.sigmoid(torch.from_numpy(start.copy()))
            # Begin with the reference ahead by what its level is ahead.
            out.bias[2::3] = 2 * (level.max() - level)
        return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), out)

    def targets(self, train: Examples) -> dict[str, Array]:
        gap = train.labels - train.labels[:, [self._pair[0]]]
        known = ~np.isnan(gap)
        # 0: the model wins, 1: tie, 2: the reference wins.
        place = np.where(known, 1 - np.sign(np.where(known, gap, 0.0)), 1).astype(np.int64)
        return {"place": place, "counts": known.astype(np.float32)}

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        from torch.nn.functional import cross_entropy

        logits = network(batch.x).unflatten(1, (-1, 3)).transpose(1, 2)
        each = cross_entropy(logits, batch.more["place"], reduction="none")
        return masked_mean(each, batch.more["counts"])

    def read(self, network: Any, x: Any) -> Any:
        import torch

        p = torch.softmax(network(x).unflatten(1, (-1, 3)), dim=2)
        strong, weak = self._pair
        if weak < 0:
            result = p[..., 0] - p[..., 2]
            result[:, strong] = 0.0
            return result
        out = torch.zeros(p.shape[:2])
        out[:, strong] = p[:, weak, 2]
        out[:, weak] = 1 - p[:, weak, 2]
        return out


# RouteLLM's matrix factorisation over a whole pool: δ(m, q) learnt from who beat whom.


@listed
class RouteLLMFactorisation(Trained):
    """MF of RouteLLM (Ong et al., arXiv 2406.18665), in its published form.

    Task: P(a beats b on q) = σ(δ(a, q) − δ(b, q)) with δ = w·(v̂_m ⊙ W e), v̂_m of
    unit norm, W without bias, Gaussian noise of `noise` on e while training. Loss:
    cross-entropy of the winner; ties are dropped. Rule: the strong model where the
    probability reaches a threshold; over a pool, argmax δ. Published: dimension 128,
    Adam 3e-4, batch 64, 100 epochs, noise 0.1.

    `pair-mf` is the form on preference records with a level per model and ties as
    half a win.
    """

    name = "routellm-mf"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        size, m = self.settings["size"], len(start)

        class Delta(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.models = nn.Parameter(torch.randn(m, size))
                self.project = nn.Linear(inputs, size, bias=False)
                self.out = nn.Linear(size, 1, bias=False)

            def forward(self, x: Any) -> Any:
                v = nn.functional.normalize(self.models, dim=1)
                return (self.project(x) * self.out.weight[0]) @ v.T

        return Delta()

    def read(self, network: Any, x: Any) -> Any:
        return network(x)

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        import torch

        x = batch.x
        if self.settings["noise"] and batch.noise is not None:
            x = x + self.settings["noise"] * torch.randn(x.shape, generator=batch.noise)
        delta = network(x)
        first, second, sign, weight = pairs_of(batch.y, batch.known, batch.noise)
        each = bradley_terry(delta[:, first], delta[:, second], sign)
        return masked_mean(each, weight * sign.abs())


# RouteLLM's similarity-weighted ranking over a whole pool: Elo in ten tiers, anew per question.


@listed
class SimilarityWeighted:
    """SW of RouteLLM (Ong et al., arXiv 2406.18665), in its published form.

    Task: P(strong beats weak) per question. Models are joined to ten tiers by
    dynamic programming on the variance of their ratings; each train result weighs
    10·10^(s/max s), s its cosine to the question; Bradley-Terry ratings of the
    tiers are fitted anew for every question, ties half a win each. Rule: the strong
    model where the probability reaches a threshold.

    Every model gets its tier's rating, plus a hundredth of its own rating so that
    models of a tier keep an order: over a pool the score is an order of models, and
    a pair's probability is the logistic of a difference. `pair-bt` is the same idea
    without tiers, on preference records.
    """

    name = "routellm-sw"

    def __init__(self, tiers: int = 10, gamma: float = 10.0):
        self.tiers, self.gamma = tiers, gamma

    def fit(self, train: Examples) -> SimilarityWeighted:
        train = usable(train)
        self._vectors = train.queries.vectors()
        wins, m = Wins(train.labels), train.labels.shape[1]
        self._rating = ratings((wins.total() + half(m))[None])[0]
        self._tier = tiers_of(self._rating, self.tiers)
        k = int(self._tier.max()) + 1
        self._won = wins.joined(self._tier, k).reshape(len(train.labels), k * k)
        return self

    def scores(self, queries: Queries) -> Floats:
        return in_blocks(self._block, queries.vectors(), BLOCK, len(self._rating))

    def _block(self, vectors: Vectors) -> Floats:
        # Sums over the questions in double precision: their order is no matter.
        similarity = (vectors @ self._vectors.T).astype(np.float64)
        top = np.maximum(similarity.max(axis=1, keepdims=True), 1e-12)
        weight = self.gamma * np.power(self.gamma, np.clip(similarity / top, -1, 1))
        k = int(self._tier.max()) + 1
        won = (weight @ self._won).reshape(-1, k, k)
        if k == 1:
            return np.tile(self._rating, (len(vectors), 1))
        result = ratings(won + half(k))
        return np.asarray(result[:, self._tier] + 0.01 * self._rating)


def tiers_of(rating: Floats, tiers: int) -> Ints:
    """(m,) tier of every model, 0 the lowest: the cut of the sorted ratings into at most
    `tiers` runs whose sum of squared deviations is least.

    >>> tiers_of(np.array([1.0, 9.0, 1.1, 9.2, 5.0]), 3).tolist()
    [0, 2, 0, 2, 1]
    """
    order = np.argsort(rating, kind="stable")
    x, m = rating[order], len(rating)
    tiers = min(tiers, m)
    item, two = np.concatenate([[0], np.cumsum(x)]), np.concatenate([[0], np.cumsum(x**2)])

    def cost(i: int, j: int) -> float:
        return float(two[j] - two[i] - (item[j] - item[i]) ** 2 / (j - i))

    best = np.full((tiers + 1, m + 1), np.inf)
    cut = np.zeros((tiers + 1, m + 1), dtype=np.int64)
    best[0, 0] = 0.0
    for k in range(1, tiers + 1):
        for j in range(k, m + 1):
            options = [best[k - 1, i] + cost(i, j) for i in range(k - 1, j)]
            at = int(np.argmin(options))
            best[k, j], cut[k, j] = options[at], k - 1 + at
    result, end = np.empty(m, dtype=np.int64), m
    for k in range(tiers, 0, -1):
        begin = int(cut[k, end])
        result[order[begin:end]] = k - 1
        end = begin
    return result
