"""Scorers file verdicts, the court turns verdicts into labels; read `court.py` first."""
