"""What the threshold τ costs and buys: share of ties, and agreement with correctness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from routeyard.pipelines.curate.preference.record import winner_by_entropy

#: Default thresholds of a sweep.
TAUS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0)


class Compared(NamedTuple):
    """Entropies of one pair, and whether each model is right (None when undecided)."""

    se_strong: float
    se_weak: float
    correct_strong: bool | None
    correct_weak: bool | None


def tau_sweep(
    pairs: Sequence[Compared], taus: Sequence[float] = TAUS
) -> list[dict[str, float | int | None]]:
    """One row per τ.

    Returns:
        Rows with `tau`, `pairs`, `ties`, `tie_share`, `strong_wins`, `weak_wins`,
        `comparable` (decided pairs in which exactly one model is right) and
        `agreement` (share of those whose winner is the model that is right).
        A share of nothing is None.
    """
    rows: list[dict[str, float | int | None]] = []
    for tau in sorted(set(taus)):
        winners = [winner_by_entropy(pair.se_strong, pair.se_weak, tau) for pair in pairs]
        agree = [
            (winner == "strong") == pair.correct_strong
            for winner, pair in zip(winners, pairs, strict=True)
            if winner != "tie"
            and pair.correct_strong is not None
            and pair.correct_weak is not None
            and pair.correct_strong != pair.correct_weak
        ]
        ties = winners.count("tie")
        rows.append(
            {
                "tau": tau,
                "pairs": len(pairs),
                "ties": ties,
                "tie_share": ties / len(pairs) if pairs else None,
                "strong_wins": winners.count("strong"),
                "weak_wins": winners.count("weak"),
                "comparable": len(agree),
                "agreement": sum(agree) / len(agree) if agree else None,
            }
        )
    return rows
