"""What a check makes of a part of a release: proved, consistent or believed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from routeyard.pipelines.release.finding import Finding, printable

Kind = Literal["proved", "consistent", "believed"]
KINDS: tuple[Kind, ...] = ("proved", "consistent", "believed")


@dataclass(frozen=True, slots=True)
class ProofClaim:
    """A statement about one part of a release.

    Attributes:
        kind: `proved` was computed again from other data of the release and is equal;
            `consistent` contradicts nothing that could be compared; `believed` rests on the
            publisher's word.
        about: Table, or part of the manifest.
    """

    kind: Kind
    about: str
    says: str

    def __str__(self) -> str:
        """One printable line."""
        return printable(f"{self.about}: {self.says}")


@dataclass
class Proof:
    """Contradictions in a release, and what was proved, consistent and believed of the rest."""

    findings: list[Finding] = field(default_factory=list)
    claims: list[ProofClaim] = field(default_factory=list)

    def add(self, results: Iterable[Finding | ProofClaim]) -> None:
        """Take the results of a check as they come: what was found before an error counts."""
        for result in results:
            if isinstance(result, Finding):
                self.findings.append(result)
            else:
                self.claims.append(result)

    def of(self, kind: Kind) -> list[str]:
        """The statements of one kind, a line each."""
        return [str(claim) for claim in self.claims if claim.kind == kind]


#: What checks give, one after the other.
Results = Iterator[Finding | ProofClaim]


def proved(about: str, says: str) -> ProofClaim:
    """A statement that was computed again and is equal."""
    return ProofClaim("proved", about, says)


def consistent(about: str, says: str) -> ProofClaim:
    """A statement that nothing in the release contradicts."""
    return ProofClaim("consistent", about, says)


def believed(about: str, says: str) -> ProofClaim:
    """A statement that rests on the publisher's word."""
    return ProofClaim("believed", about, says)


def contradiction(
    about: str, bad: int, of: int, what: str, examples: Sequence[str], check: str = "proof"
) -> Finding:
    """A finding that names the table, how many rows, and what was expected of some of them."""
    shown = "; ".join(examples[:3])
    return Finding(check, about, f"{bad:,} of {of:,} {what}" + (f", e.g. {shown}" if shown else ""))
