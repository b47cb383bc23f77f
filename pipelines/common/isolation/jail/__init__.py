"""Runs programs that models wrote: two processes in a jail, one of which is trusted.

This package starts inside a bare interpreter, so nothing here may import more
than the standard library. See README.md for what each process can reach.
"""
