"""Model Spider: model tokens that attend to the question, trained to rank models."""

from __future__ import annotations

from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Vectors
from routeyard.pipelines.routers.base import Examples, listed, model_means
from routeyard.pipelines.routers.networks.trained import Trained, TrainingBatch


@listed
class ModelSpider(Trained):
    """Model Spider (Zhang et al., arXiv 2306.03900), turned from tasks to questions.

    Task: rank models. A model's token attends to the prototypes of a task through
    one attention layer with residual and LayerNorm; a linear map of what comes out
    is the score. Loss: Σ_r −log softmax over the models not yet ranked, on the true
    order (ListMLE). Rule: argmax.

    For routing, the prototypes are the question and the centre of its cluster. The
    order is by label, which in routing is mostly ties: as published a tie is broken
    by the models' mean accuracy, which teaches the global order once more. Here the
    models of equal label share one place (the likelihood of the tied set, each tied
    model against itself and all below), so that a tie teaches nothing about its
    members; the preset `code` breaks ties by mean.
    """

    name = "model-spider"

    def fit(self, train: Examples) -> ModelSpider:
        from routeyard.pipelines.routers.clusters.kmeans import clustered

        vectors = train.queries.vectors()
        k = min(self.settings["clusters"], len(np.unique(vectors, axis=0)))
        self._centres = clustered(vectors, k, self.seed)[1]
        super().fit(train)
        return self

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        size, m, clusters = self.settings["size"], len(start), len(self._centres)
        centres = torch.from_numpy(self._centres.copy())

        class Spider(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("centres", centres.reshape(clusters, inputs))
                self.tokens = nn.Parameter(torch.randn(m, size) / size**0.5)
                self.project = nn.Linear(inputs, size)
                self.query, self.key = nn.Linear(size, size), nn.Linear(size, size)
                self.value, self.join = nn.Linear(size, size), nn.Linear(size, size)
                self.norm, self.out = nn.LayerNorm(size), nn.Linear(size, 1)
                self.level = nn.Parameter(torch.from_numpy(start.copy()))
                with torch.no_grad():
                    self.out.weight.mul_(0.1)

            def forward(self, x: Any) -> Any:
                near = torch.cdist(x, self.centres).argmin(dim=1)
                seen = self.project(torch.stack([x, self.centres[near]], dim=1))
                keys, values = self.key(seen), self.value(seen)
                token_keys = self.key(self.tokens)
                asked = self.query(self.tokens)
                own = (asked * token_keys).sum(dim=1).expand(len(x), m)[..., None]
                weight = torch.cat([own, asked @ keys.transpose(1, 2)], dim=-1)
                weight = torch.softmax(weight / size**0.5, dim=-1)
                got = weight[..., :1] * self.value(self.tokens) + weight[..., 1:] @ values
                # The product keeps what attention over two prototypes alone cannot carry:
                # a direction of the question that suits this model.
                met = self.norm(self.tokens + self.join(got) * (1 + self.tokens))
                return self.out(met)[..., 0] + (met * seen[:, :1]).mean(dim=-1) + self.level

        return Spider()

    def targets(self, train: Examples) -> dict[str, Array]:
        step = np.zeros(len(train.model_ids))
        if self.settings["ties"] == "mean":
            # Less than any difference of labels can be, so that it decides ties only.
            step = 1e-4 * model_means(train.labels)
        place = np.nan_to_num(train.labels, nan=-1.0) + step
        return {"place": place.astype(np.float32)}

    def read(self, network: Any, x: Any) -> Any:
        return network(x)

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        return ordered(network(batch.x), batch.more["place"], batch.known)

    def restore(self, arrays: Any) -> ModelSpider:
        self._centres = np.asarray(arrays["network.centres"], dtype=np.float32)
        super().restore(arrays)
        return self


def ordered(scores: Any, place: Any, known: Any) -> Any:
    """Mean over questions of −Σ log P(each model against itself and all strictly below).

    Without ties this is the Plackett-Luce likelihood of the order. Models of the
    lowest label have nobody below and add nothing; unlabelled ones take no part.
    """
    import torch

    # In rising order, unlabelled ones last, those strictly below come first: one running
    # logsumexp serves all models of a question.
    level, order = place.masked_fill(known <= 0, torch.inf).sort(dim=1)
    ranked = scores.gather(1, order)
    running = torch.logcumsumexp(ranked, dim=1)
    before = torch.searchsorted(level, level, right=False)
    counts = ((before > 0) & torch.isfinite(level)).to(scores.dtype)
    below = running.gather(1, (before - 1).clamp(min=0))
    each = torch.logaddexp(ranked, below) - ranked
    n = counts.sum(dim=1)
    per_row = (each * counts).sum(dim=1) / n.clamp(min=1.0)
    return per_row.sum() / (n > 0).sum().clamp(min=1)
