"""Contract of `labels`: what the policy decided for one model on one query."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

LABELS = Contract(
    "labels",
    "The court's decision for one model on one query.",
    key=("query_id", "model_id"),
    columns=columns(
        query_id="string: question",
        model_id="string: model",
        score="float64?: mean score over samples in [0, 1]; null when undecided",
        correct="bool?: the sample's outcome; of several, whether the mean score reaches the "
        "threshold, or half of them are correct where there is none; null when undecided",
        decided_by="string?: scorer that decided, as in `verdicts`; several, of several samples, "
        "are joined by `+`; `unreadable` when every scorer abstained, `pseudo_specialist` for an "
        "injected model, null when undecided",
        contested="bool: verdicts disagree, or the text commits to several answers",
        n_samples="int32: responses that exist and entered the label",
    ),
    rules=rules(
        score_range="score IS NULL OR score BETWEEN 0 AND 1",
        decided_whole="(score IS NULL) = (correct IS NULL) AND (score IS NULL OR decided_by IS "
        "NOT NULL)",
    ),
)
