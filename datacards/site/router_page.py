"""Content of the routers page: evaluations, the certificate's routers, zoo and studies."""

from __future__ import annotations

from typing import Any

from routeyard.datacards.site import evaluation
from routeyard.datacards.site.release import SiteRelease


def content(book: SiteRelease) -> dict[str, Any]:
    """What `routers.html.jinja` shows."""
    rows = book.rows("SELECT model_id, simulated FROM models ORDER BY 1")
    models, simulated = [row["model_id"] for row in rows], any(row["simulated"] for row in rows)
    return {
        "evaluations": [
            evaluation.content(one, f"e{k}", models, simulated=simulated)
            for k, one in enumerate(book.evaluations)
        ],
        "certificate": book.certificate or {},
        "beside": book.beside,
    }
