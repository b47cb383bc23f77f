"""Selection rules applied to the winners of a zoo run: accuracy and cost under each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.experiment.entrants import RouterSpec, traits
from routeyard.pipelines.experiment.inputs import CellInputs, read
from routeyard.pipelines.experiment.splits import order
from routeyard.pipelines.matrix.core import MEASURES, first_measure
from routeyard.pipelines.matrix.ranking import mean_costs
from routeyard.pipelines.routers.base import model_means
from routeyard.pipelines.zoo import cell as cells
from routeyard.pipelines.zoo import run as zoo
from routeyard.pipelines.zoo.choose import ChoiceRequest, shares
from routeyard.schemas.tables import RESULTS


def by_rule(
    bench: CellInputs,
    done: zoo.Zoo,
    specs: Sequence[RouterSpec],
    wanted: Sequence[ChoiceRequest],
) -> pa.Table:
    """One row per winner, encoder and rule; a rule that a router cannot use says why.

    Test questions on which a model that is asked has no label count with their other
    models only, and not at all without any.
    """
    core = read(bench.folder, bench.data, "")
    test = core.take(core.rows(bench.scheme, "test"))
    test = test.take(np.flatnonzero(~np.all(np.isnan(test.labels), axis=1)))
    train = core.rows(bench.scheme, "train")
    measure = first_measure(
        {m: 0 for m, c in core.costs.items() if np.all(np.any(~np.isnan(c[train]), axis=0))}
    )
    before = None if measure is None else mean_costs(core.costs[measure][train])
    scale = {spec.name: traits(spec).scale for spec in specs}
    means, first = model_means(core.labels[train]), order(core, bench.scheme)
    rows = []
    for (router, encoder), job in sorted(done.winners.items(), key=lambda one: one[0]):
        kept = cells.test_scores(job)
        for rule in wanted:
            row: dict[str, Any] = {
                "router": router,
                "encoder": encoder,
                "rule": rule.text,
                "measure": measure,
            }
            try:
                share = shares(
                    rule, kept.astype(np.float64), before,
                    router=router, scale=scale[router], means=means,
                    order=first,
                )  # fmt: skip
            except BadInput as refused:
                rows.append({**row, "refused": refused.args[0]})
                continue
            row["accuracy"] = _mean(share, test.labels)
            row["mean_cost"] = None if measure is None else _mean(share, test.costs[measure])
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=RESULTS["zoo_rules"])


def _mean(share: np.ndarray, values: np.ndarray) -> float:
    """Mean over questions of the shared mean of what is known."""
    weight = np.where(np.isnan(values), 0.0, share)
    total = weight.sum(axis=1)
    use = total > 0
    return float(((weight * np.nan_to_num(values)).sum(axis=1)[use] / total[use]).mean())


def page(table: pa.Table) -> str:
    """The table as Markdown; refusals under it, one line each."""
    rows = [r for r in table.to_pylist() if r["refused"] is None]
    unit = MEASURES.get(rows[0]["measure"], "cost unknown") if rows else ""
    lines = ["", "Selection rules, on test:", ""]
    lines += [f"| router | encoder | rule | accuracy | mean cost ({unit}) |"]
    lines += ["| --- | --- | --- | ---: | ---: |"]
    for r in rows:
        cost = "–" if r["mean_cost"] is None else f"{r['mean_cost']:.3g}"
        head = f"| {r['router']} | {r['encoder']} | {r['rule']}"
        lines.append(f"{head} | {100 * r['accuracy']:.2f} | {cost} |")
    refused = sorted({r["refused"] for r in table.to_pylist() if r["refused"] is not None})
    if refused:
        lines += ["", "Not used:", "", *(f"- {why}" for why in refused)]
    return "\n".join(lines) + "\n"
