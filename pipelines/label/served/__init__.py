"""Verdicts of served models: judges and xVerify; start at `judge.py`."""
