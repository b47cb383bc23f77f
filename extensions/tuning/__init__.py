"""Encoders that are trained end to end for routing."""
