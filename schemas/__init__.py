"""What one row means: one contract per table, plus recipe, pool and manifest models."""

from __future__ import annotations

from routeyard.schemas.contract import Column as Column
from routeyard.schemas.contract import Contract as Contract
from routeyard.schemas.contract import RowRule as RowRule
from routeyard.schemas.stored import StoredTable as StoredTable
from routeyard.schemas.tables import CONTRACTS as CONTRACTS

if __name__ != "routeyard.schemas":  # found by its bare name: see `routeyard/_aliases.py`
    from routeyard._aliases import alias

    alias(__name__)


QUERIES = CONTRACTS["queries"]
MODELS = CONTRACTS["models"]
RESPONSES = CONTRACTS["responses"]
STEPS = CONTRACTS["steps"]
VERDICTS = CONTRACTS["verdicts"]
LABELS = CONTRACTS["labels"]
OUTCOMES = CONTRACTS["outcomes"]
EMBEDDINGS = CONTRACTS["embeddings"]
DUPLICATES = CONTRACTS["duplicates"]
ENTROPIES = CONTRACTS["entropies"]
PREFERENCES = CONTRACTS["preferences"]
DESCRIPTORS = CONTRACTS["descriptors"]
HIDDEN_STATES = CONTRACTS["hidden_states"]
SIGNALS = CONTRACTS["signals"]
SPLITS = CONTRACTS["splits"]
MODEL_SPLITS = CONTRACTS["model_splits"]
REMOVALS = CONTRACTS["removals"]
