"""A submission of predictions, checked against the release it was made for."""

from __future__ import annotations

from pathlib import Path

from routeyard.flows.evaluation.released import read_release
from routeyard.pipelines.evaluate.certificate import default_scheme
from routeyard.pipelines.evaluate.run.predictions import read_predictions
from routeyard.pipelines.matrix.reading import core_of
from routeyard.pipelines.zoo import arena as layout
from routeyard.pipelines.zoo.audit import Suspicion, audit, choices, compare


def audit_submission(
    predictions: Path,
    release: Path,
    *,
    scheme: str | None = None,
    arena: Path | None = None,
    beside: Path | None = None,
) -> list[Suspicion]:
    """Leaks, constants, foreign prices, gaps and repeats in a table of choices.

    Args:
        predictions: CSV or Parquet with query_id, model_id and, if given, cost and tokens.
        beside: an earlier submission of the same team, to compare with.
        arena: File to write in RouterArena's layout, if no check fails.

    Raises:
        BadInput: there is no such release, split scheme or table.
    """
    table, tables = read_predictions(predictions), read_release(release)
    core = core_of(tables.without("embeddings"))
    chosen = default_scheme(core, scheme)
    found = audit(core, chosen, table)
    if beside is not None:
        found.append(compare(core, chosen, read_predictions(beside), table))
    if arena is not None and all(one.level != "fail" for one in found):
        test = core.take(core.rows(chosen, "test"))
        choice = choices(test, table)
        score = layout.write(arena, layout.rows(tables, test, choice), test, choice)
        says = f"{len(choice)} rows, Arena score {score:.6f} → {arena}"
        found.append(Suspicion("RouterArena", "ok", says))
    return found
