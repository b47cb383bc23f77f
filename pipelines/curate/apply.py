"""Runs curation rules in order, and sees to it that nothing goes without a reason."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.curate import RULES
from pipelines.curate.result import Curated
from pipelines.errors import RecipeError, RouteyardError, did_you_mean
from schemas import REMOVALS

#: Tables whose rows are the entities rules remove, with id column and entity name.
ENTITIES = {"queries": ("query_id", "query"), "models": ("model_id", "model")}
#: Parameters that no recipe can write: objects that the flow makes for a rule.
MADE_BY_FLOW = frozenset({"entailment", "assess"})
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
        make: (name, parameters) → the objects in `MADE_BY_FLOW` that the rule needs;
            called when the rule's turn comes.

    Raises:
        UnknownName: there is no such rule.
        RecipeError: a parameter is unknown, missing or of the wrong type.
    """
    prepared = [
        (name, RULES.get(name, where=f"curate, rule {number}"), dict(parameters))
        for number, (name, parameters) in enumerate(rules, start=1)
    ]
    # All parameters are checked before the first rule runs.
    for number, (name, rule, parameters) in enumerate(prepared, start=1):
        check_parameters(name, rule, parameters, where=f"curate, rule {number} ({name})")
    current = dict(tables)
    removed = [REMOVALS.empty()]
    figures: list[Mapping[str, Any]] = []
    for name, rule, parameters in prepared:
        before = {table: len(current[table]) for table in ENTITIES if table in current}
        made = make(name, parameters) if make is not None else {}
        result: Curated = rule(current, **parameters, **made)
        _check_sum(name, current, result)
        current.update(result.kept)
        current.update(result.added)
        current = _without_dependents(current, result.removed)
        removed.append(result.removed)
        after = {table: len(current[table]) for table in before}
        figures.append(
            {
                "rule": name,
                "parameters": {**rule_defaults(name), **parameters},
                "before": before,
                "after": after,
                "figures": dict(result.figures),
            }
        )
    return Applied(current, REMOVALS.check(pa.concat_tables(removed), where="curate"), figures)


def rule_defaults(name: str) -> dict[str, Any]:
    """Parameters of a rule that have a default, with it."""
    signature = inspect.signature(RULES.get(name))
    return {
        parameter.name: parameter.default
        for parameter in signature.parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
        and parameter.default is not parameter.empty
        and parameter.name not in MADE_BY_FLOW
    }


def check_rules(rules: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Names and parameters of all rules, without running any (`routeyard plan`)."""
    for number, (name, parameters) in enumerate(rules, start=1):
        rule = RULES.get(name, where=f"curate, rule {number}")
        check_parameters(name, rule, parameters, where=f"curate, rule {number} ({name})")


def check_parameters(name: str, rule: Any, parameters: Mapping[str, Any], *, where: str) -> None:
    """Parameters against the rule's keywords and their annotations.

    Raises:
        RecipeError: unknown (with a suggestion), missing, or of the wrong type.
    """
    known = {
        parameter.name: parameter
        for parameter in inspect.signature(rule).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in MADE_BY_FLOW
    }
    for key in parameters:
        if key not in known:
            raise RecipeError(
                f"rule {name!r} has no parameter {key!r}",
                where=where,
                next_step=did_you_mean(key, known),
            )
    lacking = [
        key
        for key, parameter in known.items()
        if parameter.default is parameter.empty and key not in parameters
    ]
    if lacking:
        raise RecipeError(
            f"rule {name!r} needs the parameter {lacking[0]!r}; it has no default",
            where=where,
            next_step=f"add '{lacking[0]}: …' to the rule",
        )
    hints = get_type_hints(rule)
    for key, value in parameters.items():
        if not _fits(value, hints.get(key, Any)):
            raise RecipeError(
                f"parameter {key!r} of rule {name!r} cannot be {value!r}",
                where=where,
                next_step=f"it must be {_words(hints[key])}",
            )


def _fits(value: Any, hint: Any) -> bool:
    """Whether a YAML value fits an annotation of the kinds rules use."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return value in arguments
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is None or hint is type(None):
        return value is None
    if origin is not None and arguments and _is_union(origin):
        return any(_fits(value, option) for option in arguments)
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _fits(k, arguments[0]) and _fits(v, arguments[1]) for k, v in value.items()
        )
    if inspect.isclass(origin) and issubclass(origin, Sequence):
        return isinstance(value, list | tuple) and all(_fits(v, arguments[0]) for v in value)
    return isinstance(value, hint) if inspect.isclass(hint) else True


def _is_union(origin: Any) -> bool:
    import types

    return origin is Union or origin is types.UnionType


def _words(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(repr(option) for option in get_args(hint))
    return getattr(hint, "__name__", str(hint)) if not get_args(hint) else str(hint)


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
