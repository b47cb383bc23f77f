"""Routers, one file each, in folders by family; read `base` first: what a router must offer.

To add one: a file in the folder of its family and a line below, or an entry point
of group `routeyard.routers` in a package of its own. Which model is asked for a
question, given scores and costs, is a selection rule's business, not a router's.
"""

from __future__ import annotations

from routeyard.pipelines.registry import Registry
from routeyard.pipelines.routers.base import Examples, Queries, Router

#: Routers over a whole pool.
ROUTERS = Registry(
    kind="router",
    group="routeyard.routers",
    methods=("fit", "scores"),
    builtin={
        "avengers-pro": "routeyard.pipelines.routers.clusters.avengers_pro:AvengersPro",
        "best-generalist": "routeyard.pipelines.routers.references.generalist:BestGeneralist",
        "carrot": "routeyard.pipelines.routers.neighbours.carrot:Carrot",
        "contrastive": "routeyard.pipelines.routers.contrastive.cscr:Contrastive",
        "cp-router": "routeyard.pipelines.routers.networks.cp_router:CPRouter",
        "cscr": "routeyard.pipelines.routers.contrastive.cscr:CSCR",
        "eagle": "routeyard.pipelines.routers.neighbours.eagle:Eagle",
        "embedding-mlp": "routeyard.pipelines.routers.probes.embedding_mlp:EmbeddingMLP",
        "embedllm": "routeyard.pipelines.routers.factors.embedllm:EmbedLLM",
        "entropy": "routeyard.pipelines.routers.confidence.signal:Entropy",
        "equirouter": "routeyard.pipelines.routers.networks.equirouter:EquiRouter",
        "fly-swat": "routeyard.pipelines.routers.networks.fly_swat:FlySwat",
        "graph-router": "routeyard.pipelines.routers.networks.graph_router:GraphRouter",
        "hybrid-llm": "routeyard.pipelines.routers.networks.hybrid_llm:HybridLLM",
        "kmeans": "routeyard.pipelines.routers.clusters.kmeans:KMeansRouter",
        "kmeans-as-printed": "routeyard.pipelines.routers.clusters.kmeans:KMeansAsPrinted",
        "knn": "routeyard.pipelines.routers.neighbours.knn:KNN",
        "knn-as-printed": "routeyard.pipelines.routers.neighbours.knn:KNNAsPrinted",
        "linucb": "routeyard.pipelines.routers.linear.linucb:LinUCB",
        "logistic": "routeyard.pipelines.routers.linear.logistic:Logistic",
        "margin": "routeyard.pipelines.routers.confidence.signal:Margin",
        "max-logit": "routeyard.pipelines.routers.confidence.signal:MaxLogit",
        "mess-plus": "routeyard.pipelines.routers.networks.mess_plus:MessPlus",
        "mf": "routeyard.pipelines.routers.factors.matrix_factorisation:MatrixFactorisation",
        "mirt": "routeyard.pipelines.routers.factors.mirt:MIRT",
        "mlp": "routeyard.pipelines.routers.networks.mlp:MLP",
        "mlp-as-printed": "routeyard.pipelines.routers.networks.mlp_as_printed:MLPAsPrinted",
        "model-spider": "routeyard.pipelines.routers.networks.model_spider:ModelSpider",
        "nirt": "routeyard.pipelines.routers.factors.nirt:NIRT",
        "optllm": "routeyard.pipelines.routers.trees.optllm:OptLLM",
        "optllm-xgb": "routeyard.pipelines.routers.trees.optllm_xgb:OptLLMBoosted",
        "p2l": "routeyard.pipelines.routers.networks.p2l:PromptToLeaderboard",
        "parametric": "routeyard.pipelines.routers.contrastive.gates:Parametric",
        "pareto-random": "routeyard.pipelines.routers.references.pareto_random:ParetoRandom",
        "probe-dirichlet": "routeyard.pipelines.routers.probes.dirichlet:ProbeDirichlet",
        "probe-final": "routeyard.pipelines.routers.probes.plain:ProbeFinal",
        "probe-mean": "routeyard.pipelines.routers.probes.plain:ProbeMean",
        "probe-softmax": "routeyard.pipelines.routers.probes.plain:ProbeSoftmax",
        "random": "routeyard.pipelines.routers.references.uniform:UniformRandom",
        "ridge": "routeyard.pipelines.routers.linear.ridge:Ridge",
        "rorf": "routeyard.pipelines.routers.trees.rorf:RoRF",
        "routellm-bert": "routeyard.pipelines.routers.pairs.routellm_bert:RouteLLMClassifier",
        "routellm-mf": "routeyard.pipelines.routers.pairs.routellm_mf:RouteLLMFactorisation",
        "routellm-sw": "routeyard.pipelines.routers.pairs.routellm_sw:SimilarityWeighted",
        "routerdc": "routeyard.pipelines.routers.networks.routerdc:RouterDC",
        "self-ask": "routeyard.pipelines.routers.confidence.signal:SelfAsk",
        "semantic-entropy": "routeyard.pipelines.routers.confidence.signal:SemanticEntropy",
        "soft-moe": "routeyard.pipelines.routers.contrastive.gates:SoftMoE",
        "tag-router": "routeyard.pipelines.routers.clusters.tag_router:TagRouter",
        "task-map": "routeyard.pipelines.routers.references.task_map:TaskMap",
        "thompson": "routeyard.pipelines.routers.references.thompson:Thompson",
        "umr": "routeyard.pipelines.routers.clusters.umr:UMR",
        "zooter": "routeyard.pipelines.routers.networks.zooter:Zooter",
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
        "pair-bt": "routeyard.pipelines.routers.pairs.bradley_terry:SimilarityBradleyTerry",
        "pair-bt-as-printed": (
            "routeyard.pipelines.routers.pairs.bradley_terry:SimilarityBradleyTerryAsPrinted"
        ),
        "pair-knn": "routeyard.pipelines.routers.pairs.knn:PairKNN",
        "pair-knn-as-printed": "routeyard.pipelines.routers.pairs.knn:PairNearest",
        "pair-mf": "routeyard.pipelines.routers.pairs.matrix_factorisation:PairMatrixFactorisation",
        "pair-mf-as-printed": "routeyard.pipelines.routers.pairs.as_printed:PairBilinear",
        "pair-mlp": "routeyard.pipelines.routers.pairs.mlp:PairMLP",
        "pair-mlp-as-printed": "routeyard.pipelines.routers.pairs.as_printed:PairSoftmaxMLP",
    },
)

__all__ = ["PAIR_ROUTERS", "REFERENCE", "ROUTERS", "Examples", "Queries", "Router"]
