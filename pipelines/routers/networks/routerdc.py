"""RouterDC: questions drawn to the models that answer them, and to questions like them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.matrix.ranking import ranked
from routeyard.pipelines.routers.base import Examples, listed, mean_cost
from routeyard.pipelines.routers.networks.trained import Trained, TrainingBatch, masked_mean


@listed
class RouterDC(Trained):
    """RouterDC (Chen et al., arXiv 2409.19886).

    Task: cosine between a question and a vector k_m per model. Sample-LLM loss:
    for each of the K+ best models of a question, −log softmax over that model and
    the K− worst ones (a good model is skipped where its score is 0, a bad one
    masked where its score exceeds 0.5). Sample-sample loss, weight 1: a question of
    the same cluster against H = 3 of other clusters. K+ = K− = 3, k_m ~ N(0, 0.78²),
    temperature 1. Rule: argmax.

    Labels of 0 and 1 leave most of the K+ and K− to ties. The published code takes the
    first of them by position, so that the order of columns decides who is trained (`ties`
    `position`, preset `code`: `evaluate` then gives the range over orders); here the better
    on all train questions comes first (`matrix.ranking.ranked`).

    The paper tunes mDeBERTa; here a linear map or one hidden layer of the frozen
    embedding takes its place. The published code keeps the checkpoint that is
    best on the test questions, which is not followed; that its positive can be the
    question itself, and a good model its own rival where it also is among the worst, only
    with `ties` `position`. Its clusters come from t-SNE and K-means; here K-means alone.
    Temperature 1 lets a cosine move a softmax by e² at most: the default is lower.
    """

    name = "routerdc"
    targets_read_embeddings = True

    def build(self, inputs: int, start: NDArray[np.float32]) -> Any:
        import torch
        from torch import nn

        size, m = self.settings["size"], len(start)

        class Space(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.question = nn.Linear(inputs, size)
                self.models = nn.Parameter(0.78 * torch.randn(m, size))

            def embed(self, x: Any) -> Any:
                return nn.functional.normalize(self.question(x), dim=1)

            def forward(self, x: Any) -> Any:
                return self.embed(x) @ nn.functional.normalize(self.models, dim=1).T

        return Space()

    def targets(self, train: Examples) -> dict[str, NDArray[Any]]:
        from routeyard.pipelines.routers.clusters.kmeans import clustered

        vectors = train.queries.vectors()
        k = min(self.settings["clusters"], len(np.unique(vectors, axis=0)))
        place = np.argsort(ranked(train.labels, mean_cost(train))).astype(np.int32)
        if self.positional:
            place = np.arange(len(place), dtype=np.int32)
        places = np.tile(place, (len(train.labels), 1))
        return {"cluster": clustered(vectors, k, self.seed)[0], "place": places}

    def read(self, network: Any, x: Any) -> Any:
        return network(x)

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        s = self.settings
        z = network.embed(batch.x)
        from torch.nn.functional import normalize

        cosine = z @ normalize(network.models, dim=1).T / s["temperature"]
        m = cosine.shape[1]
        k = min(s["top"], m if self.positional else max(m // 2, 1))
        more, coded = batch.more, self.positional
        total = to_models(cosine, batch.y, batch.known, more["place"], k, as_coded=coded)
        if s["weight"]:
            near = to_questions(z, more["cluster"], s["negatives"], batch.noise, as_coded=coded)
            total = total + s["weight"] * near
        return total

    def _unlike_published(self, n: int) -> tuple[str, ...]:
        found, m = super()._unlike_published(n), self._shape[-1]
        if self.as_published and not self.positional and self.settings["top"] > m // 2:
            found += (f"top {self.settings['top']}: half of {m} models",)
        return found

    @property
    def positional(self) -> bool:
        """Whether the order of columns decides which of equal models are trained."""
        return bool(self.settings["ties"] == "position")


def to_models(
    cosine: Any, labels: Any, known: Any, place: Any, k: int, *, as_coded: bool = False
) -> Any:
    """Sample-LLM loss: mean over questions of the sum over their best models.

    Of equal labels the one with the lower `place` comes first, among the good and among
    the bad. Models without a label are neither good nor bad.

    Args:
        cosine, labels, known: (n, m) similarities, scores and 1 where there is a score.
        place: (n, m) place of each model on all train questions, 0 the best.
        k: K+ = K−.
        as_coded: a good model that also is one of the worst is its own rival.
    """
    import torch

    good_order = torch.where(known > 0, labels, torch.full_like(labels, -1.0))
    bad_order = torch.where(known > 0, labels, torch.full_like(labels, 2.0))
    first = torch.argsort(place, dim=1)
    good, bad = (
        first.gather(1, torch.sort(by.gather(1, first), dim=1, stable=True).indices)[:, :k]
        for by in (-good_order, bad_order)
    )
    bad_value = bad_order.gather(1, bad)
    low = cosine.gather(1, bad).masked_fill(bad_value > 0.5, -torch.inf)
    total = cosine.new_zeros(len(cosine))
    for column in range(k):
        at = good[:, column : column + 1]
        high = cosine.gather(1, at)
        counts = (good_order.gather(1, at)[:, 0] > 0).to(cosine.dtype)
        # Where the good model is also among the bad ones it is no rival of itself.
        rivals = low if as_coded else low.masked_fill(bad == at, -torch.inf)
        each = torch.logsumexp(torch.cat([high, rivals], dim=1), dim=1) - high[:, 0]
        total = total + each * counts
    return total.mean()


def to_questions(
    z: Any, cluster: Any, negatives: int, noise: Any, *, as_coded: bool = False
) -> Any:
    """Sample-sample loss: −log softmax of the cosine to one positive among H negatives.

    Questions without another of their cluster, or without any of another one in
    the batch, do not count. `as_coded`: the positive may be the question itself, and
    those with fewer than H of other clusters do not count.
    """
    import torch

    same = cluster[:, None] == cluster[None, :]
    other = ~same
    if not as_coded:
        same = same & ~torch.eye(len(z), dtype=torch.bool)
    usable = same.any(dim=1) & (other.sum(dim=1) >= (negatives if as_coded else 1))
    if not bool(usable.any()):
        return z.sum() * 0.0
    draw = torch.rand(same.shape, generator=noise)
    positive = torch.where(same, draw, torch.full_like(draw, -1.0)).argmax(dim=1, keepdim=True)
    order = torch.where(other, draw, torch.full_like(draw, -1.0))
    h = min(negatives, len(z))
    drawn, negative = order.topk(h, dim=1)
    cosine = z @ z.T
    near = cosine.gather(1, positive)
    far = cosine.gather(1, negative).masked_fill(drawn < 0, -torch.inf)
    each = torch.logsumexp(torch.cat([near, far], dim=1), dim=1) - near[:, 0]
    return masked_mean(each, usable.to(each.dtype))
