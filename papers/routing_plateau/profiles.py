"""Which models routers ask: shares of all questions and of hard ones (Figures 4 and 6 to 9)."""

from __future__ import annotations

from collections.abc import Sequence

from routeyard.papers.routing_plateau.over_encoders import evaluations
from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.studies.study import StudyCell


def shares(context: StudyContext, column: str) -> Sequence[StudyCell]:
    """Share of questions that each router sends to each model, mean over encoders."""
    done = evaluations(context)
    share: dict[tuple[str, str], float] = {}
    for one in done.values():
        for row in one.profiles.to_pylist():
            if row[column] is not None:
                place = (row["router"], row["model_id"])
                share[place] = share.get(place, 0.0) + row[column] / len(done)
    routers = dict.fromkeys(router for router, _ in share)
    models = sorted(
        {model for _, model in share}, key=lambda m: (-share.get(("oracle", m), 0.0), m)
    )
    return [StudyCell(r, m, share.get((r, m), 0.0), "percent") for r in routers for m in models]
