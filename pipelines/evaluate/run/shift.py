"""Out of distribution, as rows and metrics of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from routeyard.pipelines.evaluate.held_out.ood import averages, held_out_groups
from routeyard.pipelines.evaluate.held_out.unseen import unseen_models
from routeyard.pipelines.evaluate.rows import MetricRow
from routeyard.pipelines.evaluate.run.fitted import Maker
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.routers.base import Router


def ood_rows(
    core: Core,
    scheme: str,
    routers: Mapping[str, Maker],
    resamples: int,
    seed: int,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> list[dict[str, Any]]:
    """Rows of held-out groups with their averages, then of unseen models."""
    makers: dict[str, Callable[[], Router]] = {
        name: partial(make, 0) for name, make in routers.items()
    }
    rows = held_out_groups(core, scheme, makers, groups=groups, resamples=resamples, seed=seed)
    rows += averages(rows)
    hidden = core.unseen.get(scheme) or next(iter(core.unseen.values()), ())
    rows += unseen_models(core, scheme, hidden, makers, resamples=resamples, seed=seed)
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
