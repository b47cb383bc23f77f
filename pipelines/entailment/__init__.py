"""Entailment backends: what decides that two answers mean the same.

Each implements `Entailment` of `pipelines/equivalence_types.py`; `flows/tasks/entailment.py` builds
one by the name a recipe's `preference` rule gives.
"""

from __future__ import annotations

from routeyard.pipelines.registry import Registry

BACKENDS = Registry(
    kind="entailment backend",
    group="routeyard.entailment",
    builtin={
        "cross_encoder": "routeyard.pipelines.entailment.cross_encoder:CrossEncoderEntailment",
        "equivalence": "routeyard.pipelines.entailment.equivalence:Equivalence",
        "judge": "routeyard.pipelines.entailment.judge:JudgeEntailment",
    },
)
