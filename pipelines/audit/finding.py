"""A finding of the audit, and what a check hands over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.audit.answers import Answers

#: `grave` stops a release and makes a recording defective; `doubt` makes it doubtful; a `note`
#: changes no verdict.
Severity = Literal["grave", "doubt", "note"]
#: What mending a finding makes unknown: scores or costs of its rows, or nothing.
Mends = Literal["score", "cost", "nothing"]
#: Rows that a finding names.
SHOWN = 20


@dataclass(frozen=True, eq=False)
class Found:
    """What a check found: whom it is about, the sentence, and the rows.

    Attributes:
        rows: indices of the answers.
        severity: where it is not the check's own.
        swap: arm to which each row belongs after mending, where rows change their arm.
        before, after: (arms,) accuracy as recorded and mended, where rows do not tell.
    """

    about: str
    says: str
    rows: NDArray[np.int64]
    severity: Severity | None = None
    swap: NDArray[np.int64] | None = None
    before: NDArray[np.float64] | None = None
    after: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class AuditCheck:
    """One check.

    Attributes:
        kind: its name in findings and waivers.
        find: answers → what it found.
        needs: columns of which the source must say something.
        key: the recipe key that mends what it finds.
    """

    kind: str
    find: Callable[[Answers], Iterator[Found]]
    needs: tuple[str, ...]
    severity: Severity
    mends: Mends
    key: str


@dataclass(frozen=True)
class AuditFinding:
    """One defect.

    Attributes:
        count: answers that it is about.
        rows: where a person finds the first of them.
        effect: what mending it does to the leaderboard.
        swaps: pairs of arms that change places when it is mended.
        moved: largest change of an arm's accuracy, or relative change of its mean cost.
        key: recipe key that mends it.
        parts: `about`, `says` and `count` of each arm, cell or suite, where several have one cause.
    """

    kind: str
    about: str
    says: str
    count: int
    rows: tuple[dict[str, Any], ...]
    effect: str
    severity: Severity
    swaps: int = 0
    moved: float = 0.0
    key: str = field(kw_only=True)
    parts: tuple[dict[str, Any], ...] = ()

    @property
    def stops(self) -> bool:
        """Whether a release with it is not built unless it is waived."""
        return self.severity == "grave"

    @property
    def gate(self) -> str:
        """What `release.waivers` names it."""
        return f"audit:{self.kind}"
