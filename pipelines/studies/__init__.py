"""Studies: a paper's table or figure as a short list of metrics and groupings.

A study names what is measured and how it is laid out; the measuring is done in
`evaluate` and `curate`. Read `study.py` first, then `dominance.py` as an example of
a table about models and `router_table.py` for tables about routers. To add one:
one file here with a `STUDY`, one line below; `README.md` lists all items of the papers.
"""

from __future__ import annotations

from pipelines.registry import Registry

STUDIES = Registry(
    kind="study",
    group="routeyard.studies",
    builtin={
        "dominance": "pipelines.studies.dominance:STUDY",
        "router_accuracy": "pipelines.studies.router_accuracy:STUDY",
        "specialist_scores": "pipelines.studies.specialist_scores:STUDY",
    },
)
