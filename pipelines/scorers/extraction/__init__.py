"""Where an output states its answer, for every scorer; start at `commitment.py`."""
