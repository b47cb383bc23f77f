"""Benchmarks: each shows a speed as a ratio to a baseline measured in the same run."""
