"""V_R, V_B and E_p: RouterEval's three numbers beside the mean score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.metrics.spec import Found, MetricSpec, Routed
from pipelines.evaluate.selection import at_choice
from pipelines.large.rows import by_rows

Floats = NDArray[np.float64]


def entropies(scores: Floats) -> Floats:
    """(n,) −Σ p log₂ p of the softmaxed scores (n, m) of each question, in bits.

    >>> entropies(np.zeros((1, 4))).tolist()
    [2.0]
    """

    def work(part: Floats) -> Floats:
        shifted = np.exp(part - part.max(axis=1, keepdims=True))
        p = shifted / shifted.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-np.where(p > 0, p * np.log2(p), 0.0).sum(axis=1)) + 0.0

    return np.asarray(by_rows(work, scores))


def over(shown: Routed, model: int) -> Found:
    """Mean score of the choices over that of one model, on the questions it has a label for."""
    alone = shown.ground.own(model)
    met = ~np.isnan(alone)
    hit = np.where(met, at_choice(shown.ground.test.labels, shown.choice), np.nan)
    if not met.any():
        return Found(float("nan"), None, "the model it is compared with has no label")
    columns = np.stack([hit, alone], axis=1)
    below = float(columns[met, 1].mean())
    if not below > 0:
        return Found(float("nan"), None, "the model it is compared with is never right")
    drawn = shown.ground.draws.means(columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        replicates = np.where(drawn[:, 1] > 0, drawn[:, 0] / drawn[:, 1], np.nan)
    return Found(float(columns[met, 0].mean()) / below, replicates, n=int(met.sum()))


def _v_r(shown: Routed) -> Found:
    reference = shown.rivals.reference
    return over(shown, shown.ground.single if reference is None else reference)


def _v_b(shown: Routed) -> Found:
    return over(shown, shown.ground.best_on_test)


def _e_p(shown: Routed) -> Found:
    return shown.mean(entropies(shown.scores))


V_R = MetricSpec(
    name="v_r",
    direction="higher",
    unit="share of the reference's accuracy",
    source="RouterEval, V_R",
    says="accuracy over that of a reference model: the one named, else the best single on train",
    compute=_v_r,
)
V_B = MetricSpec(
    name="v_b",
    direction="higher",
    unit="share of the best single model's accuracy",
    source="RouterEval, V_B",
    says="accuracy over that of the best single model on test",
    compute=_v_b,
)
E_P = MetricSpec(
    name="e_p",
    direction="neither",
    unit="bits",
    source="RouterEval, E_p",
    says="mean entropy of the softmaxed scores; higher is more diverse",
    compute=_e_p,
)
