"""The pool of a recipe as the `models` table."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.arrays import Bools
from routeyard.schemas import MODELS
from routeyard.schemas.errors import RecipeError
from routeyard.schemas.text import own_table

if TYPE_CHECKING:
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
            **model.price_columns,
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
        budget = model.parameters.get(name)
        if isinstance(budget, int) and not isinstance(budget, bool) and budget > 0:
            return budget
    return None


# Names under which providers serve a model.

_DATED = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-\d{4}|-latest)?")


def same_model(asked: str, served: str) -> bool:
    """Whether the served name is the asked one, give or take vendor prefix and date.

    `openai/gpt-4o` is served as `gpt-4o-2024-08-06`; `gpt-4o-mini` is another model.
    """
    a, b = (name.lower().rsplit("/", 1)[-1].split(":", 1)[0] for name in (asked, served))
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    if not longer.startswith(shorter):
        return False
    return _DATED.fullmatch(longer[len(shorter) :]) is not None


# Published sizes of models whose names do not state them (`model_sizes.yaml`).


def published_size(model: str) -> dict[str, Any]:
    """The published size of a model by its exact name, `owner/name` or `owner__name`, and where it
    was read and when; empty where it is unknown.

    >>> published_size("microsoft__phi-2")["params_b"], published_size("phi-2")
    (2.7, {})
    """
    return _sizes().get(model.replace("__", "/"), {})


def with_published_sizes(pool: Pool) -> Pool:
    """The pool with published sizes where a real model states none."""
    models = [
        model.but(**published_size(model.endpoint_model or model.model_id))
        if model.params_b is None and not model.simulated else model
        for model in pool.models
    ]  # fmt: skip
    return pool if models == pool.models else pool.but(models=models)


@cache
def _sizes() -> dict[str, dict[str, Any]]:
    return {
        model: {
            "params_b": float(row["params_b"]),
            "params_source": f"{row['source']} (read {row['read']})",
        }
        for row in own_table(Path(__file__).with_name("model_sizes.yaml"))
        for model in row["models"]
    }


# Groups of tasks: those known by name, and which questions match a list of patterns.

_LISTED = own_table(Path(__file__).with_name("task_groups.yaml"))
#: Name → patterns (lower case) of the groups that can be asked for by name.
OOD_GROUPS: dict[str, tuple[str, ...]] = {
    name: (*listed, *(f"mmlu_{task}" for task in listed))
    for name, listed in _LISTED["also_in_mmlu"].items()
} | {name: tuple(listed) for name, listed in _LISTED["as_listed"].items()}


def members(
    patterns: Sequence[str], columns: Iterable[Any], metadata: Sequence[str | None] = ()
) -> Bools:
    """(n,) questions that a pattern holds, in any case.

    Args:
        patterns: names or patterns (`mmlu_*`) of the values in `columns`, or
            `field=pattern` for a field of the metadata (`subject=*physics`).
        columns: task, domain and source of each question, (n,) each.
        metadata: JSON objects of the n questions; none when not known.
    """
    asked = [pattern.lower().partition("=") for pattern in patterns]
    plain = [name for name, equals, _ in asked if not equals]
    fields = [(name.strip(), pattern.strip()) for name, equals, pattern in asked if equals]
    listed = [list(map(str, column)) for column in columns]
    hit = np.zeros(len(listed[0]), dtype=bool)
    for values in listed:
        held = {v for v in set(values) if v and any(fnmatchcase(v.lower(), p) for p in plain)}
        hit |= np.fromiter((value in held for value in values), dtype=bool, count=len(values))
    if not fields:
        return hit
    for row, text in enumerate(metadata):
        data: Any = json.loads(text) if text else {}
        if isinstance(data, dict):
            lowered = {str(key).lower(): str(value).lower() for key, value in data.items()}
            hit[row] |= any(fnmatchcase(lowered.get(name, ""), p) for name, p in fields)
    return hit
