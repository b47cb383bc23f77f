"""What is left to computer algebra: expressions put into the spelling its parser reads."""

from __future__ import annotations

import re

from routeyard.pipelines.scorers.comparison import exact, symbolic
from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("algebra")


def _is_prose(text: str) -> bool:
    """Whether a text is a sentence, which no computer algebra reads; `\\text{…}` is a unit."""
    return _RE["wordy"].search(_RE["group"].sub("", text)) is not None


def _words(text: str) -> set[str]:
    return set(_RE["word"].findall(_RE["group"].sub("", text)))


def symbolically(one: str, other: str) -> bool:
    """Whether two expressions or relations are equal to computer algebra; sentences never are.

    Raises:
        symbolic.TookTooLong: the comparison did not end in time.
    """
    if _is_prose(one) or _is_prose(other) or _words(one) != _words(other):
        return False
    # A fixed order makes the verdict symmetric and the cache twice as good.
    first, second = sorted((_latex(one), _latex(other)))
    settled = exact.same(first, second)
    return symbolic.same(first, second) is True if settled is None else settled


def _latex(text: str) -> str:
    """Mixed numbers as sums, percent as hundredths, digit groups joined."""
    text = _RE["mixed"].sub(r"(\1+\\frac{\2}{\3})", text)
    text = re.sub(r"\\?%", r"\\cdot\\frac{1}{100}", text)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = _RE["juxtaposed"].sub(r"\1\\cdot(", text)
    return re.sub(r"\\text\s?\{([^{}]*)\}", r"\\mathrm{\1}", text)
