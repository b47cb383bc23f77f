"""TRR and U_token: what routing between a plain and a reasoning model saves in tokens."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.common.arrays import Floats, ratio
from routeyard.pipelines.evaluate.metrics.selection import best
from routeyard.pipelines.evaluate.metrics.spec import MetricValue, Routed, metric


def trr(spent: Floats | float, strong: Floats | float) -> Floats:
    """TRR = 1 − tokens of the router/tokens of the strong model; NaN where those are 0.

    >>> float(trr(30.0, 100.0))
    0.7
    """
    return 1 - ratio(spent, strong)


def u_token(accuracy: Floats | float, small: Floats | float, saved: Floats | float) -> Floats:
    """U_token = (Acc − Acc_LLM)/(1 − TRR): accuracy gained per share of the strong one's tokens.

    >>> round(float(u_token(0.75, 0.6, 0.7)), 6)
    0.5
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (np.asarray(accuracy) - small) / (1 - np.asarray(saved))
    return np.where(np.isfinite(found), found, np.nan)


def _columns(routed: Routed) -> Floats | None:
    """(n, 4) score and tokens of the choice, score of the small model, tokens of the large one.

    Questions on which either model lacks a label or its tokens are left out (NaN rows).
    """
    pair, test = routed.shared.pair, routed.data.test
    if pair is None or "tokens" not in test.costs:
        return None
    at = np.array(pair)
    y, tokens = test.labels[:, at], test.costs["tokens"][:, at]
    chosen = best(routed.scores[:, at], np.ones(y.shape, dtype=bool), np.arange(2))
    rows = np.arange(len(y))
    out = np.stack([y[rows, chosen], tokens[rows, chosen], y[:, 0], tokens[:, 1]], axis=1)
    out[np.isnan(y).any(axis=1) | np.isnan(tokens).any(axis=1)] = np.nan
    return out


def _found(routed: Routed, useful: bool) -> MetricValue | None:
    columns = _columns(routed)
    if columns is None:
        return None
    if np.isnan(columns).all():
        return MetricValue(float("nan"), None, "no question has labels and tokens of both models")
    drawn = np.vstack([np.nanmean(columns, axis=0), routed.data.draws.means(columns)])
    values = trr(drawn[:, 1], drawn[:, 3])
    if useful:
        values = u_token(drawn[:, 0], drawn[:, 2], values)
    return MetricValue(float(values[0]), values[1:], "no token is spent")


@metric
def trr_metric(routed: Routed) -> MetricValue | None:
    """1 − tokens spent between small and large, over those of always asking the large model."""
    return _found(routed, useful=False)


@metric
def u_token_metric(routed: Routed) -> MetricValue | None:
    """(accuracy − accuracy of the small model)/(1 − TRR)."""
    return _found(routed, useful=True)
