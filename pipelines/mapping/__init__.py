"""Field mappings of recipes: a stranger's expressions over rows, within limits, and their texts."""
