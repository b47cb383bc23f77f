"""Defects of anybody's results: checks over one normal form (`schemas/release.py`); start at
`run.py`, the table of checks is `checks.py`."""
