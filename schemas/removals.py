"""Contract of `removals`: everything a rule took away, and why."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

REMOVALS = Contract(
    name="removals",
    says="Everything a rule took away, and why.",
    key=("stage", "entity", "key"),
    columns=(
        Column("stage", pa.string(), "stage and rule that removed it"),
        Column("entity", pa.string(), "`query`, `model`, `response`, `pair`, …"),
        Column("key", pa.string(), "id of what was removed; parts of a compound key joined by `|`"),
        Column("reason", pa.string(), "short machine-readable reason"),
        Column("detail", pa.string(), "one sentence for a person"),
    ),
    rules=(RowRule("says_why", "length(reason) > 0"),),
)
