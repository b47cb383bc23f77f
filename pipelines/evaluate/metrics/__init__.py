"""One file per metric or family of metrics; the registry in `pipelines.evaluate` lists them.

Read `rci.py` first: a metric is a function from what it is shown
(`pipelines.evaluate.metrics.spec`) to a value with its replicates, and a `MetricSpec`.
"""
