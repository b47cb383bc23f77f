"""How often 95 % intervals of IPS, SNIPS and DR hold the truth, on logged streams of known truth.

Each simulation draws `--decisions` decisions of a logging policy that depends on the context, with
outcomes that depend on context and arm; the target policy is another function of the context. All
simulations share one set of bootstrap draws, which is drawn apart from their data.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

CONTEXTS, ARMS = 24, 3


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--decisions", type=int, default=2_000)
    parser.add_argument("--per-task", type=int, default=1, help="decisions of each task")
    parser.add_argument("--least", type=float, nargs="+", default=[0.05, 0.01])
    parser.add_argument("--resamples", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)


def run(arguments: Namespace) -> dict[str, Any]:
    return {
        f"least propensity {least:g}": coverage(
            least,
            arguments.simulations,
            arguments.decisions,
            arguments.per_task,
            arguments.resamples,
            arguments.seed,
        )
        for least in arguments.least
    }


def coverage(
    least: float, simulations: int, n: int, per_task: int, resamples: int, seed: int
) -> dict[str, Any]:
    """Share of the simulations whose interval holds the truth, by estimator, and mean widths."""
    from routeyard.extensions.traffic.off_policy import Decisions, columns, statistic
    from routeyard.pipelines.evaluate.metrics.bootstrap import Draws

    generator = np.random.default_rng(seed)
    chances, logging, target, truth = world(least, generator)
    task = np.repeat(np.arange(-(-n // per_task)), per_task)[:n]
    summed, effective = [], []
    for _ in range(simulations):
        # A task has one context: its decisions are alike, so that tasks must be resampled.
        context = generator.integers(0, CONTEXTS, task.max() + 1)[task]
        arm = (generator.random(n)[:, None] > logging[context].cumsum(axis=1)).sum(axis=1)
        arm = np.minimum(arm, ARMS - 1)
        # Outcomes of a task share their luck: one uniform number for each (task, arm).
        luck = generator.random((task.max() + 1, ARMS))[task, arm]
        reward = (luck < chances[context, arm]).astype(float)
        # A model of the outcome that is wrong by a fifth: DR must not need it to be right.
        decisions = Decisions(
            task, arm, reward, logging[context, arm], target[context],
            0.8 * chances[context] + 0.1,
        )  # fmt: skip
        weights = decisions.weights
        summed.append(columns(weights, decisions))
        effective.append(weights.sum() ** 2 / np.square(weights).sum())
    values = np.stack(summed, axis=1)  # decisions × simulations × columns
    draws = Draws(n, resamples, seed + 1, groups=task)
    replicates = draws.sums(values.reshape(n, -1)).reshape(resamples, simulations, -1)
    found: dict[str, Any] = {"truth": truth, "effective sample size": float(np.mean(effective))}
    for name in ("ips", "snips", "dr"):
        low, high = np.quantile(statistic(replicates, name), [0.025, 0.975], axis=0)
        found[name] = {
            "coverage": float(np.mean((low <= truth) & (truth <= high))),
            "width": float(np.mean(high - low)),
            "bias": float(np.mean(statistic(values.sum(axis=0), name)) - truth),
        }
    return found


def world(least: float, generator: np.random.Generator) -> tuple[Any, Any, Any, float]:
    """Chances of success and logging propensities (contexts × arms), target policy, its value.

    In a third of the contexts the target's arm is logged with the least propensity.
    """
    chances = generator.uniform(0.2, 0.9, (CONTEXTS, ARMS))
    best = chances.argmax(axis=1)
    target = np.eye(ARMS)[best]
    logging = np.full((CONTEXTS, ARMS), 1 / ARMS)
    rare = np.arange(CONTEXTS) % 3 == 0
    logging[rare] = (1 - least) / (ARMS - 1)
    logging[rare, best[rare]] = least
    return chances, logging, target, float((chances * target).sum(axis=1).mean())
