"""The split that a source published: the name of its scheme, and the words sources use."""

from __future__ import annotations

from collections.abc import Mapping

#: Name of the scheme; where it is, it is the default of `evaluate` and the other commands.
SCHEME = "upstream"
#: What sources call our three splits.
NAMES: Mapping[str, str] = {
    "train": "train", "training": "train",
    "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation",
    "test": "test", "testing": "test", "eval": "test",
}  # fmt: skip
