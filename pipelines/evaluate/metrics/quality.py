"""Answer quality: how often a judge prefers the answer a router's choice gives."""

from __future__ import annotations

from pipelines.evaluate.metrics.spec import Found, MetricSpec, Routed


def _compute(shown: Routed) -> Found | None:
    column = shown.rivals.picks.get(shown.router)
    return None if column is None else shown.mean(100 * column, "no question is judged")


ANSWER_QUALITY = MetricSpec(
    name="answer_quality",
    direction="higher",
    unit="per cent of questions",
    source="the confidence-driven router paper (arXiv 2502.11021), section 3.1.2, Score(i)",
    says="Score(i) = 100 × questions on which the judge selects router i, over questions judged",
    needs=("picks",),
    compute=_compute,
)
