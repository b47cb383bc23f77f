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
        "agentic_curve": "pipelines.studies.agents.curve:STUDY",
        "agreement_change": "pipelines.studies.changes:AGREEMENT_CHANGE",
        "answer_quality": "pipelines.studies.confidence:QUALITY",
        "bce_against_knn": "pipelines.studies.plateau:AGAINST_KNN",
        "benchmark_sizes": "pipelines.studies.data:BENCHMARK_SIZES",
        "binary_tradeoff": "pipelines.studies.pairs:BINARY_TRADEOFF",
        "call_rates": "pipelines.studies.pairs:CALL_RATES",
        "confidence_rates": "pipelines.studies.confidence:CALLS",
        "confidence_sizes": "pipelines.studies.confidence:SIZES",
        "cost_utility": "pipelines.studies.plateau:COST_UTILITY",
        "cscr_band_count": "pipelines.studies.cscr_ablations:BANDS",
        "cscr_banded": "pipelines.studies.cscr_ablations:BANDED",
        "cscr_bands": "pipelines.studies.cscr:BANDS",
        "cscr_curves": "pipelines.studies.cscr:CURVES",
        "cscr_descriptors": "pipelines.studies.cscr_ablations:DESCRIPTORS",
        "cscr_examples": "pipelines.studies.cscr:EXAMPLES",
        "cscr_least_temperature": "pipelines.studies.cscr_ablations:LEAST",
        "cscr_loss": "pipelines.studies.cscr_ablations:LOSS",
        "cscr_neighbours": "pipelines.studies.cscr_ablations:NEIGHBOURS",
        "cscr_new_models": "pipelines.studies.cscr:NEW_MODELS",
        "cscr_new_prompts": "pipelines.studies.cscr:NEW_PROMPTS",
        "cscr_outcomes": "pipelines.studies.cscr:OUTCOMES",
        "cscr_penalty": "pipelines.studies.cscr_ablations:PENALTY",
        "cscr_significance": "pipelines.studies.cscr:SIGNIFICANCE",
        "cscr_size": "pipelines.studies.cscr_ablations:SIZE",
        "cscr_slope": "pipelines.studies.cscr_ablations:SLOPE",
        "dedup_effect": "pipelines.studies.changes:DEDUP_EFFECT",
        "deferral": "pipelines.studies.deferral:DEFERRAL",
        "descriptor_similarity": "pipelines.studies.cscr:SIMILAR",
        "dominance": "pipelines.studies.dominance:STUDY",
        "duplicates": "pipelines.studies.data:DUPLICATES",
        "exchange": "pipelines.studies.plateau:EXCHANGE",
        "ood_change": "pipelines.studies.changes:OOD_CHANGE",
        "informative": "pipelines.studies.collection:STUDY",
        "oracle_gap": "pipelines.studies.plateau:ORACLE_GAP",
        "plateau": "pipelines.studies.plateau:PLATEAU",
        "probe_aggregation": "pipelines.studies.probing:AGGREGATION",
        "probe_layers": "pipelines.studies.probing:LAYERS",
        "probe_mixture": "pipelines.studies.probing:MIXTURE",
        "probe_scale": "pipelines.studies.probing:SCALE",
        "probe_width": "pipelines.studies.probing:WIDTH",
        "router_ability": "pipelines.studies.probing:ABILITY",
        "router_accuracy": "pipelines.studies.router_accuracy:STUDY",
        "router_alignment": "pipelines.studies.probing:ALIGNMENT",
        "routing_outcomes": "pipelines.studies.deferral:OUTCOMES",
        "scenarios": "pipelines.studies.pairs:SCENARIOS",
        "selection_on_hard": "pipelines.studies.plateau:SELECTION_ON_HARD",
        "selection_profiles": "pipelines.studies.plateau:SELECTION",
        "significance": "pipelines.studies.deferral:SIGNIFICANCE",
        "source_counts": "pipelines.studies.data:SOURCE_COUNTS",
        "specialist_scores": "pipelines.studies.specialist_scores:STUDY",
        "task_similarity": "pipelines.studies.data:TASK_SIMILARITY",
        "tuning_ablation": "pipelines.studies.tuning:ABLATION",
        "tuning_across": "pipelines.studies.tuning:ACROSS",
        "tuning_gains": "pipelines.studies.tuning:GAINS",
    },
)
