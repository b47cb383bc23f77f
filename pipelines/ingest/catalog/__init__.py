"""The catalog: one YAML per source dataset, named by `catalog:` in a recipe."""

from __future__ import annotations

from importlib.resources import files

import yaml
from pydantic import ValidationError

from pipelines.errors import RecipeError, UnknownName, did_you_mean
from schemas.recipe import Source


def names() -> list[str]:
    """Sources the catalog holds."""
    folder = files(__name__)
    return sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".yaml"))


def from_catalog(source: Source) -> Source:
    """The source with the catalog's entry filled in; what the recipe says wins."""
    if source.catalog is None:
        return source
    if source.catalog not in names():
        raise UnknownName(
            f"there is no source {source.catalog!r} in the catalog",
            where=f"source {source.name!r}",
            next_step=did_you_mean(source.catalog, names()),
        )
    text = files(__name__).joinpath(f"{source.catalog}.yaml").read_text(encoding="utf-8")
    said = source.model_dump(exclude_unset=True, exclude={"catalog"})
    try:
        return Source.model_validate({**yaml.safe_load(text), **said})
    except ValidationError as error:
        raise RecipeError(
            f"source {source.name!r} does not fit the catalog's {source.catalog!r}: {error}"
        ) from error
