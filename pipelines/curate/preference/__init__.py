"""Preference pairs from semantic entropy or scores; start at `rule.py`."""
