"""What changes out of distribution; `pipelines.evaluate.held_out.ood` computes it."""

from __future__ import annotations

from pipelines.evaluate.metrics.spec import MetricSpec

_SOURCE = "RouterBench+, section 4.4 and Table 5, appendix I.2"
_NEEDS = ("ood",)

ACCURACY_CHANGE = MetricSpec(
    "accuracy_change", "higher", "share", _SOURCE,
    "accuracy trained without the group minus trained with it, same questions", _NEEDS, "family",
)  # fmt: skip
ID_ACCURACY = MetricSpec(
    "id_accuracy", "higher", "share", _SOURCE,
    "accuracy on the group's questions, trained with the group", _NEEDS, "family",
)  # fmt: skip
OOD_ACCURACY = MetricSpec(
    "ood_accuracy", "higher", "share", _SOURCE,
    "accuracy on the group's questions, trained without the group", _NEEDS, "family",
)  # fmt: skip
AGREEMENT = MetricSpec(
    "agreement", "neither", "share of questions", _SOURCE,
    "share of the group's questions sent where the best-generalist heuristic sends them", _NEEDS,
    "family",
)  # fmt: skip
