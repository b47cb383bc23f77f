"""Studies: a paper's table or figure as a short list of metrics and groupings.

A study names what is measured and how it is laid out; the measuring is done in
`evaluate` and `curate`. Read `study.py` first, then `studies.yaml`, which declares all
studies. To add one: an entry there and, where it is more than columns of metrics, a function
here that gives its cells; `README.md` lists all items of the papers.
"""

from __future__ import annotations

from routeyard.pipelines.common.registry import Registry
from routeyard.pipelines.evaluate.studies.study import declared

STUDIES = Registry(
    kind="study",
    listed="`routeyard study list`",
    group="routeyard.studies",
    builtin={name: f"routeyard.pipelines.evaluate.studies.study:{name}" for name in declared()},
    declared=declared,
)
