"""Logged traffic: coverage of estimates, and speed over many steps."""
