"""On which questions routers learn, choose settings and are tested."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.matrix.core import Core, complete_measure
from routeyard.pipelines.matrix.ranking import mean_costs, ranked
from routeyard.schemas.split_files import usual_scheme

#: One in so many train questions is taken for validation where a scheme has none.
HELD = 8


def default_scheme(core: Core, asked: str | None = None) -> str:
    """The scheme asked for, else the published `upstream`, else `dense`, else the first in order.

    Raises:
        BadInput: it does not exist, its test is empty, or there is no scheme.
    """
    if not core.splits:
        raise BadInput(
            "the release has no split into train and test questions",
            next_step="give the recipe a `split` section",
        )
    chosen = asked or usual_scheme(core.splits)
    if asked is not None:
        core.rows(asked, "test")
    return chosen


def with_validation(core: Core, scheme: str) -> tuple[Core, bool]:
    """The core, with one in `HELD` train questions for validation where the scheme has none.

    Which ones is decided by a hash of their ids: the same for any order of rows.

    Raises:
        BadInput: the scheme is unknown, or train or test is empty.
    """
    core.rows(scheme, "train")
    core.rows(scheme, "test")
    splits = core.splits[scheme]
    if np.any(splits == "validation"):
        return core, False
    lot = np.array(
        [int(hashlib.sha256(q.encode()).hexdigest()[:8], 16) % HELD for q in core.query_ids]
    )
    carved = np.where((splits == "train") & (lot == 0), "validation", splits)
    if not np.any(carved == "train") or not np.any(carved == "validation"):
        raise BadInput(
            f"scheme {scheme!r} has too few train questions to choose settings on some of them",
            next_step="give the recipe's `split` a validation share",
        )
    return replace(core, splits={**core.splits, scheme: carved}), True


def price(core: Core, scheme: str) -> Floats:
    """(m,) mean train cost by the first measure that knows all models; zeros without any."""
    measure = priced_in(core, scheme)
    if measure is None:
        return np.zeros(core.n_models)
    return mean_costs(core.costs[measure][core.rows(scheme, "train")])


def priced_in(core: Core, scheme: str) -> str | None:
    """The measure that `price` takes; None where none knows all models."""
    train = core.rows(scheme, "train")
    return complete_measure({name: cost[train] for name, cost in core.costs.items()})


def order(core: Core, scheme: str) -> Ints:
    """(m,) models, best on train first; ties as `ranked` has them."""
    return ranked(core.labels[core.rows(scheme, "train")], price(core, scheme))
