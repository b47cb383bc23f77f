"""A finding: something in a release that does not hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold: which check, where, and what it found."""

    check: str
    where: str
    says: str

    def __str__(self) -> str:
        """One printable line: a stranger's file names may hold terminal codes."""
        line = f"{self.check}: {self.where}: {self.says}"
        return "".join(sign if sign.isprintable() else "�" for sign in line)[:2000]


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its name."""
    return (str(error).splitlines() or [type(error).__name__])[0][:500]
