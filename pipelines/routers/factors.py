"""Models and questions as vectors whose product is a score: factorisation and item response.

Read `MatrixFactorisation` first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from routeyard.pipelines.common.arrays import Array, Floats, Vectors
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.routers.base import model_means, usable
from routeyard.pipelines.routers.listed import listed
from routeyard.pipelines.routers.training import (
    Trained,
    TrainingBatch,
    best_network,
    dropped,
    logistic_loss,
    probabilities,
    start_logits,
)

# EmbedLLM: a two-class head on the product of a model's and a question's vector.


@listed
class EmbedLLM(Trained):
    """EmbedLLM (Zhuang et al., arXiv 2410.02223).

    Task: correctness of every (model, question). Logits of two classes,
    Linear_2(P_m ⊙ (W e + b)), with P_m and the projection of one size (232 in the
    published code) and Gaussian noise of 0.05 added to e while training. Loss:
    cross-entropy of the two classes, which is the logistic loss of their
    difference. Rule: argmax of logit_1 − logit_0.

    The published code takes missing labels as wrong, adds the noise in place to
    the stored embedding, and looks at the test loss after each epoch to choose one.
    None of that is followed. Adam 1e-4, batch 2048, 50 epochs are its settings
    (preset `code`); `levels`, a bias of each model's own, is ours and not part of them.
    """

    name = "embedllm"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        size, m = self.settings["size"], len(start)
        levels = self.settings["levels"]

        class EmbedLLMFactors(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.models = nn.Parameter(torch.randn(m, size) / size**0.5)
                self.project = nn.Linear(inputs, size)
                self.classes = nn.Linear(size, 2)
                # The classes' biases are shared by all models; each one's level is its own.
                level = torch.from_numpy(start.copy())
                self.level = nn.Parameter(level) if levels else None

            def forward(self, x: Any) -> Any:
                difference = self.classes.weight[1] - self.classes.weight[0]
                offset = self.classes.bias[1] - self.classes.bias[0]
                logits = (self.project(x) * difference) @ self.models.T + offset
                return logits if self.level is None else logits + self.level

        return EmbedLLMFactors()

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        import torch

        x = batch.x
        if self.settings["noise"] and batch.noise is not None:
            # Scaled as if added to each of the published encoder's 768 coordinates of a unit
            # vector would be too much for a short one: noise of this norm, whatever its size.
            noise = torch.randn(x.shape, generator=batch.noise)
            x = x + self.settings["noise"] * noise
        return logistic_loss(network(x), batch.y, batch.known)


# Matrix factorisation: a vector per model, multiplied into the projected question.

#: How factors are trained.
RATES = {"learning_rate": 1e-2, "weight_decay": 1e-2}


@listed
class MatrixFactorisation:
    """score(m, q) = σ(w·(v_m ⊙ (W e_q + b)) + β_m).

    The bilinear form of EmbedLLM (arXiv 2410.02223) and RouteLLM
    (arXiv 2406.18665, "matrix factorization"), trained on
    correctness. The dimension is chosen on the validation questions by loss.
    """

    name = "mf"
    #: Whether the map of a question and the model have a bias.
    bias = True

    def __init__(self, dimensions: tuple[int, ...] = (16, 64), seed: int = 0):
        self.dimensions, self.seed = dimensions, seed

    def fit(self, train: Examples) -> MatrixFactorisation:
        train = usable(train)
        vectors, start = train.queries.vectors(), start_logits(model_means(train.labels))
        self.dimension, self._network = best_network(
            [
                (d, factorised(vectors.shape[1], d, start, bias=self.bias), RATES)
                for d in self.dimensions
            ],
            train,
            self.seed,
        )
        return self

    def scores(self, queries: Queries) -> Floats:
        return probabilities(self._network, queries.vectors())

    def blank(self, state: Mapping[str, Array]) -> Any:
        """A network of the fitted one's shape, for `saved`."""
        start = np.zeros(len(state["models"]), dtype=np.float32)
        inputs = state["project.weight"].shape[1]
        return factorised(inputs, self.dimension, start, bias=self.bias)()


@listed
class MatrixFactorisationAsPrinted(MatrixFactorisation):
    """score(m, q) = σ(u_mᵀ·W·e_q) (RouterBench+, appendix E): no bias anywhere, nothing chosen.

    The paper prints no size and no loss: 232 is EmbedLLM's, which it cites, and the loss
    is the cross-entropy.
    """

    name = "mf-as-printed"
    bias = False

    def __init__(self, size: int = 232, seed: int = 0):
        super().__init__((size,), seed)


def factorised(inputs: int, dimension: int, start: Vectors, *, bias: bool = True) -> Any:
    """Builder of a network from embeddings (n, d) to logits (n, m); without `bias` no constants."""

    def build() -> Any:
        import torch
        from torch import nn

        class Factors(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                self.project = nn.Linear(inputs, dimension, bias=bias)
                # w is absorbed by the model vectors: w·(v ⊙ x) = (w ⊙ v)·x.
                self.models = nn.Parameter(torch.randn(len(start), dimension) / dimension**0.5)
                self.bias = nn.Parameter(torch.from_numpy(start.copy())) if bias else None

            def forward(self, x: Any) -> Any:
                result = self.project(x) @ self.models.T
                return result if self.bias is None else result + self.bias

        return Factors()

    return build


# MIRT: multidimensional item response theory, a model's ability against a question's demand.


@listed
class MIRT(Trained):
    """MIRT of IRT-Router (Song et al., arXiv 2506.01048).

    Task: P(correct) = σ(a_i·θ_m − b_i) with discrimination a_i = softplus(W_a e),
    difficulty b_i = w_b·e and ability θ_m of 25 dimensions. Loss: cross-entropy.
    Rule of the paper: a·p − (1 − a)·price with a = 0.8 on the output price; here
    the rule `utility` on measured costs.

    The published θ_m is linear in the embedding of a text that describes the model;
    with M models and distinct texts that is an ability per model, which is what is
    learnt here. Its query vector at test time is mixed with the mean of its
    neighbours, (1 − λ)·e + λ·mean, λ = 0.3: setting `mix`, 0 by default.
    Published: Adam 1e-3, batch 512, 9 epochs, no biases.
    """

    name = "mirt"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        size, m = self.settings["size"], len(start)
        level = torch.from_numpy(start.copy())

        class Response(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                # Small around the level that softplus(0) passes on: Σ_k ln 2 · θ = level.
                common = level[:, None] / (size * float(np.log(2)))
                self.ability = nn.Parameter(common + 0.1 * torch.randn(m, size))
                self.discrimination = nn.Linear(inputs, size, bias=False)
                self.difficulty = nn.Linear(inputs, 1, bias=False)

            def forward(self, x: Any) -> Any:
                a = nn.functional.softplus(self.discrimination(x))
                return a @ self.ability.T - self.difficulty(x)

        return Response()

    def fit(self, train: Any) -> MIRT:
        self._memory = train.queries.vectors() if self.settings["mix"] else None
        super().fit(train)
        return self

    def scores(self, queries: Queries) -> Floats:
        if self._memory is None:
            return super().scores(queries)
        from routeyard.pipelines.routers.neighbours import nearest

        own, mix = queries.vectors(), self.settings["mix"]
        near = nearest(own, self._memory, self.settings["neighbours"])[0]
        mixed = (1 - mix) * own + mix * self._memory[near].mean(axis=1)
        return super().scores(replace(queries, embeddings=mixed.astype(np.float32)))


# NIRT: item response with a monotone network; a more able model is never less likely right.


@listed
class NIRT(Trained):
    """NIRT of IRT-Router (Song et al., arXiv 2506.01048).

    Task: P(correct) from disc_i·(σ_m − κ_i)⊙r_i, with mastery σ_m and demand κ_i of
    25 abilities in (0, 1), disc_i = 9·σ(w·e) and relevance r_i (softmax), through
    two layers of non-negative weights (tanh between, dropout 0.5). Loss:
    cross-entropy. Rule as for MIRT.

    In the paper a language model names 25 abilities of clusters and says which are
    relevant. Here no model is asked: r_i is a softmax of a linear map of the embedding,
    learnt with the rest, and with `scaled` times their number, so that the abilities
    enter with weight 1 on average. The published layers are 25-512-1 with Adam 2e-3 and
    r_i unscaled (preset `code`); weights enter by their absolute value, as there.
    """

    name = "nirt"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        s, m = self.settings, len(start)
        size, width = s["size"], s["width"]

        class Monotone(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                level = torch.from_numpy(start.copy())[:, None]
                self.mastery = nn.Parameter(level + 0.5 * torch.randn(m, size))
                self.demand = nn.Linear(inputs, size)
                self.sharpness = nn.Linear(inputs, 1)
                self.relevance = nn.Linear(inputs, size)
                self.first, self.second = nn.Linear(size, width), nn.Linear(width, 1)

            def forward(self, x: Any, noise: Any = None) -> Any:
                relevance = torch.softmax(self.relevance(x), dim=1) * (size if s["scaled"] else 1)
                sharp = 9 * torch.sigmoid(self.sharpness(x))
                gap = torch.sigmoid(self.mastery) - torch.sigmoid(self.demand(x))[:, None, :]
                seen = sharp[:, None, :] * gap * relevance[:, None, :]
                hidden = torch.tanh(seen @ self.first.weight.abs().T + self.first.bias)
                hidden = dropped(hidden, s["dropout"], noise)
                return (hidden @ self.second.weight.abs().T)[..., 0] + self.second.bias

        return Monotone()

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        logits = network(batch.x, batch.noise)
        return logistic_loss(logits, batch.y, batch.known)
