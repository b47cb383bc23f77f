"""Curation rules: pure functions that say what they kept, removed and why.

Read `rule.py` and `result.py` first, then `apply.py`, which runs a recipe's list of them.
"""

from __future__ import annotations

from pipelines.registry import Registry

RULES = Registry(
    kind="curation rule",
    group="routeyard.rules",
    builtin={
        "contamination": "pipelines.curate.contamination:RULE",
        "dedup": "pipelines.curate.dedup.rule:RULE",
        "dense_sparse": "pipelines.curate.dense_slice:RULE",
        "out_of_distribution": "pipelines.curate.split:OUT_OF_DISTRIBUTION",
        "preference": "pipelines.curate.preference.rule:RULE",
        "prune": "pipelines.curate.prune:RULE",
        "pseudo_specialists": "pipelines.curate.pseudo:RULE",
        "specialist_sample": "pipelines.curate.sample:RULE",
        "upstream_split": "pipelines.curate.upstream:RULE",
        "unseen_models": "pipelines.curate.split:UNSEEN_MODELS",
    },
)
