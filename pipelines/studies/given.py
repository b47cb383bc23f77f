"""What a study is given: a release's tables, read once, and evaluations, made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.curate.matrix import LabelMatrix, label_matrix
from pipelines.evaluate.bootstrap import interval
from pipelines.evaluate.core import Core
from pipelines.evaluate.reading import core_of
from pipelines.evaluate.run import Evaluation, evaluate
from pipelines.routers.base import Router

Floats = NDArray[np.float64]

#: Resamples of statistics that are computed anew on every resample.
SLOW_RESAMPLES = 200


@dataclass(eq=False)
class Given:
    """A release and how it is to be measured.

    Attributes:
        release: Name of the release (its recipe's name).
        tables: Contract tables by name, `embeddings` among them where there are some.
        pair: (small, large) for binary routing; None picks the two models of a pool of two.
        routers: Routers to use instead of those a study names; empty for the study's own.
        resamples: Bootstrap resamples of means; slow statistics take `SLOW_RESAMPLES`.
        make: Router name → maker of a fresh router for a seed.
    """

    release: str
    tables: Mapping[str, pa.Table]
    make: Callable[[str], Callable[[int], Router]]
    scheme: str | None = None
    pair: tuple[str, str] | None = None
    routers: Sequence[str] = ()
    resamples: int = 2_000
    seed: int = 0
    _evaluations: dict[Any, Evaluation] = field(default_factory=dict)

    @cached_property
    def core(self) -> Core:
        """Labels, costs, embeddings and splits as dense arrays."""
        return core_of(self.tables)

    @cached_property
    def matrix(self) -> LabelMatrix:
        """Who is right on what, real models only."""
        return label_matrix(self.tables, where=f"study of {self.release}")

    def default_scheme(self) -> str:
        """The scheme asked for, else `dense`, else the first in order."""
        from pipelines.evaluate.certificate import default_scheme

        return default_scheme(self.core, self.scheme)

    def evaluation(
        self, routers: Sequence[str], *, ood: bool = False, seeds: int = 1
    ) -> Evaluation:
        """Routers of these names on the release; the same question is answered once."""
        names = tuple(self.routers or routers)
        key = (names, ood, seeds, self.pair)
        if key not in self._evaluations:
            self._evaluations[key] = evaluate(
                self.core,
                {name: self.make(name) for name in names},
                scheme=self.default_scheme(),
                resamples=self.resamples,
                seed=self.seed,
                seeds=seeds,
                pair=self.pair,
                ood=ood,
            )
        return self._evaluations[key]

    def intervals(self, statistic: Callable[[LabelMatrix], Floats]) -> list[tuple[float, float]]:
        """95 % intervals of a statistic (k,) of the label matrix, over resampled questions.

        Questions are drawn with replacement within each task, so tasks keep their sizes.
        """
        generator = np.random.default_rng(self.seed)
        by_task = [np.flatnonzero(self.matrix.task == t) for t in range(len(self.matrix.tasks))]
        found = []
        for _ in range(min(SLOW_RESAMPLES, self.resamples)):
            rows = np.concatenate([generator.choice(part, len(part)) for part in by_task])
            found.append(statistic(taken(self.matrix, rows)))
        replicates = np.stack(found)
        return [interval(replicates[:, k]) for k in range(replicates.shape[1])]


def taken(matrix: LabelMatrix, rows: NDArray[np.int64]) -> LabelMatrix:
    """The matrix of these questions, repeats included."""
    return LabelMatrix(
        models=matrix.models,
        queries=[matrix.queries[row] for row in rows.tolist()],
        task=matrix.task[rows],
        tasks=matrix.tasks,
        correct=matrix.correct[:, rows],
        known=matrix.known[:, rows],
    )
