"""Near-duplicate questions: `rule.py` decides, `search.py` finds all pairs exactly."""
