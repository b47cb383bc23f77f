"""Routing between a small and a large model: performance against call rate.

Φ(x) is the performance when the share x of queries with the highest scores
goes to the large model, by linear interpolation between the thresholds that
exist. Queries of equal score cannot be told apart by a threshold; between two
thresholds Φ is the straight line, which is what breaking ties at random gives.
So constant scores give the chord from small to large.

Every function takes a polyline `rate`, `performance` of shape (..., k), both
ends included (rates 0 and 1), and treats all leading axes at once: the curves
of all resamples in one call. Null is NaN; `why_null` says why.

LPM, HCR and MPM are the scenario measures of RouterXBench (Wu et al., arXiv
2602.11877), their formulas written out with each function; CPT and APGR are
RouteLLM's (Ong et al., arXiv 2406.18665, "Metrics"). The
confidence-driven router paper (Zhang et al., arXiv 2502.11021) words CPT(x) as
the share of calls needed for x % of the improvement over the small model,
which is the same quantity: performance Perf_S + x·(Perf_L − Perf_S).
"""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.common.arrays import Floats, Ints
from routeyard.pipelines.evaluate.settings import Bands

# Bands of the trade-off metrics, apart from their arithmetic: `--help` imports no numpy.


def order_groups(scores: Floats) -> tuple[Ints, Ints]:
    """(n,) queries by falling score, and where each group of equal scores starts."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return order, starts


def polyline(
    scores: Floats, small: Floats, large: Floats, counts: Floats | None = None
) -> tuple[Floats, Floats]:
    """(..., k+1) call rate and performance at every threshold, from none to all.

    Args:
        scores: (n,) how much the large model is wanted.
        small, large: (n,) labels of the two models.
        counts: (..., n) how often each query is in each resample; ones
            without.

    >>> x, phi = polyline(np.array([3.0, 2.0, 1.0, 1.0]), np.array([0, 0, 1, 1.0]), np.ones(4))
    >>> x.tolist(), phi.tolist()
    ([0.0, 0.25, 0.5, 1.0], [0.5, 0.75, 1.0, 1.0])
    """
    order, starts = order_groups(scores)
    weight = np.ones(len(scores)) if counts is None else counts
    ordered = weight[..., order]
    total = ordered.sum(axis=-1, keepdims=True)
    calls = np.cumsum(np.add.reduceat(ordered, starts, axis=-1), axis=-1) / total
    gained = np.add.reduceat(ordered * (large - small)[order], starts, axis=-1)
    base = (ordered @ small[order])[..., None] / total
    performance = base + np.cumsum(gained, axis=-1) / total
    zero = np.zeros_like(base)
    return np.concatenate([zero, calls], axis=-1), np.concatenate([base, performance], axis=-1)


def lpm(rate: Floats, performance: Floats, bands: Bands | None = None) -> Floats:
    """LPM = (1/d₁)·∫₀^{d₁} Φ(x) dx: mean performance at low call rates.

    >>> float(lpm(np.array([0.0, 1.0]), np.array([0.6, 0.8])))
    0.625
    """
    bands = bands or Bands()
    return _integral(rate, performance, 0.0, bands.d1_lpm) / bands.d1_lpm


def hcr(rate: Floats, performance: Floats, bands: Bands | None = None) -> Floats:
    """HCR = 1 − mean{x : τ₁ ≤ Φ(x) ≤ τ₂}, τᵢ = Perf_S + ρᵢ·(Perf_L − Perf_S).

    How few calls reach most of the large model's performance. The mean is an
    integral over the part of [0, 1] where the polyline lies in the band, over
    that part's length. NaN where that part is empty or only single points, or
    Perf_L ≤ Perf_S.

    >>> round(float(hcr(np.array([0.0, 1.0]), np.array([0.6, 0.8]))), 6)
    0.1
    """
    bands = bands or Bands()
    small, large = performance[..., :1], performance[..., -1:]
    tau1 = small + bands.low * (large - small)
    tau2 = small + bands.high * (large - small)
    x0, x1 = rate[..., :-1], rate[..., 1:]
    y0, y1 = performance[..., :-1], performance[..., 1:]
    # Rounding must not decide whether a level stretch on the border is in the band.
    flat = np.abs(y1 - y0) < 1e-12
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = np.where(flat, 1.0, (x1 - x0) / (y1 - y0))
        at1, at2 = x0 + (tau1 - y0) * slope, x0 + (tau2 - y0) * slope
    enter = np.where(flat, x0, np.minimum(at1, at2))
    leave = np.where(flat, x1, np.maximum(at1, at2))
    inside = np.where(flat, (y0 >= tau1 - 1e-12) & (y0 <= tau2 + 1e-12), True)
    a, b = np.maximum(x0, enter), np.minimum(x1, leave)
    length = np.where(inside, np.maximum(b - a, 0.0), 0.0)
    measure = length.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (length * (a + b) / 2).sum(axis=-1) / measure
    usable = (measure > 0) & (large > small)[..., 0]
    return np.asarray(np.where(usable, 1 - mean, np.nan))


def mpm(rate: Floats, performance: Floats, bands: Bands | None = None) -> Floats:
    """MPM = mean of Φ on (d₁, d₂], d₂ = min{x : Φ(x) ≥ τ₁}.

    NaN where Perf_L ≤ Perf_S or d₂ ≤ d₁.

    >>> round(float(mpm(np.array([0.0, 1.0]), np.array([0.6, 0.8]))), 6)
    0.715
    """
    bands = bands or Bands()
    small, large = performance[..., 0], performance[..., -1]
    d2 = first_reaching(rate, performance, small + bands.low * (large - small))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = _integral(rate, performance, bands.d1_mpm, d2) / (d2 - bands.d1_mpm)
    return np.asarray(np.where((large > small) & (d2 > bands.d1_mpm), mean, np.nan))


#: Call rates at which RouterXBench's code looks at a curve.
GRID = np.linspace(0.0, 1.0, 101)


def as_published(performance: Floats, bands: Bands | None = None) -> dict[str, Floats]:
    """LPM, MPM and HCR as RouterXBench's code has them, from Φ at `GRID` (..., 101).

    LPM: mean of the points with a call rate from d1_lpm to d1_mpm. HCR: 1 − mean
    call rate of the points whose performance lies in the high band, 0 without
    any. MPM: mean performance of the points above that at d1_mpm and below the
    high band, 0 without any.

    >>> found = as_published(np.linspace(0.6, 0.8, 101))
    >>> {name: round(float(value), 6) for name, value in found.items()}
    {'lpm': 0.655, 'mpm': 0.715, 'hcr': 0.1}
    """
    bands = bands or Bands()
    small, large = performance[..., :1], performance[..., -1:]
    tau1 = small + bands.low * (large - small)
    tau2 = small + bands.high * (large - small)
    early = (bands.d1_lpm - 1e-9 <= GRID) & (bands.d1_mpm + 1e-9 >= GRID)
    lpm_mean = performance[..., early].mean(axis=-1) if early.any() else performance[..., 0] * 0
    start = performance[..., int(np.flatnonzero(bands.d1_mpm + 1e-9 >= GRID)[-1]), None]
    middle = (performance > start + 1e-12) & (performance < tau1 - 1e-12)
    high = (performance >= tau1 - 1e-12) & (performance <= tau2 + 1e-12)
    n_middle, n_high = middle.sum(axis=-1), high.sum(axis=-1)
    mean = np.where(middle, performance, 0.0).sum(axis=-1) / np.maximum(n_middle, 1)
    calls = np.where(high, GRID, 0.0).sum(axis=-1) / np.maximum(n_high, 1)
    return {"lpm": lpm_mean, "mpm": mean, "hcr": np.where(n_high > 0, 1 - calls, 0.0)}


def cpt(rate: Floats, performance: Floats, share: float) -> Floats:
    """CPT(x): least call rate at which the share x of the gap between the models is recovered.

    NaN where Perf_L ≤ Perf_S.

    >>> round(float(cpt(np.array([0.0, 0.2, 1.0]), np.array([0.6, 0.7, 0.8]), 0.75)), 6)
    0.6
    """
    small, large = performance[..., 0], performance[..., -1]
    result = first_reaching(rate, performance, small + share * (large - small))
    return np.asarray(np.where(large > small, result, np.nan))


def apgr(rate: Floats, performance: Floats) -> Floats:
    """APGR = ∫₀¹ (Φ(x) − Perf_S)/(Perf_L − Perf_S) dx: 0.5 for a random router.

    >>> round(float(apgr(np.array([0.0, 0.2, 1.0]), np.array([0.6, 0.7, 0.8]))), 6)
    0.65
    """
    small, large = performance[..., 0], performance[..., -1]
    middle = (performance[..., 1:] + performance[..., :-1]) / 2
    mean = np.einsum("...k,...k->...", np.diff(rate, axis=-1), middle)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(large > small, (mean - small) / (large - small), np.nan))


def why_null(name: str, rate: Floats, performance: Floats, bands: Bands | None = None) -> str:
    """The reason why a metric of one polyline (k,) is null."""
    bands = bands or Bands()
    small, large = float(performance[0]), float(performance[-1])
    if not large > small:
        return "the large model is not more accurate than the small one"
    if name == "mpm":
        return f"85 % of the gap is reached before the call rate {bands.d1_mpm}".replace(
            "85", f"{100 * bands.low:g}"
        )
    return "no call rate has a performance within the band"


def auroc(scores: Floats, correct: Floats, counts: Floats | None = None) -> Floats:
    """(...,) area under the ROC curve of predicting that the small model fails.

    The chance that a query it gets wrong has a higher score than one it gets
    right; equal scores count one half (Mann-Whitney). NaN where it is always
    right or always wrong. RouterXBench, section 3.3: the ground truth is
    whether the small model answers correctly.

    Args:
        scores: (n,) how much the large model is wanted.
        correct: (n,) whether the small model is right, 1 or 0.

    >>> float(auroc(np.array([0.9, 0.5, 0.5, 0.1]), np.array([0, 0, 1, 1.0])))
    0.875
    """
    order, starts = order_groups(scores)
    weight = np.ones(len(scores)) if counts is None else counts
    fails = (correct <= 0).astype(np.float64)
    bad = np.add.reduceat(weight[..., order] * fails[order], starts, axis=-1)
    good = np.add.reduceat(weight[..., order] * (1 - fails)[order], starts, axis=-1)
    n_bad, n_good = bad.sum(axis=-1), good.sum(axis=-1)
    below = n_good[..., None] - np.cumsum(good, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((bad * (below + good / 2)).sum(axis=-1) / (n_bad * n_good))


def first_reaching(rate: Floats, performance: Floats, target: Floats) -> Floats:
    """(...,) least x with Φ(x) ≥ target; NaN without one."""
    goal = np.asarray(target)[..., None]
    reached = performance >= goal - 1e-12
    first = np.argmax(reached, axis=-1)[..., None]
    before = np.maximum(first - 1, 0)
    x0, x1 = (np.take_along_axis(rate, at, -1) for at in (before, first))
    y0, y1 = (np.take_along_axis(performance, at, -1) for at in (before, first))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(y1 > y0, np.clip((goal - y0) / (y1 - y0), 0.0, 1.0), 1.0)
    result = (x0 + share * (x1 - x0))[..., 0]
    return np.asarray(np.where(reached.any(axis=-1), result, np.nan))


def _integral(rate: Floats, performance: Floats, low: float, high: Floats | float) -> Floats:
    """(...,) ∫ Φ over [low, high]; each segment by its value at the clipped middle."""
    x0, x1 = rate[..., :-1], rate[..., 1:]
    y0, y1 = performance[..., :-1], performance[..., 1:]
    a = np.maximum(x0, low)
    b = np.minimum(x1, np.asarray(high)[..., None] if np.ndim(high) else high)
    length = np.maximum(b - a, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = np.where(x1 > x0, (y1 - y0) / (x1 - x0), 0.0)
    return np.asarray((length * (y0 + slope * ((a + b) / 2 - x0))).sum(axis=-1))
