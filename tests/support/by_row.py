"""A rule of a third party: it splits question by question, whatever is the same question."""

from __future__ import annotations

from routeyard.pipelines.curate.rule import Rule
from routeyard.pipelines.curate.split import upstream_split

RULE = Rule("by_row", upstream_split, reads=())
