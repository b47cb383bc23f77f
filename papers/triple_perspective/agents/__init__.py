"""Agents that are routed, per question and per step: read `curve.py` first."""
