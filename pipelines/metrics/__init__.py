"""One file per metric or family of metrics, and the data they are computed from.

Read `spec.py` (what a metric declares and is given), then `rci.py` (one metric).
`evaluation_data.py` is what is the same for every router; `pipelines/evaluate/README.md`
lists all metrics with direction, unit and source.
"""

from __future__ import annotations

from routeyard.pipelines.registry import Registry

#: Module of this package → the metrics in it, each as `<name>_metric`.
_COMPUTED = {
    "areas": ("aiq", "aiq_as_written", "nauc"),
    "arena": ("arena_score",),
    "calibration": ("bce", "brier", "ece"),
    "frontier": ("cost_save", "pareto_dist", "perf_gain"),
    "macro": ("gain_b", "gain_r", "gap_o", "macro_accuracy"),
    "overhead": ("decision_cost", "decision_time"),
    "quality": ("answer_quality",),
    "rci": ("rci",),
    "routereval": ("e_p", "v_b", "v_r"),
    "tokens": ("trr", "u_token"),
}
#: Metrics that `evaluate` computes with their family; `families.yaml` declares them.
_FAMILIES = (
    "accuracy", "accuracy_at_budget", "accuracy_change", "accuracy_seed_mean",
    "accuracy_seed_sd", "agreement", "agreement_with_generalist", "apgr", "audc", "audc_budget",
    "auroc", "changed_against_best_single", "cpt", "disagreement_with_best_single",
    "gain_over_best_single", "gap_to_oracle", "gap_to_oracle_easy", "gap_to_oracle_hard",
    "hard_share_of_gap", "hcr", "hcr_as_published", "id_accuracy", "lost_to_best_single", "lpm",
    "lpm_as_published", "mean_cost", "mpm", "mpm_as_published", "ood_accuracy", "outcome",
    "outcome_as_published", "peak_accuracy", "qnc", "selection_entropy", "top_share", "utility",
    "utility_per_query", "won_from_best_single",
)  # fmt: skip

METRICS = Registry(
    kind="metric",
    group="routeyard.metrics",
    builtin={
        **{name: f"{__name__}.families:{name}" for name in _FAMILIES},
        **{
            name: f"{__name__}.{module}:{name}_metric"
            for module, names in _COMPUTED.items()
            for name in names
        },
    },
)
