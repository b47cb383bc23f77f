"""What a batch leaves behind: the note that finds it again, and the lines of its results.

`batch.py` one folder up submits, polls and imports.
"""
