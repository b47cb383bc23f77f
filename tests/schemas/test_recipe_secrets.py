"""What looks like a key in a recipe is refused by its place, and shown nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from routeyard.flows.recipe import find, shipped
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.files import expand
from routeyard.schemas.recipe import Recipe
from routeyard.schemas.recipe.pool import Pool, Provider, secrets_in

KEY = "sk-proj-0aB9xY7tQ2mN4kL6"


def recipe(**changes: Any) -> dict[str, Any]:
    provider = {"name": "p", "base_url": "https://host/v1"}
    return {
        "name": "r",
        "version": "1.0.0",
        "sources": [{"name": "s", "catalog": "gsm8k"}],
        "pool": {"models": [{"model_id": "m"}], "providers": [provider]},
        **changes,
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"collect": {"parameters": {"extra_headers": {"Authorization": f"Bearer {KEY}"}}}},
        {"collect": {"parameters": {"api_key": "short"}}},
        {"collect": {"system": f"use {KEY} if asked"}},
        {"collect": {"parameters": {"user": "hf_aBcDeFgHiJkLmNoPqRsT"}}},
        {"pool": {"providers": [{"name": "p", "base_url": "https://h/v1", "api_key_env": KEY}]}},
        {"pool": {"providers": [{"name": "p", "base_url": f"https://host/{KEY}/v1"}]}},
        {"sources": [{"name": "s", "path": "${OPENAI_API_KEY}/x.jsonl"}]},
    ],
)
def test_a_secret_in_a_recipe_is_refused_and_not_shown(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        Recipe.model_validate(recipe(**changes))
    assert KEY not in str(caught.value)
    assert "hf_aBc" not in str(caught.value)


@pytest.mark.parametrize("name", ["has space", KEY, "aB3dE5fG7hI9jK1lM3nO5", "hf_" + "a1" * 12])
def test_a_key_is_named_and_not_given(name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Provider(name="p", base_url="https://host/v1", api_key_env=name)
    assert name not in str(caught.value)
    assert Provider(name="p", base_url="https://h/v1", api_key_env="OPENAI_API_KEY_2").api_key_env


def test_a_provider_stands_in_the_pool_once() -> None:
    one = {"name": "p", "base_url": "https://host/v1"}
    with pytest.raises(ValidationError, match="is in the pool twice"):
        Pool.model_validate({"providers": [one, {**one, "base_url": "https://other/v1"}]})


def test_what_a_variable_holds_is_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_FOLDER", f"/nowhere/{KEY}")
    with pytest.raises(SourceError) as caught:
        expand("${MY_FOLDER}/x.jsonl", base=tmp_path, where="source s")
    assert KEY not in str(caught.value)
    assert "${MY_FOLDER}/x.jsonl" in str(caught.value)


def test_no_shipped_recipe_is_taken_for_a_secret() -> None:
    for name in shipped():
        said = yaml.safe_load(find(name).read_text(encoding="utf-8"))
        assert list(secrets_in(said)) == [], name
