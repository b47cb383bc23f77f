"""`routeyard init`: someone's own questions become a recipe that builds; start at `recipe.py`."""
