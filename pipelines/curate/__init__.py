"""Curation rules: pure functions that say what they kept, removed and why."""

from __future__ import annotations

from pipelines.registry import Registry

RULES = Registry(
    kind="curation rule",
    group="routeyard.rules",
    builtin={
        "contamination": "pipelines.curate.contamination:contamination",
        "dedup": "pipelines.curate.dedup.rule:dedup",
        "dense_sparse": "pipelines.curate.dense_slice:dense_sparse",
        "out_of_distribution": "pipelines.curate.split:out_of_distribution",
        "preference": "pipelines.curate.preference.rule:preference",
        "prune": "pipelines.curate.prune:prune",
        "pseudo_specialists": "pipelines.curate.pseudo:pseudo_specialists",
        "specialist_sample": "pipelines.curate.sample:specialist_sample",
        "unseen_models": "pipelines.curate.split:unseen_models",
    },
)

#: Rules that read the `embeddings` table; a build computes it only for them.
READS_EMBEDDINGS = frozenset({"dedup", "specialist_sample"})
