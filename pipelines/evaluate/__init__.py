"""What is measured on a release: routers (`run`), the pool itself (`certificate`), and with what.

Read `core.py` (a release as matrices), then `ground.py` (what is the same for
every router) and `run/evaluation.py`. A metric is one file in `metrics/` and
one line here; README.md lists them all with direction, unit and source.
"""

from __future__ import annotations

from pipelines.registry import Registry

_HERE = "pipelines.evaluate.metrics."

METRICS = Registry(
    kind="metric",
    group="routeyard.metrics",
    builtin={
        "accuracy": _HERE + "any_price:ACCURACY",
        "accuracy_at_budget": _HERE + "sweep:ACCURACY_AT_BUDGET",
        "accuracy_change": _HERE + "shift:ACCURACY_CHANGE",
        "accuracy_seed_mean": _HERE + "any_price:SEED_MEAN",
        "accuracy_seed_sd": _HERE + "any_price:SEED_SD",
        "agreement": _HERE + "shift:AGREEMENT",
        "agreement_with_generalist": _HERE + "any_price:AGREEMENT_WITH_GENERALIST",
        "aiq": _HERE + "aiq:AIQ",
        "aiq_as_written": _HERE + "aiq:AIQ_AS_WRITTEN",
        "answer_quality": _HERE + "quality:ANSWER_QUALITY",
        "apgr": _HERE + "pair:APGR",
        "arena_score": _HERE + "arena:ARENA_SCORE",
        "audc": _HERE + "sweep:AUDC",
        "audc_budget": _HERE + "sweep:AUDC_BUDGET",
        "auroc": _HERE + "pair:AUROC",
        "bce": _HERE + "calibration:BCE",
        "brier": _HERE + "calibration:BRIER",
        "changed_against_best_single": _HERE + "any_price:CHANGED",
        "cost_save": _HERE + "frontier:COST_SAVE",
        "cpt": _HERE + "pair:CPT",
        "decision_cost": _HERE + "overhead:DECISION_COST",
        "decision_time": _HERE + "overhead:DECISION_TIME",
        "disagreement_with_best_single": _HERE + "any_price:DISAGREEMENT",
        "e_p": _HERE + "routereval:E_P",
        "ece": _HERE + "calibration:ECE",
        "gain_b": _HERE + "macro:GAIN_B",
        "gain_over_best_single": _HERE + "any_price:GAIN_OVER_BEST_SINGLE",
        "gain_r": _HERE + "macro:GAIN_R",
        "gap_o": _HERE + "macro:GAP_O",
        "gap_to_oracle": _HERE + "any_price:GAP_TO_ORACLE",
        "gap_to_oracle_easy": _HERE + "any_price:GAP_TO_ORACLE_EASY",
        "gap_to_oracle_hard": _HERE + "any_price:GAP_TO_ORACLE_HARD",
        "hard_share_of_gap": _HERE + "any_price:HARD_SHARE_OF_GAP",
        "hcr": _HERE + "pair:HCR",
        "hcr_as_published": _HERE + "pair:HCR_AS_PUBLISHED",
        "id_accuracy": _HERE + "shift:ID_ACCURACY",
        "lost_to_best_single": _HERE + "any_price:LOST",
        "lpm": _HERE + "pair:LPM",
        "lpm_as_published": _HERE + "pair:LPM_AS_PUBLISHED",
        "macro_accuracy": _HERE + "macro:MACRO_ACCURACY",
        "mean_cost": _HERE + "sweep:MEAN_COST",
        "mpm": _HERE + "pair:MPM",
        "mpm_as_published": _HERE + "pair:MPM_AS_PUBLISHED",
        "nauc": _HERE + "nauc:NAUC",
        "ood_accuracy": _HERE + "shift:OOD_ACCURACY",
        "outcome": _HERE + "any_price:OUTCOME",
        "outcome_as_published": _HERE + "any_price:OUTCOME_AS_PUBLISHED",
        "pareto_dist": _HERE + "frontier:PARETO_DIST",
        "peak_accuracy": _HERE + "sweep:PEAK_ACCURACY",
        "perf_gain": _HERE + "frontier:PERF_GAIN",
        "qnc": _HERE + "sweep:QNC",
        "rci": _HERE + "rci:RCI",
        "selection_entropy": _HERE + "any_price:SELECTION_ENTROPY",
        "top_share": _HERE + "any_price:TOP_SHARE",
        "trr": _HERE + "tokens:TRR",
        "u_token": _HERE + "tokens:U_TOKEN",
        "utility": _HERE + "sweep:UTILITY",
        "utility_per_query": _HERE + "sweep:UTILITY_PER_QUERY",
        "v_b": _HERE + "routereval:V_B",
        "v_r": _HERE + "routereval:V_R",
        "won_from_best_single": _HERE + "any_price:WON",
    },
)
