"""What an evaluation leaves out, and why: cost measures, questions without a label."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from routeyard.pipelines.errors import few
from routeyard.pipelines.evaluate.compare import ALPHA
from routeyard.pipelines.evaluate.run.sub_pool import in_words
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.metrics.evaluation_data import EvaluationData
from routeyard.schemas.intervals import undecided_words


def costs_lacking(core: Core, data: EvaluationData) -> dict[str, dict[str, Any]]:
    """Measure without figures → `reason`, and `known`: model → share of its labelled answers
    whose cost is known. Measures that nobody knows anything of are not named."""
    found: dict[str, dict[str, Any]] = {
        name: {"reason": f"not known of {few(who)}", "known": dict.fromkeys(who, 0.0)}
        for name, who in core.lacking.items()
    }
    for name in core.costs:
        if name in data.prices:
            continue
        both, labelled = core.priced(name)
        share = np.round(both / np.maximum(labelled, 1), 4)
        found[name] = {
            "reason": _why(core, data, name),
            "known": dict(zip(core.model_ids, share.tolist(), strict=True)),
        }
    return found


def _why(core: Core, data: EvaluationData, measure: str) -> str:
    """Which condition of `data.prepare` failed, and how much is known at all."""
    of = core.part_priced(measure)
    for part, cost in (
        ("train", data.train.costs[measure]), ("test", data.test.costs[measure]),
    ):  # fmt: skip
        none = np.isnan(cost).all(axis=0)
        if none.any():
            names = [core.model_ids[k] for k in np.flatnonzero(none)]
            return "; ".join(filter(None, (of, f"of no {part} question for {few(names)}")))
    bare = int((~data.available(measure).any(axis=1)).sum())
    n = data.test.n_queries
    return f"{of}; {bare:,} of {n:,} test questions have no answer with a label and a known cost"


def missing(facts: Mapping[str, Any]) -> list[str]:
    """What an evaluation could not take from all questions, as sentences.

    Args:
        facts: of an `Evaluation`.
    """
    words = []
    n, compared = facts["n_test"], facts["n_compared"]
    if compared < n:
        single = "single model" if facts["order_undecided"]["train"] else "best single model"
        words.append(
            f"{single} {facts['best_single']}: labels on {compared:,} of {n:,} test "
            "questions; what is compared with it is over those"
        )
    lacking = {name: k for name, k in facts["labelled"].items() if k < n}
    if lacking:
        least = sorted(lacking.items(), key=lambda one: (one[1], one[0]))
        words.append(
            f"labels missing of {len(lacking)} models: "
            + ", ".join(
                f"{name} has {k:,}, accuracy {_bounds(facts, name)}" for name, k in least[:3]
            )
            + (", …" if len(least) > 3 else "")
            + f" of {n:,}; each model's own rows are over the questions it has a label for"
        )
    for part, first in (("train", facts["best_single"]), ("test", facts["best_on_test"])):
        if open_with := facts["order_undecided"][part]:
            words.append(f"single models on {part}: {undecided_words(first, open_with)[:-1]}")
    if facts["leaked"]:
        words.append(
            f"{facts['leaked']:,} of {n:,} test questions are also in train, in the same words "
            "or nearly: `accuracy_without_leaks` is over the others, and routers are ranked by it "
            "unless all have a preset of their authors (`text`, `code`)"
        )
    pools = facts["sub_pools"]
    words += [
        f"no figures in {measure}: {told['reason']}"
        for measure, told in facts["costs_lacking"].items()
        if measure not in pools
    ]
    return words + [in_words(measure, told) for measure, told in pools.items()]


def untold(routers: int, resamples: int) -> list[str]:
    """A sentence where no difference between so many routers, and the best single model, can
    be significant: the least p-value of a bootstrap test is 2/(resamples + 1), times the pairs."""
    pairs = routers * (routers + 1) // 2
    least = math.ceil(2 * pairs / ALPHA)
    if routers < 2 or resamples >= least:
        return []
    return [
        f"{resamples:,} resamples cannot tell any two of {routers} routers apart once p-values are "
        f"corrected for {pairs:,} pairs: places need at least {least:,}"
    ]


def _bounds(facts: Mapping[str, Any], name: str) -> str:
    """What a model's accuracy may be, whatever its missing labels are (Manski 1989)."""
    low, high = facts["bounds"][name]
    return f"{low:.1%} to {high:.1%} whatever the others are"
