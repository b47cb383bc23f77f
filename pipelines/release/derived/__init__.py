"""What a release says once more in another shape, made by blocks of queries.

Read `derive` first: it writes `outcomes` and the wide matrix and counts the summaries.
"""
