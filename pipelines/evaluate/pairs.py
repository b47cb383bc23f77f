"""One router between a small and a large model: trade-off curve and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.bands import Bands
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.rows import MetricRow, counted, curve_rows, metric
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.ranking import single_means
from routeyard.pipelines.metrics import tradeoff
from routeyard.pipelines.metrics.bootstrap import Draws

#: Resamples behind the band of a trade-off curve; its metrics use all of them.
BAND_RESAMPLES = 1000

#: Call rates at which a band is drawn.
RATES = tradeoff.GRID

#: Failures, and successes, of the small model that an interval of the AUROC needs.
LEAST = 5

#: Cells of one block of resampled polylines: a block of arrays stays in the cache.
BLOCK_CELLS = 1 << 18


@dataclass(frozen=True, eq=False)
class ModelPair:
    """Questions on which both models have a label.

    Attributes:
        rows: (n,) their positions among the questions of the data.
        small, large: (n,) labels.
        correct: (n,) whether the small model is right, 1 or 0.
        names: (small, large) model ids.
    """

    rows: Ints
    small: Floats
    large: Floats
    names: tuple[str, str]
    correct: Floats


def pair_of(test: Core, small: str, large: str) -> ModelPair:
    """Raises BadInput when a model is unknown or the two share no question."""
    columns = [test.labels[:, test.place(name)] for name in (small, large)]
    rows = np.flatnonzero(~np.isnan(columns[0]) & ~np.isnan(columns[1]))
    if not len(rows):
        raise BadInput(
            f"{small!r} and {large!r} have no labelled question in common",
            next_step="choose another pair",
        )
    correct = test.decided[rows, test.model_ids.index(small)]
    return ModelPair(rows, columns[0][rows], columns[1][rows], (small, large), correct)


def wanted_of(scores: Floats, small: int, large: int, by: str) -> Floats:
    """(n,) how much a router of a whole pool wants the large model.

    Args:
        by: `confidence`: the less sure it is of the small model, the more
            (RouterXBench, section 3.3; RouterBench+, appendix I.1: a threshold on
            the small model's predicted quality). `difference`: the large model's
            predicted score minus the small one's.
    """
    if by == "confidence":
        return np.asarray(-scores[:, small])
    if by == "difference":
        return np.asarray(scores[:, large] - scores[:, small])
    raise BadInput(f"binary routing cannot go by {by!r}", next_step="known: confidence, difference")


def oracle_wanted(pair: ModelPair) -> Floats:
    """(n,) what an oracle spends first: what the small model fails on, by what the large gains.

    Its AUROC is 1, and for 0/1 labels no curve is above its own.
    """
    return np.asarray(3 * (1 - pair.correct) + pair.large - pair.small)


def default_pair(core: Core) -> tuple[str, str] | None:
    """The two models of a pool of two, small first: by cost where known, else accuracy."""
    if core.n_models != 2:
        return None
    key = single_means(core.labels)
    for name in ("usd", "params"):
        if name in core.costs:
            price = single_means(core.costs[name])
            key = price if price[0] != price[1] else key
            break
    first, second = core.model_ids if key[0] <= key[1] else reversed(core.model_ids)
    return first, second


def metrics_of(bands: Bands) -> Mapping[str, Callable[[Floats, Floats], Floats]]:
    """Name → function of (rate, performance)."""
    return {
        "lpm": lambda x, y: tradeoff.lpm(x, y, bands),
        "hcr": lambda x, y: tradeoff.hcr(x, y, bands),
        "mpm": lambda x, y: tradeoff.mpm(x, y, bands),
        "cpt[50]": lambda x, y: tradeoff.cpt(x, y, 0.5),
        "cpt[80]": lambda x, y: tradeoff.cpt(x, y, 0.8),
        "apgr": lambda x, y: tradeoff.apgr(x, y),
    }


@dataclass(frozen=True, eq=False)
class Traded:
    """Rows of one router on one pair; `apgr` and `auroc`: value and replicates to compare by."""

    router: str
    metrics: list[MetricRow]
    curves: list[dict[str, Any]]
    apgr: tuple[float, Floats]
    auroc: tuple[float, Floats]


def trade(
    pair: ModelPair,
    draws: Draws,
    split: str,
    router: str,
    wanted: Floats,
    bands: Bands | None = None,
) -> Traded:
    """Trade-off metrics of scores `wanted` (n,): how much the large model is needed.

    Args:
        draws: resamples of the pair's n questions.
    """
    bands = bands or Bands()
    names = metrics_of(bands)
    x, y = tradeoff.polyline(wanted, pair.small, pair.large)
    found: dict[str, list[Floats]] = {name: [] for name in (*names, "auroc")}
    band: list[Floats] = []
    size = max(1, BLOCK_CELLS // max(len(wanted), 1))
    done = 0
    for _, block in draws.blocks():
        for first in range(0, len(block), size):
            counts = block[first : first + size]
            xs, ys = tradeoff.polyline(wanted, pair.small, pair.large, counts)
            for name, function in names.items():
                found[name].append(function(xs, ys))
            found["auroc"].append(tradeoff.auroc(wanted, pair.correct, counts))
            if done < BAND_RESAMPLES:
                band += [np.interp(RATES, a, b) for a, b in zip(xs, ys, strict=True)]
                done += len(counts)
    replicates = {name: np.concatenate(parts) for name, parts in found.items()}
    values = {name: float(function(x, y)) for name, function in names.items()}
    values["auroc"] = float(tradeoff.auroc(wanted, pair.correct))
    why = {name: tradeoff.why_null(name, x, y, bands) for name in names}
    why["auroc"] = ""  # `_auroc` says it
    rows = [
        metric(router, name, split, value, replicates[name], why[name])
        for name, value in values.items()
    ]
    rows[list(values).index("auroc")] = _auroc(router, split, values, replicates, pair.correct)
    line, lines = np.interp(RATES, x, y), np.array(band)
    coded, drawn_coded = tradeoff.as_published(line, bands), tradeoff.as_published(lines, bands)
    rows += [
        metric(router, f"{name}_as_published", split, float(coded[name]), drawn_coded[name])
        for name in coded
    ]
    drawn = curve_rows(router, "tradeoff", None, split, RATES, RATES, line, lines)
    rows = counted(rows, len(wanted))
    return Traded(
        router, rows, drawn, *((values[name], replicates[name]) for name in ("apgr", "auroc"))
    )


def _auroc(
    router: str, split: str, values: Mapping[str, float], replicates: dict[str, Floats],
    correct: Floats,
) -> MetricRow:  # fmt: skip
    """Row of the AUROC; `reason` says how many failures it ranks, since few of them tell little.

    Below `LEAST` failures or successes there is no interval: resamples that by chance
    rank them alike would call an AUROC of 1 certain.
    """
    wrong = int((correct <= 0).sum())
    few = min(wrong, len(correct) - wrong) < LEAST
    if few:
        replicates["auroc"] = np.full_like(replicates["auroc"], np.nan)
    row = metric(
        router, "auroc", split, values["auroc"], replicates["auroc"],
        "the small model is always right, or always wrong",
    )  # fmt: skip
    says = f"the small model fails on {wrong} of {len(correct)} questions"
    if few:
        says += f"; an interval needs {LEAST} failures and {LEAST} successes"
    return row if row.value is None else replace(row, reason=says)
