"""Curation rules: pure functions that say what they kept, removed and why.

Read `rule.py` first: what a rule is, and `curate`, which runs a recipe's list of them.
"""

from __future__ import annotations

from routeyard.pipelines.common.registry import Registry

RULES = Registry(
    kind="curation rule",
    group="routeyard.rules",
    builtin={
        "contamination": "routeyard.pipelines.curate.contamination:RULE",
        "dedup": "routeyard.pipelines.curate.dedup:RULE",
        "dense_sparse": "routeyard.pipelines.curate.split:DENSE_SPARSE",
        "out_of_distribution": "routeyard.pipelines.curate.split:OUT_OF_DISTRIBUTION",
        "preference": "routeyard.pipelines.curate.preference:RULE",
        "prune": "routeyard.pipelines.curate.prune:RULE",
        "pseudo_specialists": "routeyard.pipelines.curate.pseudo_specialists:RULE",
        "specialist_sample": "routeyard.pipelines.curate.specialist_sample:RULE",
        "upstream_split": "routeyard.pipelines.curate.split:UPSTREAM_SPLIT",
        "unseen_models": "routeyard.pipelines.curate.split:UNSEEN_MODELS",
    },
)
