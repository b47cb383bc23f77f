"""What is read off a sweep over cost; `pipelines.evaluate.sweep` computes it."""

from __future__ import annotations

from pipelines.evaluate.metrics.spec import MetricSpec

_CSCR = "CSCR, section 4.1 and Table 1"

AUDC = MetricSpec(
    "audc",
    "higher",
    "accuracy",
    _CSCR,
    "area under accuracy against realised mean cost, from the cheapest to the dearest single model",
    ("costs",),
    "family",
)
AUDC_BUDGET = MetricSpec(
    "audc_budget",
    "higher",
    "accuracy",
    "RouterBench+, appendix F, deferral curve over a budget per query",
    "the same against a budget: the best-scored model whose mean cost is within it",
    ("costs",),
    "family",
)
PEAK_ACCURACY = MetricSpec(
    "peak_accuracy",
    "higher",
    "share",
    _CSCR,
    "highest accuracy anywhere on the deferral curve",
    ("costs",),
    "family",
)
QNC = MetricSpec(
    "qnc",
    "lower",
    "share of the best single model's cost",
    _CSCR,
    "least cost that matches the most accurate single model, over that model's cost",
    ("costs",),
    "family",
)
MEAN_COST = MetricSpec(
    "mean_cost",
    "lower",
    "the measure's unit per query",
    "own: what the choices at any price cost",
    "mean cost of the answers chosen when cost does not matter",
    ("costs",),
    "family",
)
UTILITY = MetricSpec(
    "utility",
    "higher",
    "scaled score minus scaled cost",
    "the routing plateau (arXiv 2606.07587), section 3 and Table 2, with each model's mean train "
    "cost for the choice",
    "mean of (1−λ)·Y − λ·c̃ at `[measure,λ]`; the choice knows mean train costs only",
    ("costs",),
    "family",
)
UTILITY_PER_QUERY = MetricSpec(
    "utility_per_query",
    "higher",
    "scaled score minus scaled cost",
    "the routing plateau (arXiv 2606.07587), section 3 and Table 2",
    "the same when the choice knows what each answer costs, as the paper's c̃ per query and model",
    ("costs",),
    "family",
)
ACCURACY_AT_BUDGET = MetricSpec(
    "accuracy_at_budget",
    "higher",
    "share",
    "own: all routers held to the most accurate single model's mean cost",
    "accuracy of the last setting whose mean cost is within that budget",
    ("costs",),
    "family",
)
