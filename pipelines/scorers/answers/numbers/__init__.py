"""Numbers as people write them, with their units → exact values; start at `quantity.py`."""
