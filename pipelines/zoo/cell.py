"""One cell: how a router with one setting and seed routes validation and test, written down.

What it predicts is a fit's (`experiment.fit`), kept for every command. The record is written last
and by renaming, so a record that is there is whole: a kill at any moment costs the cells in
flight and nothing else.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints, Vectors
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.experiment.entrants import RouterSpec
from routeyard.pipelines.experiment.fit import Fit, PredictionStore
from routeyard.pipelines.experiment.inputs import Ground, ground
from routeyard.pipelines.io.staging import write_text
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.metrics.calibration import bce_cells
from routeyard.pipelines.metrics.selection import at_choice, best
from routeyard.pipelines.routers.base import no_chances
from routeyard.pipelines.zoo.protocol import BESIDE, REDRAWN, CellResult, ZooCell


@dataclass(frozen=True)
class Job:
    """What a worker gets: strings and numbers only, so that any process can take it.

    Attributes:
        fingerprint: of code, data, vectors, setting and seed; names the record.
        bench: folder of the bench.
        cells: folder of the records; `store` of predictions.
        data, vectors, texts: hashes of the bench's files.
        code: hash of the code that decides the router's figures.
        and_train: whether what it says of its train questions is kept too.
        redrawn: file of another draw of the split; empty for the bench's own.
    """

    cell: ZooCell
    spec: RouterSpec
    fingerprint: str
    bench: str
    cells: str
    store: str
    data: str
    vectors: str
    texts: str
    code: str
    and_train: bool = False
    redrawn: str = ""

    @property
    def ground(self) -> Ground:
        """What the cell learns from and is asked."""
        return ground(Path(self.bench), self.data, self.vectors, self.texts, self.redrawn)

    def fit_of(self) -> Fit:
        """The fit of the cell; nothing is fitted before it is asked what is not kept."""
        own = replace(self.spec, setting=self.cell.setting, seed=self.cell.seed)
        store = PredictionStore(Path(self.store), {own.name: self.code})
        return Fit(own, self.ground.train, store)


def run(job: Job) -> CellResult:
    """Run a cell, or read its record where there is one.

    A router that refuses the release (BadInput) gives a result without figures
    that says why; anything else it raises is a fault of its code and is raised.
    """
    record = Path(job.cells) / f"{job.fingerprint}.json"
    if job.cell.stage in (BESIDE, REDRAWN):
        return _on_test(job)
    known = recorded(record, job.cell)
    if known is not None:
        return known
    on, fit = job.ground, job.fit_of()
    try:
        validation = hits(on.validation, fit.scores(on.asked_before), on.order).mean()
        test = hits(on.test, fit.scores(on.asked), on.order)
        if job.and_train:
            fit.scores(on.train.queries)
    except BadInput as refused:
        peak = fit.record.peak_mb
        result = CellResult(job.cell, None, None, 0.0, 0.0, peak, reason=refused.args[0])
    else:
        took, unlike = fit.record, "; ".join(fit.record.not_as_published)
        result = CellResult(
            job.cell, float(validation), float(test.mean()), took.fit_s, took.cpu_s, took.peak_mb,
            not_as_published=unlike,
            clean_accuracy=float(test[on.clean].mean()) if on.clean.any() else None,
        )  # fmt: skip
    write_text(record, json.dumps(asdict(result)))
    return result


def _on_test(job: Job) -> CellResult:
    """The test alone of a fit that has no place in the protocol: its scores are kept."""
    try:
        fit = job.fit_of()
        scores = fit.scores(job.ground.asked)
        if job.cell.stage == BESIDE:
            fit.scores(job.ground.asked_before)
    except BadInput as refused:
        return CellResult(job.cell, None, None, 0.0, 0.0, 0.0, reason=refused.args[0])
    test = float(hits(job.ground.test, scores, job.ground.order).mean())
    return CellResult(job.cell, None, test, 0.0, 0.0, 0.0)


def recorded(record: Path, cell: ZooCell) -> CellResult | None:
    """The result of a record; None without one or when it cannot be read."""
    try:
        values = json.loads(record.read_text())
    except (OSError, ValueError):
        return None
    values.pop("cell", None)
    return CellResult(cell, **values)


def hits(part: Core, scores: Floats, order: Ints) -> Floats:
    """(n,) labels of what scores (n, m) choose at λ = 0; ties go to whom `order` has first."""
    # What is counted is read off float32, as an encoder's vectors are.
    kept = scores.astype(np.float32).astype(np.float64)
    choice = best(kept, ~np.isnan(part.labels), order)
    return at_choice(part.labels, choice)


def test_scores(job: Job) -> Vectors:
    """(n, m) float32 scores of a cell on the test questions that have a label."""
    return job.fit_of().scores(job.ground.asked).astype(np.float32)


def train_bce(job: Job) -> float | None:
    """Mean cross-entropy of a cell's scores on its train questions; None where they are no chances.

    The cell is fitted again where its scores there were not kept.
    """
    fit, train = job.fit_of(), job.ground.train
    if fit.scale != "probability":
        return None
    scores = fit.scores(train.queries)
    return None if no_chances(scores) else float(np.nanmean(bce_cells(scores, train.labels)))


def forget(job: Job) -> None:
    """Drop what is kept of a cell's scores, but of a router's own setting: others ask for it."""
    fit, on = job.fit_of(), job.ground
    own = Fit(replace(job.spec, seed=job.cell.seed), on.train, fit.store)
    if fit.key != own.key:
        for asked in (on.asked_before, on.asked):
            fit.forget(asked)
