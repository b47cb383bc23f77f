"""Intervals of shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def wilson(hits: float, n: float, z: float = 1.959964) -> tuple[float, float, float]:
    """A share of `n` > 0 with its 95 % score interval (Wilson 1927): (share, low, high)."""
    centre = (hits + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(hits * (n - hits) / n + z * z / 4)
    return hits / n, max(0.0, centre - half), min(1.0, centre + half)


def widened(low: float, high: float, known: float, n: float) -> tuple[float, float]:
    """The limits of a share of `known` answers, for all `n`: those that are missing or undecided
    are all wrong at the lower limit and all right at the upper one (Manski 1989).

    low · known/n and 1 − (1 − high) · known/n.

    >>> widened(0.5, 0.75, 20, 40), widened(0.5, 0.75, 40, 40)
    ((0.25, 0.875), (0.5, 0.75))
    """
    part = min(1.0, known / n)
    return low * part, 1 - (1 - high) * part


#: Sum of scores, answers with a label, questions.
Counts = tuple[float, float, float]


def order_undecided(arms: Mapping[str, Counts], first: str) -> list[str]:
    """Arms whose order with `first` is open because labels are missing or undecided, and for that
    reason alone: those labels could reverse it, or Wilson's intervals overlap only once widened.

    >>> order_undecided({"evades": (20, 20, 40), "a": (36, 40, 40), "b": (4, 40, 40)}, "evades")
    ['a']
    >>> order_undecided({"a": (8.1, 40 - 1e-12, 40), "b": (8.1, 40, 40)}, "a")  # rounded
    []
    """
    hits, known, n = arms[first]
    found = []
    for name, (other_hits, other_known, other_n) in arms.items():
        open_labels = n - known + other_n - other_known
        # Means of graded scores are rounded; an arm without any label has no accuracy.
        if name == first or open_labels < 1e-6 or not min(known, other_known):
            continue
        if hits / n <= (other_hits + other_n - other_known) / other_n:
            found.append(name)
            continue
        own, other = wilson(hits, known)[1:], wilson(other_hits, other_known)[1:]
        apart = own[0] > other[1]
        if apart and widened(*own, known, n)[0] <= widened(*other, other_known, other_n)[1]:
            found.append(name)
    return sorted(found)


def undecided_words(first: str, others: Sequence[str]) -> str:
    """Why no arm is called the best.

    >>> undecided_words("a", ["b", "c"])
    'None is called best: the order of a and b, c depends on labels that are missing or undecided.'
    """
    names = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    return (
        f"None is called best: the order of {first} and {names} depends on labels that are "
        "missing or undecided."
    )
