"""The split that a source published: the name of its scheme, and the words sources use."""

from __future__ import annotations

from collections.abc import Mapping

from routeyard.schemas.split_files import PUBLISHED

#: Name of the scheme; where it is, it is the default of `evaluate` and the other commands.
SCHEME = PUBLISHED
#: What sources call our three splits.
NAMES: Mapping[str, str] = {
    "train": "train", "training": "train",
    "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation",
    "test": "test", "testing": "test", "eval": "test",
}  # fmt: skip
