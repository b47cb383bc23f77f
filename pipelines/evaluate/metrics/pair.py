"""What is measured between a small and a large model; `pipelines.evaluate.pairs` computes it."""

from __future__ import annotations

from pipelines.evaluate.metrics.spec import MetricSpec

_XBENCH = "RouterXBench, section 3.3, "
_CODE = "RouterXBench, as its code computes it: 101 call rates, 0 where the text is undefined"
_NEEDS = ("pair",)

LPM = MetricSpec(
    "lpm", "higher", "share", _XBENCH + "equation 6",
    "mean performance over call rates up to d₁", _NEEDS, "family",
)  # fmt: skip
HCR = MetricSpec(
    "hcr", "higher", "share of calls", _XBENCH + "equations 7 to 9",
    "1 − mean call rate at which performance lies in the high band", _NEEDS, "family",
)  # fmt: skip
MPM = MetricSpec(
    "mpm", "higher", "share", _XBENCH + "equations 10 and 11",
    "mean performance between d₁ and the call rate that reaches the high band", _NEEDS, "family",
)  # fmt: skip
LPM_AS_PUBLISHED = MetricSpec(
    "lpm_as_published", "higher", "share", _CODE,
    "mean performance of the grid's call rates from 25 to 30 %", _NEEDS, "family",
)  # fmt: skip
HCR_AS_PUBLISHED = MetricSpec(
    "hcr_as_published", "higher", "share of calls", _CODE,
    "1 − mean of the grid's call rates with performance in the band; 0 without any", _NEEDS,
    "family",
)  # fmt: skip
MPM_AS_PUBLISHED = MetricSpec(
    "mpm_as_published", "higher", "share", _CODE,
    "mean performance of grid points above that at the low band's end and below the high band; "
    "0 without any", _NEEDS, "family",
)  # fmt: skip
CPT = MetricSpec(
    "cpt", "lower", "share of calls",
    "RouteLLM (arXiv 2406.18665), CPT; the confidence-driven router paper, section 3.1.2",
    "least call rate that recovers `[x]` per cent of the gap between the models", _NEEDS, "family",
)  # fmt: skip
APGR = MetricSpec(
    "apgr", "higher", "share of the gap", "RouteLLM (arXiv 2406.18665), APGR",
    "mean share of the gap recovered, over all call rates", _NEEDS, "family",
)  # fmt: skip
AUROC = MetricSpec(
    "auroc", "higher", "probability", _XBENCH + "router ability",
    "chance that a question the small model fails on is ranked above one it gets right", _NEEDS,
    "family",
)  # fmt: skip
