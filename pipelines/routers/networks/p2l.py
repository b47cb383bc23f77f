"""Prompt-to-Leaderboard: a ranking of models for every question, from pairwise results."""

from __future__ import annotations

from typing import Any

from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.routers.base import listed
from routeyard.pipelines.routers.networks.model_pairs import pairs_of
from routeyard.pipelines.routers.networks.trained import Trained, TrainingBatch, head, masked_mean


@listed
class PromptToLeaderboard(Trained):
    """P2L (Frick et al., arXiv 2502.14855).

    Task: coefficients β(x) of a Bradley-Terry model for every question. From
    correctness, a pair of models is won by the higher label; equal labels are a
    tie, and both wrong is "both bad". Losses: `bag` (the one its authors ship,
    grounded Rao-Kupper: win, loss, tie and both bad, with a strength of 1 for "an
    acceptable answer") uses every label; `bt` is plain Bradley-Terry with ties as
    half a win each, the plateau study's choice. Rule: argmax β; under a budget the
    linear program of rule `mean-budget` over probabilities.

    The published model fine-tunes a decoder; here β is read off the frozen
    embedding. With `bag` the score is σ(β), the chance to beat the ground of 1,
    which is a probability; with `bt` β has no unit and is an order only, so its
    sigmoid is one too.
    """

    name = "p2l"

    def build(self, inputs: int, start: Vectors) -> Any:
        import torch
        from torch import nn

        width = self.settings["width"]

        class Coefficients(nn.Module):  # type: ignore[misc]  # torch is skipped by the type checker
            def __init__(self) -> None:
                super().__init__()
                hidden = [nn.Linear(inputs, width), nn.ReLU()] if width else []
                self.beta = nn.Sequential(*hidden, head(width or inputs, start))
                self.eta = nn.Parameter(torch.zeros(()))

            def forward(self, x: Any) -> Any:
                return self.beta(x)

        return Coefficients()

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        beta = network(batch.x)
        first, second, sign, weight = pairs_of(batch.y, batch.known, batch.noise)
        a, b = beta[:, first], beta[:, second]
        if self.settings["form"] == "bt":
            return masked_mean(bradley_terry(a, b, sign), weight)
        bad = (batch.y[:, first] + batch.y[:, second] == 0).to(a.dtype)
        return masked_mean(grounded(a, b, network.eta, sign, bad), weight)


def bradley_terry(first: Any, second: Any, sign: Any) -> Any:
    """−log likelihood of each pair; a tie is half a win each."""
    from torch.nn.functional import logsigmoid

    d = first - second
    return -((1 + sign) / 2 * logsigmoid(d) + (1 - sign) / 2 * logsigmoid(-d))


def grounded_probabilities(first: Any, second: Any, eta: Any) -> tuple[Any, Any, Any, Any]:
    """Chances that the first wins, the second wins, both are good and both are bad; sum 1.

    π = exp β and θ = exp η + 1.000001: π_a/(π_a + θπ_b + 1), the same turned
    round, 1/(1 + π_a + π_b) for both bad, and the rest for a tie.
    """
    import torch

    a, b = torch.exp(first.clamp(-15, 15)), torch.exp(second.clamp(-15, 15))
    theta = torch.exp(eta) + 1.000001
    win, lose = a / (a + theta * b + 1), b / (b + theta * a + 1)
    bad = 1 / (1 + a + b)
    return win, lose, 1 - win - lose - bad, bad


def grounded(first: Any, second: Any, eta: Any, sign: Any, bad: Any) -> Any:
    """−log likelihood of each pair under `grounded_probabilities`, clamped at 1e-6."""
    import torch

    win, lose, tie, both_bad = grounded_probabilities(first, second, eta)
    equal = torch.where(bad > 0, both_bad, tie)
    seen = torch.where(sign > 0, win, torch.where(sign < 0, lose, equal))
    return -torch.log(seen.clamp(min=1e-6))
