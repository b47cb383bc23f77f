"""The contract of every table by its name, and the types they are made of."""

from __future__ import annotations

from routeyard.schemas.contract import Column as Column
from routeyard.schemas.contract import Contract as Contract
from routeyard.schemas.contract import RowRule as RowRule
from routeyard.schemas.stored import StoredTable as StoredTable
from routeyard.schemas.tables import CONTRACTS as CONTRACTS

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
