"""Studies and paper recipes on whole recorded matrices; read `run` first.

`python -m benchmarks.studies` writes pipelines/evaluate/studies/RESULTS.md; `routerbench_plus` and
`informative` are benchmarks of `python -m benchmarks`.
"""
