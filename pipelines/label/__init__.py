"""Label: scorers file verdicts, the court turns verdicts into labels."""

from __future__ import annotations

from pipelines.registry import Registry

SCORERS = Registry(
    kind="scorer",
    group="routeyard.scorers",
    builtin={
        "bartscore": "pipelines.label.bartscore:SCORER",
        "em": "pipelines.label.em:SCORER",
        "f1": "pipelines.label.f1:SCORER",
        "given": "pipelines.label.given:SCORER",
        "code": "pipelines.label.code:SCORER",
        "math": "pipelines.label.math_answer:SCORER",
        "mcq": "pipelines.label.mcq:SCORER",
        "meteor": "pipelines.label.meteor:SCORER",
        "numeric": "pipelines.label.numeric:SCORER",
        "rouge_l": "pipelines.label.rouge_l:SCORER",
        "superglue_boolq": "pipelines.label.superglue:BOOLQ",
        "superglue_cb": "pipelines.label.superglue:CB",
        "superglue_copa": "pipelines.label.superglue:COPA",
        "superglue_multirc": "pipelines.label.superglue:MULTIRC",
        "superglue_record": "pipelines.label.superglue:RECORD",
        "superglue_rte": "pipelines.label.superglue:RTE",
        "superglue_wic": "pipelines.label.superglue:WIC",
        "superglue_wsc": "pipelines.label.superglue:WSC",
    },
)
