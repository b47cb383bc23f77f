"""`routeyard init`: a recipe for someone's own questions, with every guess as a comment."""

from __future__ import annotations

from routeyard.flows.new_recipe.write import NewRecipe, start_recipe

__all__ = ["NewRecipe", "start_recipe"]
