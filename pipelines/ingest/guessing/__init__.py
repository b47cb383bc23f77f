"""Guesses for a stranger's table: which column holds what, and which scorer reads its answers."""
