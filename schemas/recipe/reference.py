"""JSON Schema of a recipe, and the same facts as a page; a key's description is the text below it.

schema = json_schema()    # what `routeyard recipe schema` prints
text = reference()        # what `routeyard recipe schema --page` prints
"""

from __future__ import annotations

import json
import re
from typing import Any

from routeyard.schemas.recipe import Recipe

#: Where the schema of the newest version would be found; editors only compare it.
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """JSON Schema of a recipe: every key with its description, type, default and limits."""
    return {"$schema": DIALECT, "title": "Routeyard recipe", **_plain(Recipe.model_json_schema())}


def pool_schema() -> dict[str, Any]:
    """JSON Schema of a pool file (`pool.file`)."""
    parts = json_schema()["$defs"]
    return {"$schema": DIALECT, "title": "Routeyard pool", **parts["Pool"], "$defs": parts}


def reference() -> str:
    """Every key as a Markdown page, in the order in which a recipe is written."""
    schema = json_schema()
    lines = ["# Every key of a recipe", "", schema["description"], ""]
    seen: set[str] = set()
    waiting = [("", schema)]
    for place, part in waiting:  # grows while it is read
        lines += _table(place, part)
        for key, field in part["properties"].items():
            for name in re.findall(r'"#/\$defs/(\w+)"', json.dumps(field)):
                if name not in seen and "properties" in schema["$defs"][name]:
                    seen.add(name)
                    listed = "[]" if field.get("type") == "array" else ""
                    waiting.append((f"{place}.{key}{listed}".lstrip("."), schema["$defs"][name]))
    return "\n".join(lines).rstrip() + "\n"


def _plain(part: Any) -> Any:
    """A schema without titles, each description on one line."""
    if isinstance(part, list):
        return [_plain(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: " ".join(val.split()) if key == "description" and isinstance(val, str) else _plain(val)
        for key, val in part.items()
        if key != "title" or not isinstance(val, str)
    }


def _table(place: str, part: dict[str, Any]) -> list[str]:
    lines = [f"## `{place}`" if place else "## The recipe", "", part["description"], ""]
    lines += ["| key | default | meaning |", "| --- | --- | --- |"]
    for key, field in part["properties"].items():
        default = f"`{json.dumps(field.get('default'), ensure_ascii=False)}`"
        if isinstance(field.get("default"), dict):
            default = "see below"
        elif key in part.get("required", []):
            default = "needed"
        meaning = field["description"].replace("|", "\\|")
        lines.append(f"| `{key}` | {default} | {meaning} |")
    return [*lines, ""]
