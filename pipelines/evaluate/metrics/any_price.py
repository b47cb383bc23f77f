"""What a router reaches when cost does not matter; `pipelines.evaluate.measured` computes it."""

from __future__ import annotations

from pipelines.evaluate.metrics.spec import MetricSpec

_PLATEAU = "the routing plateau (arXiv 2606.07587), "

ACCURACY = MetricSpec(
    "accuracy",
    "higher",
    "share",
    _PLATEAU + "section 3",
    "mean score of the chosen answers, cost disregarded; RouterEval's μ",
    per="family",
)
GAP_TO_ORACLE = MetricSpec(
    "gap_to_oracle",
    "lower",
    "share",
    _PLATEAU + "section 5.1",
    "mean score of the per-query oracle minus that of the choices",
    per="family",
)
GAP_TO_ORACLE_HARD = MetricSpec(
    "gap_to_oracle_hard",
    "lower",
    "share",
    _PLATEAU + "section 5.1 and Table 3",
    "the gap on the hard subset: one model right, or few and the best single model wrong",
    per="family",
)
GAP_TO_ORACLE_EASY = MetricSpec(
    "gap_to_oracle_easy",
    "lower",
    "share",
    _PLATEAU + "section 5.1 and Table 3",
    "the gap on the other questions that some model gets right",
    per="family",
)
HARD_SHARE_OF_GAP = MetricSpec(
    "hard_share_of_gap",
    "neither",
    "share",
    _PLATEAU + "section 5.1 and Table 3",
    "part of the gap on solvable questions that lies on hard ones",
    per="family",
)
GAIN_OVER_BEST_SINGLE = MetricSpec(
    "gain_over_best_single",
    "higher",
    "share",
    "own: paired difference to the model one would deploy instead",
    "mean score of the choices minus that of the best single model on train",
    per="family",
)
DISAGREEMENT = MetricSpec(
    "disagreement_with_best_single",
    "neither",
    "share of questions",
    _PLATEAU + "section 5.2 and Table 4, against the best single model",
    "share of questions sent to another model than the best single on train",
    per="family",
)
WON = MetricSpec(
    "won_from_best_single",
    "higher",
    "share of questions",
    _PLATEAU + "section 5.2, exchanged wins",
    "share that only the router gets right",
    per="family",
)
LOST = MetricSpec(
    "lost_to_best_single",
    "lower",
    "share of questions",
    _PLATEAU + "section 5.2, exchanged wins",
    "share that only the best single model gets right",
    per="family",
)
CHANGED = MetricSpec(
    "changed_against_best_single",
    "neither",
    "share of questions",
    _PLATEAU + "section 5.2, exchanged wins",
    "share that one of the two gets right and the other wrong",
    per="family",
)
AGREEMENT_WITH_GENERALIST = MetricSpec(
    "agreement_with_generalist",
    "neither",
    "share of questions",
    "RouterBench+, section 4.3 and Table 4",
    "share of questions sent to the best single model on train; `[task]` within one task",
    per="family",
)
SELECTION_ENTROPY = MetricSpec(
    "selection_entropy",
    "neither",
    "share of log m",
    "own: Shannon entropy of the selection profile",
    "0 when one model gets every question, 1 when all get equally many",
    per="family",
)
TOP_SHARE = MetricSpec(
    "top_share",
    "neither",
    "share of questions",
    _PLATEAU + "section 5.1 and Figure 4, selection frequency",
    "share of questions sent to the model asked most",
    per="family",
)
OUTCOME = MetricSpec(
    "outcome",
    "neither",
    "share of questions",
    "CSCR, appendix D.5.2 and Table 15, made exhaustive: wrong and too dear is too_expensive",
    "optimal, too_cheap, too_expensive or none_correct, as `[name]`",
    needs=("costs",),
    per="family",
)
OUTCOME_AS_PUBLISHED = MetricSpec(
    "outcome_as_published",
    "neither",
    "share of questions",
    "CSCR, appendix D.5.2 and Table 15",
    "the same, but too_expensive only where the choice is right",
    needs=("costs",),
    per="family",
)
SEED_MEAN = MetricSpec(
    "accuracy_seed_mean",
    "higher",
    "share",
    _PLATEAU + "section 4.1",
    "mean accuracy over fits with other seeds",
    needs=("seeds",),
    per="family",
)
SEED_SD = MetricSpec(
    "accuracy_seed_sd",
    "lower",
    "share",
    _PLATEAU + "section 4.1",
    "sample standard deviation of accuracy over fits with other seeds",
    needs=("seeds",),
    per="family",
)
