"""The routing plateau (Nine-by-30k and Nine-by-300k): 21 routers, six encoders, five benchmarks."""

from __future__ import annotations

from routeyard.papers.paper import paper_of

#: What it prints, and the study of a name, as `studies.yaml` declares it.
PAPER, __getattr__ = paper_of(__name__)
