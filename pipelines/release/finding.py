"""A finding: something in a release that does not hold."""

from __future__ import annotations

from dataclasses import dataclass

from routeyard.pipelines.memory import named


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold: which check, where, and what it found."""

    check: str
    where: str
    says: str

    def __str__(self) -> str:
        """One printable line."""
        return printable(f"{self.check}: {self.where}: {self.says}")


def printable(line: str) -> str:
    """A line without terminal codes, which a stranger's file names may hold."""
    return "".join(sign if sign.isprintable() else "�" for sign in line)[:2000]


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its name: what a finding says of a file.

    Raises:
        OutOfMemory: the fault is this machine's, and nothing is known about the file.
    """
    if (memory := named(error, "reading a release")) is not None:
        raise memory from error
    return (str(error).splitlines() or [type(error).__name__])[0][:500]
