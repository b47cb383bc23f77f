"""Strangers' Parquet: what a file comes to when it is read, before it is read."""
