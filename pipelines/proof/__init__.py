"""Proofs over releases: what can be computed again is, and the rest is named.

Read `prove.py` first; `evidence.py` gives each proof its tables, `rules.yaml` holds the rules
between columns.
"""
