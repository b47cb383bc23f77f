"""Contract of `descriptors`: a vector that describes a model."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract

DESCRIPTORS = Contract(
    name="descriptors",
    says="A vector that describes a model: logit or text footprint, or perplexity fingerprint.",
    key=("model_id", "kind"),
    columns=(
        Column("model_id", pa.string(), "model"),
        Column(
            "kind",
            pa.string(),
            "`logit_footprint`, `perplexity_fingerprint` or `text_footprint`",
        ),
        Column("vector", pa.list_(pa.float32()), "descriptor"),
        Column(
            "metadata", pa.string(), "JSON: probes, tokens, unreturned mass, language model used"
        ),
    ),
)
