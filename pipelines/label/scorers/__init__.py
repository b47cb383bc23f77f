"""Scorers: each says all of what it is; this registry lists them.

Read `scorer.py` first, then one that is close to what you need; `reading.py` finds what was
answered, `quantities.py` and `symbolic.py` compare it, with the expressions in `patterns/`;
`pipelines/common/isolation/jail/` runs code.
"""

from __future__ import annotations

from routeyard.pipelines.common.registry import Registry

SCORERS = Registry(
    kind="scorer",
    listed="pipelines/label/scorers/README.md",
    group="routeyard.scorers",
    builtin={
        "auto": "routeyard.pipelines.label.scorers.auto:SCORER",
        "bartscore": "routeyard.pipelines.label.scorers.bartscore:SCORER",
        "contains": "routeyard.pipelines.label.scorers.contains:SCORER",
        "em": "routeyard.pipelines.label.scorers.em:SCORER",
        "em_strict": "routeyard.pipelines.label.scorers.em:STRICT",
        "f1": "routeyard.pipelines.label.scorers.graded:F1_SCORER",
        "given": "routeyard.pipelines.label.scorers.graded:GIVEN_SCORER",
        "code": "routeyard.pipelines.label.scorers.code:SCORER",
        "literal": "routeyard.pipelines.label.scorers.literal:SCORER",
        "math": "routeyard.pipelines.label.scorers.math:SCORER",
        "mcq": "routeyard.pipelines.label.scorers.mcq:SCORER",
        "meteor": "routeyard.pipelines.label.scorers.meteor:SCORER",
        "numeric": "routeyard.pipelines.label.scorers.numeric:SCORER",
        "rouge_l": "routeyard.pipelines.label.scorers.graded:ROUGE_L_SCORER",
        **{
            f"superglue_{task}": f"routeyard.pipelines.label.scorers.superglue:{task.upper()}"
            for task in ("boolq", "cb", "copa", "multirc", "record", "rte", "wic", "wsc")
        },
    },
)
