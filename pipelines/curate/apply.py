"""Runs curation rules in order, and sees to it that nothing goes without a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.curate import RULES
from routeyard.pipelines.curate.rule import ENTITIES, Curated, Rule
from routeyard.pipelines.errors import RouteyardError
from routeyard.schemas import REMOVALS

#: Tables that keep rows of removed entities: they are the record of the removal.
RECORDS = ("duplicates", "removals")


@dataclass(frozen=True, slots=True)
class Applied:
    """Tables after all rules, all `removals`, and each rule's figures in order."""

    tables: Mapping[str, pa.Table]
    removals: pa.Table
    figures: Sequence[Mapping[str, Any]] = field(default=())


def curate(
    tables: Mapping[str, pa.Table],
    rules: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    make: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> Applied:
    """All rules in order; rows of removed queries and models leave every table.

    Args:
        tables: `queries`, `models` and whatever the rules need, by name.
        rules: (name in `RULES`, parameters).
        make: (name, parameters) → the objects that the rule `needs`;
            called when the rule's turn comes.

    Raises:
        UnknownName: there is no such rule.
        RecipeError: a parameter is unknown, missing or of the wrong type.
    """
    # All parameters are checked before the first rule runs.
    check_rules(rules)
    current = dict(tables)
    removed = [REMOVALS.empty()]
    figures: list[Mapping[str, Any]] = []
    for name, parameters in rules:
        rule: Rule = RULES.get(name)
        before = {table: len(current[table]) for table in ENTITIES if table in current}
        made = make(name, parameters) if make is not None else {}
        result = rule.apply(current, **parameters, **made)
        _check_sum(name, current, result)
        current.update(result.kept)
        current.update(result.added)
        current = _without_dependents(current, result.removed)
        removed.append(result.removed)
        after = {table: len(current[table]) for table in before}
        figures.append(
            {
                "rule": name,
                "parameters": {**rule.defaults, **parameters},
                "before": before,
                "after": after,
                "figures": dict(result.figures),
            }
        )
    return Applied(current, REMOVALS.check(pa.concat_tables(removed), where="curate"), figures)


def check_rules(rules: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Names and parameters of all rules, without running any (`routeyard plan`)."""
    for number, (name, parameters) in enumerate(rules, start=1):
        rule: Rule = RULES.get(name, where=f"curate, rule {number}")
        rule.check(parameters, where=f"curate, rule {number} ({name})")


def _check_sum(name: str, before: Mapping[str, pa.Table], result: Curated) -> None:
    """kept + removed = input, for every entity table the rule returns."""
    for table, (column, entity) in ENTITIES.items():
        if table not in result.kept:
            continue
        rows = result.removed.filter(pc.equal(result.removed.column("entity"), entity))
        gone = set(rows.column("key").to_pylist())
        kept = set(result.kept[table].column(column).to_pylist())
        had = set(before[table].column(column).to_pylist())
        if kept | gone != had or kept & gone:
            raise RouteyardError(
                f"rule {name!r} does not account for its {table}: {len(had)} in, "
                f"{len(kept)} kept, {len(gone)} removed",
                where=f"curate: {name}",
                next_step="every removal needs a row; this is a defect of the rule",
            )


def _without_dependents(tables: Mapping[str, pa.Table], removed: pa.Table) -> dict[str, pa.Table]:
    out = dict(tables)
    for column, entity in ENTITIES.values():
        gone = removed.filter(pc.equal(removed.column("entity"), entity)).column("key")
        if not len(gone):
            continue
        for name, table in tables.items():
            if name not in RECORDS and column in table.column_names:
                away = pc.is_in(out[name].column(column), value_set=gone.combine_chunks())
                out[name] = out[name].filter(pc.invert(away))
    return out
