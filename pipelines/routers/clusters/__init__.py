"""Routers that average labels within clusters or tags: K-means, Avengers-Pro, TagRouter.

Read `kmeans` first.
"""
