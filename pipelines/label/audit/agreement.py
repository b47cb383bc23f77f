"""Agreement of two raters beyond chance."""

from __future__ import annotations


def cohen_kappa(both: int, first: int, second: int, none: int) -> float | None:
    """κ = (p_o − p_e) / (1 − p_e), Cohen 1960, of two raters who say yes or no.

    Args:
        both, first, second, none: Units to which both, only one or neither says yes.

    Returns:
        None without units, and where chance alone would always agree.
    """
    n = both + first + second + none
    a, b = (both + first) / max(n, 1), (both + second) / max(n, 1)
    chance = a * b + (1 - a) * (1 - b)
    return None if not n or chance == 1 else ((both + none) / n - chance) / (1 - chance)
