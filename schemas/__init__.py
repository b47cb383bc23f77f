"""What one row means: one contract per table, plus recipe, pool and manifest models."""

from __future__ import annotations

from schemas.contract import Column, Contract, RowRule
from schemas.descriptors import DESCRIPTORS
from schemas.duplicates import DUPLICATES
from schemas.embeddings import EMBEDDINGS, HIDDEN_STATES
from schemas.entropies import ENTROPIES
from schemas.labels import LABELS
from schemas.models import MODELS
from schemas.outcomes import OUTCOMES
from schemas.preferences import PREFERENCES
from schemas.queries import QUERIES
from schemas.removals import REMOVALS
from schemas.responses import RESPONSES, STEPS
from schemas.signals import SIGNALS
from schemas.splits import MODEL_SPLITS, SPLITS
from schemas.stored import StoredTable
from schemas.verdicts import VERDICTS

#: Every table a release can hold, by name.
CONTRACTS: dict[str, Contract] = {
    contract.name: contract
    for contract in (
        QUERIES,
        MODELS,
        RESPONSES,
        STEPS,
        VERDICTS,
        LABELS,
        OUTCOMES,
        EMBEDDINGS,
        DUPLICATES,
        ENTROPIES,
        PREFERENCES,
        DESCRIPTORS,
        HIDDEN_STATES,
        SIGNALS,
        SPLITS,
        MODEL_SPLITS,
        REMOVALS,
    )
}

__all__ = [
    "CONTRACTS",
    "DESCRIPTORS",
    "DUPLICATES",
    "EMBEDDINGS",
    "ENTROPIES",
    "HIDDEN_STATES",
    "LABELS",
    "MODELS",
    "MODEL_SPLITS",
    "OUTCOMES",
    "PREFERENCES",
    "QUERIES",
    "REMOVALS",
    "RESPONSES",
    "SIGNALS",
    "SPLITS",
    "STEPS",
    "VERDICTS",
    "Column",
    "Contract",
    "RowRule",
    "StoredTable",
]
