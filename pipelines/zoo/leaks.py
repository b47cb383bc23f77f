"""The zoo's winners on test questions that do not also stand in train."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from routeyard.pipelines.arrays import Ints, Vectors
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.leaked import leaked
from routeyard.pipelines.metrics.selection import at_choice, best


def without_leaks(
    core: Core, scheme: str, order: Ints, kept: Mapping[tuple[str, str], Vectors]
) -> str:
    """Markdown: how many test questions stand in train, and accuracies with and without them;
    empty where none does.

    Args:
        core: with its prompts.
        order: (m,) models, the first of which wins a tie.
        kept: (router, encoder) → (n, m) scores of its winner on the labelled test questions.
    """
    rows = core.rows(scheme, "test")
    rows = rows[~np.isnan(core.labels[rows]).all(axis=1)]
    out = leaked(core, scheme, rows)
    if not out.any():
        return ""
    labels = core.labels[rows]
    lines = [
        f"\n{int(out.sum()):,} of {len(rows):,} test questions also stand in train, in the same "
        "words or nearly. The setting that was chosen, seed 42:\n",
        "| Router | Encoder | all test questions | without those |",
        "| --- | --- | ---: | ---: |",
    ]
    for (router, encoder), scores in sorted(kept.items()):
        choice = best(scores.astype(np.float64), ~np.isnan(labels), order)
        hit = at_choice(labels, choice)
        rest = f"{100 * hit[~out].mean():.2f}" if not out.all() else "none left"
        lines.append(f"| {router} | {encoder} | {100 * hit.mean():.2f} | {rest} |")
    return "\n".join(lines) + "\n"
