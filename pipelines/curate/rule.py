"""A curation rule: its function, parameters and tables, and the `Curated` it returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_type_hints

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from pipelines.errors import RecipeError, did_you_mean
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
            raise self._refusal(error, where) from None

    def _refusal(self, error: ValidationError, where: str) -> RecipeError:
        found = error.errors()[0]
        key = str(found["loc"][0]) if found["loc"] else ""
        if found["type"] == "extra_forbidden":
            return RecipeError(
                f"rule {self.name!r} has no parameter {key!r}",
                where=where,
                next_step=did_you_mean(key, self.parameters.model_fields),
            )
        if found["type"] == "missing" and len(found["loc"]) == 1:
            return RecipeError(
                f"rule {self.name!r} needs the parameter {key!r}; it has no default",
                where=where,
                next_step=f"add '{key}: …' to the rule",
            )
        wanted = "; or ".join(
            dict.fromkeys(one["msg"] for one in error.errors() if one["loc"][:1] == (key,))
        )
        return RecipeError(
            f"parameter {key!r} of rule {self.name!r} cannot be {_value(error, key)!r}",
            where=where,
            next_step=wanted,
        )

    def __call__(self, tables: Mapping[str, Any], **parameters: Any) -> Curated:
        return self.apply(tables, **parameters)


def _value(error: ValidationError, key: str) -> Any:
    """What was written for a parameter; the part of it that did not fit where it is nested."""
    return next(one["input"] for one in error.errors() if one["loc"][:1] == (key,))
