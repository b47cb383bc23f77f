"""Scorers: one file each, saying all of what it is; this registry lists them.

Read `scorer.py` first, then one that is close to what you need; `extraction/` finds what was
answered, `comparison/` compares it, both with the expressions in `patterns/`; `isolation/jail/`
runs code.
"""

from __future__ import annotations

from routeyard.pipelines.registry import Registry

SCORERS = Registry(
    kind="scorer",
    group="routeyard.scorers",
    builtin={
        "auto": "routeyard.pipelines.scorers.auto:SCORER",
        "bartscore": "routeyard.pipelines.scorers.bartscore:SCORER",
        "contains": "routeyard.pipelines.scorers.contains:SCORER",
        "em": "routeyard.pipelines.scorers.em:SCORER",
        "em_strict": "routeyard.pipelines.scorers.em:STRICT",
        "f1": "routeyard.pipelines.scorers.f1:SCORER",
        "given": "routeyard.pipelines.scorers.given:SCORER",
        "code": "routeyard.pipelines.scorers.code:SCORER",
        "literal": "routeyard.pipelines.scorers.literal:SCORER",
        "math": "routeyard.pipelines.scorers.math:SCORER",
        "mcq": "routeyard.pipelines.scorers.mcq:SCORER",
        "meteor": "routeyard.pipelines.scorers.meteor:SCORER",
        "numeric": "routeyard.pipelines.scorers.numeric:SCORER",
        "rouge_l": "routeyard.pipelines.scorers.rouge_l:SCORER",
        **{
            f"superglue_{task}": f"routeyard.pipelines.scorers.superglue:{task.upper()}"
            for task in ("boolq", "cb", "copa", "multirc", "record", "rte", "wic", "wsc")
        },
    },
)
