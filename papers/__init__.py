"""The papers Routeyard follows, each with its protocol, its tables and the values it prints.

One folder per paper. `paper.yaml` says what the paper prints and which study fills each of its
tables; `studies.yaml` declares the studies that only this paper needs. Papers and their studies
are registered in `pyproject.toml` as other packages register theirs; nothing below imports them.
Read `paper.py`, then `reproduction.py`; `routeyard reproduce list` names the papers.
"""

from __future__ import annotations

from routeyard.pipelines.common.registry import Registry

PAPERS = Registry(kind="paper", group="routeyard.papers", builtin={})
