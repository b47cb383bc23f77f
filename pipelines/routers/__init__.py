"""Reference routers. One file per router; `base` says what a router must offer.

A larger zoo registers here too: one file, one line, or an entry point of group
`routeyard.routers` in a package of its own.
"""

from __future__ import annotations

from pipelines.registry import Registry
from pipelines.routers.base import Examples, Queries, Router

#: Routers over a whole pool.
ROUTERS = Registry(
    kind="router",
    group="routeyard.routers",
    builtin={
        "best-generalist": "pipelines.routers.generalist:BestGeneralist",
        "kmeans": "pipelines.routers.kmeans:KMeansRouter",
        "knn": "pipelines.routers.knn:KNN",
        "mf": "pipelines.routers.matrix_factorisation:MatrixFactorisation",
        "mlp": "pipelines.routers.mlp:MLP",
        "random": "pipelines.routers.uniform:UniformRandom",
    },
)

#: Routers between a small and a large model, trained on preference data.
PAIR_ROUTERS = Registry(
    kind="pair router",
    group="routeyard.pair_routers",
    builtin={
        "pair-bt": "pipelines.routers.pair_bradley_terry:SimilarityBradleyTerry",
        "pair-knn": "pipelines.routers.pair_knn:PairKNN",
        "pair-mf": "pipelines.routers.pair_matrix_factorisation:PairMatrixFactorisation",
        "pair-mlp": "pipelines.routers.pair_mlp:PairMLP",
    },
)

__all__ = ["PAIR_ROUTERS", "ROUTERS", "Examples", "Queries", "Router"]
