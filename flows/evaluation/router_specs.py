"""Routers of an evaluation: registered ones, someone's own code, files of predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.flows.console import line
from routeyard.pipelines.arrays import Array
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.experiment.entrants import RouterSpec, handed_over, own, registered
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.routers.base import Queries

#: Reference routers that read no embeddings.
BLIND = ("best-generalist", "random")


def makers(core: Core, routers: Sequence[str] | Mapping[str, Any] | None) -> dict[str, RouterSpec]:
    """Name → router: registered names, or a mapping with routers or router classes of your own.

    A mapping may hold registered names too, so that yours are beside ours under names
    of your choice. None means the reference routers that the release can feed.
    """
    from routeyard.pipelines.routers import REFERENCE

    if isinstance(routers, Mapping):
        return {name: handed_over(name, given) for name, given in routers.items()}
    names = list(REFERENCE) if routers is None else list(routers)
    if core.embeddings is None and routers is None:
        names = [name for name in names if name in BLIND]
        line("evaluate", "no embeddings: only routers that need none; add --embed for the others")
    return {spec.name: spec for spec in registered(names)}


def reference(name: str) -> RouterSpec:
    """A registered router, which is a maker of one for a seed."""
    return registered([name])[0]


def from_code(target: str) -> RouterSpec:
    """A router class in someone's own module.

    This runs that module. It is reached only through a flag that names it.

    Raises:
        BadInput: neither `module:Class` nor `file.py:Class`, not importable, or not a router.
    """
    spec = own(target)
    spec(0)  # a constructor that fails is reported before anything is computed
    return spec


def from_file(path: Path) -> RouterSpec:
    """A router that is a CSV or Parquet file of predictions."""
    from routeyard.pipelines.experiment.given import Predictions, read_predictions

    return handed_over(path.stem, Predictions(read_predictions(path), path.stem))


def pair_scorers(
    core: Core,
    tables: Mapping[str, pa.Table],
    scheme: str,
    pair: tuple[str, str],
    basis: str | None = None,
) -> dict[str, Callable[[Queries], Array]]:
    """The pair routers, trained on the release's preferences or, without any, on its labels.

    Battles of test questions are never used. The names say what the battles were
    decided on: `pair-knn[correctness]`.

    Raises:
        BadInput: the preferences have several bases and none is named, or the one named is absent.
    """
    from routeyard.pipelines.evaluate.run.duels import (
        LABELS,
        agreement,
        battles_on,
        misled,
        trained,
    )
    from routeyard.pipelines.routers import PAIR_ROUTERS
    from routeyard.pipelines.routers.pairs.battles import of_one_basis

    if core.embeddings is None:
        return {}
    battles, called = battles_on(core, tables.get("preferences"), scheme, pair, basis)
    if called == LABELS:
        line("pairs", f"no preferences in the release: trained on {len(battles.outcome)} labels")
    else:
        agree, told = agreement(core, scheme, of_one_basis(tables["preferences"], basis))
        where = f"the right model in {agree} of {told} records in which one alone is right"
        if misled(agree, told):
            line("note", f"no pair routers: preferences by {called} name {where}, which is less "
                 "than chance: take another --basis")  # fmt: skip
            return {}
        line("pairs", f"trained on {len(battles.outcome)} records decided by {called}; {where}")
    found = trained(battles, pair, [name for name in PAIR_ROUTERS.names() if _usual(name)])
    return {f"{name}[{called}]": scores for name, scores in found.items()}


def _usual(name: str) -> bool:
    """Whether a pair router runs when none is named; those that refuse a set of ties do not."""
    return name not in ("pair-mf-as-printed", "pair-mlp-as-printed")


def parse_pair(text: str | None) -> tuple[str, str] | None:
    """`small,large`."""
    if text is None:
        return None
    names: Sequence[str] = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise BadInput(f"{text!r} is no pair of models", next_step="write it as small,large")
    return names[0], names[1]
