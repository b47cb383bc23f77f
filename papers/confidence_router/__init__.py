"""The confidence-driven router: preferences by semantic entropy, tested on other questions."""

from __future__ import annotations

from routeyard.papers.paper import paper_of

#: What it prints, and the study of a name, as `studies.yaml` declares it.
PAPER, __getattr__ = paper_of(__name__)
