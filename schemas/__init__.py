"""What one row means: one contract per table, plus recipe, pool and manifest models.

Contracts are imported when they are first used: they need pyarrow, which `--help` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routeyard.schemas.contracts import CONTRACTS as CONTRACTS
    from routeyard.schemas.contracts import DESCRIPTORS as DESCRIPTORS
    from routeyard.schemas.contracts import DUPLICATES as DUPLICATES
    from routeyard.schemas.contracts import EMBEDDINGS as EMBEDDINGS
    from routeyard.schemas.contracts import ENTROPIES as ENTROPIES
    from routeyard.schemas.contracts import HIDDEN_STATES as HIDDEN_STATES
    from routeyard.schemas.contracts import LABELS as LABELS
    from routeyard.schemas.contracts import MODEL_SPLITS as MODEL_SPLITS
    from routeyard.schemas.contracts import MODELS as MODELS
    from routeyard.schemas.contracts import OUTCOMES as OUTCOMES
    from routeyard.schemas.contracts import PREFERENCES as PREFERENCES
    from routeyard.schemas.contracts import QUERIES as QUERIES
    from routeyard.schemas.contracts import REMOVALS as REMOVALS
    from routeyard.schemas.contracts import RESPONSES as RESPONSES
    from routeyard.schemas.contracts import SIGNALS as SIGNALS
    from routeyard.schemas.contracts import SPLITS as SPLITS
    from routeyard.schemas.contracts import STEPS as STEPS
    from routeyard.schemas.contracts import VERDICTS as VERDICTS
    from routeyard.schemas.contracts import Column as Column
    from routeyard.schemas.contracts import Contract as Contract
    from routeyard.schemas.contracts import RowRule as RowRule
    from routeyard.schemas.contracts import StoredTable as StoredTable


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name != "contracts":
        from routeyard.schemas import contracts

        if hasattr(contracts, name):
            return getattr(contracts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
