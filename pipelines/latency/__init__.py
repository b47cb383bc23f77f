"""Latency as it is promised: percentiles with intervals, promises, and choices under a deadline."""
