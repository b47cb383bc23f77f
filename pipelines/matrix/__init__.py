"""The one matrix of labels, scores and costs, with names; missing values are NaN or masked.

Read `core.py` (a release as matrices) and `reading.py` (how it is read from tables) first.
Large arrays are memory-mapped (`memmap.py`), large texts too (`texts.py`); `row_blocks.py` works
on them a block of rows at a time, and `memory_check.py` says beforehand whether they fit.
"""
