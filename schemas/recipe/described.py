"""What every key of a recipe means: the `#:` comment above it, or its line in `meanings`.

    schema = json_schema()    # what `routeyard recipe schema` prints
    text = reference()        # the same as a page

A key without either has no description, and a test fails.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from typing import Any

from pydantic import BaseModel

from schemas.recipe import Recipe
from schemas.recipe.meanings import MEANINGS

#: Where the schema of the newest version would be found; editors only compare it.
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """JSON Schema of a recipe: every key with its description, type, default and limits."""
    schema = Recipe.model_json_schema()
    parts: dict[str, Any] = schema.get("$defs", {})
    _describe(schema, Recipe)
    models = _models(Recipe)
    for name, part in parts.items():
        if name in models:
            _describe(part, models[name])
    # `{rule: dedup, threshold: 0.99}` is how a rule is written: its parameters are its own keys.
    rule = parts["CurationRule"]
    rule["additionalProperties"] = True
    return {"$schema": DIALECT, "title": "Routeyard recipe", **schema}


def pool_schema() -> dict[str, Any]:
    """JSON Schema of a pool file (`pool.file`)."""
    whole = json_schema()
    pool = whole["$defs"]["Pool"]
    return {"$schema": DIALECT, **pool, "title": "Routeyard pool", "$defs": whole["$defs"]}


def reference() -> str:
    """Every key as a Markdown page, in the order in which a recipe is written."""
    schema = json_schema()
    lines = ["# Every key of a recipe", "", _plain(schema.get("description", "")), ""]
    seen: set[str] = set()
    waiting: list[tuple[str, dict[str, Any]]] = [("", schema)]
    while waiting:
        place, part = waiting.pop(0)
        lines += _table(place, part)
        for key, said in part.get("properties", {}).items():
            for name in _named(said):
                if name not in seen and name in schema["$defs"]:
                    seen.add(name)
                    inner = schema["$defs"][name]
                    if "properties" in inner:
                        listed = "[]" if said.get("type") == "array" else ""
                        waiting.append((f"{place}.{key}{listed}".lstrip("."), inner))
    return "\n".join(lines).rstrip() + "\n"


@cache
def comments(model: type[BaseModel]) -> dict[str, str]:
    """Key → the `#:` comment above it, of a model and of those it is made from."""
    found: dict[str, str] = {}
    for part in reversed(model.__mro__):
        if part is BaseModel or not issubclass(part, BaseModel):
            continue
        module = sys.modules[part.__module__]
        source = inspect.getsource(module)
        lines = source.splitlines()
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and node.name == part.__name__:
                for one in node.body:
                    if not (isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)):
                        continue
                    if text := _above(lines, one.lineno):
                        found[one.target.id] = text
    return found


def _above(lines: list[str], line: int) -> str:
    """The `#:` comment that ends in the line before `line` (from 1)."""
    at, said = line - 2, []
    while at >= 0 and lines[at].strip().startswith("#"):
        said.append(lines[at].strip())
        at -= 1
    said.reverse()
    start = next((i for i, text in enumerate(said) if text.startswith("#:")), None)
    if start is None:
        return ""
    return " ".join(text.lstrip("#").lstrip(":").strip() for text in said[start:])


def _models(model: type[BaseModel], found: dict[str, Any] | None = None) -> dict[str, Any]:
    found = {} if found is None else found
    found[model.__name__] = model
    for field in model.model_fields.values():
        for inner in _classes(field.annotation):
            if inner.__name__ not in found:
                _models(inner, found)
    return found


def _classes(annotation: Any) -> list[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return [annotation]
    inner = getattr(annotation, "__args__", ())
    return [found for one in inner for found in _classes(one)]


def _describe(part: dict[str, Any], model: type[BaseModel]) -> None:
    part["description"] = _plain(inspect.getdoc(model) or "")
    said = comments(model)
    for key, shown in part.get("properties", {}).items():
        shown.pop("title", None)
        text = model.model_fields[key].description or said.get(key)
        text = text or MEANINGS.get(model.__name__, {}).get(key)
        if text:
            shown["description"] = text


def _plain(text: str) -> str:
    return " ".join(text.split())


def _named(said: dict[str, Any]) -> list[str]:
    """Names of the parts a key refers to."""
    found = []
    for key, value in said.items():
        if key == "$ref":
            found.append(str(value).rpartition("/")[2])
        elif isinstance(value, dict):
            found += _named(value)
        elif isinstance(value, list):
            found += [name for one in value if isinstance(one, dict) for name in _named(one)]
    return found


def _table(place: str, part: dict[str, Any]) -> list[str]:
    import json

    lines = [f"## `{place}`" if place else "## The recipe", "", _plain(part["description"]), ""]
    lines += ["| key | default | meaning |", "| --- | --- | --- |"]
    for key, said in part.get("properties", {}).items():
        needed = key in part.get("required", [])
        default = "needed" if needed else f"`{json.dumps(said.get('default'), ensure_ascii=False)}`"
        if isinstance(said.get("default"), dict):
            default = "see below"
        cell = said.get("description", "").replace("|", "\\|")
        lines.append(f"| `{key}` | {default} | {cell} |")
    return [*lines, ""]
