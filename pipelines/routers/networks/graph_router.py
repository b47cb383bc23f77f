"""GraphRouter: models learn from the questions they are linked to."""

from __future__ import annotations

from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Vectors
from routeyard.pipelines.routers.base import Examples, listed
from routeyard.pipelines.routers.networks.trained import Trained, TrainingBatch, logistic_loss


@listed
class GraphRouter(Trained):
    """GraphRouter (Feng et al., arXiv 2410.03834).

    A graph of questions and models whose edges carry the results. Two rounds of
    messages: a model's node takes the mean of its linked questions' nodes and edge
    values, a question's node that of its models. Half the edges of a batch are
    hidden and predicted from the others: σ(question's first node · model's last
    node). Loss: cross-entropy on hidden edges. Rule: argmax.

    The published target is 1 for the model of greatest utility in a row and 0 for
    the rest (preset `code`); on labels full of ties that calls many right answers
    wrong, so the default target is the label. Descriptions of models and tasks are
    not in a release: a model's first node is learnt. The published copies merge
    validation into test and keep the best test epoch, which is not followed.
    A new question has no edges: its score reads its own first node and the models'
    nodes after messages from all train questions.
    """

    name = "graph-router"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        size, m = self.settings["size"], len(start)

        class Graph(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.question = nn.Linear(inputs, size)
                self.models = nn.Parameter(torch.randn(m, size) / size**0.5)
                self.to_models = nn.ModuleList([nn.Linear(2 * size, size) for _ in range(2)])
                self.to_questions = nn.Linear(2 * size, size)
                self.keep = nn.ModuleList([nn.Linear(size, size) for _ in range(2)])
                self.norms = nn.ModuleList([nn.LayerNorm(size) for _ in range(2)])
                self.last = nn.Linear(2 * size, size)
                self.level = nn.Parameter(torch.from_numpy(start.copy()))
                self.register_buffer("nodes", torch.zeros(m, size))

            def after_messages(self, first: Any, y: Any, seen: Any) -> Any:
                """(m, size) model nodes after two rounds over the visible edges."""
                signed = (2 * y - 1) * seen
                n_model = seen.sum(dim=0).clamp(min=1.0)[:, None]
                n_question = seen.sum(dim=1).clamp(min=1.0)[:, None]
                questions, nodes = first, self.models
                for k in range(2):
                    got = torch.cat([seen.T @ questions, signed.T @ questions], dim=1) / n_model
                    new = torch.relu(self.norms[k](self.keep[k](nodes) + self.to_models[k](got)))
                    got = torch.cat([seen @ nodes, signed @ nodes], dim=1) / n_question
                    questions = first + torch.relu(self.to_questions(got))
                    nodes = new
                return self.last(torch.cat([nodes, self.models], dim=1))

            def score(self, first: Any, nodes: Any) -> Any:
                return first @ nodes.T + self.level

        return Graph()

    def _descend(self, network: Any, train: Examples) -> None:
        # What new questions are scored against: the nodes after all train edges.
        self._edges = self.batch(train, self.inputs(train.queries))
        super()._descend(network, train)
        self._refresh(network)
        del self._edges

    def _refresh(self, network: Any) -> None:
        import torch

        with torch.no_grad():
            edges = self._edges
            first = network.question(edges.x)
            network.nodes.copy_(network.after_messages(first, edges.y, edges.known))

    def look(self, network: Any, check: TrainingBatch) -> tuple[float, float]:
        self._refresh(network)
        return super().look(network, check)

    def targets(self, train: Examples) -> dict[str, Array]:
        if not self.settings["best_only"]:
            return {}
        filled = np.nan_to_num(train.labels, nan=-1.0)
        top = (filled == filled.max(axis=1, keepdims=True)) & (filled > 0)
        return {"best": top.astype(np.float32)}

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        import torch

        hide = torch.rand(batch.known.shape, generator=batch.noise) < self.settings["hidden"]
        hidden = batch.known * hide
        first = network.question(batch.x)
        nodes = network.after_messages(first, batch.y, batch.known - hidden)
        target = batch.more.get("best", batch.y)
        return logistic_loss(network.score(first, nodes), target, hidden)

    def read(self, network: Any, x: Any) -> Any:
        import torch

        return torch.sigmoid(network.score(network.question(x), network.nodes))
