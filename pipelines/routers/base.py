"""What a router sees and what it must offer.

A router is any object with

* `fit(train: Examples)`: learn from labelled questions (`train.validation`
  holds the questions on which hyperparameters may be chosen), and
* `scores(queries: Queries) -> (n_queries, n_models)`: the predicted score of
  every model on every question, columns in the order of `train.model_ids`.

Which model is then asked is not the router's business: selection rules
(`routeyard.pipelines.evaluate.metrics.selection`) turn scores and costs into choices, the same
way for every router. `Queries` carries no labels, so a router cannot read the
answers of the questions it is tested on.

A router of the zoo says more about itself in two class attributes, which both
have a default for routers of other people:

* `traits: Traits`: paper, loss, selection rule, what it needs, what its scores mean;
* `architectures`: keyword arguments of its class, one mapping for each setting
  that the zoo's protocol tries.

Those of the routers here are in `routers.yaml`, which `@listed` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Protocol, get_args, runtime_checkable

import numpy as np

from routeyard.pipelines.common.arrays import Floats as Floats
from routeyard.pipelines.common.arrays import by_rows, mean_costs, ranked, sums_of
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Examples as Examples
from routeyard.pipelines.common.matrix import Queries as Queries
from routeyard.pipelines.common.matrix import complete_measure
from routeyard.pipelines.routers.listed import Scale, constants, presets_of
from routeyard.pipelines.routers.listed import Traits as Traits
from routeyard.pipelines.routers.listed import listed as listed


@runtime_checkable
class Router(Protocol):
    """Predicts how good every model's answer to a question will be.

        class Longer:
            name = "longer"  # as tables and plots call it

            def fit(self, train):
                lengths = np.array([len(text) for text in train.queries.questions])
                means = np.nanmean(train.labels, axis=0)  # NaN where there is no label
                self.typical, self.order = np.median(lengths), np.argsort(-means)

            def scores(self, queries):
                out = np.zeros((len(queries), len(self.order)))
                for row, text in enumerate(queries.questions):
                    out[row, self.order[0 if len(text) > self.typical else 1]] = 1.0
                return out

    `fit(train)` gets an `Examples` (labels, costs, model ids, and questions in
    `train.queries`); what it returns is not used. `scores(queries)` gets a `Queries`
    of n questions without labels and returns an (n, m) array of finite numbers, higher
    is better, columns in the order of `train.model_ids`. Which model is then asked, and
    what its cost counts, is a selection rule's business.
    """

    name: str

    def fit(self, train: Examples) -> object:
        """Learn from labelled questions; on `train.validation` hyperparameters may be chosen."""

    def scores(self, queries: Queries) -> Floats:
        """(n, m) predicted score of every model on every question, finite."""


#: Needs that no release has of itself → what they are, for messages.
GIVEN: Mapping[str, str] = {
    "signals": "signals of the models' own answers",
    "hidden": "hidden states of a local model",
    "descriptors": "descriptors of the models",
}

#: Most settings that the protocol tries per router (plateau study, appendix E.4).
MOST_ARCHITECTURES = 15


def no_chances(scores: Floats) -> str | None:
    """Why scores are not probabilities; None where all lie in [0, 1]."""
    if not scores.size:
        return None
    low, high = float(scores.min()), float(scores.max())
    # Sums of shares miss 1 in the last digits.
    inside = low >= -1e-6 and high <= 1 + 1e-6
    return None if inside else f"reach from {low:.4g} to {high:.4g}"


def traits_of(router: Any) -> Traits:
    """The traits of a class or a router; without any it is taken to need all and to use its seed.

    An object may say in `scale` what its scores mean with its settings.
    """
    result = getattr(router, "traits", None)
    if not isinstance(result, Traits):
        return Traits()
    scale = getattr(router, "scale", result.scale)
    return replace(result, scale=scale) if scale in get_args(Scale) else result


def unlike_published(router: Any) -> tuple[str, ...]:
    """What of its published settings a fitted router could not honour; empty where it says none."""
    return tuple(str(item) for item in getattr(router, "not_as_published", ()))


def architectures_of(router: Any) -> tuple[Mapping[str, Any], ...]:
    """Settings to try; a class without any has one, its defaults.

    Raises:
        BadInput: there are more than the protocol allows.
    """
    architectures = tuple(getattr(router, "architectures", ())) or ({},)
    if len(architectures) > MOST_ARCHITECTURES:
        raise BadInput(
            f"router {getattr(router, 'name', router)!r} lists {len(architectures)} architectures",
            next_step=f"the protocol tries at most {MOST_ARCHITECTURES}: leave some out",
        )
    return architectures


def described(name: str, made: Any) -> dict[str, Any]:
    """Name, traits, settings and published constants of a router's class, as JSON holds them."""
    traits = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(traits_of(made)).items()}
    published = {
        preset: {setting: asdict(item) for setting, item in constants(name, preset).items()}
        for preset in presets_of(name)[1:]
    }
    tried = [dict(item) for item in architectures_of(made)]
    return {"name": name, **traits, "architectures": tried, "presets": published}


def usable(train: Examples, *, least_models: int = 1) -> Examples:
    """The train questions that have a label at all.

    Raises:
        BadInput: no label is left, or the pool is too small.
    """
    rows = np.flatnonzero(by_rows(lambda y: ~np.all(np.isnan(y), axis=1), train.labels))
    if not len(rows):
        raise BadInput(
            "no train question has a label, so there is nothing to learn from",
            next_step="label the responses first (`routeyard relabel`)",
        )
    if len(train.model_ids) < least_models:
        raise BadInput(
            f"this router chooses among at least {least_models} models, "
            f"and the pool has {len(train.model_ids)}",
            next_step="leave it out of --routers for this release",
        )
    if len(rows) == len(train.labels):
        return train
    return train.take(rows)


def in_blocks(of: Callable[[Any], Floats], rows: Any, size: int, width: int | None) -> Floats:
    """What `of` says of rows, `size` at a time; of none (0, `width`), or (0,) without one."""
    parts = [of(rows[first : first + size]) for first in range(0, len(rows), size)]
    return np.concatenate(parts) if parts else np.empty((0,) if width is None else (0, width))


def model_means(labels: Floats) -> Floats:
    """(m,) mean label of every model over the questions it has one for.

    A model without any label gets the mean over all labels (0.5 without any),
    which says nothing for or against it.
    """
    total = by_rows(lambda part: np.where(np.isnan(part), 0.0, part), labels)
    n = sums_of(lambda part: ~np.isnan(part), labels)
    overall = total.sum() / n.sum() if n.any() else 0.5
    return np.where(n > 0, total.sum(axis=0) / np.maximum(n, 1), overall)


def strongest(train: Examples) -> int:
    """The model with the greatest mean label; of equals the first as `matrix.ranking` has it."""
    first = ranked(train.labels, mean_cost(train))
    return int(first[np.argmax(model_means(train.labels)[first])])


def mean_cost(train: Examples) -> Floats | None:
    """(m,) mean cost of every model by the first measure that knows all; None without any.

    Measures in order: dollars, tokens, latency, parameters. Unknown is not free:
    a measure that lacks a model altogether is passed over.
    """
    name = complete_measure(train.costs)
    if name is None:
        return None
    return mean_costs(train.costs[name])


def squared_error(predicted: Floats, labels: Floats) -> float:
    """Mean squared error over the labels that exist (Brier score for 0/1 labels)."""
    known = ~np.isnan(labels)
    if not known.any():
        return float("nan")
    return float(np.mean((predicted[known] - labels[known]) ** 2))
