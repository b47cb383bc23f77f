"""TagRouter: a model's worth is summed over the tags of the question."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints, Vectors
from routeyard.pipelines.routers.base import Examples, Queries, listed, strongest, usable
from routeyard.pipelines.routers.clusters.kmeans import closest, clustered


@listed
class TagRouter:
    """TagRouter (ACL 2025, arXiv 2506.12473), with the tags a release has.

    Task: choose by tags. A tag's score for a model is its mean result against the
    reference, the most accurate model of train: win 1, loss −1, a tie `tie` (0).
    A question's score is the weighted sum over its tags. Rule: the cheaper model
    unless it is behind by more than θ, which is the rule `threshold` of a pair.

    The paper's tags come from a fine-tuned generator. Here they are the task of
    the question and its clusters at two grains. A tag weighs by how often it was
    seen, n/(n + `prior`), since rare tags say little. The plateau study lists Fly-swat
    or Cannon under this name; that router is `fly-swat`.
    """

    name = "tag-router"

    def __init__(
        self,
        grains: tuple[int, ...] = (8, 32),
        tie: float = 0.0,
        prior: float = 5.0,
        seed: int = 42,
    ):
        self.grains, self.tie, self.prior, self.seed = tuple(grains), tie, prior, seed

    def fit(self, train: Examples) -> TagRouter:
        train = usable(train)
        gap = train.labels - train.labels[:, [strongest(train)]]
        known = ~np.isnan(gap)
        result = np.where(known, np.where(gap == 0, self.tie, np.sign(gap)), 0.0)
        total = result.sum(axis=0)
        self._overall = total / np.maximum(known.sum(axis=0), 1)
        self._tasks, of_task = np.unique(train.queries.tasks, return_inverse=True)
        self._centres: list[Vectors] = []
        tags = [(of_task.astype(np.int64), len(self._tasks))]
        if self.grains:
            vectors = train.queries.vectors()
            distinct = len(np.unique(vectors, axis=0))
            for grain in self.grains:
                member, centres = clustered(vectors, min(grain, distinct), self.seed)
                self._centres.append(centres)
                tags.append((member, len(centres)))
        self._scores = [self._of(member, k, result, known) for member, k in tags]
        return self

    def _of(self, member: Ints, k: int, result: Floats, known: Bools) -> Floats:
        """(k, m) weighted deviation of each tag from the overall score."""
        total, n = np.zeros((k, result.shape[1])), np.zeros((k, result.shape[1]))
        np.add.at(total, member, result)
        np.add.at(n, member, known)
        return np.asarray((total - n * self._overall) / (n + self.prior))

    def scores(self, queries: Queries) -> Floats:
        found = np.tile(self._overall, (len(queries), 1))
        share = 1 / len(self._scores)
        for position, task in enumerate(self._tasks):
            found[queries.tasks == task] += share * self._scores[0][position]
        for centres, scores in zip(self._centres, self._scores[1:], strict=True):
            found += share * scores[closest(queries.vectors(), centres)]
        return found
