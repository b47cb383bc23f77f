"""Preference records: which of two models is preferred on a query, in the field's form.

The form is that of the public arena data and of the confidence-driven router
("Leveraging Uncertainty Estimation for Efficient LLM Routing", arXiv
2502.11021, section 2.2): model_a, model_b, prompt, both responses and a one-hot winner.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Literal

Winner = Literal["strong", "weak", "tie"]


@dataclass(frozen=True, slots=True)
class Sides:
    """Fields of a record besides its winner."""

    query_id: str
    prompt: str
    strong: str
    weak: str
    response_strong: str | None
    response_weak: str | None
    se_strong: float | None = None
    se_weak: float | None = None
    estimator: str | None = None
    backend: str | None = None


def delta(se_strong: float, se_weak: float) -> float | None:
    """δ = |(SE_strong − SE_weak) / SE_strong|; None when SE_strong is 0."""
    if se_strong == 0:
        return None
    value = abs((se_strong - se_weak) / se_strong)
    # A strong model all but certain overflows the ratio: as good as SE_strong = 0.
    return value if math.isfinite(value) else None


def winner_by_entropy(se_strong: float, se_weak: float, tau: float) -> Winner:
    """The model with the lower entropy when δ > τ, else a tie.

    SE_strong = 0 has no δ: a tie when SE_weak is 0 too, else the strong model wins
    (the weak one when its entropy is below zero, which length-normalised
    probabilities allow).
    """
    gap = delta(se_strong, se_weak)
    if se_strong == se_weak or (gap is not None and gap <= tau):
        return "tie"
    return "strong" if se_strong < se_weak else "weak"


def winner_by_score(score_strong: float, score_weak: float) -> Winner:
    """The model with the higher score; equal scores tie."""
    if score_strong == score_weak:
        return "tie"
    return "strong" if score_strong > score_weak else "weak"


def record(
    sides: Sides, winner: Winner, *, basis: str, seed: int, gap: float | None = None
) -> dict[str, object]:
    """One `preferences` row. Which model comes first is drawn from seed and query.

    The draw hashes the record's own identity, so that adding or removing
    other queries moves no model to the other side.
    """
    identity = "|".join((sides.query_id, sides.strong, sides.weak, basis))
    swapped = _digest(f"{seed}|{identity}")[0] % 2 == 1
    first, second = ("weak", "strong") if swapped else ("strong", "weak")
    model = {"strong": sides.strong, "weak": sides.weak}
    response = {"strong": sides.response_strong, "weak": sides.response_weak}
    entropy = {"strong": sides.se_strong, "weak": sides.se_weak}
    return {
        "id": "p" + _digest(identity).hex()[:20],
        "query_id": sides.query_id,
        "model_a": model[first],
        "model_b": model[second],
        "prompt": sides.prompt,
        "response_a": response[first],
        "response_b": response[second],
        "winner_model_a": int(winner == first),
        "winner_model_b": int(winner == second),
        "winner_tie": int(winner == "tie"),
        "se_a": entropy[first],
        "se_b": entropy[second],
        "delta": gap,
        "basis": basis,
        "estimator": sides.estimator,
        "backend": sides.backend,
        "n_turns": 1,
    }


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
