"""Contract of `entropies`: how sure a model is of its answer to a query."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

ENTROPIES = Contract(
    "entropies",
    "How sure a model is of its answer to a query.",
    key=("query_id", "model_id", "estimator", "backend"),
    columns=columns(
        query_id="string: question",
        model_id="string: model",
        estimator="string: `sequence_probability`, `sequence_probability_renormalised`, "
        "`rao_blackwell`, `discrete`; the first three where every sample has log-probabilities",
        backend="string: what decided that two answers mean the same",
        n_samples="int32: samples clustered",
        n_clusters="int32: meaning clusters",
        semantic_entropy="float64? [nat]: entropy over meanings",
        length_normalised="bool?: sequence probabilities are per token (geometric mean); null for "
        "`discrete`",
    ),
    rules=rules(
        counts="n_samples >= 0 AND n_clusters BETWEEN 0 AND n_samples",
    ),
)
