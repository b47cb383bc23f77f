"""Contract of `entropies`: how sure a model is of its answer to a query."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

ENTROPIES = Contract(
    name="entropies",
    says="How sure a model is of its answer to a query.",
    key=("query_id", "model_id", "estimator", "backend"),
    columns=(
        Column("query_id", pa.string(), "question"),
        Column("model_id", pa.string(), "model"),
        Column(
            "estimator",
            pa.string(),
            "`sequence_probability`, `sequence_probability_renormalised`, `rao_blackwell`, "
            "`discrete`; the first three where every sample has log-probabilities",
        ),
        Column("backend", pa.string(), "what decided that two answers mean the same"),
        Column("n_samples", pa.int32(), "samples clustered"),
        Column("n_clusters", pa.int32(), "meaning clusters"),
        Column(
            "semantic_entropy", pa.float64(), "entropy over meanings", unit="nat", nullable=True
        ),
        Column(
            "length_normalised",
            pa.bool_(),
            "sequence probabilities are per token (geometric mean); null for `discrete`",
            nullable=True,
        ),
    ),
    rules=(RowRule("counts", "n_samples >= 0 AND n_clusters BETWEEN 0 AND n_samples"),),
)
