"""Scorers: one file each, saying all of what it is; this registry lists them.

Read `scorer.py` first, then one that is close to what you need; `answers/` finds
and reads what was answered, `isolation/jail/` runs code.
"""

from __future__ import annotations

from pipelines.registry import Registry

SCORERS = Registry(
    kind="scorer",
    group="routeyard.scorers",
    builtin={
        "auto": "pipelines.scorers.auto:SCORER",
        "bartscore": "pipelines.scorers.bartscore:SCORER",
        "em": "pipelines.scorers.em:SCORER",
        "f1": "pipelines.scorers.f1:SCORER",
        "given": "pipelines.scorers.given:SCORER",
        "code": "pipelines.scorers.code:SCORER",
        "literal": "pipelines.scorers.literal:SCORER",
        "math": "pipelines.scorers.math:SCORER",
        "mcq": "pipelines.scorers.mcq:SCORER",
        "meteor": "pipelines.scorers.meteor:SCORER",
        "numeric": "pipelines.scorers.numeric:SCORER",
        "rouge_l": "pipelines.scorers.rouge_l:SCORER",
        "superglue_boolq": "pipelines.scorers.superglue:BOOLQ",
        "superglue_cb": "pipelines.scorers.superglue:CB",
        "superglue_copa": "pipelines.scorers.superglue:COPA",
        "superglue_multirc": "pipelines.scorers.superglue:MULTIRC",
        "superglue_record": "pipelines.scorers.superglue:RECORD",
        "superglue_rte": "pipelines.scorers.superglue:RTE",
        "superglue_wic": "pipelines.scorers.superglue:WIC",
        "superglue_wsc": "pipelines.scorers.superglue:WSC",
    },
)
