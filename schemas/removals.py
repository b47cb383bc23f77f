"""Contract of `removals`: everything a rule took away, and why."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

REMOVALS = Contract(
    "removals",
    "Everything a rule took away, and why.",
    key=("stage", "entity", "key"),
    columns=columns(
        stage="string: stage and rule that removed it",
        entity="string: `query`, `model`, `response`, `pair`, …",
        key="string: id of what was removed; parts of a compound key joined by `|`",
        reason="string: short machine-readable reason",
        detail="string: one sentence for a person",
    ),
    rules=rules(
        says_why="length(reason) > 0",
    ),
)
