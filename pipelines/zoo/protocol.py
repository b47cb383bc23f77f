"""The protocol of the plateau study: which cells there are, and which setting wins.

arXiv 2606.07587, appendix E.4. Stage 1: every architecture (at most 15 a router)
with seed 42. Stage 2: the five that route best on validation, λ = 0, again with
seeds 1337, 2026, 7 and 99. The winner has the best mean validation accuracy of
stage 2; its figure is mean ± sd of test accuracy over the five seeds. A router
without chance has no second stage, and its best of stage 1 wins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.experiment.settings import FIRST_SEED, MORE_SEEDS

FINALISTS = 5
#: Stage of a fit that is made for `evaluate` and judged by nobody.
BESIDE = 0
#: Stage of a winner's fit on another draw of the split.
REDRAWN = 3
#: Reference that is what one would deploy without a router.
SINGLE = "best single model (train)"
#: Encoder of a router that reads none.
NO_ENCODER = "none"


@dataclass(frozen=True)
class ZooCell:
    """One fit.

    Attributes:
        architecture: the setting as JSON with sorted keys.
        stage: 1, 2, `BESIDE` or `REDRAWN`.
        draw: which draw of the split, from 1; 0 is the release's own.
    """

    router: str
    encoder: str
    architecture: str
    seed: int
    stage: int
    draw: int = 0

    @property
    def setting(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.architecture)
        return found


@dataclass(frozen=True)
class CellResult:
    """What a cell came to.

    Attributes:
        val_accuracy, test_accuracy: routing accuracy at λ = 0; None when refused.
        fit_s: seconds on the clock of fitting; `cpu_s` of its thread's processor time for
            the whole cell, reading scores included.
        peak_mb: largest resident memory of the process meanwhile, 10^6 bytes.
        reason: why the router refused this release; None when it did not.
        not_as_published: what of its published settings the fit could not honour, `; ` between.
        clean_accuracy: on the test questions that are not also in train; None without any.
    """

    cell: ZooCell
    val_accuracy: float | None
    test_accuracy: float | None
    fit_s: float
    cpu_s: float
    peak_mb: float
    reason: str | None = None
    not_as_published: str = ""
    clean_accuracy: float | None = None


@dataclass(frozen=True)
class Ranking:
    """A router with one encoder.

    Attributes:
        winner: the cell of seed 42 with the chosen setting; its scores are evaluated.
        mean, sd: of test accuracy over the seeds; sd is 0 for one seed.
        clean: mean of that on the test questions that are not also in train.
        validation: mean validation accuracy that the choice was made by.
        seeds: how many.
        fit_s: mean seconds of a fit of the winner; `total_s` of fits in all its cells.
        cpu_s: processor seconds of all its cells.
        peak_mb: largest of all its cells.
    """

    winner: ZooCell
    mean: float
    sd: float
    clean: float | None
    validation: float
    seeds: int
    fit_s: float
    total_s: float
    cpu_s: float
    peak_mb: float


def setting_text(setting: Mapping[str, Any]) -> str:
    return json.dumps(dict(setting), sort_keys=True)


def first_stage(
    router: str, encoder: str, architectures: Sequence[Mapping[str, Any]], seed: int = FIRST_SEED
) -> list[ZooCell]:
    return [ZooCell(router, encoder, setting_text(one), seed, 1) for one in architectures]


def second_stage(results: Sequence[CellResult], seeds: Sequence[int] = MORE_SEEDS) -> list[ZooCell]:
    """Cells of the finalists of one router and encoder, from its first stage."""
    ranked = sorted(
        (r for r in results if r.val_accuracy is not None and r.cell.stage == 1),
        # Equal on validation: the setting listed first, which a stable sort keeps.
        key=lambda r: -(r.val_accuracy or 0.0),
    )
    return [
        ZooCell(r.cell.router, r.cell.encoder, r.cell.architecture, seed, 2)
        for r in ranked[:FINALISTS]
        for seed in seeds
    ]


def _clean(results: Sequence[CellResult]) -> float | None:
    found = [r.clean_accuracy for r in results if r.clean_accuracy is not None]
    return float(np.mean(found)) if len(found) == len(results) else None


def spread(values: Sequence[float] | Floats) -> tuple[float, float]:
    """(mean, sample standard deviation); 0 for one value."""
    found = np.asarray(values, dtype=np.float64)
    return float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else 0.0


def ranking(results: Sequence[CellResult]) -> Ranking | None:
    """The winner of one router and encoder; None when it refused every cell."""
    good = [r for r in results if r.val_accuracy is not None and r.test_accuracy is not None]
    if not good:
        return None
    later = [r for r in good if r.cell.stage == 2]
    judged = later or good
    by_setting: dict[str, list[float]] = {}
    for r in judged:
        by_setting.setdefault(r.cell.architecture, []).append(float(r.val_accuracy or 0.0))
    # max keeps the first of equals, and cells are in the order of the settings.
    chosen = max(by_setting, key=lambda text: float(np.mean(by_setting[text])))
    own = [r for r in good if r.cell.architecture == chosen]
    mean, sd = spread([float(r.test_accuracy or 0.0) for r in own])
    winner = next(r.cell for r in own if r.cell.stage == 1)
    return Ranking(
        winner,
        mean,
        sd,
        _clean(own),
        float(np.mean(by_setting[chosen])),
        len(own),
        float(np.mean([r.fit_s for r in own])),
        float(sum(r.fit_s for r in good)),
        float(sum(r.cpu_s for r in good)),
        max(r.peak_mb for r in good),
    )
