"""`routeyard demo --real`: `real_tiny` in small, without the sources that are not at hand."""

from __future__ import annotations

import os
from pathlib import Path

#: Share of the recipe's questions that a demonstration asks: about a hundred.
SCALE = 0.3
RECIPE = "real_tiny"
#: Name of the demonstration's release: of the recipe's own name there is room for the whole one.
NAME = "real_demo"
_DATA = "ROUTEYARD_DATA"


def recipe_of_what_is_here(workspace: Path) -> tuple[str, str | None]:
    """(recipe to build, what is left out of it and why).

    It is a file in the workspace, and without ROUTEYARD_DATA asks the demo's own questions alone.
    """
    import yaml

    from routeyard.flows.recipe import load

    recipe, _ = load(RECIPE)
    whole = bool(os.environ.get(_DATA))
    kept = [one for one in recipe.sources if whole or _DATA not in str(one.path)]
    left = ", ".join(one.name for one in recipe.sources if one not in kept)
    # Reading weights needs more to be installed than asking them.
    made = recipe.but(name=NAME, sources=kept, hidden_states=None)
    content = made.model_dump(mode="json", exclude_unset=True)
    path = workspace / "demo" / f"{NAME}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    why = f"{left} are left out: {_DATA} names no folder that holds them"
    return str(path), why if left else None
