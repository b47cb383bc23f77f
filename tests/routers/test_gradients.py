"""Each network's whole loss against loops over its formula, its gradient against differences.

The references below know nothing of torch: they read a network's parameters as arrays and
write the paper's formula out, question by question and model by model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.base import GIVEN, traits_of
from routeyard.pipelines.routers.factors import factorised
from routeyard.pipelines.routers.networks import as_good, layers
from routeyard.pipelines.routers.training import (
    Trained,
    TrainingBatch,
    adamw_step,
    logistic_loss,
)
from tests.routers.slow_losses import SLOW, Arrays, bce

B, D, M = 6, 5, 4
RNG = np.random.default_rng(11)
X = RNG.normal(size=(B, D))
Y = (RNG.random((B, M)) < 0.5).astype(float)
KNOWN = (RNG.random((B, M)) < 0.8).astype(float)
START = RNG.normal(size=M).astype(np.float32)
#: Small enough for loops.
SETTINGS: dict[str, dict[str, Any]] = {
    "cp-router": {"width": 6},
    "embedding-mlp": {"widths": (12, 6), "dropout": 0.0},
    "embedllm": {"size": 3},
    "equirouter": {"width": 6, "embedding": 3},
    "fly-swat": {"width": 6, "size": 3},
    "graph-router": {"size": 3},
    "hybrid-llm": {"width": 6},
    "logistic": {},
    "mess-plus": {"width": 6},
    "mirt": {"size": 3},
    "model-spider": {"size": 3},
    "nirt": {"size": 3, "width": 4},
    "parametric": {},
    "p2l": {"width": 6},
    "routellm-bert": {"width": 6},
    "routellm-mf": {"size": 3},
    "routerdc": {"size": 3, "weight": 0.0, "top": 2},
    "zooter": {"width": 6},
}


def same_gradient(
    network: Any, loss: Callable[[], Any], slow: Callable[[Arrays], float], *, least: int
) -> None:
    """Value and gradient of `loss()` equal those of `slow` at six entries of every parameter."""
    parameters = dict(network.named_parameters())
    arrays = {name: value.detach().numpy().copy() for name, value in parameters.items()}
    found = loss()
    assert float(found.detach()) == pytest.approx(slow(arrays), rel=1e-9)
    found.backward()
    seen = 0
    for name, value in parameters.items():
        flat = arrays[name].reshape(-1)
        gradient = np.zeros(flat.size) if value.grad is None else value.grad.numpy().reshape(-1)
        for at in RNG.permutation(flat.size)[:6]:
            kept, step = float(flat[at]), 1e-6
            flat[at] = kept + step
            up = slow(arrays)
            flat[at] = kept - step
            numeric = (up - slow(arrays)) / (2 * step)
            flat[at] = kept
            assert gradient[at] == pytest.approx(numeric, abs=2e-7), name
            seen += abs(numeric) > 1e-4
    # Zeros throughout would be equal too.
    assert seen >= least


def examples() -> Examples:
    queries = Queries(
        tuple(f"q{b}" for b in range(B)), np.array(list("aabbab")), X.astype(np.float32)
    )
    labels = np.where(KNOWN > 0, Y, np.nan)
    return Examples(queries, tuple(f"m{k}" for k in range(M)), labels)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_networks_loss_and_gradient_equal_loops(name: str) -> None:
    router = ROUTERS.get(name)(seed=1, **SETTINGS[name])
    if name == "model-spider":
        router._centres = RNG.normal(size=(2, D)).astype(np.float32)
    if name == "routellm-bert":
        router._pair = (1, -1)
    torch.manual_seed(3)
    network = router.build(D, START).double()
    with torch.no_grad():
        # Biases that begin at 0 and weights that begin small would leave terms untried.
        for value in network.parameters():
            value.add_(0.3 * torch.randn(value.shape, dtype=torch.float64))
    more = {k: torch.from_numpy(v) for k, v in router.targets(examples()).items()}
    # Places and clusters are whole numbers; the rest counts in double, as the references do.
    more = {k: v.double() if v.is_floating_point() else v for k, v in more.items()}
    noise = torch.Generator().manual_seed(5) if name == "graph-router" else None
    drawn = torch.rand((B, M), generator=torch.Generator().manual_seed(5)).numpy()
    batch = TrainingBatch(*(torch.from_numpy(a) for a in (X, Y, KNOWN)), more, noise)
    given = {k: v.numpy() for k, v in more.items()} | {"drawn": drawn}
    if name == "model-spider":
        given["centres"] = router._centres.astype(float)
    settings = router.settings
    same_gradient(
        network,
        lambda: router.loss(network, batch),
        lambda p: SLOW[name](p, X, Y, KNOWN, given, settings),
        least=6,
    )


def test_every_trained_router_is_checked() -> None:
    trained = {
        name
        for name in sorted(ROUTERS.builtin)
        if isinstance(ROUTERS.get(name), type) and issubclass(ROUTERS.get(name), Trained)
    }
    # Those that read descriptors or hidden states: test_contrastive.py and test_probes.py.
    elsewhere = {name for name in trained if set(GIVEN) & set(traits_of(ROUTERS.get(name)).needs)}
    assert trained - elsewhere == set(SETTINGS)


@pytest.mark.parametrize("kind", ["mlp", "mf", "mf-as-printed"])
def test_the_plain_networks_loss_and_gradient_equal_loops(kind: str) -> None:
    torch.manual_seed(4)
    build = layers(D, 6, START) if kind == "mlp" else factorised(D, 3, START, bias=kind == "mf")
    network = build().double()

    def slow(p: Arrays) -> float:
        if kind == "mlp":
            hidden = np.maximum(X @ p["0.weight"].T + p["0.bias"], 0)
            logits = hidden @ p["2.weight"].T + p["2.bias"]
        else:
            seen = X @ p["project.weight"].T + p.get("project.bias", 0)
            logits = np.array([[seen[b] @ p["models"][m] for m in range(M)] for b in range(B)])
            logits = logits + p.get("bias", 0)
        return bce(logits, Y, KNOWN)

    tensors = [torch.from_numpy(a) for a in (X, Y, KNOWN)]
    same_gradient(network, lambda: logistic_loss(network(tensors[0]), *tensors[1:]), slow, least=6)


def test_hybrid_targets_are_half_a_tie() -> None:
    found = as_good(np.array([[1.0, 0.0, np.nan]]), 0, "half")
    assert found[0, :2].tolist() == [0.5, 0.0]
    assert math.isnan(found[0, 2])


def test_a_step_is_that_of_torchs_adamw() -> None:
    def trained(own: bool) -> list[float]:
        weights = [torch.arange(6.0).reshape(2, 3).requires_grad_(), torch.ones(2).requires_grad_()]
        theirs = torch.optim.AdamW(weights, lr=0.03, weight_decay=0.1)
        step = adamw_step(weights, 0.03, 0.1) if own else theirs.step
        for k in range(20):
            theirs.zero_grad()
            ((weights[0] @ torch.tensor([1.0, -k, 0.5]) - weights[1]) ** 2).sum().backward()
            step()
        return [float(x) for one in weights for x in one.detach().ravel()]

    assert trained(own=True) == trained(own=False)
