"""Curation rules: pure functions that say what they kept, removed and why.

Read `rule.py` first, then `apply.py`, which runs a recipe's list of them.
"""

from __future__ import annotations

from pipelines.registry import Registry

RULES = Registry(
    kind="curation rule",
    group="routeyard.rules",
    builtin={
        "contamination": "pipelines.curate.contamination:RULE",
        "dedup": "pipelines.curate.dedup.rule:RULE",
        "dense_sparse": "pipelines.curate.dense_sparse:RULE",
        "out_of_distribution": "pipelines.curate.split:OUT_OF_DISTRIBUTION",
        "preference": "pipelines.curate.preference.rule:RULE",
        "prune": "pipelines.curate.prune:RULE",
        "pseudo_specialists": "pipelines.curate.pseudo_specialists:RULE",
        "specialist_sample": "pipelines.curate.specialist_sample:RULE",
        "upstream_split": "pipelines.curate.upstream_split:RULE",
        "unseen_models": "pipelines.curate.split:UNSEEN_MODELS",
    },
)
