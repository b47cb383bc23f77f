"""The simulated pool: what each model is good at, how it speaks, and how it fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from flows.demo.bank import DOMAINS

#: Probability of a right answer per task, in the order of `bank.DOMAINS`:
#: capitals, science, grammar, strings, arithmetic, algebra, units, sequences,
#: code_output, logic, dates. The server plants these; the pipeline measures them.
_STRENGTHS: Mapping[str, tuple[float, ...]] = {
    "sim-atlas-xl": (0.88, 0.86, 0.86, 0.74, 0.86, 0.83, 0.85, 0.80, 0.82, 0.78, 0.74),
    "sim-borealis-large": (0.86, 0.84, 0.88, 0.66, 0.78, 0.72, 0.78, 0.70, 0.66, 0.74, 0.66),
    "sim-coder-medium": (0.60, 0.62, 0.60, 0.95, 0.76, 0.74, 0.76, 0.78, 0.97, 0.66, 0.72),
    "sim-mathis-medium": (0.52, 0.62, 0.52, 0.58, 0.97, 0.96, 0.96, 0.95, 0.66, 0.72, 0.70),
    "sim-lexicon-medium": (0.80, 0.66, 0.97, 0.74, 0.52, 0.42, 0.52, 0.38, 0.33, 0.55, 0.48),
    "sim-almanac-small": (0.98, 0.94, 0.70, 0.35, 0.42, 0.28, 0.66, 0.33, 0.24, 0.40, 0.95),
    "sim-sage-small": (0.66, 0.76, 0.68, 0.42, 0.56, 0.46, 0.56, 0.46, 0.42, 0.95, 0.42),
    "sim-nimble-small": (0.72, 0.68, 0.70, 0.50, 0.65, 0.55, 0.62, 0.52, 0.50, 0.50, 0.48),
    "sim-tern-mini": (0.50, 0.52, 0.55, 0.30, 0.45, 0.35, 0.40, 0.30, 0.30, 0.38, 0.30),
}
# model: milliseconds to the first token and per token, sentences of reasoning, hidden reasoning
_MANNERS: Mapping[str, tuple[float, float, int, bool]] = {
    "sim-atlas-xl": (22.0, 0.10, 4, True),
    "sim-borealis-large": (14.0, 0.08, 3, False),
    "sim-coder-medium": (9.0, 0.05, 2, False),
    "sim-mathis-medium": (10.0, 0.05, 4, True),
    "sim-lexicon-medium": (8.0, 0.05, 3, False),
    "sim-almanac-small": (4.0, 0.03, 1, False),
    "sim-sage-small": (4.0, 0.03, 3, False),
    "sim-nimble-small": (2.0, 0.02, 1, False),
    "sim-tern-mini": (1.0, 0.01, 0, False),
}


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """One model of the pool.

    Attributes:
        strengths: Task → probability that its answer is right and readable.
        price_in: USD per million prompt tokens, as the recipe states it.
        price_out: USD per million completion tokens.
        first_token_ms: Simulated wait before the first token.
        token_ms: Simulated wait per completion token.
        verbosity: Sentences of reasoning before an answer.
        reasons: Bills hidden reasoning tokens.
    """

    model_id: str
    strengths: Mapping[str, float]
    price_in: float
    price_out: float
    context_window: int
    first_token_ms: float
    token_ms: float
    verbosity: int
    reasons: bool
    #: Share of wrong answers that are refused, cut off, or give no answer at all.
    failures: Mapping[str, float] = field(
        default_factory=lambda: {"refused": 0.06, "truncated": 0.05, "formless": 0.08}
    )
    throttled: float = 0.006
    broken: float = 0.006


@cache
def pool() -> dict[str, SimulatedModel]:
    """Model id → model. Prices come from the recipe, so both always agree."""
    return {row["model_id"]: _model(row) for row in _recipe()["pool"]["models"]}


def planted() -> dict[tuple[str, str], float]:
    """(model, task) → planted probability, for tests of the measured accuracy."""
    return {
        (model.model_id, task): strength
        for model in pool().values()
        for task, strength in model.strengths.items()
    }


def _model(row: Mapping[str, Any]) -> SimulatedModel:
    name = row["model_id"]
    first, each, verbosity, reasons = _MANNERS[name]
    return SimulatedModel(
        model_id=name,
        strengths=dict(zip(DOMAINS, _STRENGTHS[name], strict=True)),
        price_in=float(row["price_in"]),
        price_out=float(row["price_out"]),
        context_window=int(row["context_window"]),
        first_token_ms=first,
        token_ms=each,
        verbosity=verbosity,
        reasons=reasons,
    )


def _recipe() -> dict[str, Any]:
    import yaml

    text = files("flows").joinpath("recipes", "demo.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded
