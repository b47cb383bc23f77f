"""Losses and cost bands of contrastive routing, on tensors of any precision."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints


def bands_of(cost: Floats, n: int) -> Ints:
    """(m,) cost band of every model: k where β_k ≤ c < β_{k+1}, β the percentiles of the costs.

    CSCR (section 3.4) prints every band half-open, so that the dearest model (c = 1 = β_K)
    would be in none; here the last band holds its upper end. Where costs are equal, bands
    stay empty: a model of the same cost is in the same band.

    >>> bands_of(np.array([0.0, 0.1, 0.2, 1.0]), 2).tolist()
    [0, 0, 1, 1]
    """
    # A percentile is interpolated: one that is a model's own cost may be off by a rounding.
    edges = np.quantile(cost, np.linspace(0, 1, n + 1)[1:-1]) - 1e-12
    return np.asarray(np.searchsorted(edges, cost, side="right"), dtype=np.int64)


def temperatures(cost: Floats, band: Ints, least: float, slope: float) -> Floats:
    """(m,) τ_k = τ_min + α·c̄_k of each model's band, c̄_k its mean cost (CSCR, equation 7)."""
    mean = np.bincount(band, weights=cost) / np.maximum(np.bincount(band), 1)
    return np.asarray(least + slope * mean[band])


def info_nce(similarity: Any, positive: Any, known: Any, temperature: float) -> Any:
    """−log Σ_positive e^{s/τ} / Σ_known e^{s/τ}, mean over rows with a positive (equation 6).

    Args:
        similarity, positive, known: (b, m); positive and known are boolean.

    Returns:
        A scalar; 0 where no row has a positive.
    """
    import torch

    free = torch.zeros(similarity.shape[1], dtype=similarity.dtype)
    terms, _ = _of_band(similarity, positive, known, free, temperature)
    return terms.mean() if len(terms) else similarity.sum() * 0


def cost_spectrum(
    similarity: Any,
    positive: Any,
    known: Any,
    cost: Any,
    band: Any,
    temperature: Any,
    gamma: float,
    *,
    penalty: Literal["inside", "outside"] = "inside",
    average: Literal["query", "band"] = "query",
) -> Any:
    """Cost-spectrum InfoNCE (CSCR, equation 8).

    For every band k with a positive, −log of Σ e^{s/τ_k} over the band's positives by
    Σ e^{(s − γ·c)/τ_k} over all models whose label is known. The numerator has no
    penalty, so the loss can be negative.

    Args:
        similarity: (b, m) cosines. positive, known: (b, m) boolean.
        cost, band, temperature: (m,) of each model.
        penalty: `inside` the temperature as equation 8 prints it, or `outside`,
            e^{s/τ_k − γ·c}, as the proof of lemma 5.3 writes it.
        average: over the bands of a query, then over queries (the text); or over the
            queries of a band, then over bands (the published code).

    Returns:
        A scalar; 0 where no row has a positive.
    """
    import torch

    taken, rows_of = [], []
    for k in torch.unique(band).tolist():
        tau = float(temperature[band == k][0])
        less = gamma * cost if penalty == "inside" else gamma * cost * tau
        here = positive & (band == k)
        terms, rows = _of_band(similarity, here, known, less, tau)
        taken.append(terms)
        rows_of.append(rows)
    if average == "band":
        means = [terms.mean() for terms in taken if len(terms)]
        return torch.stack(means).mean() if means else similarity.sum() * 0
    total = similarity.new_zeros(len(similarity))
    n = similarity.new_zeros(len(similarity))
    for terms, rows in zip(taken, rows_of, strict=True):
        total = total.index_add(0, rows, terms)
        n = n.index_add(0, rows, torch.ones_like(terms))
    some = n > 0
    return (total[some] / n[some]).mean() if some.any() else similarity.sum() * 0


def _of_band(similarity: Any, positive: Any, known: Any, less: Any, tau: float) -> tuple[Any, Any]:
    """(r,) −log of the ratio of every row with a positive, and (r,) which rows these are."""
    import torch

    rows = torch.nonzero(positive.any(dim=1))[:, 0]
    s = similarity[rows]
    good = torch.where(positive[rows], s / tau, -torch.inf).logsumexp(dim=1)
    every = torch.where(known[rows], (s - less) / tau, -torch.inf).logsumexp(dim=1)
    return every - good, rows


def cheapest_positive(positive: Any, band: Any, cost: Any) -> Any:
    """(b, m) of the positives of each band the cheapest alone, of equals the first.

    "The cheapest accurate expert within adaptive cost bands" (CSCR, abstract and the
    published code's docstring; section 3.4 and the code itself take all).
    """
    import torch

    out = torch.zeros_like(positive)
    for k in torch.unique(band).tolist():
        here = positive & (band == k)
        rows = here.any(dim=1)
        first = torch.where(here, cost.expand(here.shape), torch.inf).argmin(dim=1)
        out[rows, first[rows]] = True
    return out
