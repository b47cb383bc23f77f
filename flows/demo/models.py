"""The simulated pool: what each model is good at, how it speaks, and how it fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any


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
        failures: Share of wrong answers that are refused, cut off, or give no answer at all.
    """

    model_id: str
    price_in: float
    price_out: float
    context_window: int = 100_000
    strengths: Mapping[str, float] = field(default_factory=dict)
    first_token_ms: float = 0.0
    token_ms: float = 0.0
    verbosity: int = 0
    reasons: bool = False
    failures: Mapping[str, float] = field(
        default_factory=lambda: {"refused": 0.06, "truncated": 0.05, "formless": 0.08}
    )
    throttled: float = 0.006
    broken: float = 0.006


@cache
def pool() -> dict[str, SimulatedModel]:
    """Model id → model. Prices come from the recipe, so both always agree."""
    manners = _yaml("demo", "models.yaml")
    keys = ("model_id", "price_in", "price_out", "context_window")
    return {
        row["model_id"]: SimulatedModel(
            **{key: row[key] for key in keys}, **manners[row["model_id"]]
        )
        for row in _yaml("recipes", "demo.yaml")["pool"]["models"]
    }


def planted() -> dict[tuple[str, str], float]:
    """(model, task) → planted probability, for tests of the measured accuracy."""
    return {
        (model.model_id, task): strength
        for model in pool().values()
        for task, strength in model.strengths.items()
    }


def _yaml(*path: str) -> dict[str, Any]:
    import yaml

    text = files("routeyard.flows").joinpath(*path).read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded
