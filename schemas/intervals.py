"""Intervals of shares."""

from __future__ import annotations

import math


def wilson(hits: float, n: int, z: float = 1.959964) -> tuple[float, float, float]:
    """A share of `n` > 0 with its 95 % score interval (Wilson 1927): (share, low, high)."""
    centre = (hits + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(hits * (n - hits) / n + z * z / 4)
    return hits / n, max(0.0, centre - half), min(1.0, centre + half)
