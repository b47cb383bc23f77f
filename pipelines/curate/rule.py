"""A curation rule: its function, parameters and tables, and the `Curated` it returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from routeyard.pipelines.curate import RULES
from routeyard.schemas import REMOVALS
from routeyard.schemas.errors import RecipeError, RouteyardError, did_you_mean

#: Tables whose rows are the entities that rules remove, with id column and entity name.
ENTITIES = {"queries": ("query_id", "query"), "models": ("model_id", "model")}


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

    kept: Mapping[str, pa.Table] = field(default_factory=dict)
    removed: pa.Table = field(default_factory=REMOVALS.empty)
    added: Mapping[str, pa.Table] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)


def removals(stage: str, entity: str, rows: Iterable[tuple[str, str, str]]) -> pa.Table:
    """`removals` table from (key, reason, detail) rows."""
    return REMOVALS.from_rows(
        {"stage": stage, "entity": entity, "key": key, "reason": reason, "detail": detail}
        for key, reason, detail in rows
    )


def removing(
    tables: Mapping[str, pa.Table],
    table: str,
    rows: Sequence[tuple[str, str, str]],
    *,
    rule: str,
    added: Mapping[str, pa.Table] | None = None,
    figures: Mapping[str, Any] | None = None,
) -> Curated:
    """Result of a rule that removes queries or models: (key, reason, detail) of each of them."""
    column, entity = ENTITIES[table]
    gone = pa.array([key for key, _, _ in rows], pa.string())
    stay = pc.invert(pc.is_in(tables[table].column(column), value_set=gone))
    removed = removals(f"curate.{rule}", entity, rows)
    return Curated({table: tables[table].filter(stay)}, removed, added or {}, figures or {})


def refused(rule: str, what: str, next_step: str) -> RecipeError:
    """Error of a rule whose parameters do not fit its tables."""
    return RecipeError(what, where=f"curate: {rule}", next_step=next_step)


@dataclass(frozen=True)
class Rule:
    """A curation rule: `apply(tables, **parameters) -> Curated`, pure.

    Attributes:
        name: What recipes call it.
        reads: Tables it looks at beside `queries` and `models`; a build makes
            `embeddings` only where a rule reads them.
        needs: Keywords that no recipe can write: objects that the flow makes.
        model: pydantic model of the parameters; by default made from the
            keywords of `apply` and their annotations.
    """

    name: str
    apply: Callable[..., Curated]
    reads: tuple[str, ...] = ("labels",)
    needs: tuple[str, ...] = ()
    model: type[BaseModel] | None = None

    @cached_property
    def parameters(self) -> type[BaseModel]:
        """The parameters a recipe may write, with types and defaults."""
        if self.model is not None:
            return self.model
        hints = get_type_hints(self.apply)
        fields: dict[str, Any] = {}
        for parameter in inspect.signature(self.apply).parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in self.needs:
                default = ... if parameter.default is parameter.empty else parameter.default
                fields[parameter.name] = (hints.get(parameter.name, Any), Field(default))
        config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)
        return create_model(self.name, __config__=config, **fields)

    @property
    def defaults(self) -> dict[str, Any]:
        """Parameters that have a default, with it."""
        fields = self.parameters.model_fields.items()
        return {name: field.default for name, field in fields if not field.is_required()}

    def check(self, parameters: Mapping[str, Any], *, where: str) -> None:
        """Parameters as a recipe writes them.

        Raises:
            RecipeError: unknown (with a suggestion), missing, or of the wrong type.
        """
        try:
            self.parameters.model_validate(dict(parameters))
        except ValidationError as error:
            result = error.errors()[0]
            key = str(result["loc"][0]) if result["loc"] else ""
            what = f"rule {self.name!r} has no parameter {key!r}"
            next_step = did_you_mean(key, self.parameters.model_fields)
            if result["type"] == "missing" and len(result["loc"]) == 1:
                what = f"rule {self.name!r} needs the parameter {key!r}; it has no default"
                next_step = f"add '{key}: …' to the rule"
            elif result["type"] != "extra_forbidden":
                # The part that does not fit, where the parameter is nested.
                here = [item for item in error.errors() if item["loc"][:1] == (key,)]
                what = f"parameter {key!r} of rule {self.name!r} cannot be {here[0]['input']!r}"
                next_step = "; or ".join(dict.fromkeys(item["msg"] for item in here))
            raise RecipeError(what, where=where, next_step=next_step) from None

    def __call__(self, tables: Mapping[str, Any], **parameters: Any) -> Curated:
        return self.apply(tables, **parameters)


# Runs curation rules in order, and sees to it that nothing goes without a reason.

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
        remaining = set(result.kept[table].column(column).to_pylist())
        had = set(before[table].column(column).to_pylist())
        if remaining | gone != had or remaining & gone:
            raise RouteyardError(
                f"rule {name!r} does not account for its {table}: {len(had)} in, "
                f"{len(remaining)} kept, {len(gone)} removed",
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
