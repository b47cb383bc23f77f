"""Whether two groups of samples make a pair by semantic entropy, and if not, why."""

from __future__ import annotations

from typing import NamedTuple

from routeyard.pipelines.curate.preference.entropy import DISCRETE, SEQUENCE
from routeyard.pipelines.curate.preference.semantic import SampleEntropies


class Entropies(NamedTuple):
    """The two entropies of a pair, from one estimator."""

    se_strong: float
    se_weak: float
    estimator: str


class NoPair(NamedTuple):
    """Why a query makes no pair: short reason, and a sentence."""

    reason: str
    detail: str


def compare(
    strong: SampleEntropies | None,
    weak: SampleEntropies | None,
    *,
    names: tuple[str, str],
    estimator: str,
    min_samples: int,
) -> Entropies | NoPair:
    """Entropies of both models by one estimator, over as many samples of each.

    n samples reach ln n at most: of the model with more of them the first ones are taken.
    `auto` takes the paper's sequence-probability form where both models have
    it, else the discrete form for both.
    """
    if strong is None or weak is None:
        lacking = [name for name, one in zip(names, (strong, weak), strict=True) if one is None]
        return NoPair("no_response", f"no usable response of {' and '.join(lacking)}")
    for one in (strong, weak):
        model, n = one.samples.model_id, len(one.samples.texts)
        if n < min_samples:
            return NoPair(
                "too_few_samples", f"{model} has {n} usable samples; {min_samples} are needed"
            )
        if one.clusters is None:
            return NoPair("backend_failed", f"no decision on the answers of {model}")
    fewest = min(len(strong.samples.texts), len(weak.samples.texts))
    strong, weak = strong.first(fewest), weak.first(fewest)
    used = estimator
    if estimator == "auto":
        both = SEQUENCE in strong.entropies and SEQUENCE in weak.entropies
        used = SEQUENCE if both else DISCRETE
    values = strong.entropies.get(used), weak.entropies.get(used)
    if values[0] is None or values[1] is None:
        without = names[0] if values[0] is None else names[1]
        return NoPair("no_entropy", f"{without} has no entropy of estimator {used}")
    return Entropies(values[0], values[1], used)
