"""`routeyard demo --real`: the recipe `real_tiny`, without the sources that are not at hand."""

from __future__ import annotations

import os
from pathlib import Path

#: Share of the recipe's questions that a demonstration asks: about a hundred.
SCALE = 0.3
RECIPE = "real_tiny"
_DATA = "ROUTEYARD_DATA"


def recipe_of_what_is_here(workspace: Path) -> tuple[str, str | None]:
    """(recipe to build, what is left out of it and why).

    Without ROUTEYARD_DATA it is a file in the workspace that asks the demo's own questions alone.
    """
    import yaml

    from routeyard.flows.recipe import load

    if os.environ.get(_DATA):
        return RECIPE, None
    recipe, _ = load(RECIPE)
    kept = [one for one in recipe.sources if _DATA not in str(one.path)]
    left = ", ".join(one.name for one in recipe.sources if one not in kept)
    content = recipe.but(sources=kept).model_dump(mode="json", exclude_unset=True)
    path = workspace / "demo" / f"{RECIPE}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return str(path), f"{left} are left out: {_DATA} names no folder that holds them"
