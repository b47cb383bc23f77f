"""Semantic entropies of every (query, model): samples → clusters → estimators → table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from routeyard.pipelines.curate.preference.clusters import (
    AnswerGroup,
    Clustering,
    answer_key,
    cluster,
)
from routeyard.pipelines.curate.preference.entropy import ESTIMATORS, entropies
from routeyard.pipelines.curate.preference.samples import Samples
from routeyard.pipelines.equivalence_types import Entailment
from routeyard.schemas import ENTROPIES

#: Fields of `Samples` with an entry for each sample.
SAMPLED = ("numbers", "texts", "extracted", "outcomes", "logprobs")
#: The `backend` of clusters made by equal answers alone.
EQUALITY = "equality"


@dataclass(frozen=True, slots=True)
class SampleEntropies:
    """Entropies of one (query, model).

    Attributes:
        clusters: Cluster per sample; None when the backend could not decide.
        entropies: Estimator → entropy in nat; empty when `clusters` is None.
    """

    samples: Samples
    clusters: npt.NDArray[np.int32] | None
    entropies: Mapping[str, float | None]

    def first(self, n: int) -> SampleEntropies:
        """The same over its first n samples."""
        if self.clusters is None or n >= len(self.samples.texts):
            return self
        some = replace(
            self.samples,
            **{name: getattr(self.samples, name)[:n] for name in SAMPLED},
        )
        # Clusters are numbered without gaps: those of the first samples are again.
        clusters = np.unique(self.clusters[:n], return_inverse=True)[1].astype(np.int32)
        return SampleEntropies(some, clusters, entropies(clusters, some.texts, some.logprobs))

    @property
    def majority(self) -> int | None:
        """Index of the first sample of the largest cluster (the earlier one of two)."""
        if self.clusters is None or self.clusters.size == 0:
            return None
        return int(np.argmax(self.clusters == np.bincount(self.clusters).argmax()))


def group(samples: Samples, entailment: Entailment | None) -> AnswerGroup:
    """What clustering sees of the samples: extracted answers or whole texts."""
    reads_answers = entailment is None or entailment.reads == "answer"
    return AnswerGroup(
        question=samples.query["question"],
        answers=samples.extracted if reads_answers else samples.texts,
        keys=tuple(map(answer_key, samples.texts, samples.extracted)),
        scorer=samples.query["scorer"],
        choices=tuple(samples.query["choices"] or ()),
    )


def measure(
    gathered: Sequence[Samples], entailment: Entailment | None
) -> tuple[list[SampleEntropies], Clustering]:
    """Cluster all samples in one pass and apply every estimator that applies."""
    clustering = cluster([group(samples, entailment) for samples in gathered], entailment)
    measured = []
    for samples, clusters in zip(gathered, clustering.assignments, strict=True):
        found: Mapping[str, float | None] = {}
        if clusters is not None:
            found = entropies(clusters, samples.texts, samples.logprobs)
        measured.append(SampleEntropies(samples, clusters, found))
    return measured, clustering


def entropy_table(
    measured: Sequence[SampleEntropies], backend: str, *, length_normalised: bool
) -> pa.Table:
    """`entropies` rows, one per estimator, ordered by key.

    A group whose backend failed has no rows: its number of clusters is unknown.
    """
    rows = [
        {
            "query_id": one.samples.query["query_id"],
            "model_id": one.samples.model_id,
            "estimator": estimator,
            "backend": backend,
            "n_samples": int(one.clusters.size),
            "n_clusters": int(one.clusters.max()) + 1,
            "semantic_entropy": one.entropies[estimator],
            "length_normalised": None if estimator == "discrete" else length_normalised,
        }
        for one in measured
        if one.clusters is not None
        for estimator in ESTIMATORS
        if estimator in one.entropies
    ]
    key = ("query_id", "model_id", "estimator", "backend")
    return ENTROPIES.from_rows(sorted(rows, key=lambda row: tuple(str(row[k]) for k in key)))


def predictive_power(
    measured: Sequence[SampleEntropies],
) -> list[dict[str, str | int | float | None]]:
    """Per model and estimator: AUROC of entropy for a wrong majority answer.

    The majority answer is wrong when the query's scorer called the first
    sample of the largest cluster incorrect; where it abstained or filed
    nothing, the query is counted in `undecided` and left out.
    """
    rows: list[dict[str, str | int | float | None]] = []
    for model in sorted({one.samples.model_id for one in measured}):
        for estimator in ESTIMATORS:
            scores, wrong, undecided = [], [], 0
            for one in measured:
                value = one.entropies.get(estimator)
                if one.samples.model_id != model or value is None or one.majority is None:
                    continue
                outcome = one.samples.outcomes[one.majority]
                if outcome not in ("correct", "incorrect"):
                    undecided += 1
                    continue
                scores.append(value)
                wrong.append(outcome == "incorrect")
            if scores or undecided:
                rows.append(
                    {
                        "model_id": model,
                        "estimator": estimator,
                        "queries": len(scores),
                        "wrong": sum(wrong),
                        "undecided": undecided,
                        "auroc": auroc(scores, wrong),
                    }
                )
    return rows


def auroc(scores: npt.ArrayLike, positive: npt.ArrayLike) -> float | None:
    """Probability that a positive scores above a negative; ties count one half.

    The Mann-Whitney statistic over average ranks (Hanley and McNeil 1982).

    Args:
        scores: float of shape (n,), finite.
        positive: bool of shape (n,).

    Returns:
        None when one of the two classes is empty.
    """
    values = np.asarray(scores, dtype=np.float64)
    flags = np.asarray(positive, dtype=bool)
    n_positive, n_negative = int(flags.sum()), int((~flags).sum())
    if not n_positive or not n_negative:
        return None
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[codes]
    above = ranks[flags].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * n_negative))
