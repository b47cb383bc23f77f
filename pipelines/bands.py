"""Bands of the trade-off metrics, apart from their arithmetic: `--help` imports no numpy."""

from __future__ import annotations

from dataclasses import dataclass

from routeyard.pipelines.errors import BadInput


@dataclass(frozen=True)
class Bands:
    """Where the trade-off metrics look.

    Attributes:
        d1_lpm: LPM averages Φ over call rates up to this.
        d1_mpm: MPM starts here.
        low, high: ρ₁ and ρ₂, shares of the gap between the two models.

    As published (`as_published`) LPM averages the grid's call rates from
    `d1_lpm` to `d1_mpm`, where MPM starts too.

    Raises:
        BadInput: a bound is outside [0, 1], or the two of a band are in the wrong order.
    """

    d1_lpm: float = 0.25
    d1_mpm: float = 0.30
    low: float = 0.85
    high: float = 0.95

    def __post_init__(self) -> None:
        ordered = 0 < self.d1_lpm <= self.d1_mpm < 1 and 0 <= self.low <= self.high <= 1
        if not ordered:
            raise BadInput(
                f"these are no bands: call rates {self.d1_lpm:g} and {self.d1_mpm:g}, shares "
                f"{self.low:g} and {self.high:g}",
                next_step="give 0 < d1_lpm ≤ d1_mpm < 1 and 0 ≤ low ≤ high ≤ 1, such as "
                "0.25,0.30,0.85,0.95",
            )
