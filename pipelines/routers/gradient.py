"""Training of the small networks: masked cross-entropy, early stopping on validation.

Not a router; `mlp`, `matrix_factorisation` and the pair routers
share it.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Vectors

#: Fits may run side by side in threads; the counter makes the first one in set torch to
#: one thread and the last one out give it back.
_LOCK = threading.Lock()
_THREADS: list[int] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch computes in one thread while any caller is inside.

    These products are too small to share among threads, and with one thread
    the order of sums is the same on every machine.
    """
    import torch

    with _LOCK:
        _THREADS.append(torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            had = _THREADS[0]
            _THREADS.pop()
            if not _THREADS:
                torch.set_num_threads(had)


def seeded(build: Any, seed: int) -> Any:
    """`build()` under torch's seed; its generator is process-wide, so one caller at a time."""
    import torch

    with _LOCK:
        state = torch.get_rng_state()
        torch.manual_seed(seed)
        try:
            return build()
        finally:
            torch.set_rng_state(state)


def drawn(draw: Any, generator: Any) -> Any:
    """`draw()` with the process-wide generator in the state of `generator`, which moves on.

    For torch's distributions, which take no generator.
    """
    import torch

    with _LOCK:
        state = torch.get_rng_state()
        torch.set_rng_state(generator.get_state())
        try:
            return draw()
        finally:
            generator.set_state(torch.get_rng_state())
            torch.set_rng_state(state)


def adamw_step(parameters: Sequence[Any], learning_rate: float, weight_decay: float) -> Any:
    """A step of AdamW by the gradients of the parameters, each of which has one.

    The same as `torch.optim.AdamW`, whose base class imports torch's compiler: a second of
    each process that trains something. All parameters are one vector, of which each value moves
    alone: small networks have a fraction of the calls. Nothing else changes them between steps.
    """
    import torch
    from torch.optim.adamw import adamw

    with torch.no_grad():
        values = torch.cat([one.flatten() for one in parameters])
    parts = values.split([one.numel() for one in parameters])
    mean, square, count = torch.zeros_like(values), torch.zeros_like(values), torch.tensor(0.0)

    def step() -> None:
        with torch.no_grad():
            gradient = torch.cat([one.grad.flatten() for one in parameters])
            adamw(
                [values], [gradient], [mean], [square], [], [count],
                amsgrad=False, beta1=0.9, beta2=0.999, lr=learning_rate,
                weight_decay=weight_decay, eps=1e-8, maximize=False, foreach=False,
            )  # fmt: skip
            for one, part in zip(parameters, parts, strict=True):
                one.copy_(part.view_as(one))

    return step


def train_network(
    build: Any,
    inputs: Any,
    targets: Floats,
    held: tuple[Any, Floats] | None,
    *,
    seed: int = 0,
    epochs: int = 60,
    patience: int = 5,
    learning_rate: float = 1e-3,
    weight_decay: float = 1e-4,
) -> tuple[Any, float]:
    """Fit `build()` (a torch module giving logits) to targets in [0, 1].

    Args:
        build: makes the network; called under the seed.
        inputs: (n, d) array, float32 features or int64 codes.
        targets: (n, k); NaN cells carry no gradient.
        held: validation (inputs, targets); the best epoch on them is kept.
            Without any, all epochs are run.

    Returns:
        The network and its validation loss (train loss without validation).
    """
    import torch

    def tensors(x: Any, y: Floats) -> tuple[Any, Any, Any]:
        known = ~np.isnan(y)
        filled = np.where(known, y, 0.0).astype(np.float32)
        return (
            torch.from_numpy(np.ascontiguousarray(x)),
            torch.from_numpy(filled),
            torch.from_numpy(known.astype(np.float32)),
        )

    with one_thread():
        network = seeded(build, seed)
        step = adamw_step(list(network.parameters()), learning_rate, weight_decay)
        x, y, w = tensors(inputs, targets)
        check = tensors(*held) if held is not None else (x, y, w)
        order = np.random.default_rng(seed)
        # Small sets need small batches, else an epoch is a single step.
        batch = min(512, max(32, len(x) // 32))
        best, kept, waited = float("inf"), copy.deepcopy(network.state_dict()), 0
        for _ in range(epochs):
            network.train()
            for rows in np.array_split(order.permutation(len(x)), max(1, len(x) // batch)):
                at = torch.from_numpy(rows)
                network.zero_grad()
                masked_cross_entropy(network(x[at]), y[at], w[at]).backward()
                step()
            network.eval()
            with torch.no_grad():
                now = float(masked_cross_entropy(network(check[0]), *check[1:]))
            if now < best - 1e-6:
                best, kept, waited = now, copy.deepcopy(network.state_dict()), 0
            else:
                waited += 1
                if held is not None and waited >= patience:
                    break
        network.load_state_dict(kept)
    return network, best


def best_network(
    candidates: Sequence[tuple[Any, Any, Mapping[str, Any]]],
    inputs: Any,
    targets: Floats,
    held: tuple[Any, Floats] | None,
    *,
    seed: int,
) -> tuple[Any, Any]:
    """(setting, network) of the candidate with the least validation loss, the first of equals.

    Args:
        candidates: setting, builder of its network, and keywords of `train_network`. Without
            validation only the first is trained.
    """
    best, found = float("inf"), None
    for setting, build, how in candidates if held is not None else candidates[:1]:
        network, loss = train_network(build, inputs, targets, held, seed=seed, **how)
        if loss < best:
            best, found = loss, (setting, network)
    assert found is not None
    return found


def masked_cross_entropy(logits: Any, targets: Any, known: Any) -> Any:
    """Mean cross-entropy of logits over the cells whose `known` is 1; 0 where none is."""
    from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

    return cross_entropy(logits, targets, known, reduction="sum") / known.sum().clamp(min=1.0)


def start_logits(means: Floats) -> Vectors:
    """Logits of mean labels: networks start from every model's level and learn what differs."""
    clipped = np.clip(means, 0.01, 0.99)
    return np.log(clipped / (1 - clipped)).astype(np.float32)


def probabilities(network: Any, inputs: Vectors) -> Floats:
    """(n, k) sigmoid of the network's logits, float64."""
    import torch

    with torch.no_grad():
        logits = network(torch.from_numpy(np.ascontiguousarray(inputs)))
        return np.asarray(torch.sigmoid(logits.double()).numpy())


def network_arrays(network: Any, prefix: str = "") -> dict[str, Array]:
    """The network's state as named arrays, for `saved`."""
    return {f"{prefix}{k}": v.numpy() for k, v in network.state_dict().items()}


def with_arrays(network: Any, arrays: Mapping[str, Array], prefix: str = "") -> Any:
    """The network with the state that `network_arrays` gave."""
    import torch

    state = {
        k.removeprefix(prefix): torch.from_numpy(np.array(v))
        for k, v in arrays.items()
        if k.startswith(prefix)
    }
    network.load_state_dict(state)
    return network.eval()
