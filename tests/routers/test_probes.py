"""Probes of hidden states: draws and weights against references, and the layer that knows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from scipy.stats import beta

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.metrics.tradeoff import auroc
from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.probes import ProbeDirichlet, dirichlet
from routeyard.pipelines.routers.training import TrainingBatch

LAYERS, WIDTH, KNOWS = 5, 8, 2
NAMES = ("probe-dirichlet", "probe-final", "probe-mean", "probe-softmax")


def states(n: int, seed: int) -> Examples:
    """Layer `KNOWS` says whether `small` is right; the others are louder and say nothing."""
    rng = np.random.default_rng(seed)
    hidden = 4 * rng.normal(size=(n, LAYERS, WIDTH)).astype(np.float32)
    hidden[:, KNOWS] /= 4
    right = rng.random(n) < 1 / (1 + np.exp(-3 * hidden[:, KNOWS, 0]))
    labels = np.stack([right, rng.random(n) < 0.8], axis=1).astype(float)
    ids = tuple(f"{seed}-{i}" for i in range(n))
    queries = Queries(ids, np.full(n, "t"), hidden=hidden, hidden_of="small")
    return Examples(queries, ("small", "large"), labels)


@pytest.fixture(scope="module")
def train() -> Examples:
    return dataclasses.replace(states(900, 0), validation=states(200, 1))


def ability(router: object, test: Examples) -> float:
    found = router.scores(test.queries)  # type: ignore[attr-defined]
    return float(auroc(-found[:, 0], test.labels[:, 0]))


def test_the_layer_that_knows_is_found_and_the_last_one_is_blind(train: Examples) -> None:
    test = states(500, 2)
    found = {}
    for name in NAMES:
        router = ROUTERS.get(name)(seed=1, scaled=False, epochs=30)
        found[name] = ability(router.fit(train), test)
        weights = router.layer_weights(test.queries)
        assert np.allclose(weights.sum(axis=1), 1, atol=1e-5)
        if name in ("probe-dirichlet", "probe-softmax"):
            assert weights.mean(axis=0).argmax() == KNOWS, name
    assert found["probe-dirichlet"] > 0.75
    assert found["probe-softmax"] > 0.75
    assert found["probe-mean"] < found["probe-softmax"] - 0.05
    assert 0.4 < found["probe-final"] < 0.6


def test_weights_that_follow_the_question_start_as_those_that_do_not() -> None:
    part = states(60, 3)
    plain, conditional = (
        ProbeDirichlet(seed=4, epochs=0, conditional=c).fit(part) for c in (False, True)
    )
    assert np.allclose(plain.scores(part.queries), conditional.scores(part.queries))
    learnt = ProbeDirichlet(seed=4, epochs=3, conditional=True).fit(part)
    assert np.ptp(learnt.layer_weights(part.queries), axis=0).max() > 0
    assert np.ptp(plain.layer_weights(part.queries), axis=0).max() == 0


def test_weights_when_asked_are_the_mean_of_the_draws() -> None:
    concentration = torch.tensor([[0.2, 1.5, 0.8]]).expand(20_000, -1)
    drawn = dirichlet(concentration, torch.Generator().manual_seed(0))
    assert torch.allclose(drawn.sum(dim=1), torch.ones(20_000), atol=1e-5)
    want = np.array([0.2, 1.5, 0.8]) / 2.5
    assert np.allclose(drawn.mean(dim=0).numpy(), want, atol=0.01)
    variance = want * (1 - want) / 3.5
    assert np.allclose(drawn.var(dim=0).numpy(), variance, atol=0.01)


def test_a_draws_gradient_moves_it_along_its_own_quantile() -> None:
    # Of two layers the first weight is Beta(a, b): at a fixed quantile u its gradient is that
    # of the inverse distribution function, here by finite differences.
    a, b = 1.3, 0.7
    value = torch.tensor([[a, b]] * 6, dtype=torch.float64, requires_grad=True)
    drawn = dirichlet(value, torch.Generator().manual_seed(3))
    (found,) = torch.autograd.grad(drawn[:, 0].sum(), value)
    for x, (da, db) in zip(drawn[:, 0].tolist(), found.tolist(), strict=True):
        u, h = beta.cdf(x, a, b), 1e-5
        slope_a = (beta.ppf(u, a + h, b) - beta.ppf(u, a - h, b)) / (2 * h)
        slope_b = (beta.ppf(u, a, b + h) - beta.ppf(u, a, b - h)) / (2 * h)
        assert (da, db) == pytest.approx((slope_a, slope_b), rel=1e-3, abs=1e-6)


def test_draws_leave_the_process_wide_generator_alone() -> None:
    before = torch.get_rng_state()
    noise = torch.Generator().manual_seed(5)
    first, second = (dirichlet(torch.ones(3, 4), noise) for _ in range(2))
    assert torch.equal(before, torch.get_rng_state())
    assert not torch.equal(first, second)
    assert torch.equal(first, dirichlet(torch.ones(3, 4), torch.Generator().manual_seed(5)))


@pytest.mark.parametrize("name", NAMES)
def test_scores_and_gradients_are_those_of_plain_loops(name: str) -> None:
    part = states(12, 6)
    router = ROUTERS.get(name)(seed=1, epochs=2, heads="own")
    router.fit(part)
    network, x = router._network, router.inputs(part.queries)
    weights = router.layer_weights(part.queries)
    w, b = (p.detach().double().numpy() for p in network.head.parameters())
    logits = []
    for i in range(12):
        z = [sum(weights[i, k] * float(x[i, k, d]) for k in range(LAYERS)) for d in range(WIDTH)]
        logits.append(float(b[0]) + sum(float(w[0, d]) * z[d] for d in range(WIDTH)))
    want = [1 / (1 + np.exp(-v)) for v in logits]
    scores = router.scores(part.queries)
    assert scores[:, 0] == pytest.approx(want, abs=1e-5)
    # The paper's one logit: the other model keeps its level.
    assert scores[:, 1] == pytest.approx(np.clip(part.labels[:, 1].mean(), 0.01, 0.99), abs=1e-6)
    y, p = part.labels[:, 0], np.array(want)
    loss = -float(np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))
    exact = network.double()
    known = torch.ones(12, 2, dtype=torch.float64)
    whole = TrainingBatch(torch.from_numpy(x).double(), torch.from_numpy(part.labels), known, {})
    assert float(router.loss(exact, whole).detach()) == pytest.approx(loss, abs=1e-5)
    for parameter in exact.parameters():
        (slope,) = torch.autograd.grad(router.loss(exact, whole), parameter, allow_unused=True)
        flat = parameter.data.view(-1)
        for k in range(0, len(flat), 5):
            kept, h = float(flat[k]), 1e-6
            flat[k] = kept + h
            up = float(router.loss(exact, whole).detach())
            flat[k] = kept - h
            down = float(router.loss(exact, whole).detach())
            flat[k] = kept
            want_slope = 0.0 if slope is None else float(slope.view(-1)[k])
            assert (up - down) / (2 * h) == pytest.approx(want_slope, abs=1e-6)


def test_states_of_a_stranger_cannot_have_the_printed_head() -> None:
    part = states(30, 7)
    other = dataclasses.replace(part, queries=dataclasses.replace(part.queries, hidden_of="x"))
    with pytest.raises(BadInput, match="'x', which is not in the pool"):
        ROUTERS.get("probe-mean")(as_published=True).fit(other)
    holes = part.queries.states().copy()
    holes[4] = np.nan
    some = dataclasses.replace(part, queries=dataclasses.replace(part.queries, hidden=holes))
    with pytest.raises(BadInput, match="1 of 30 questions have no hidden state"):
        ROUTERS.get("probe-mean")().fit(some)


def test_dropout_and_layers_of_the_embedding_mlp_are_those_printed() -> None:
    part = states(80, 8)
    vectors = part.queries.states()[:, KNOWS]
    part = dataclasses.replace(part, queries=dataclasses.replace(part.queries, embeddings=vectors))
    router = ROUTERS.get("embedding-mlp")(seed=1, epochs=2)
    router.fit(part)
    sizes = [tuple(p.shape) for p in router._network.parameters()]
    assert sizes == [(256, 8), (256,), (64, 256), (64,), (2, 64), (2,)]
    x = torch.from_numpy(vectors)
    quiet = [router._network(x) for _ in range(2)]
    assert torch.equal(*quiet)
    noise = torch.Generator().manual_seed(0)
    assert not torch.equal(router._network(x, noise), router._network(x, noise))
    assert np.allclose(router.scores(part.queries), torch.sigmoid(quiet[0]).detach().numpy())
