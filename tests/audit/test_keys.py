"""The key that a finding names to mend it is one that recipes have."""

from __future__ import annotations

import re
from typing import Any

import pytest

from routeyard.pipelines.audit.checks import CHECKS
from routeyard.schemas.recipe import Recipe

SCHEMA = Recipe.model_json_schema()


def parts(node: dict[str, Any]) -> list[dict[str, Any]]:
    """A schema node with everything that it refers to or allows instead."""
    if "$ref" in node:
        return parts(SCHEMA["$defs"][node["$ref"].rpartition("/")[2]])
    several = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    return [node, *(one for each in several for one in parts(each))]


def exists(path: str) -> bool:
    nodes = [SCHEMA]
    for step in path.split("."):
        name, each = step.removesuffix("[]"), step.endswith("[]")
        nodes = [
            part["properties"][name]
            for node in nodes
            for part in parts(node)
            if name in part.get("properties", {})
        ]
        if each:
            nodes = [part["items"] for node in nodes for part in parts(node) if "items" in part]
    return bool(nodes)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.kind)
def test_the_key_that_mends_is_in_recipes(check: Any) -> None:
    first = re.split(r"[:\s,]+", check.key)[0]
    assert exists(first), f"{check.kind} names {first!r}, which no recipe has"


def test_an_unknown_key_is_noticed() -> None:
    assert not exists("label.status")
    assert exists("pool.models[].price_in")
