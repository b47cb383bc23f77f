"""Recipes: unknown keys are refused with a suggestion, defaults are filled in."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel

from routeyard.flows.recipe import load, shipped
from routeyard.pipelines.common.errors import RecipeError, RouteyardError
from routeyard.schemas.recipe import Recipe

MINIMAL = {
    "name": "tiny",
    "version": "1.0.0",
    "sources": [
        {
            "name": "s",
            "path": "q.jsonl",
            "scorer": "numeric",
            "fields": {"question": "question", "references": "answer"},
        }
    ],
    "pool": {"models": [{"model_id": "m"}]},
}


def write(folder: Path, recipe: object) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(recipe if isinstance(recipe, str) else yaml.safe_dump(recipe))
    return path


def test_a_minimal_recipe_loads_and_paths_start_at_its_folder(tmp_path: Path) -> None:
    recipe, base = load(write(tmp_path, MINIMAL))
    assert (recipe.name, base) == ("tiny", tmp_path)
    assert recipe.split.test == 0.2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sorces": []}, "did you mean 'sources'"),
        ({"collect": {"temprature": 1}}, "did you mean 'temperature'"),
        ({"version": "1.0"}, "version"),
        ({"curate": [{"rule": "dedupe"}]}, "did you mean 'dedup'"),
        ({"curate": [{"rule": "dedup", "treshold": 0.9}]}, "did you mean 'threshold'"),
        ({"pool": {"models": [{"model_id": "m"}, {"model_id": "m"}]}}, "twice"),
        ({"pool": {"models": [{"model_id": "m", "price_in": 1.0}]}}, "price_date"),
        ({"pool": {"models": [{"model_id": "m", "price_in": 2.5e-6}]}}, "the price of one token"),
        ({"pool": {"file": "nowhere.yaml"}}, "no pool file"),
        ({"split": {"train": 0.9, "validation": 0.9, "test": 0.9}}, "more than the whole"),
        ({"collect": {"max_tokens": 10**30}}, "max_tokens"),
        (
            {"pool": {"models": [], "providers": [{"name": "p", "base_url": "http://a/\r\nX: 1"}]}},
            "one line",
        ),
    ],
)
def test_bad_recipes_say_where_and_what_to_do(
    tmp_path: Path, change: dict[str, object], says: str
) -> None:
    with pytest.raises(RouteyardError) as caught:
        load(write(tmp_path, MINIMAL | change))
    assert says in str(caught.value)
    assert caught.value.exit_code == 2
    assert caught.value.where


@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan"])
@pytest.mark.parametrize(
    "section", ["collect: {budget: {usd: %s}}", "collect: {deadline_s: %s}", "split: {train: %s}"]
)
def test_numbers_have_an_end(tmp_path: Path, section: str, value: str) -> None:
    # A budget of `.inf` was none, and a deadline of it no deadline.
    text = yaml.safe_dump(MINIMAL) + section % value + "\n"
    with pytest.raises(RecipeError) as caught:
        load(write(tmp_path, text))
    assert caught.value.where


def test_an_unknown_scorer_is_named(tmp_path: Path) -> None:
    source = MINIMAL["sources"][0] | {"scorer": "numerik"}
    with pytest.raises(RouteyardError, match="did you mean 'numeric'"):
        load(write(tmp_path, MINIMAL | {"sources": [source]}))


@pytest.mark.parametrize(
    "text",
    [
        "name: [unclosed",
        "- a list",
        "!!python/object/apply:os.system ['true']",  # a tag that would run code
        "a: &x [1]\nb: *x",  # aliases can explode (billion laughs)
    ],
)
def test_yaml_that_is_broken_or_hostile_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(RecipeError):
        load(write(tmp_path, text))


def test_a_missing_recipe_suggests_shipped_ones() -> None:
    with pytest.raises(RecipeError, match="did you mean 'zeroeval_gsm'"):
        load("zeroeval_gms")


@pytest.mark.parametrize("name", shipped())
def test_shipped_recipes_load(name: str) -> None:
    recipe, _ = load(name)
    assert recipe.name == name
    # A pool file that lies in somebody's import is read when that variable is set.
    assert recipe.pool.models or "$" in str(recipe.pool.file)


def _parts(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _parts(inner)


def _keys() -> dict[tuple[str, str], type[BaseModel]]:
    """(part of a recipe, key), a key that parts share counted where it is declared."""
    waiting: list[type[BaseModel]] = [Recipe]
    seen: set[type[BaseModel]] = set()
    keys = {}
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        for key, field in part.model_fields.items():
            owner = next(one for one in reversed(part.__mro__) if key in _declared(one))
            keys[owner.__name__, key] = owner
            waiting.extend(_parts(field.annotation))
    return keys


def _declared(part: type) -> dict[str, object]:
    return inspect.get_annotations(part)


def test_recipes_have_no_more_keys_than_agreed() -> None:
    assert len(_keys()) <= 235
