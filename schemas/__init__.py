"""What one row means: one contract per table, plus recipe, pool and manifest models.

Contracts are imported when they are first used: they need pyarrow, which `--help` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routeyard.schemas.contracts import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name != "contracts":
        from routeyard.schemas import contracts

        if hasattr(contracts, name):
            return getattr(contracts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
