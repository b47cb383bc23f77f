"""What a check makes of a part of a release: proved, consistent, believed, or not checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from routeyard.pipelines.release.finding import Finding, printable

Kind = Literal["proved", "consistent", "believed", "not_run"]
KINDS: tuple[Kind, ...] = ("proved", "consistent", "believed", "not_run")


@dataclass(frozen=True, slots=True)
class ProofClaim:
    """A statement about one part of a release.

    Attributes:
        kind: `proved` was computed again from other data of the release and is equal;
            `consistent` contradicts nothing that could be compared; `believed` rests on the
            publisher's word; `not_run` names a check that could not be made, and why.
        about: Table, or part of the manifest.
        covers: Columns (`table.column`) and figures (`figures.stage.name`) that are proved whole,
            or by a sample that the claim names; all others are listed as believed.
    """

    kind: Kind
    about: str
    says: str
    covers: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One printable line."""
        return printable(f"{self.about}: {self.says}")


@dataclass
class Proof:
    """Contradictions in a release, and what its checks proved or could not show of the rest."""

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

    @property
    def covered(self) -> set[str]:
        """Columns and figures that were proved and that no check contradicts."""
        return {name for claim in self.claims for name in claim.covers}


#: What checks give, one after the other.
Results = Iterator[Finding | ProofClaim]


def proved(about: str, says: str, *covers: str) -> ProofClaim:
    """A statement that was computed again from other data than itself and is equal.

    Args:
        covers: As in `ProofClaim`; names of columns of the table `about` may be short.
    """
    return ProofClaim(
        "proved", about, says, tuple(c if "." in c else f"{about}.{c}" for c in covers)
    )


def consistent(about: str, says: str) -> ProofClaim:
    """A statement that nothing in the release contradicts."""
    return ProofClaim("consistent", about, says)


def believed(about: str, says: str) -> ProofClaim:
    """A statement that rests on the publisher's word."""
    return ProofClaim("believed", about, says)


def not_run(about: str, check: str, why: str) -> ProofClaim:
    """A check that could not be made, and the reason: what it would show is believed."""
    return ProofClaim("not_run", about, f"{check}: {why}")


def contradiction(
    about: str, bad: int, of: int, what: str, examples: Sequence[str], check: str = "proof"
) -> Finding:
    """A finding that names the table, how many rows, and what was expected of some of them."""
    shown = "; ".join(examples[:3])
    return Finding(check, about, f"{bad:,} of {of:,} {what}" + (f", e.g. {shown}" if shown else ""))
