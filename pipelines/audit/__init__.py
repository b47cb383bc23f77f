"""Defects of anybody's results: checks over one normal form (`schemas/recording.py`); start at
`run.py`, the table of checks is `checks.py`."""
