"""A release as a Prefect asset, with the sources and the pool it came from above it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routeyard.schemas.recipe import Recipe


def release_key(name: str) -> str:
    """Key of a benchmark's releases: one asset, materialised once per version."""
    return f"routeyard://releases/{_part(name)}"


def source_key(source: Any) -> str:
    """Key of a source: the dataset at its hub, or a file by the name the recipe gives it.

    A local path is left out: it shows where somebody keeps files.
    """
    if source.hub_id:
        owner, _, dataset = source.hub_id.rpartition("/")
        return f"hf://datasets/{_part(owner) + '/' if owner else ''}{_part(dataset)}"
    return f"routeyard://sources/{_part(source.name)}"


def materialising(task: Any, recipe: Recipe) -> Any:
    """The task that releases, as one that materialises the release from the recipe's sources."""
    from prefect.assets import Asset, AssetProperties
    from prefect.tasks import MaterializingTask

    properties = AssetProperties(
        name=recipe.release.title or recipe.name,
        description=(recipe.release.description or f"Benchmark {recipe.name}")[:2000],
    )
    # `with_options` of a plain task cannot name assets, so the task is made again around it.
    return MaterializingTask(
        fn=_with_metadata(task.fn, release_key(recipe.name)),
        assets=[Asset(key=release_key(recipe.name), properties=properties)],
        materialized_by="routeyard",
        name=task.name,
        persist_result=True,
        asset_deps=[Asset(key=key) for key in sorted({source_key(s) for s in recipe.sources})],
    )


def _with_metadata(
    function: Callable[..., dict[str, Any]], key: str
) -> Callable[..., dict[str, Any]]:
    """The function, which also writes the version that it made to the asset."""
    from functools import wraps

    @wraps(function)
    def released(*given: Any, **named: Any) -> dict[str, Any]:
        from prefect.assets import add_asset_metadata

        made = function(*given, **named)
        about = {"version": Path(made["path"]).name, "fingerprint": made["fingerprint"]}
        add_asset_metadata(key, about | {"status": made["status"]})
        return made

    return released


def _part(text: str) -> str:
    """A part of a key: Prefect takes letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-") or "unnamed"
