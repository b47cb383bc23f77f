"""Error bars over splits: routers fitted and tested again on other draws of train and test."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.rows import MetricRow, metric
from routeyard.pipelines.evaluate.significance import seed_spread
from routeyard.pipelines.experiment.entrants import RouterSpec
from routeyard.pipelines.experiment.experiment import Experiment
from routeyard.pipelines.experiment.settings import EvaluationSettings
from routeyard.pipelines.experiment.splits import order, redrawn
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.metrics.baselines import alone
from routeyard.pipelines.metrics.selection import at_choice, best

#: The best single model on train, beside the routers.
SINGLE = "best single"


def over_splits(
    core: Core, scheme: str, experiment: Experiment, how: EvaluationSettings
) -> list[MetricRow]:
    """Mean and standard deviation over the draws of accuracy, and of its gain over the best
    single model, with the first seed. A table of predictions is of one split, so it has none.
    """
    reached: dict[str, list[float]] = {SINGLE: []}
    refused: dict[str, str] = {}
    for one in redrawn(core, scheme, how.splits, how.seed):
        test = one.take(one.rows(scheme, how.split)).labelled()
        known, first = ~np.isnan(test.labels), order(one, scheme)
        single = alone(known, first)[:, first[0]]
        reached[SINGLE].append(float(at_choice(test.labels, single).mean()))
        again = Experiment(one.training(scheme), experiment.routers, experiment.seeds[:1],
                           experiment.store)  # fmt: skip
        for name, make in experiment.routers.items():
            if isinstance(make, RouterSpec) and make.is_table:
                refused[name] = "a table of predictions is of one split"
            if name in refused:
                continue
            try:
                choice = best(again.scores(name, test.queries()), known, first)
            except BadInput as error:
                refused[name] = str(error.args[0])
            else:
                hit = float(at_choice(test.labels, choice).mean())
                reached.setdefault(name, []).append(hit)
    if how.splits and not reached[SINGLE]:
        why = "the split puts whole tasks apart"
        refused = dict.fromkeys((*experiment.routers, SINGLE), why)
    rows = []
    for name in (*experiment.routers, SINGLE) if how.splits else ():
        found = np.array(reached.get(name, []))
        gain = found - np.array(reached[SINGLE][: len(found)])
        for called, values in (("accuracy", found), ("gain_over_best_single", gain)):
            if called != "accuracy" and name == SINGLE:
                continue
            mean, sd = (
                (None, None) if name in refused or not len(values) else seed_spread(values.tolist())
            )
            why = refused.get(name, "one draw has no spread")
            rows += [
                metric(name, f"{called}_split_mean", how.split, mean, reason=why),
                metric(name, f"{called}_split_sd", how.split, sd, reason=why),
            ]
    return rows
