"""Contract of `signals`: how sure one response looks from its token probabilities."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

SIGNALS = Contract(
    "signals",
    "How sure one response looks from its token probabilities, and what its model says of it.",
    key=("query_id", "model_id", "sample"),
    columns=columns(
        query_id="string: question",
        model_id="string: model",
        sample="int32: 0-based sample number",
        n_tokens="int32 [tokens]: tokens with a log-probability",
        entropy="float64? [nat]: mean over tokens of −Σ p ln p; what the server did not return "
        "enters as one outcome",
        margin="float64? [probability]: mean over tokens of p(first) − p(second)",
        max_logit="float64? [nat]: mean over tokens of the largest log-probability (the largest "
        "logit, normalised)",
        perplexity="float64?: exp of the mean negative log-probability of the generated tokens",
        unreturned_mass="float64? [probability]: mean probability outside the returned "
        "alternatives; large values make entropy a bound",
        self_assessment="float64? [probability]: probability with which the model calls its own "
        "answer right; null if not asked",
    ),
    rules=rules(
        tokens_not_negative="n_tokens >= 0",
        margin_range="margin IS NULL OR margin BETWEEN 0 AND 1 + 1e-6",
        self_assessment_range="self_assessment IS NULL OR self_assessment BETWEEN 0 AND 1",
    ),
)
