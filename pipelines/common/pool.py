"""The pool of a recipe as the `models` table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from routeyard.pipelines.common.errors import RecipeError
from routeyard.schemas import MODELS
from routeyard.schemas.recipe import Model, Pool


def models_table(pool: Pool) -> pa.Table:
    """One row per model, by id. What the pool file does not say stays null.

    Raises:
        RecipeError: the pool is empty.
    """
    if not pool.models and pool.file is not None:
        raise RecipeError(
            f"the pool's file {pool.file!r} names an environment variable that is not set",
            where="pool.file",
            next_step="set it to the folder that holds the file; the recipe's header says which",
        )
    if not pool.models:
        raise RecipeError(
            "the pool has no models",
            where="pool",
            next_step="list models under 'pool.models', or name a 'pool.file'",
        )
    columns = set(MODELS.column_names)
    asked = Counter(map(_called, pool.models))
    rows = [
        {
            **{k: v for k, v in model.model_dump().items() if k in columns},
            "base_model": _base(model, asked),
            "output_budget": _budget(model),
            **_axes(model),
            "kind": "real",
        }
        for model in sorted(pool.models, key=lambda model: model.model_id)
    ]
    return MODELS.from_rows(rows, where="pool")


def _base(model: Model, asked: Counter[tuple[str | None, str]]) -> str | None:
    """The model that a member is an arm of; null where it is the only one."""
    if model.arm is not None:
        return model.arm.of
    return _called(model)[1] if asked[_called(model)] > 1 else None


def _axes(model: Model) -> dict[str, Any]:
    """The member's place on the axes of its entry."""
    arm = model.arm
    if arm is None:
        return {}
    return {
        "effort": arm.effort, "effort_level": arm.effort_level, "prompt_form": arm.prompt,
        "tools": arm.tools,
    }  # fmt: skip


def _called(model: Model) -> tuple[str | None, str]:
    """Provider and name there: equal of members that are arms of one model."""
    return model.provider, model.endpoint_model or model.model_id


def _budget(model: Model) -> int | None:
    """Longest answer in tokens that a member's own parameters allow; null without any."""
    for name in ("max_completion_tokens", "max_tokens"):
        given = model.parameters.get(name)
        if isinstance(given, int) and not isinstance(given, bool) and given > 0:
            return given
    return None
