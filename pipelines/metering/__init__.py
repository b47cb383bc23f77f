"""Audits usage, prices and served models after the fact, and reprices; start at `audit.py`."""
