"""What the trained routers share: one loop, the checkpoint chosen by routing accuracy.

A router says how its network is built, what its loss on a batch is and how
scores are read off; everything else is here. The checkpoint that routes best
on the validation questions is kept, looked at twice an epoch (plateau study,
arXiv 2606.07587, appendix E.4); of equals, the one with the lower loss.
"""

from __future__ import annotations

import copy
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from routeyard.pipelines.common.arrays import Array, Floats, Ints, Vectors
from routeyard.pipelines.common.machine import TORCH, torch_in_one_thread
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.routers.base import in_blocks, model_means, usable
from routeyard.pipelines.routers.listed import Traits, deviations

# Training of the small networks: masked cross-entropy, early stopping on validation.
#
# Not a router; `mlp`, `matrix_factorisation` and the pair routers
# share it.


def seeded(build: Any, seed: int) -> Any:
    """`build()` under torch's seed."""
    import torch

    return drawn(build, torch.Generator().manual_seed(seed))


def drawn(draw: Any, generator: Any) -> Any:
    """`draw()` with the process-wide generator in the state of `generator`, which moves on.

    For torch's modules and distributions, which take no generator; one caller at a time.
    """
    import torch

    with TORCH:
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
        values = torch.cat([parameter.flatten() for parameter in parameters])
    parts = values.split([parameter.numel() for parameter in parameters])
    mean, square, count = torch.zeros_like(values), torch.zeros_like(values), torch.tensor(0.0)

    def step() -> None:
        with torch.no_grad():
            gradient = torch.cat([item.grad.flatten() for item in parameters])
            adamw(
                [values], [gradient], [mean], [square], [], [count],
                amsgrad=False, beta1=0.9, beta2=0.999, lr=learning_rate,
                weight_decay=weight_decay, eps=1e-8, maximize=False, foreach=False,
            )  # fmt: skip
            for parameter, part in zip(parameters, parts, strict=True):
                parameter.copy_(part.view_as(parameter))

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

    with torch_in_one_thread():
        network = seeded(build, seed)
        step = adamw_step(list(network.parameters()), learning_rate, weight_decay)
        x, y, w = tensors(inputs, targets)
        check = tensors(*held) if held is not None else (x, y, w)
        order = np.random.default_rng(seed)
        # Small sets need small batches, else an epoch is a single step.
        batch = min(512, max(32, len(x) // 32))
        best, weights, waited = float("inf"), copy.deepcopy(network.state_dict()), 0
        for _ in range(epochs):
            network.train()
            for rows in np.array_split(order.permutation(len(x)), max(1, len(x) // batch)):
                at = torch.from_numpy(rows)
                network.zero_grad()
                logistic_loss(network(x[at]), y[at], w[at]).backward()
                step()
            network.eval()
            with torch.no_grad():
                now = float(logistic_loss(network(check[0]), *check[1:]))
            if now < best - 1e-6:
                best, weights, waited = now, copy.deepcopy(network.state_dict()), 0
            else:
                waited += 1
                if held is not None and waited >= patience:
                    break
        network.load_state_dict(weights)
    return network, best


def best_network(
    candidates: Sequence[tuple[Any, Any, Mapping[str, Any]]],
    train: Any,
    seed: int,
    inputs_of: Callable[[Any], tuple[Any, Floats]] = lambda t: (t.queries.vectors(), t.labels),
) -> tuple[Any, Any]:
    """(setting, network) of the candidate with the least validation loss, the first of equals.

    Args:
        candidates: setting, builder of its network, and keywords of `train_network`. Without
            validation only the first is trained.
        train: `Examples`, or battles of two models; with validation questions or without.
        inputs_of: inputs and targets of `train`, and of its `validation`.
    """
    best, result = float("inf"), None
    held = None if train.validation is None else inputs_of(train.validation)
    for setting, build, how in candidates if held is not None else candidates[:1]:
        network, loss = train_network(build, *inputs_of(train), held, seed=seed, **how)
        if loss < best:
            best, result = loss, (setting, network)
    assert result is not None
    return result


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


#: Settings of the loop that a source should state.
STATED = ("epochs", "batch", "learning_rate", "weight_decay")


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """Rows of one step as torch tensors.

    Attributes:
        x: (b, d) embeddings, or (b, L, d) hidden states of the routers that read them.
        y: (b, m) labels, 0 where unknown.
        known: (b, m) 1 where there is a label.
        more: what the router's `targets` added, by name, (b, …) each.
        noise: a torch generator for everything drawn while training; None
            outside of training, where nothing may be drawn.
    """

    x: Any
    y: Any
    known: Any
    more: Mapping[str, Any]
    noise: Any = None

    def take(self, at: Any, noise: Any) -> TrainingBatch:
        """Only these rows, drawn with this generator."""
        more = {name: values[at] for name, values in self.more.items()}
        return TrainingBatch(self.x[at], self.y[at], self.known[at], more, noise)


class Trained(ABC):
    """Base of the gradient routers: its defaults are its row in `routers.yaml`, and it
    writes `build`, `loss` or `read` where its own differ."""

    name: ClassVar[str]
    traits: ClassVar[Traits]
    #: Every setting with its default; `architectures` vary some of them.
    defaults: ClassVar[Mapping[str, Any]] = {}
    #: Defaults of the training loop, which a subclass's `defaults` may override.
    loop: ClassVar[Mapping[str, Any]] = {
        "epochs": 15,
        "patience": 6,
        "batch": 256,
        "learning_rate": 3e-3,
        "weight_decay": 1e-2,
        "optimiser": "AdamW",
        "steps": None,
    }
    #: Of another preset than `routeyard` all epochs or `steps` run, the last weights are kept.
    preset: str = "routeyard"
    as_published: bool = False
    #: What of its preset the last fit could not honour.
    not_as_published: tuple[str, ...] = ()
    #: Whether `targets` reads the questions' embeddings, and not their labels alone.
    targets_read_embeddings: ClassVar[bool] = False

    def __init__(self, *, seed: int = 42, **settings: Any):
        known = {**self.loop, **self.defaults}
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise TypeError(f"{self.name} has no setting {unknown[0]!r}; it has {sorted(known)}")
        self.seed = seed
        self.settings = {**known, **settings}

    # What a router writes.

    def build(self, inputs: int, start: Vectors) -> Any:
        """A torch module; called under the seed. `start`: (m,) logits of the models' means.

        One hidden layer of `width` units and a head, or the head alone, unless overridden.
        """
        from torch import nn

        width = self.settings.get("width")
        if not width:
            return head(inputs, start)
        return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), head(width, start))

    def loss(self, network: Any, batch: TrainingBatch) -> Any:
        """Scalar loss of a batch; cross-entropy of the network's logits unless overridden."""
        return logistic_loss(network(batch.x), batch.y, batch.known)

    def read(self, network: Any, x: Any) -> Any:
        """(b, m) scores of questions; sigmoid of the network's logits unless said otherwise."""
        import torch

        return torch.sigmoid(network(x))

    def targets(self, train: Examples) -> dict[str, Array]:
        """More arrays with one row per train question, such as soft targets."""
        return {}

    def inputs(self, queries: Queries) -> Vectors:
        """(n, …) what the network reads of questions: their embeddings (n, d)."""
        return queries.vectors()

    # What is the same for all.

    def fit(self, train: Examples) -> Self:
        train = usable(train)
        x = self.inputs(train.queries)
        with torch_in_one_thread():
            network = self.begin(x.shape[1:], train)
            self._descend(network, train)
            self.settle(network, train)
        return self

    def begin(self, shape: tuple[int, ...], train: Examples) -> Any:
        """The untrained network for inputs of this shape (without the questions' axis)."""
        self._shape = (*shape, len(train.model_ids))
        self._start = start_logits(model_means(train.labels))
        return seeded(lambda: self.build(self._shape[-2], self._start), self.seed)

    def settle(self, network: Any, train: Examples) -> None:
        """Take a trained network as the fitted one; `train` as `fit` had it."""
        self._network = network.eval()

    @property
    def network(self) -> Any:
        """The fitted torch module."""
        return self._network

    def _descend(self, network: Any, train: Examples) -> None:
        import torch

        s = self.settings
        optimiser = getattr(torch.optim, s["optimiser"])(
            network.parameters(), lr=s["learning_rate"], weight_decay=s["weight_decay"]
        )
        whole = self.batch(train, self.inputs(train.queries), self.targets(train))
        held = train.validation
        check = None
        if held is not None and not self.as_published and not np.all(np.isnan(held.labels)):
            check = self.batch(held, self.inputs(held.queries))
        noise = torch.Generator().manual_seed(self.seed)
        best, weights, waited = (-1.0, 0.0), None, 0
        for pieces in self._epochs(len(whole.x)):
            looks = {len(pieces) // 2, len(pieces)}
            for step, some in enumerate(pieces, 1):
                network.train()
                optimiser.zero_grad()
                self.loss(network, whole.take(torch.from_numpy(some), noise)).backward()
                if not self.as_published:
                    torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
                optimiser.step()
                if check is None or step not in looks:
                    continue
                now = self.look(network, check)
                if now > best:
                    best, weights, waited = now, copy.deepcopy(network.state_dict()), 0
                else:
                    waited += 1
            if waited >= s["patience"]:
                break
        if weights is not None:
            network.load_state_dict(weights)
        self.not_as_published = self._unlike_published(len(whole.x))

    def _epochs(self, n: int) -> Iterator[list[Ints]]:
        """The batches of every epoch, as rows of n questions."""
        s, order = self.settings, np.random.default_rng(self.seed)
        size, left = s["batch"] or n, s["steps"]
        for _ in range(s["epochs"] if left is None else left):
            rows = order.permutation(n)
            if not self.as_published:
                # Small sets need small batches, else an epoch is a single step.
                yield np.array_split(rows, max(1, round(n / min(size, max(32, n // 32)))))
                continue
            pieces = [rows[first : first + size] for first in range(0, n, size)][:left]
            yield pieces
            if left is not None and not (left := left - len(pieces)):
                return

    def _unlike_published(self, n: int) -> tuple[str, ...]:
        """What differs from the published training on n questions; none of our own preset."""
        stated = STATED if self.settings["steps"] is None else STATED[1:]
        own = {name: self.settings[name] for name in stated}
        result = deviations(self.name, self.preset, own)
        if self.as_published and n < (self.settings["batch"] or 0):
            result += (f"batch {self.settings['batch']:,}: all {n:,} train questions are one",)
        return result

    def batch(
        self, part: Examples, x: Vectors, more: Mapping[str, Array] | None = None
    ) -> TrainingBatch:
        """All questions of a part as one batch, `x` what the network reads of them."""
        import torch

        known = ~np.isnan(part.labels)
        filled = np.where(known, part.labels, 0.0).astype(np.float32)
        return TrainingBatch(
            torch.from_numpy(np.ascontiguousarray(x)),
            torch.from_numpy(filled),
            torch.from_numpy(known.astype(np.float32)),
            {name: torch.from_numpy(np.ascontiguousarray(v)) for name, v in (more or {}).items()},
        )

    def look(self, network: Any, check: TrainingBatch) -> tuple[float, float]:
        """(routing accuracy, −mean squared error) on validation, cost disregarded."""
        import torch

        network.eval()
        with torch.no_grad():
            scores = self.read(network, check.x)
            masked = torch.where(check.known > 0, scores, torch.full_like(scores, -torch.inf))
            chosen = masked.argmax(dim=1, keepdim=True)
            labelled = check.known.amax(dim=1) > 0
            hit = check.y.gather(1, chosen)[labelled, 0].double().mean()
            error = (((scores - check.y) ** 2) * check.known).sum() / check.known.sum()
        return float(hit), -float(error)

    def scores(self, queries: Queries) -> Floats:
        import torch

        def said(vectors: Vectors) -> Floats:
            scores: Floats = self.read(self._network, torch.from_numpy(vectors)).double().numpy()
            return scores

        vectors = np.ascontiguousarray(self.inputs(queries))
        with torch_in_one_thread(), torch.no_grad():
            return in_blocks(said, vectors, 2048, self._shape[-1])

    def blank(self, state: Mapping[str, Array]) -> Any:
        """A network of the fitted one's shape, for `saved`."""
        return seeded(lambda: self.build(self._shape[-2], self._start), self.seed)


def masked_mean(values: Any, weight: Any) -> Any:
    """Mean of values over the cells that count; 0 where none does."""
    return (values * weight).sum() / weight.sum().clamp(min=1.0)


def logistic_loss(logits: Any, y: Any, known: Any) -> Any:
    """Mean cross-entropy of logits (b, m) against labels over the cells that are known."""
    from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

    return masked_mean(cross_entropy(logits, y, reduction="none"), known)


def head(width: int, start: Vectors) -> Any:
    """Linear layer to (m,) logits that begins at every model's level.

    Small weights: an untrained network then routes like the best single model.
    """
    import torch

    layer = torch.nn.Linear(width, len(start))
    with torch.no_grad():
        layer.weight.mul_(0.1)
        layer.bias.copy_(torch.from_numpy(start))
    return layer


def dropped(x: Any, share: float, noise: Any) -> Any:
    """Dropout with its own generator, so that fits in threads do not share one."""
    import torch

    if noise is None or share <= 0:
        return x
    keep = (torch.rand(x.shape, generator=noise) >= share).to(x.dtype)
    return x * keep / (1 - share)
