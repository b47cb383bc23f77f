"""Contract of `outcomes`: whether one model got one query right, and what that took."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules
from routeyard.schemas.labels import LABELS

_OF_THIS = "of this release only: another release numbers anew"

OUTCOMES = Contract(
    "outcomes",
    "Whether one model got one query right, and what that took: label and costs in one row.",
    key=("query_id", "model_id"),
    columns=columns(
        query_no=f"int32: 0-based row of the query in `queries`, {_OF_THIS}",
        model_no=f"int16: 0-based row of the model in `models`, {_OF_THIS}",
        query_id="string: question",
        model_id="string: model",
        score=LABELS["score"],
        correct=LABELS["correct"],
        decided_by=LABELS["decided_by"],
        cost_usd="float64? [USD]: cost of all responses of the pair together; null as soon as one "
        "is unknown",
        prompt_tokens="int64? [tokens]: metered prompts of all its responses; null as soon as one "
        "is unknown",
        completion_tokens="int64? [tokens]: metered completions of all its responses, reasoning "
        "included; null as soon as one is unknown",
        reasoning_tokens="int64? [tokens]: metered hidden reasoning of all its responses; null as "
        "soon as one is unknown",
        latency_s="float32? [s]: mean over its responses, from request sent to last byte; null as "
        "soon as one is unknown",
        n_samples="int32?: responses that entered the label; null when the pair has responses but "
        "no label",
        n_responses="int32: responses of the pair: divide costs and tokens by it for those of one "
        "answer",
        contested="bool?: verdicts disagree, or the text commits to several answers; null when "
        "the pair has no label",
    ),
    rules=rules(
        score_range="score IS NULL OR score BETWEEN 0 AND 1",
        label_whole="(n_samples IS NULL) = (contested IS NULL)",
        numbers_not_negative="query_no >= 0 AND model_no >= 0 AND n_responses >= 0",
        costs_of_responses="n_responses > 0 OR cost_usd IS NULL",
    ),
)
