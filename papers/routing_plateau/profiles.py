"""Which models routers ask: shares of all questions and of hard ones (Figures 4 and 6 to 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from routeyard.papers.routing_plateau.over_encoders import evaluations
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext


def shares(context: StudyContext, columns: Mapping[str, str]) -> Sequence[StudyCell]:
    """Share of questions that each router sends to each model, mean over encoders.

    Args:
        columns: Share of a profile → what its rows are called behind the router's name.
    """
    done = evaluations(context)
    each: dict[tuple[str, str], list[float]] = {}
    for one in done.values():
        for row in one.profiles.to_pylist():
            for column, called in columns.items():
                if row[column] is not None:
                    place = (row["router"] + called, row["model_id"])
                    each.setdefault(place, []).append(row[column])
    share = {place: float(np.mean(found)) for place, found in each.items()}
    rows = sorted({row for row, _ in share}, key=lambda row: (not row.startswith("oracle"), row))
    first = rows[0] if rows else ""
    models = sorted({model for _, model in share}, key=lambda m: (-share.get((first, m), 0.0), m))
    return [StudyCell(r, m, share.get((r, m), 0.0), "percent") for r in rows for m in models]
