"""Similarity-weighted Bradley-Terry: a ranking of models fitted anew for every question."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats, Vectors
from routeyard.pipelines.routers.base import Queries
from routeyard.pipelines.routers.pairs.battles import Battles

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
        vectors = queries.vectors()
        parts = [
            self._block(vectors[first : first + BLOCK]) for first in range(0, len(vectors), BLOCK)
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    def _greatest(self, similarity: Floats) -> Floats:
        """What similarities (questions, battles) are divided by: each question's greatest."""
        return np.asarray(np.maximum(similarity.max(axis=1, keepdims=True), 1e-12))

    def _block(self, vectors: Vectors) -> Floats:
        similarity = (vectors @ self._vectors.T).astype(np.float64)
        weights = self.gamma ** (1 + similarity / self._greatest(similarity))
        won = (weights @ self._wins).reshape(-1, self._m, self._m)
        met = (won + won.transpose(0, 2, 1)) > 0
        won = won + self.prior * met
        games = won + won.transpose(0, 2, 1)
        strength = np.ones(won.shape[:2])
        for _ in range(self.iterations):
            pairs = np.maximum(strength[:, :, None] + strength[:, None, :], 1e-300)
            new = won.sum(axis=2) / np.maximum((games / pairs).sum(axis=2), 1e-300)
            new /= np.exp(np.log(np.maximum(new, 1e-300)).mean(axis=1, keepdims=True))
            if np.allclose(new, strength, rtol=1e-10, atol=0):
                strength = new
                break
            strength = new
        small, large = self._pair
        return np.asarray(strength[:, large] / (strength[:, large] + strength[:, small]))


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
