"""Preference data as pair routers take it: who won which question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Floats, Ints, Vectors
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.routers.base import Examples


@dataclass(frozen=True, eq=False)
class Battles:
    """b comparisons of two models on one question each.

    Attributes:
        vectors: (b, d) float32 embedding of the question of each battle.
        model_ids: the models, sorted.
        first, second: (b,) positions in `model_ids`.
        outcome: (b,) 1 when the first won, 0 when the second did, 0.5 for a tie.
        validation: battles kept apart for choosing hyperparameters.
    """

    vectors: Vectors
    model_ids: tuple[str, ...]
    first: Ints
    second: Ints
    outcome: Floats
    validation: Battles | None = None

    def position(self, model: str) -> int:
        """Position of a model in `model_ids`.

        Raises:
            BadInput: it fought no battle.
        """
        if model not in self.model_ids:
            raise BadInput(
                f"model {model!r} is in no preference record",
                next_step=f"known models: {', '.join(self.model_ids)}",
            )
        return self.model_ids.index(model)

    def between(self, small: str, large: str) -> tuple[Vectors, Floats]:
        """(k, d) questions of this pair's battles, and (k,) how far the large model won.

        Raises:
            BadInput: the two never met.
        """
        s, t = self.position(small), self.position(large)
        ahead = (self.first == t) & (self.second == s)
        behind = (self.first == s) & (self.second == t)
        use = ahead | behind
        if not use.any():
            raise BadInput(
                f"{small!r} and {large!r} never meet in the preference records",
                next_step="pair them with the `preference` curation rule",
            )
        won = np.where(ahead, self.outcome, 1 - self.outcome)
        return self.vectors[use], won[use]


def from_preferences(
    preferences: pa.Table,
    vectors: Mapping[str, Vectors],
    *,
    validation: frozenset[str] = frozenset(),
    leave_out: frozenset[str] = frozenset(),
    basis: str | None = None,
) -> Battles:
    """Battles of a `preferences` table (contract in `schemas`).

    Args:
        vectors: embedding of each query_id.
        validation: queries whose battles go to `Battles.validation`.
        leave_out: queries whose battles are not used: those of the test.
        basis: what decided the battles (`semantic_entropy`, `correctness`,
            `judge:<name>`, `imported`). Battles of two bases are two opinions of
            the same questions and are never in one training set.

    Raises:
        BadInput: a question has no embedding, no battle is left, there is no
            such basis, or there are several and none is named.
    """
    columns = ("query_id", "model_a", "model_b", "winner_model_a", "winner_tie")
    rows = of_one_basis(preferences, basis).select(list(columns)).to_pylist()
    rows = [row for row in rows if row["query_id"] not in leave_out]
    missing = sorted({row["query_id"] for row in rows} - set(vectors))
    if missing:
        raise BadInput(
            f"{len(missing)} question(s) with preferences have no embedding, such as {missing[0]}",
            next_step="pass --embed (from Python: embed=True), or --embeddings FILE with all "
            "questions of the release",
        )
    names = tuple(sorted({row[side] for row in rows for side in ("model_a", "model_b")}))
    at = {name: position for position, name in enumerate(names)}

    def build(part: list[dict[str, object]], held: Battles | None) -> Battles:
        return Battles(
            np.stack([vectors[str(row["query_id"])] for row in part]),
            names,
            np.array([at[str(row["model_a"])] for row in part], dtype=np.int64),
            np.array([at[str(row["model_b"])] for row in part], dtype=np.int64),
            np.array(
                [1.0 if row["winner_model_a"] else 0.5 * bool(row["winner_tie"]) for row in part]
            ),
            held,
        )

    held_rows = [row for row in rows if row["query_id"] in validation]
    train_rows = [row for row in rows if row["query_id"] not in validation]
    if not train_rows:
        raise BadInput(
            "no preference record is left to train on",
            next_step="pair the answers first (`preference` curation rule)",
        )
    return build(train_rows, build(held_rows, None) if held_rows else None)


def of_one_basis(preferences: pa.Table, basis: str | None = None) -> pa.Table:
    """The records that one basis decided; see `from_preferences`."""
    if "basis" not in preferences.column_names:
        return preferences
    column = preferences.column("basis").to_pylist()
    known = sorted(set(column))
    if basis is None and len(known) > 1:
        raise BadInput(
            f"the preferences were decided on {len(known)} bases: {', '.join(known)}",
            next_step=f"train on one of them: --basis {known[0]}",
        )
    if basis is not None and basis not in known:
        raise BadInput(
            f"no preference record was decided on the basis {basis!r}",
            next_step=f"known: {', '.join(known) or 'none'}",
        )
    return preferences.filter(pa.array([one == (basis or one) for one in column], pa.bool_()))


def from_labels(examples: Examples, small: str, large: str) -> Battles:
    """Battles from correctness: the higher label wins, equal labels tie.

    Questions on which either has no label are left out.
    """
    s, t = examples.model_ids.index(small), examples.model_ids.index(large)
    y_small, y_large = examples.labels[:, s], examples.labels[:, t]
    use = ~np.isnan(y_small) & ~np.isnan(y_large)
    names = tuple(sorted((small, large)))
    n = int(use.sum())
    held = examples.validation
    return Battles(
        examples.queries.vectors()[use],
        names,
        np.full(n, names.index(large)),
        np.full(n, names.index(small)),
        (np.sign(y_large[use] - y_small[use]) + 1) / 2,
        None if held is None else from_labels(held, small, large),
    )
