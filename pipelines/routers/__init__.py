"""Routers, one file for each family; read `base` first: what a router must offer.

To add one: a class in the file of its family and a row in `routers.yaml` (of a pair
router: a line below), or an entry point of group `routeyard.routers` in another package.
Which model is asked for a question, given scores and costs, is a selection rule's
business, not a router's.
"""

from __future__ import annotations

from routeyard.pipelines.common.registry import Registry
from routeyard.pipelines.routers.base import Examples, Queries, Router
from routeyard.pipelines.routers.listed import rows

#: Routers over a whole pool.
ROUTERS = Registry(
    kind="router",
    listed="`routeyard zoo`",
    group="routeyard.routers",
    methods=("fit", "scores"),
    builtin={name: f"{__name__}.{row['class']}" for name, row in rows().items()},
)

#: The routers that `evaluate` runs when none are named: one of each simple kind, in seconds.
#: `routeyard zoo run` runs all.
REFERENCE = ("best-generalist", "kmeans", "knn", "mf", "mlp", "random")

#: Routers between a small and a large model, trained on preference data.
PAIR_ROUTERS = Registry(
    kind="pair router",
    group="routeyard.pair_routers",
    builtin={
        "pair-bt": "routeyard.pipelines.routers.pairs:SimilarityBradleyTerry",
        "pair-bt-as-printed": ("routeyard.pipelines.routers.pairs:SimilarityBradleyTerryAsPrinted"),
        "pair-knn": "routeyard.pipelines.routers.pairs:PairKNN",
        "pair-knn-as-printed": "routeyard.pipelines.routers.pairs:PairNearest",
        "pair-mf": "routeyard.pipelines.routers.pairs:PairMatrixFactorisation",
        "pair-mf-as-printed": "routeyard.pipelines.routers.pairs:PairBilinear",
        "pair-mlp": "routeyard.pipelines.routers.pairs:PairMLP",
        "pair-mlp-as-printed": "routeyard.pipelines.routers.pairs:PairSoftmaxMLP",
    },
)

__all__ = ["PAIR_ROUTERS", "REFERENCE", "ROUTERS", "Examples", "Queries", "Router"]
