"""What one row means: one contract per table, plus recipe, pool and manifest models."""

from __future__ import annotations

from routeyard.schemas.contract import Column, Contract, RowRule
from routeyard.schemas.descriptors import DESCRIPTORS
from routeyard.schemas.duplicates import DUPLICATES
from routeyard.schemas.embeddings import EMBEDDINGS, HIDDEN_STATES
from routeyard.schemas.entropies import ENTROPIES
from routeyard.schemas.labels import LABELS
from routeyard.schemas.models import MODELS
from routeyard.schemas.outcomes import OUTCOMES
from routeyard.schemas.preferences import PREFERENCES
from routeyard.schemas.queries import QUERIES
from routeyard.schemas.removals import REMOVALS
from routeyard.schemas.responses import RESPONSES, STEPS
from routeyard.schemas.signals import SIGNALS
from routeyard.schemas.splits import MODEL_SPLITS, SPLITS
from routeyard.schemas.stored import StoredTable
from routeyard.schemas.verdicts import VERDICTS

if __name__ != "routeyard.schemas":  # found by its bare name: see `routeyard/_aliases.py`
    from routeyard._aliases import alias

    alias(__name__)


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
