"""Routers, one file each, in folders by family; read `base` first: what a router must offer.

To add one: a file in the folder of its family and a line below, or an entry point
of group `routeyard.routers` in a package of its own. Which model is asked for a
question, given scores and costs, is a selection rule's business, not a router's.
"""

from __future__ import annotations

from pipelines.registry import Registry
from pipelines.routers.base import Examples, Queries, Router

#: Routers over a whole pool.
ROUTERS = Registry(
    kind="router",
    group="routeyard.routers",
    methods=("fit", "scores"),
    builtin={
        "avengers-pro": "pipelines.routers.clusters.avengers_pro:AvengersPro",
        "best-generalist": "pipelines.routers.references.generalist:BestGeneralist",
        "carrot": "pipelines.routers.neighbours.carrot:Carrot",
        "contrastive": "pipelines.routers.contrastive.cscr:Contrastive",
        "cp-router": "pipelines.routers.networks.cp_router:CPRouter",
        "cscr": "pipelines.routers.contrastive.cscr:CSCR",
        "eagle": "pipelines.routers.neighbours.eagle:Eagle",
        "embedding-mlp": "pipelines.routers.probes.embedding_mlp:EmbeddingMLP",
        "embedllm": "pipelines.routers.factors.embedllm:EmbedLLM",
        "entropy": "pipelines.routers.confidence.signal:Entropy",
        "equirouter": "pipelines.routers.networks.equirouter:EquiRouter",
        "fly-swat": "pipelines.routers.networks.fly_swat:FlySwat",
        "graph-router": "pipelines.routers.networks.graph_router:GraphRouter",
        "hybrid-llm": "pipelines.routers.networks.hybrid_llm:HybridLLM",
        "kmeans": "pipelines.routers.clusters.kmeans:KMeansRouter",
        "kmeans-as-printed": "pipelines.routers.clusters.kmeans:KMeansAsPrinted",
        "knn": "pipelines.routers.neighbours.knn:KNN",
        "knn-as-printed": "pipelines.routers.neighbours.knn:KNNAsPrinted",
        "linucb": "pipelines.routers.linear.linucb:LinUCB",
        "logistic": "pipelines.routers.linear.logistic:Logistic",
        "margin": "pipelines.routers.confidence.signal:Margin",
        "max-logit": "pipelines.routers.confidence.signal:MaxLogit",
        "mess-plus": "pipelines.routers.networks.mess_plus:MessPlus",
        "mf": "pipelines.routers.factors.matrix_factorisation:MatrixFactorisation",
        "mirt": "pipelines.routers.factors.mirt:MIRT",
        "mlp": "pipelines.routers.networks.mlp:MLP",
        "mlp-as-printed": "pipelines.routers.networks.mlp_as_printed:MLPAsPrinted",
        "model-spider": "pipelines.routers.networks.model_spider:ModelSpider",
        "nirt": "pipelines.routers.factors.nirt:NIRT",
        "optllm": "pipelines.routers.trees.optllm:OptLLM",
        "optllm-xgb": "pipelines.routers.trees.optllm_xgb:OptLLMBoosted",
        "p2l": "pipelines.routers.networks.p2l:PromptToLeaderboard",
        "parametric": "pipelines.routers.contrastive.gates:Parametric",
        "pareto-random": "pipelines.routers.references.pareto_random:ParetoRandom",
        "probe-dirichlet": "pipelines.routers.probes.dirichlet:ProbeDirichlet",
        "probe-final": "pipelines.routers.probes.plain:ProbeFinal",
        "probe-mean": "pipelines.routers.probes.plain:ProbeMean",
        "probe-softmax": "pipelines.routers.probes.plain:ProbeSoftmax",
        "random": "pipelines.routers.references.uniform:UniformRandom",
        "ridge": "pipelines.routers.linear.ridge:Ridge",
        "rorf": "pipelines.routers.trees.rorf:RoRF",
        "routellm-bert": "pipelines.routers.pairs.routellm_bert:RouteLLMClassifier",
        "routellm-mf": "pipelines.routers.pairs.routellm_mf:RouteLLMFactorisation",
        "routellm-sw": "pipelines.routers.pairs.routellm_sw:SimilarityWeighted",
        "routerdc": "pipelines.routers.networks.routerdc:RouterDC",
        "self-ask": "pipelines.routers.confidence.signal:SelfAsk",
        "semantic-entropy": "pipelines.routers.confidence.signal:SemanticEntropy",
        "soft-moe": "pipelines.routers.contrastive.gates:SoftMoE",
        "tag-router": "pipelines.routers.clusters.tag_router:TagRouter",
        "task-map": "pipelines.routers.references.task_map:TaskMap",
        "thompson": "pipelines.routers.references.thompson:Thompson",
        "umr": "pipelines.routers.clusters.umr:UMR",
        "zooter": "pipelines.routers.networks.zooter:Zooter",
    },
)

#: The routers that `evaluate` runs when none are named: one of each simple kind, in seconds.
#: `routeyard zoo run` runs all.
REFERENCE = ("best-generalist", "kmeans", "knn", "mf", "mlp", "random")

#: Routers between a small and a large model, trained on preference data.
PAIR_ROUTERS = Registry(
    kind="pair router",
    group="routeyard.pair_routers",
    builtin={
        "pair-bt": "pipelines.routers.pairs.bradley_terry:SimilarityBradleyTerry",
        "pair-bt-as-printed": (
            "pipelines.routers.pairs.bradley_terry:SimilarityBradleyTerryAsPrinted"
        ),
        "pair-knn": "pipelines.routers.pairs.knn:PairKNN",
        "pair-knn-as-printed": "pipelines.routers.pairs.knn:PairNearest",
        "pair-mf": "pipelines.routers.pairs.matrix_factorisation:PairMatrixFactorisation",
        "pair-mf-as-printed": "pipelines.routers.pairs.as_printed:PairBilinear",
        "pair-mlp": "pipelines.routers.pairs.mlp:PairMLP",
        "pair-mlp-as-printed": "pipelines.routers.pairs.as_printed:PairSoftmaxMLP",
    },
)

__all__ = ["PAIR_ROUTERS", "REFERENCE", "ROUTERS", "Examples", "Queries", "Router"]
