"""What the plateau study found, looked for in one run: each fact with its figure, held or not.

arXiv 2606.07587: kNN is in the top tier and the first five are close (section 4.1,
Table 1); selections collapse onto a few models, on hard questions as on all (section
5.1, Figure 4); most of the gap to the oracle is on hard questions (Table 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.metrics.baselines import query_oracle
from routeyard.pipelines.metrics.plateau import hard_subset, oracle_gap, selection_profile, solvable
from routeyard.pipelines.metrics.selection import at_choice, best

#: Most points between the first and the fifth router (the study's largest is 0.52).
SPREAD = 0.6
#: Models on which a selection counts as collapsed, and the least share they then take.
FEW, MOST = 3, 0.75
#: Routers that choose without looking at the question: no part of the study's table.
BLIND = ("best-generalist", "random")


@dataclass(frozen=True)
class Fact:
    """`holds`: None where the run cannot tell; `says`: the figure behind it."""

    name: str
    holds: bool | None
    says: str


def facts(
    test: Core, train: Core, scores: Mapping[str, NDArray[np.float32]], order: NDArray[np.int64]
) -> list[Fact]:
    """The four facts on test questions that have a label.

    Args:
        test: as the scores were made: its labelled test questions.
        train: says which single model is best.
        scores: router → (n, m) of its chosen setting.
        order: (m,) models; the first of it wins a tie of scores.

    Raises:
        BadInput: nothing says which fractional labels are right.
    """
    correct = test.decided
    can = ~np.isnan(test.labels)
    chosen = {
        name: best(one.astype(np.float64), can, order)
        for name, one in scores.items()
        if name not in BLIND
    }
    hit = {name: at_choice(test.labels, choice) for name, choice in chosen.items()}
    places = sorted(hit, key=lambda name: -float(hit[name].mean()))
    if len(places) < 2:
        return []
    top = int(np.nanargmax(np.nanmean(train.labels, axis=0)))
    hard = hard_subset(correct, top)
    return [
        _knn(hit, places),
        _spread(hit, places),
        _collapse(chosen, hard, correct, test.n_models),
        _gap(test.labels, correct, chosen, top, hard),
    ]


def _knn(hit: Mapping[str, NDArray[np.float64]], order: list[str]) -> Fact:
    name = "kNN in the top tier"
    if "knn" not in hit:
        return Fact(name, None, "kNN did not run")
    behind = hit[order[0]] - hit["knn"]
    error = float(behind.std(ddof=1) / np.sqrt(len(behind)))
    says = (
        f"rank {order.index('knn') + 1} of {len(order)}, {100 * behind.mean():.2f} ± "
        f"{100 * error:.2f} points behind {order[0]} (paired standard error)"
    )
    return Fact(name, bool(behind.mean() <= 2 * error), says)


def _spread(hit: Mapping[str, NDArray[np.float64]], order: list[str]) -> Fact:
    name = f"top five within {SPREAD} points"
    if len(order) < 5:
        return Fact(name, None, f"only {len(order)} routers ran")
    first, fifth = hit[order[0]], hit[order[4]]
    gap = first - fifth
    error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    says = (
        f"{100 * gap.mean():.2f} ± {100 * error:.2f} points from {order[0]} to {order[4]} (one fit "
        "of each winner, routers that look at the question; ± over test questions)"
    )
    return Fact(name, bool(100 * gap.mean() <= SPREAD), says)


def _collapse(
    chosen: Mapping[str, NDArray[np.int64]], hard: NDArray[np.bool_], correct: NDArray[np.float64],
    n_models: int,
) -> Fact:  # fmt: skip
    name = f"choices collapse onto {FEW} models, on hard questions too"
    if n_models <= FEW:
        return Fact(name, None, f"the pool has {n_models} models")
    if not hard.any():
        return Fact(name, None, "no question is hard")
    whole, part = [], []
    for choice in chosen.values():
        profile = selection_profile(choice, n_models)
        few = np.argsort(-profile, kind="stable")[:FEW]
        whole.append(float(profile[few].sum()))
        part.append(float(selection_profile(choice[hard], n_models)[few].sum()))
    truth = selection_profile(query_oracle(correct)[hard], n_models)
    says = (
        f"the three models a router asks most get {np.median(whole):.0%} of all and "
        f"{np.median(part):.0%} of hard questions (median of {len(chosen)} routers); the three "
        f"that are right on most hard ones, {np.sort(truth)[::-1][:FEW].sum():.0%}"
    )
    return Fact(name, bool(np.median(whole) >= MOST and np.median(part) >= MOST), says)


def _gap(
    labels: NDArray[np.float64], correct: NDArray[np.float64],
    chosen: Mapping[str, NDArray[np.int64]], top: int, hard: NDArray[np.bool_],
) -> Fact:  # fmt: skip
    name = "most of the oracle gap on hard questions"
    shares = [
        found.share_explained
        for found in (oracle_gap(labels, choice, top, correct) for choice in chosen.values())
        if found.share_explained is not None
    ]
    if not shares:
        return Fact(name, None, "there is no gap")
    says = (
        f"{np.median(shares):.1%} of it (median; {min(shares):.1%} to {max(shares):.1%}) on "
        f"{hard.mean():.1%} of the questions; {1 - solvable(correct).mean():.1%} no model solves"
    )
    return Fact(name, bool(np.median(shares) > 0.5), says)


def lines(found: list[Fact]) -> list[str]:
    """The facts as a Markdown list."""
    word = {True: "holds", False: "does not hold", None: "cannot be told"}
    return [f"- {fact.name}: {word[fact.holds]}; {fact.says}." for fact in found]
