"""Contract of `signals`: how sure one response looks from its token probabilities."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

SIGNALS = Contract(
    name="signals",
    says="How sure one response looks from its token probabilities, and what its model says of it.",
    key=("query_id", "model_id", "sample"),
    columns=(
        Column("query_id", pa.string(), "question"),
        Column("model_id", pa.string(), "model"),
        Column("sample", pa.int32(), "0-based sample number"),
        Column("n_tokens", pa.int32(), "tokens with a log-probability", unit="tokens"),
        Column(
            "entropy",
            pa.float64(),
            "mean over tokens of −Σ p ln p; what the server did not return enters as one outcome",
            unit="nat",
            nullable=True,
        ),
        Column(
            "margin",
            pa.float64(),
            "mean over tokens of p(first) − p(second)",
            unit="probability",
            nullable=True,
        ),
        Column(
            "max_logit",
            pa.float64(),
            "mean over tokens of the largest log-probability (the largest logit, normalised)",
            unit="nat",
            nullable=True,
        ),
        Column(
            "perplexity",
            pa.float64(),
            "exp of the mean negative log-probability of the generated tokens",
            nullable=True,
        ),
        Column(
            "unreturned_mass",
            pa.float64(),
            "mean probability outside the returned alternatives; large values make entropy a bound",
            unit="probability",
            nullable=True,
        ),
        Column(
            "self_assessment",
            pa.float64(),
            "probability with which the model calls its own answer right; null if not asked",
            unit="probability",
            nullable=True,
        ),
    ),
    rules=(
        RowRule("tokens_not_negative", "n_tokens >= 0"),
        RowRule("margin_range", "margin IS NULL OR margin BETWEEN 0 AND 1 + 1e-6"),
        RowRule(
            "self_assessment_range", "self_assessment IS NULL OR self_assessment BETWEEN 0 AND 1"
        ),
    ),
)
