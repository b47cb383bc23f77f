"""Label: scorers file verdicts, the court turns verdicts into labels."""

from __future__ import annotations

from pipelines.registry import Registry

SCORERS = Registry(
    kind="scorer",
    group="routeyard.scorers",
    builtin={
        "em": "pipelines.label.em:SCORER",
        "given": "pipelines.label.given:SCORER",
        "code": "pipelines.label.code:SCORER",
        "mcq": "pipelines.label.mcq:SCORER",
        "numeric": "pipelines.label.numeric:SCORER",
    },
)
