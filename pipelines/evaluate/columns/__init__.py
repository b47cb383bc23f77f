"""Columns of a release as arrays of its questions: of `queries` (`asked.py`, read it first) and
of `embeddings` (`vectors.py`)."""
