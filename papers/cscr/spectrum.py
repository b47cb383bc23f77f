"""Where choices fall on the spectrum of costs: shares of cost bands, similarity of descriptors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common.matrix import Core, first_measure
from routeyard.pipelines.common.memmap import mean_costs
from routeyard.pipelines.evaluate.metrics.selection import scaled
from routeyard.pipelines.routers.base import Floats
from routeyard.pipelines.routers.contrastive import bands_of, bank_of


def band_shares(core: Core, scheme: str, profile: Mapping[str, float], n: int = 5) -> Floats:
    """(n,) share of test questions that go to the models of each cost band (CSCR, Table 14).

    Args:
        profile: model → share of the questions it is asked.

    Raises:
        BadInput: no cost is known.
    """
    measure = first_measure(core.costs) or ""
    price = mean_costs(core.costs[measure][core.rows(scheme, "train")])
    band = bands_of(scaled(price), n)
    shares = np.array([profile[name] for name in core.model_ids])
    return np.asarray(np.bincount(band, weights=shares, minlength=n))


def descriptor_cosines(core: Core, kind: str | None = None) -> NDArray[np.float64]:
    """(m, m) cosines between the models' descriptors (CSCR, Figure 2); `kind` as in `bank_of`."""
    bank = bank_of(core.descriptors, core.model_ids, kind).astype(np.float64)
    return np.asarray(bank @ bank.T)


def at_peak(curve: Floats) -> float:
    """Mean cost at the highest accuracy of a deferral curve (k, 2), the cheapest of equals."""
    best = curve[:, 1].max()
    return float(curve[curve[:, 1] >= best - 1e-12, 0].min())
