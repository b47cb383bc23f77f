"""Release: tables → a versioned folder that answers questions and can be checked.

It is written by `build`, opened by `reader` and checked by `pipelines/verify`. Nothing is imported
here: a process that only reads needs no part of what writes.
"""
