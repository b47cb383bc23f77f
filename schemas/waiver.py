"""A gate that a person waived; the recipe names it, and the manifest keeps it."""

from __future__ import annotations

from pydantic import Field

from routeyard.schemas.strict import Strict


class Waiver(Strict):
    """A gate that is waived by name, with the reason the card will print."""

    gate: str
    """Name of the gate: `metering` or `audit`, or one check as `metering:latency`, `audit:leak`."""
    reason: str = Field(min_length=10)
    """Why; the card prints it."""
