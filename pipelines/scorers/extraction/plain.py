"""Answers whose value is plain: one numeral, one letter. Everything else is for `read`."""

from __future__ import annotations

import re
from collections.abc import Hashable
from decimal import Decimal

# Plain numerals; more decimals than five are left to the scorer, which may round.
_NUMERAL = re.compile(r"(-?)(\d{1,30}|[1-9]\d{0,2}(?:,\d{3}){1,9})(\.\d{1,5})?", re.ASCII)
_LETTER = re.compile(r"[A-Z]")


def numeral(answer: str) -> Hashable | None:
    """A numeral's value.

    Two plain numerals are one answer to `numeric` and `math` exactly when their
    values are equal; fractions, units and LaTeX are not plain.
    """
    found = _NUMERAL.fullmatch(answer)
    if found is None:
        return None
    sign, whole, decimals = found.groups()
    return Decimal(f"{sign}{whole.replace(',', '')}{decimals or ''}")


def amount(answer: str) -> Hashable | None:
    """A numeral's value, with or without a dollar sign."""
    return numeral(answer.removeprefix("$"))


def option(answer: str) -> Hashable | None:
    """An option's letter."""
    return answer if _LETTER.fullmatch(answer) else None
