"""Out of distribution, as rows and metrics of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from routeyard.pipelines.evaluate.held_out.ood import averages, held_out_groups
from routeyard.pipelines.evaluate.held_out.unseen import unseen_models
from routeyard.pipelines.evaluate.rows import MetricRow
from routeyard.pipelines.experiment.experiment import Experiment
from routeyard.pipelines.experiment.settings import EvaluationSettings
from routeyard.pipelines.matrix.core import Core


def ood_rows(
    core: Core,
    scheme: str,
    experiment: Experiment,
    how: EvaluationSettings,
) -> list[dict[str, Any]]:
    """Rows of held-out groups with their averages, then of unseen models."""
    drawn: dict[str, Any] = {"resamples": how.resamples, "seed": how.seed}
    drawn |= {"store": experiment.store}
    first = {name: experiment.maker(name) for name in experiment.routers}
    rows = held_out_groups(core, scheme, first, groups=dict(how.ood_groups) or None, **drawn)
    rows += averages(rows)
    hidden = core.unseen.get(scheme) or next(iter(core.unseen.values()), ())
    rows += unseen_models(core, scheme, hidden, first, **drawn)
    return [asdict(row) for row in rows]


def ood_metrics(rows: Sequence[Mapping[str, Any]]) -> list[MetricRow]:
    """The same rows as metrics of splits `ood:<group>`."""
    out = []
    for row in rows:
        split = f"ood:{row['group']}"
        change = (row["change"], row["low"], row["high"])
        out.append(MetricRow(row["router"], "accuracy_change", split, *change, n=row["n"]))
        out += [
            MetricRow(row["router"], name, split, row[name], n=row["n"])
            for name in ("id_accuracy", "ood_accuracy", "agreement")
        ]
    return out
