"""SQL over a release: read-only, in a process with limits; start at `query.py`."""
