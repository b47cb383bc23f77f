"""A submission of predictions, checked against the release it was made for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from routeyard.flows.evaluation.released import read_release
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import core_of
from routeyard.pipelines.evaluate.experiment import DECISION, default_scheme, read_predictions
from routeyard.pipelines.evaluate.metrics.arena import robustness
from routeyard.pipelines.evaluate.zoo import submissions as layout
from routeyard.pipelines.evaluate.zoo.submissions import Suspicion, audit, choices, compare


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
    read = {"query_id", "model_id", "cost", "tokens", "score", DECISION}
    if unread := sorted(set(table.column_names) - read):
        says = f"read neither here nor by evaluate: {', '.join(map(repr, unread))}"
        found.append(Suspicion("unread columns", "warn", says))
    if beside is not None:
        found.append(compare(core, chosen, choices_only(beside), table))
    if arena is not None and all(one.level != "fail" for one in found):
        test = core.take(core.rows(chosen, "test"))
        choice = choices(test, table)
        score = layout.write(arena, layout.rows(tables, test, choice), test, choice)
        says = f"{len(choice)} rows, Arena score {score:.6f} → {arena}"
        found.append(Suspicion("RouterArena", "ok", says))
    return found


def robust(predictions: Path, reworded: Path) -> Suspicion:
    """Share of reworded questions that are sent where the original is sent.

    Raises:
        BadInput: a file is no table of choices, or they share no question.
    """
    full, other = (
        dict(zip(*(table.column(c).to_pylist() for c in ("query_id", "model_id")), strict=True))
        for table in map(choices_only, (predictions, reworded))
    )
    found = robustness(full, other)
    if found is None:
        raise BadInput(
            "no reworded question has the id of one that was asked as it is",
            where=str(reworded),
            next_step="give both files the same query_id for the same question",
        )
    n = len(set(full) & set(other))
    return Suspicion(
        "robustness", "ok", f"{found:.1%} of {n:,} reworded questions keep their model"
    )


def choices_only(path: Path) -> pa.Table:
    """A table of choices, `query_id` and `model_id` as text.

    Raises:
        BadInput: a column is missing.
    """
    table = read_predictions(path)
    for name in ("query_id", "model_id"):
        if name not in table.column_names:
            raise BadInput(
                f"the predictions table has no column {name!r}",
                where=str(path),
                next_step="columns: query_id, model_id",
            )
    return table.select(["query_id", "model_id"]).cast(
        pa.schema([("query_id", pa.string()), ("model_id", pa.string())])
    )
