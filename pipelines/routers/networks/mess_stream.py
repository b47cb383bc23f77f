"""MESS+ online: questions come one by one, and a share α of them is to be answered well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints, Vectors
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.routers.gradient import one_thread, seeded, start_logits
from routeyard.pipelines.routers.networks.mess_plus import MessPlus


@dataclass(frozen=True, eq=False)
class Stream:
    """What a run over n questions did, in the order they came.

    Attributes:
        order: (n,) rows as they came.
        choice: (n,) model whose answer was given.
        explored: (n,) whether all models were asked for the question.
        hit: (n,) label of the given answer.
        spent: (n,) cost: of all models where it was explored.
        queue: (n,) virtual queue after the question.
    """

    order: Ints
    choice: Ints
    explored: Bools
    hit: Floats
    spent: Floats
    queue: Floats


def serve(
    vectors: Vectors,
    labels: Floats,
    cost: Floats,
    *,
    alpha: float,
    trade_off: float = 1e-3,
    explore: float = 0.1,
    seed: int = 42,
    width: int = 128,
) -> Stream:
    """MESS+'s decision rule over one shuffle of the questions (arXiv 2505.19947).

    At step t all models are asked with probability min(1, c/t^(1/4)); the answer of the
    dearest one is given and the predictor learns from the row, one step of SGD (rate
    0.0606, momentum 0.9, weight decay 0.01, gradient clipped at 1, as published).
    Else the model of argmin V·E_m + Q·(α − p̂_m) answers, with E_m the mean cost seen
    so far. Then Q ← max(0, Q + α − hit).

    The published code keeps the last cost of a model for E_m where the paper has the
    mean; here it is the mean, scaled by the largest one so that V has no unit. The rule
    sees the label of the given answer, as its feedback, and all labels of explored
    questions, nothing else.

    Args:
        vectors: (n, d) embeddings; labels, cost: (n, m) without gaps.
        alpha: the share to be answered well; `trade_off`: V; `explore`: c.

    Raises:
        BadInput: α is no share, or a label or cost is unknown.
    """
    if not 0 <= alpha <= 1:
        raise BadInput(f"α = {alpha} is no share", next_step="choose one from 0 to 1")
    if np.isnan(labels).any() or np.isnan(cost).any():
        raise BadInput(
            "a stream needs the label and cost of every model and question",
            next_step="leave out the questions on which one is unknown",
        )
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

    n, m = labels.shape
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    predictor = MessPlus(seed=seed, width=width)
    with one_thread():
        start = start_logits(np.full(m, 0.5))
        network = seeded(lambda: predictor.build(vectors.shape[1], start), seed)
        optimiser = torch.optim.SGD(
            network.parameters(), lr=0.0606, momentum=0.9, weight_decay=0.01
        )
        x = torch.from_numpy(np.ascontiguousarray(vectors))
        y = torch.from_numpy(labels.astype(np.float32))
        total, queue = np.zeros(m), 0.0
        seen = 0
        found = Stream(
            order, np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool), np.zeros(n), np.zeros(n),
            np.zeros(n),
        )  # fmt: skip
        for step, row in enumerate(order.tolist()):
            # Before anything is seen there is no cost to weigh.
            look = not seen or rng.random() < min(1.0, explore / (step + 1) ** 0.25)
            if look:
                seen += 1
                total += cost[row]
                chosen = int(np.argmax(total))
                optimiser.zero_grad()
                cross_entropy(network(x[row : row + 1]), y[row : row + 1]).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimiser.step()
            else:
                with torch.no_grad():
                    p = torch.sigmoid(network(x[row : row + 1]))[0].double().numpy()
                mean = total / max(total.max(), 1e-300)
                chosen = int(np.argmin(trade_off * mean + queue * (alpha - p)))
            found.choice[step], found.explored[step] = chosen, look
            found.hit[step] = labels[row, chosen]
            found.spent[step] = cost[row].sum() if look else cost[row, chosen]
            queue = max(0.0, queue + alpha - float(labels[row, chosen]))
            found.queue[step] = queue
    return found
