"""Routers that read what models show of their own answers: `signal`, training-free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.routers.base import model_means, usable
from routeyard.pipelines.routers.clusters import means_in
from routeyard.pipelines.routers.listed import listed
from routeyard.schemas.errors import BadInput

# Training-free routers: how sure a model looks of its own answer is its score.

#: Questions without which no slope is fitted.
FEW = 10


class Confidence:
    """Score = a signal brought to [0, 1] by a fixed function that rises with confidence.

    Nothing is trained: what is learnt from train is only the value where a signal is
    missing, a model's mean confidence, or its mean label where it never shows any.
    `calibrated` puts a logistic curve per model on top, fitted on the train labels, so that
    models with different habits can be compared; it may also turn a signal round that
    points the wrong way.
    """

    name: ClassVar[str]
    #: What it reads, a name of `Queries.signals`.
    signal: str
    architectures: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"calibrated": True})

    def __init__(self, calibrated: bool = False):
        self.calibrated = calibrated

    def confidence(self, queries: Queries) -> Floats:
        """(n, m) in [0, 1]; NaN where the signal is missing."""
        return np.asarray(self.brought(queries.signal(self.signal)))

    def brought(self, shown: Floats) -> Floats:
        """The signal as a confidence in [0, 1]."""
        return shown

    def fit(self, train: Examples) -> Any:
        train = usable(train)
        shown = self.confidence(train.queries)
        level = model_means(train.labels)
        whole = np.zeros(len(shown), np.int64)
        self._filled = means_in(whole, shown, 1, level, 0)[0]
        m = len(level)
        self._slope, self._offset = np.full(m, np.nan), np.full(m, np.nan)
        if self.calibrated:
            self._filled = level
            for k in range(m):
                self._curve(k, shown[:, k], train.labels[:, k])
        return self

    def _curve(self, k: int, shown: Floats, labels: Floats) -> None:
        from sklearn.linear_model import LogisticRegression

        use = ~np.isnan(shown) & ~np.isnan(labels)
        right = labels[use] >= 0.5
        if use.sum() < FEW or right.all() or not right.any() or np.ptp(shown[use]) <= 0:
            return
        # Signals crowd near 1, so a curve over their spread is fitted, not over [0, 1].
        spread = float(shown[use].std())
        fitted = LogisticRegression().fit(shown[use, None] / spread, right)
        self._slope[k] = float(fitted.coef_[0, 0]) / spread
        self._offset[k] = float(fitted.intercept_[0])

    def scores(self, queries: Queries) -> Floats:
        shown = self.confidence(queries)
        if self.calibrated:
            with np.errstate(over="ignore"):
                curve = 1 / (1 + np.exp(-(self._slope * shown + self._offset)))
            shown = np.where(np.isnan(self._slope), self._filled, curve)
        return np.where(np.isnan(shown), self._filled, shown)


def shown(router: str, signals: Mapping[str, Floats]) -> bool:
    """Whether the signal that a router of this file reads is among those; True for any other."""
    own = (SelfAsk, Margin, Entropy, MaxLogit, SemanticEntropy)
    wanted = {made.name: made.signal for made in own}
    return router not in wanted or wanted[router] in signals


@listed
class SelfAsk(Confidence):
    """Probability with which the model calls its own answer right (Kadavath et al. 2022)."""

    name, signal = "self-ask", "self_assessment"


@listed
class Margin(Confidence):
    """Mean over the answer's tokens of p(first) − p(second)."""

    name, signal = "margin", "margin"


@listed
class Entropy(Confidence):
    """exp(−H), H the mean entropy of the answer's tokens."""

    name, signal = "entropy", "entropy"

    def brought(self, shown: Floats) -> Floats:
        return np.exp(-shown)


@listed
class MaxLogit(Confidence):
    """exp of the mean over tokens of the largest log-probability.

    The paper takes the largest logit; a server returns it normalised, as a log-probability.
    """

    name, signal = "max-logit", "max_logit"

    def brought(self, shown: Floats) -> Floats:
        return np.exp(shown)


@listed
class SemanticEntropy(Confidence):
    """exp(−H), H the entropy over the meanings of several samples.

    The published code clusters samples by how alike their letters are; here it is what the
    table `entropies` says: entailment or equal answers. `estimator` as in that table;
    `discrete` counts samples and needs no log-probabilities.
    """

    name, signal = "semantic-entropy", "semantic_entropy[discrete]"

    def __init__(self, calibrated: bool = False, estimator: str = "discrete"):
        super().__init__(calibrated)
        self.estimator, self.signal = estimator, f"semantic_entropy[{estimator}]"

    def brought(self, shown: Floats) -> Floats:
        if np.nanmin(shown) < -1e-9:
            raise BadInput("an entropy is below 0", where=f"estimator {self.estimator}")
        return np.asarray(np.exp(-np.maximum(shown, 0.0)))
