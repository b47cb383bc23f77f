"""Studies: a paper's table or figure as a short list of metrics and groupings.

A study names what is measured and how it is laid out; the measuring is done in
`evaluate` and `curate`. Read `study.py` first, then `dominance.py` as an example of
a table about models and `router_table.py` for tables about routers. To add one:
one file here with a `STUDY`, one line below; `README.md` lists all items of the papers.
"""

from __future__ import annotations

from pipelines.registry import Registry

STUDIES = Registry(
    kind="study",
    group="routeyard.studies",
    builtin={
        "agreement_change": "pipelines.studies.changes:AGREEMENT_CHANGE",
        "bce_against_knn": "pipelines.studies.plateau:AGAINST_KNN",
        "benchmark_sizes": "pipelines.studies.data:BENCHMARK_SIZES",
        "binary_tradeoff": "pipelines.studies.pairs:BINARY_TRADEOFF",
        "call_rates": "pipelines.studies.pairs:CALL_RATES",
        "cost_utility": "pipelines.studies.plateau:COST_UTILITY",
        "dedup_effect": "pipelines.studies.changes:DEDUP_EFFECT",
        "deferral": "pipelines.studies.deferral:DEFERRAL",
        "dominance": "pipelines.studies.dominance:STUDY",
        "duplicates": "pipelines.studies.data:DUPLICATES",
        "exchange": "pipelines.studies.plateau:EXCHANGE",
        "ood_change": "pipelines.studies.changes:OOD_CHANGE",
        "oracle_gap": "pipelines.studies.plateau:ORACLE_GAP",
        "plateau": "pipelines.studies.plateau:PLATEAU",
        "router_accuracy": "pipelines.studies.router_accuracy:STUDY",
        "routing_outcomes": "pipelines.studies.deferral:OUTCOMES",
        "scenarios": "pipelines.studies.pairs:SCENARIOS",
        "selection_profiles": "pipelines.studies.plateau:SELECTION",
        "significance": "pipelines.studies.deferral:SIGNIFICANCE",
        "source_counts": "pipelines.studies.data:SOURCE_COUNTS",
        "specialist_scores": "pipelines.studies.specialist_scores:STUDY",
        "task_similarity": "pipelines.studies.data:TASK_SIMILARITY",
    },
)
