"""Routers on one set of examples: each fit is made once, and every view reads its predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.experiment.entrants import Maker, RouterSpec
from routeyard.pipelines.experiment.fit import Fit, PredictionStore
from routeyard.pipelines.routers.base import Examples, Queries, Router


@dataclass(frozen=True, eq=False)
class Experiment:
    """Routers, what they learn from, and with which seeds.

    Attributes:
        routers: name → maker of a fresh router for a seed; see `entrants.RouterSpec`.
        seeds: of the fits of each.
        store: where predictions are kept; None keeps them nowhere.
    """

    train: Examples
    routers: Mapping[str, Maker]
    seeds: Sequence[int] = (0,)
    store: PredictionStore | None = None
    _fits: dict[tuple[str, int], Fit] = field(default_factory=dict)

    def fit_of(self, router: str, repeat: int = 0) -> Fit:
        """A router fitted with one of the seeds; asked for twice, the same fit."""
        key = (router, repeat)
        if key not in self._fits:
            self._fits[key] = Fit(self.maker(router, repeat), self.train, self.store)
        return self._fits[key]

    def maker(self, router: str, repeat: int = 0) -> Callable[[], Router]:
        """Maker of a fresh router with one of the seeds."""
        make, seed = self.routers[router], self.seeds[repeat]
        if isinstance(make, RouterSpec):
            return replace(make, seed=seed, repeat=repeat)
        return partial(make, seed)

    def scores(self, router: str, queries: Queries, repeat: int = 0) -> Floats:
        """(n, m) scores of a router on questions, by the fit with one of the seeds."""
        return self.fit_of(router, repeat).scores(queries)
