"""What a check of the metering audit is given, and the finding it files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.recipe.collect import Metering

#: Gate that waives every check; `metering:<check>` waives one.
GATE = "metering"
#: Rows a finding shows; `count` says how many there are.
SHOWN = 20
#: One answer: columns of `responses`, and of a ledger where it comes from one.
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MeteringFinding:
    """What one check found for one model.

    Attributes:
        rows: Up to 20 of the (query_id, sample) it is about; `count` has all.
        share: `count` over the model's answers, where the check judges a share.
    """

    check: str
    model_id: str
    says: str
    count: int
    rows: tuple[tuple[str, int], ...]
    share: float | None = None

    @property
    def gate(self) -> str:
        return f"{GATE}:{self.check}"


@dataclass(frozen=True)
class MeteringInput:
    """What the checks know beside the answers.

    Attributes:
        models: model_id → row of `models`.
        prompts: query_id → prompt.
        names: model_id → name the endpoint was asked for.
        price_changed: model_id → day of the last known price change (ISO 8601).
    """

    models: Mapping[str, Row]
    thresholds: Metering
    prompts: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    price_changed: Mapping[str, str] = field(default_factory=dict)


#: (what is known, model_id, that model's answers) → findings
Check = Callable[[MeteringInput, str, list[Row]], Iterator[MeteringFinding]]


def finding(
    check: str, model_id: str, says: str, bad: list[Row], of: int | None
) -> MeteringFinding:
    rows = sorted((str(row["query_id"]), int(row["sample"])) for row in bad)
    part = len(bad) / of if of else None
    return MeteringFinding(check, model_id, says, len(bad), tuple(rows[:SHOWN]), part)


def any_bad(check: str, model_id: str, says: str, bad: list[Row]) -> Iterator[MeteringFinding]:
    if bad:
        yield finding(check, model_id, says, bad, None)


def share(
    check: str,
    model_id: str,
    says: str,
    bad: list[Row],
    rows: list[Row],
    asked: MeteringInput,
    threshold: str,
) -> Iterator[MeteringFinding]:
    """A finding when more than the threshold's share of the answers is bad."""
    limit = float(getattr(asked.thresholds, threshold))
    # With few answers a rate says nothing, but a limit of none is none.
    judged = limit == 0 or len(rows) >= asked.thresholds.min_answers
    if bad and judged and len(bad) > limit * len(rows):
        yield finding(check, model_id, f"{says} (limit {limit:.0%})", bad, len(rows))
