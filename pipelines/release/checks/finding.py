"""One thing that is wrong with a release."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold: which check, where, and what it found."""

    check: str
    where: str
    says: str
