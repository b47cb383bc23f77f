"""What benchmarks compare with.

`install.py` makes the environments of peers that cannot share ours; the files in
`alone/` run inside those and import nothing of ours; `in_polars.py` and `filters.py`
are comparisons that other benchmarks call.
"""
