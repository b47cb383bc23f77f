"""Files: reading, writing in one step, YAML, and the files that a recipe names."""
