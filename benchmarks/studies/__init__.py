"""Studies and paper recipes on whole recorded matrices; read `run` first.

`python -m benchmarks.studies` writes pipelines/studies/RESULTS.md; `routerbench_plus` and
`informative` are benchmarks of `python -m benchmarks`.
"""
