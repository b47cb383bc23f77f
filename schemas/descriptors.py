"""Contract of `descriptors`: a vector that describes a model."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns

DESCRIPTORS = Contract(
    "descriptors",
    "A vector that describes a model: logit or text footprint, or perplexity fingerprint.",
    key=("model_id", "kind"),
    columns=columns(
        model_id="string: model",
        kind="string: `logit_footprint`, `perplexity_fingerprint` or `text_footprint`",
        vector="list<float32>: descriptor",
        metadata="string: JSON: probes, tokens, unreturned mass, language model used",
    ),
)
