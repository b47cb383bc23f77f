"""On which questions routers learn, choose settings and are tested."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.matrix.core import Core, complete_measure
from routeyard.pipelines.matrix.ranking import mean_costs, ranked
from routeyard.schemas.leaks import marks_of
from routeyard.schemas.near import GROUP, same_question
from routeyard.schemas.split_files import usual_scheme
from routeyard.schemas.withheld import WITHHELD

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


def redrawn(core: Core, scheme: str, times: int, seed: int = 0) -> Iterator[Core]:
    """The core with its train, validation and test questions drawn anew, so many times.

    Each task keeps its counts, so a task that is all in test stays there; questions that are
    one (`one_question`) get one split. A draw depends on ids and the seed, not on order. Empty
    where no question could move.
    """
    rows = np.flatnonzero(core.splits[scheme] != "")
    if times < 1 or not any(
        len(set(core.splits[scheme][core.tasks == task]) - {""}) > 1
        for task in np.unique(core.tasks[rows])
    ):
        return
    ids, whole = np.array(core.query_ids, dtype=np.str_), one_question(core)
    units: dict[str, list[list[int]]] = {}
    in_order = rows[np.lexsort((ids[rows], whole[rows]))]
    for one in np.split(in_order, np.flatnonzero(np.diff(whole[in_order])) + 1):
        units.setdefault(str(core.tasks[one[0]]), []).append(one.tolist())
    for k in range(1, times + 1):
        drawn = np.full(core.n_queries, "", dtype=core.splits[scheme].dtype)
        for own in units.values():
            own.sort(
                key=lambda unit: hashlib.sha256(f"{seed}|{k}|{ids[unit[0]]}".encode()).digest()
            )
            here = core.splits[scheme][np.concatenate(own)]
            left = {name: int(np.sum(here == name)) for name in ("test", "validation", "train")}
            for unit in own:
                fits = [part for part, n in left.items() if n >= len(unit)]
                name = fits[0] if fits else max(left, key=left.__getitem__)
                drawn[unit] = name
                left[name] -= len(unit)
        yield replace(core, splits={**core.splits, scheme: drawn})


def one_question(core: Core) -> Ints:
    """(n,) equal numbers for questions that are one: near-duplicates, of one value of
    `fields.group`, or with words that are equal or nearly so."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = core.n_queries
    links = [core.groups]
    if len(core.metadata):
        named = [json.loads(text).get(GROUP) if GROUP in text else None for text in core.metadata]
        links.append(
            _numbers([f"{k}" if one is None else f"of {one}" for k, one in enumerate(named)])
        )
    if len(core.prompts):
        said = [f"{k}" if one == WITHHELD else one for k, one in enumerate(core.prompts)]
        equal = np.asarray(marks_of(pa.array(said)).dictionary_encode().indices).astype(np.int64)
        links.append(same_question(said, equal))
    ends = np.concatenate([n * (k + 1) + _numbers(one) for k, one in enumerate(links)])
    starts = np.tile(np.arange(n), len(links))
    size = n * (len(links) + 1)
    joined = coo_array((np.ones(len(ends), dtype=np.int8), (starts, ends)), shape=(size, size))
    return np.asarray(connected_components(joined, directed=False)[1][:n].astype(np.int64))


def _numbers(values: object) -> Ints:
    return np.asarray(np.unique(np.asarray(values), return_inverse=True)[1], dtype=np.int64)


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
