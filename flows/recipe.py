"""Recipes from YAML: found by path or shipped name, checked, errors in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from routeyard.pipelines.errors import RecipeError, did_you_mean
from routeyard.pipelines.io.environment import expanded
from routeyard.pipelines.io.plain_yaml import read_text
from routeyard.pipelines.scorers.scorer import NO_RULE
from routeyard.schemas.recipe import Collect, Pool, Recipe

_MAX_BYTES = 5_000_000


def shipped() -> list[str]:
    """Names of the recipes that come with the package."""
    folder = files("routeyard.flows").joinpath("recipes")
    names = [f.name for f in folder.iterdir() if f.name.endswith(".yaml")]
    return sorted(name[:-5] for name in names if not name.endswith(".pool.yaml"))


def find(recipe: str) -> Path:
    """Path of a recipe file, or of the shipped recipe of that name."""
    path = Path(recipe)
    if path.is_file():
        return path
    if recipe in shipped():
        return Path(str(files("routeyard.flows").joinpath("recipes", f"{recipe}.yaml")))
    raise RecipeError(
        f"there is no recipe {recipe!r}",
        where=str(path.absolute()) if path.suffix else None,
        next_step=f"name a YAML file or a shipped recipe: {did_you_mean(recipe, shipped())}",
    )


def load(recipe: str | Path) -> tuple[Recipe, Path]:
    """The checked recipe, its pool file read in, and the folder its paths start from.

    Raises:
        RecipeError: not YAML, an unknown key (with a suggestion), a wrong value,
            a rule or scorer that is not registered.
    """
    path = find(str(recipe))
    content = read_yaml(path)
    pool = content.get("pool")
    if isinstance(pool, dict) and isinstance(pool.get("file"), str):
        content["pool"] = merged_pool(pool, path)
    try:
        checked = Recipe.model_validate(content)
    except ValidationError as error:
        raise explain(error, path, content) from error
    checked = _with_zoo(_with_templates(_with_prices(checked, path), path), path)
    _check_names(content, path)
    return checked, path.parent.absolute()


def load_recipe(recipe: str | Path) -> Recipe:
    """A recipe from a YAML file, or the shipped one of that name, checked.

    Raises:
        RecipeError: see `load`.
    """
    return load(recipe)[0]


def notes_of(recipe: Recipe) -> list[str]:
    """What of a recipe is worth a look before anything is asked: prompts, deciders, prices."""
    from routeyard.pipelines.metering.list_prices import from_list, stale_prices

    asked = recipe.collect.provider == "openai"
    prices = [*from_list(recipe.pool), *(stale_prices(recipe.pool) if asked else ())]
    return [*recipe.label.foreign_prompts, *nobody_decides(recipe), *prices]


def nobody_decides(recipe: Recipe) -> list[str]:
    """A note for each source whose answers are paid for and decided by nobody."""
    label = recipe.label
    if recipe.collect.provider == "recorded" or any(
        policy.then for policy in (label.default, *label.tasks.values())
    ):
        return []
    return [
        f"source {source.name!r} has 'scorer: none', and no policy under 'label' names a verifier "
        "or judge: its answers are paid for and stay undecided until a person decides them "
        "(`routeyard review`)"
        for source in recipe.sources
        if source.scorer == NO_RULE
    ]


def with_collect(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """The recipe with some keys of its `collect` section set otherwise, checked again.

    Raises:
        RecipeError: a value does not fit.
    """
    if not changes:
        return recipe
    try:
        collect = Collect.model_validate(
            recipe.collect.model_dump(exclude_unset=True) | dict(changes)
        )
    except ValidationError as error:
        raise explain(error, Path("command line"), dict(changes)) from error
    return recipe.but(collect=collect)


def _with_prices(recipe: Recipe, path: Path) -> Recipe:
    """Prices of the pool's price file, then of lists, and published sizes, where not stated."""
    from routeyard.pipelines.metering.list_prices import with_list_prices
    from routeyard.pipelines.metering.price_tables import priced, read_prices
    from routeyard.pipelines.model_sizes import with_published_sizes

    pool = recipe.pool
    if pool.prices is not None:
        pool = priced(pool, {None: read_prices(path.parent / pool.prices)})
    pool = with_list_prices(pool, batch=recipe.collect.transport == "batch")
    pool = with_published_sizes(pool)
    return recipe if pool is recipe.pool else recipe.but(pool=pool)


def _with_templates(recipe: Recipe, path: Path) -> Recipe:
    """Prompts of verifiers and judges from files beside the recipe, as the text they hold.

    A release then states the prompt itself, and no path of the machine it was made on.
    """
    served = [*recipe.label.verifiers, *recipe.label.judges]
    if all(one.template is None for one in served):
        return recipe
    from routeyard.pipelines.label.templates import read_template, shipped

    def text(template: str | None) -> str | None:
        if template is None or template in shipped() or "{{" in template:
            return template
        return read_template(path.parent / template)

    def with_text(listed: Sequence[Any]) -> list[Any]:
        return [one.but(template=text(one.template)) for one in listed]

    label = recipe.label.but(
        verifiers=with_text(recipe.label.verifiers), judges=with_text(recipe.label.judges)
    )
    return recipe.but(label=label)


def _with_zoo(recipe: Recipe, path: Path) -> Recipe:
    """The zoo's results from their file beside the recipe, as the text it holds."""
    if recipe.release.zoo is None:
        return recipe
    from routeyard.pipelines.zoo.report import checked_results

    text = checked_results(recipe.release.zoo, path.parent)
    return recipe.but(release=recipe.release.but(zoo=text))


def read_yaml(path: Path) -> dict[str, Any]:
    """One YAML mapping, read as a stranger's (`routeyard.pipelines.io.plain_yaml`)."""
    if path.stat().st_size > _MAX_BYTES:
        raise RecipeError("the file is larger than a recipe can be", where=str(path))
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RecipeError(
            f"the file is not valid YAML: {error}", where=str(path), next_step="write it as UTF-8"
        ) from error
    content = read_text(text, where=str(path))
    if not isinstance(content, dict):
        raise RecipeError(
            "a recipe is a mapping of keys",
            where=str(path),
            next_step="see `routeyard recipe show demo`",
        )
    return content


def explain(error: ValidationError, path: Path, content: object = None) -> RecipeError:
    """A pydantic error in plain words: first fault, line and name, how many more."""
    from routeyard.flows.recipe_faults import of_validation

    found = of_validation(error, path, content)
    first = found[0]
    more = f" (and {len(found) - 1} more: `routeyard recipe check`)" if len(found) > 1 else ""
    line = f":{first.line}" if first.line else ""
    return RecipeError(
        f"{first.says}{more}",
        where=f"{path}{line}: {first.place}",
        next_step=f"correct {first.place!r}; `routeyard recipe schema --page` explains every key",
    )


def merged_pool(pool: dict[str, Any], recipe: Path) -> dict[str, Any]:
    """Pool file first, then what the recipe itself says.

    A file named through the environment may not be there yet: the pool then keeps its
    `file`, is empty, and only what needs the models refuses (`routeyard.pipelines.pool`).
    """
    named = expanded(str(pool["file"]))
    if "$" in named:
        return pool
    path = recipe.parent / named
    if not path.is_file():
        raise RecipeError(
            f"there is no pool file {path}",
            where=f"{recipe}: pool.file",
            next_step="correct the path",
        )
    try:
        said = read_yaml(path)
        from_file = Pool.model_validate(said)
    except ValidationError as error:
        raise explain(error, path, said) from error
    merged = from_file.model_dump(exclude_unset=True)
    merged["models"] = merged.get("models", []) + list(pool.get("models", []))
    merged["providers"] = merged.get("providers", []) + list(pool.get("providers", []))
    return {**{k: v for k, v in pool.items() if k != "file"}, **merged}


def _check_names(content: Mapping[str, Any], path: Path) -> None:
    """Rules, scorers and gates exist; a rule's parameters fit its signature.

    Raises:
        RecipeError: the first that does not, with its line.
    """
    from routeyard.flows.recipe_faults import finding, names, of_findings

    for place, error in names(content):
        (fault,) = of_findings([finding(place, error)], path, content)
        error.where = f"{path}:{fault.line}: {fault.place}"
        raise error


def with_defaults(recipe: Recipe) -> dict[str, Any]:
    """A recipe with every default: parameters of rules and sources of the catalog written out."""
    from routeyard.pipelines.curate import RULES
    from routeyard.pipelines.ingest.catalog import from_catalog

    shown = recipe.model_dump(mode="json")
    shown["sources"] = [from_catalog(one).model_dump(mode="json") for one in recipe.sources]
    shown["curate"] = [
        {"rule": rule.rule, **RULES.get(rule.rule).defaults, **rule.parameters}
        for rule in recipe.curate
    ]
    return shown
