"""Pair routers trained on a release's preferences, one basis at a time, and asked about its test.

The confidence-driven router paper trains the same routers on three opinions of who
answered better: semantic entropy, correctness and a judge. Battles of two bases are never
mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.experiment.fit import fit
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.routers import PAIR_ROUTERS
from routeyard.pipelines.routers.base import Queries
from routeyard.pipelines.routers.pairs.battles import (
    Battles,
    from_labels,
    from_preferences,
    of_one_basis,
)

#: The four of the confidence-driven router paper as printed, and how its tables call them.
PRINTED: Mapping[str, str] = {
    "pair-bt-as-printed": "SW",
    "pair-mf-as-printed": "MF",
    "pair-mlp-as-printed": "MLP",
    "pair-knn-as-printed": "kNN",
}

#: Battles made from labels, where no preference was recorded: the basis of TO-Router.
LABELS = "labels"


def bases(preferences: pa.Table | None) -> list[str]:
    """What the records were decided on, in order; `labels` where none was on correctness."""
    known = set() if preferences is None else set(preferences.column("basis").to_pylist())
    return [*sorted(known), *([] if "correctness" in known else [LABELS])]


def battles_on(
    core: Core,
    preferences: pa.Table | None,
    scheme: str,
    pair: tuple[str, str],
    basis: str | None = None,
) -> tuple[Battles, str]:
    """(battles of the train and validation questions, what decided them).

    Battles of test questions are never used.

    Raises:
        BadInput: there are no embeddings, or the basis is absent, or several are there
            and none is named.
    """
    if core.embeddings is None:
        raise BadInput(
            "pair routers need embeddings of the questions, and the release has none",
            next_step="pass --embed (from Python: embed=True) or --embeddings FILE, or release "
            "with `include_embeddings: true`",
        )
    if basis == LABELS or preferences is None or not preferences.num_rows:
        if basis not in (None, LABELS):
            raise BadInput(
                f"the release has no preferences, so none on the basis {basis!r}",
                next_step="leave --basis out to train on the labels",
            )
        return from_labels(core.training(scheme), *pair), LABELS
    ids, split = np.array(core.query_ids), core.splits[scheme]
    vectors = dict(zip(core.query_ids, core.embeddings, strict=True))
    train = set(ids[split == "train"].tolist())
    held = frozenset(ids[split == "validation"].tolist())
    records = of_one_basis(preferences, basis)
    called = "+".join(sorted(set(records.column("basis").to_pylist())))
    asked = set(records.column("query_id").to_pylist())
    left = frozenset(asked - train - held)
    return from_preferences(records, vectors, validation=held, leave_out=left), called


def agreement(core: Core, scheme: str, preferences: pa.Table) -> tuple[int, int]:
    """(agreeing, told): of the train records with a winner of which one model alone is right,
    those that it won, and all of them."""
    known = {name: k for k, name in enumerate(core.query_ids)}
    models = {name: k for k, name in enumerate(core.model_ids)}
    agree = told = 0
    columns = ["query_id", "model_a", "model_b", "winner_model_a", "winner_tie"]
    for row in preferences.select(columns).to_pylist():
        at = known.get(row["query_id"])
        first, second = models.get(row["model_a"]), models.get(row["model_b"])
        if at is None or first is None or second is None or row["winner_tie"]:
            continue
        if core.splits[scheme][at] == "test":
            continue
        a, b = core.decided[at, first], core.decided[at, second]
        if a + b == 1:  # NaN where a label is unknown
            told += 1
            agree += int((a == 1) == row["winner_model_a"])
    return agree, told


def misled(agree: int, told: int) -> bool:
    """Whether winners are right less often than a coin would have them (binomial, 5 %).

    >>> misled(0, 5), misled(1, 5), misled(40, 100)
    (True, False, True)
    """
    from scipy.stats import binom

    return bool(told and binom.cdf(agree, told, 0.5) < 0.05)


def trained(
    battles: Battles, pair: tuple[str, str], names: Sequence[str]
) -> dict[str, Callable[[Queries], Floats]]:
    """Name → how much the large model is wanted, of pair routers fitted on the battles."""
    return {name: fit(PAIR_ROUTERS.get(name)(), battles, *pair).scores for name in names}


def first_of(battles: Battles, n: int, seed: int = 0) -> Battles:
    """n of the battles drawn once by a seed, so that a larger draw contains a smaller one."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(battles.outcome))[:n])
    return Battles(
        battles.vectors[rows], battles.model_ids, battles.first[rows], battles.second[rows],
        battles.outcome[rows], battles.validation,
    )  # fmt: skip
