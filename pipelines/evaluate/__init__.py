"""What is measured on a release: routers (`run`), and the pool itself (`certificate`).

Read `results.py` (every metric of one router), then `run/__init__.py`. The metrics and
the data that they are computed from are in `pipelines/evaluate/metrics`.
"""
