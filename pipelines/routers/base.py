"""What a router sees and what it must offer.

A router is any object with

* `fit(train: Examples)`: learn from labelled questions (`train.validation`
  holds the questions on which hyperparameters may be chosen), and
* `scores(queries: Queries) -> (n_queries, n_models)`: the predicted score of
  every model on every question, columns in the order of `train.model_ids`.

Which model is then asked is not the router's business: selection rules
(`pipelines.evaluate.selection`) turn scores and costs into choices, the same
way for every router. `Queries` carries no labels, so a router cannot read the
answers of the questions it is tested on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import BadInput

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Queries:
    """Questions without their labels.

    Attributes:
        query_ids: n ids.
        tasks: (n,) task names.
        embeddings: (n, d) float32, unit norm; None when the release has none.
        prompts: n prompts, or empty when they were not handed over.
    """

    query_ids: tuple[str, ...]
    tasks: NDArray[np.str_]
    embeddings: NDArray[np.float32] | None = None
    prompts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.query_ids)

    def vectors(self) -> NDArray[np.float32]:
        """The embeddings.

        Raises:
            BadInput: there are none.
        """
        if self.embeddings is None:
            raise BadInput(
                "this router needs embeddings of the questions, and there are none",
                next_step="release with `include_embeddings: true`, or pass --embeddings FILE",
            )
        return self.embeddings


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled questions.

    Attributes:
        queries: n questions.
        model_ids: m models, the order of every column.
        labels: (n, m) scores in [0, 1]; NaN where there is no label.
        costs: cost measure → (n, m); NaN where unknown.
        validation: questions kept apart for choosing hyperparameters.
    """

    queries: Queries
    model_ids: tuple[str, ...]
    labels: Floats
    costs: Mapping[str, Floats] = field(default_factory=dict)
    validation: Examples | None = None


@runtime_checkable
class Router(Protocol):
    """See the module's docstring; `name` is how tables and plots call it."""

    name: str

    def fit(self, train: Examples) -> object: ...

    def scores(self, queries: Queries) -> Floats: ...


def model_means(labels: Floats) -> Floats:
    """(m,) mean label of every model over the questions it has one for.

    A model without any label gets the mean over all labels (0.5 without any),
    which says nothing for or against it.
    """
    known = ~np.isnan(labels)
    total = np.where(known, labels, 0.0)
    overall = total.sum() / known.sum() if known.any() else 0.5
    n = known.sum(axis=0)
    return np.where(n > 0, total.sum(axis=0) / np.maximum(n, 1), overall)


def squared_error(predicted: Floats, labels: Floats) -> float:
    """Mean squared error over the labels that exist (Brier score for 0/1 labels)."""
    known = ~np.isnan(labels)
    if not known.any():
        return float("nan")
    return float(np.mean((predicted[known] - labels[known]) ** 2))
