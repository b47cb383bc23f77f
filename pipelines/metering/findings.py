"""Input and findings of the metering audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from operator import itemgetter
from typing import Any

from routeyard.schemas.recipe.collect import Metering

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


def finding(
    check: str, model_id: str, says: str, bad: list[Row], of: int | None
) -> MeteringFinding:
    """The finding of a check about some of a model's answers; `of` gives the share."""
    first = nsmallest(SHOWN, bad, key=itemgetter("query_id", "sample"))
    rows = [(str(row["query_id"]), int(row["sample"])) for row in first]
    part = len(bad) / of if of else None
    return MeteringFinding(check, model_id, says, len(bad), tuple(rows), part)


def several_calls(row: Row) -> bool:
    """Whether its tokens are those of several calls, of which the text is the last one alone."""
    return bool((row.get("calls") or 1) > 1)
