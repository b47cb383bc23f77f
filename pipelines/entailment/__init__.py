"""Entailment backends: what decides that two answers mean the same.

Each implements `pipelines.equivalence_types.Entailment`; `flows.tasks.entailment` builds one by
the name a recipe's `preference` rule gives.
"""

from __future__ import annotations

from pipelines.registry import Registry

BACKENDS = Registry(
    kind="entailment backend",
    group="routeyard.entailment",
    builtin={
        "cross_encoder": "pipelines.entailment.cross_encoder:CrossEncoderEntailment",
        "equivalence": "pipelines.entailment.equivalence:Equivalence",
        "judge": "pipelines.entailment.judge:JudgeEntailment",
    },
)
