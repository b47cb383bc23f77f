"""Recipe keys that a page names in passing, such as `collect.budget.usd`, exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from routeyard.schemas.recipe import Recipe

ROOT = Path(__file__).parents[2]
ROOMS = ("docs", "pipelines", "papers", "flows", "schemas", "datacards", "benchmarks")
PAGES = [*ROOT.glob("*.md"), *(page for room in ROOMS for page in (ROOT / room).rglob("*.md"))]
NAMED = re.compile(r"`([a-z_]+(?:\.[a-z_]+)+)\b[^`\n]*`")
SCHEMA = Recipe.model_json_schema()


def below(part: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """What may stand under `key` of an object, or of a list's or mapping's member."""
    if "$ref" in part:
        yield from below(SCHEMA["$defs"][part["$ref"].rpartition("/")[2]], key)
    for kind in ("anyOf", "allOf", "oneOf"):
        for one in part.get(kind, ()):
            yield from below(one, key)
    if isinstance(part.get("items"), dict):
        yield from below(part["items"], key)
    if key in part.get("properties", {}):
        yield part["properties"][key]
    if isinstance(part.get("additionalProperties"), dict):
        yield part["additionalProperties"]


def missing(named: str) -> bool:
    found = [SCHEMA]
    for key in named.split("."):
        found = [lower for part in found for lower in below(part, key)]
    return not found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_named_recipe_key_exists(page: Path) -> None:
    sections = {key for key in SCHEMA["properties"] if key not in ("name", "version")}
    named = {m[1] for m in NAMED.finditer(page.read_text(encoding="utf-8"))}
    named = {one for one in named if not one.endswith(".py")}  # a file
    assert [one for one in named if one.split(".")[0] in sections and missing(one)] == []


def test_a_key_that_is_not_there_is_missed() -> None:
    assert missing("collect.budget.total_usd")
    assert not missing("collect.budget.usd")
