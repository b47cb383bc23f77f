"""What every curation rule returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from schemas import REMOVALS


@dataclass(frozen=True, slots=True)
class Curated:
    """Result of a rule `rule(tables, **parameters) -> Curated`.

    Attributes:
        kept: The entity tables the rule looked at, after the rule
            (`queries`, `models`); kept + removed = input.
        removed: `removals` rows, one for each thing taken away.
        added: Tables the rule creates, or whole new versions of tables it
            extends (`duplicates`, `labels` with a pseudo-specialist's rows).
        figures: JSON-ready numbers for manifest, card and summary.
    """

    kept: Mapping[str, pa.Table]
    removed: pa.Table
    added: Mapping[str, pa.Table] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)


def removals(stage: str, entity: str, rows: Iterable[tuple[str, str, str]]) -> pa.Table:
    """`removals` table from (key, reason, detail) rows."""
    return REMOVALS.from_rows(
        {"stage": stage, "entity": entity, "key": key, "reason": reason, "detail": detail}
        for key, reason, detail in rows
    )
