"""Contract of `verdicts`: what one scorer says of one response. Append-only."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

VERDICTS = Contract(
    "verdicts",
    "What one scorer says of one response. Append-only.",
    key=("query_id", "model_id", "sample", "scorer", "scorer_version"),
    columns=columns(
        query_id="string: question",
        model_id="string: model",
        sample="int32: 0-based sample number",
        scorer="string: name of a rule scorer, `given` (a score that came with the answer), "
        "`xverify:<model>`, `judge:<name>` or `human:<name>`",
        scorer_version="string: version of the scorer",
        outcome=(
            "string: what it says",
            {
                "correct": "the answer is right",
                "incorrect": "the answer is wrong",
                "abstain": "no answer could be read",
                "error": "the scorer itself failed: says nothing of the answer",
            },
        ),
        score="float64?: graded score in [0, 1]; null for abstain and error",
        extracted="string?: the answer the scorer read",
        span_start="int64? [characters]: where it stands in the text",
        span_end="int64? [characters]: end, exclusive",
        conflict="bool: the text commits to several different answers",
        reason="string: why, or the judge's text",
        cost_usd="float64? [USD]: cost of asking; null when unknown, 0 for rules",
    ),
    rules=rules(
        score_range="score IS NULL OR score BETWEEN 0 AND 1",
        score_iff_decided="(score IS NOT NULL) = (outcome IN ('correct', 'incorrect'))",
        span_whole="(span_start IS NULL) = (span_end IS NULL)",
    ),
)
