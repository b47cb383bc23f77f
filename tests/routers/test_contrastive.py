"""Contrastive routing: losses against plain loops, the search, planted geometry, new models."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.zoo.run import similarity_minus_cost
from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers import contrastive as losses
from routeyard.pipelines.routers.contrastive import (
    CSCR,
    OUTSIDE,
    bank_of,
    gate_value,
    nearest_models,
)

RNG = np.random.default_rng(0)
B, M = 7, 6
COST = np.array([0.0, 0.1, 0.1, 0.4, 0.7, 1.0])


def batch(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    similarity = torch.tensor(rng.uniform(-1, 1, (B, M)), dtype=torch.float64)
    known = torch.tensor(rng.random((B, M)) < 0.8)
    positive = known & torch.tensor(rng.random((B, M)) < 0.5)
    positive[2] = False  # a question that nobody answers
    return similarity, positive, known


def slow_spectrum(
    s: np.ndarray, positive: np.ndarray, known: np.ndarray, band: list[int], gamma: float,
    penalty: str, average: str,
) -> float:  # fmt: skip
    """Equation 8 by loops, from the paper alone."""
    terms: dict[int, dict[int, float]] = {}
    for i in range(len(s)):
        for k in sorted(set(band)):
            inside = [m for m in range(M) if band[m] == k]
            tau = 0.05 + 0.25 * sum(COST[m] for m in inside) / len(inside)
            good = [m for m in inside if positive[i, m]]
            if not good:
                continue
            top = sum(math.exp(s[i, m] / tau) for m in good)
            bottom = 0.0
            for m in range(M):
                if known[i, m] and penalty == "inside":
                    bottom += math.exp((s[i, m] - gamma * COST[m]) / tau)
                elif known[i, m]:
                    bottom += math.exp(s[i, m] / tau - gamma * COST[m])
            terms.setdefault(i, {})[k] = -math.log(top / bottom)
    if average == "query":
        return sum(sum(t.values()) / len(t) for t in terms.values()) / len(terms)
    bands: dict[int, list[float]] = {}
    for found in terms.values():
        for k, value in found.items():
            bands.setdefault(k, []).append(value)
    return sum(sum(v) / len(v) for v in bands.values()) / len(bands)


@pytest.mark.parametrize("penalty", ["inside", "outside"])
@pytest.mark.parametrize("average", ["query", "band"])
@pytest.mark.parametrize("gamma", [0.0, 0.2])
@pytest.mark.parametrize("n", [1, 3, 5])
def test_the_spectrum_loss_is_equation_8(penalty: str, average: str, gamma: float, n: int) -> None:
    similarity, positive, known = batch()
    band = losses.bands_of(COST, n)
    tau = losses.temperatures(COST, band, 0.05, 0.25)
    given = [torch.from_numpy(v) for v in (COST, band, tau)]

    def loss(s: torch.Tensor) -> torch.Tensor:
        return losses.cost_spectrum(
            s, positive, known, *given, gamma, penalty=penalty, average=average
        )

    want = slow_spectrum(
        similarity.numpy(), positive.numpy(), known.numpy(), band.tolist(), gamma, penalty, average
    )
    assert float(loss(similarity)) == pytest.approx(want, rel=1e-12)
    if n == 3:
        assert torch.autograd.gradcheck(loss, similarity.requires_grad_())
    turned = float(loss(similarity.detach().flip(1)))
    assert turned != pytest.approx(want, rel=1e-3)


def test_the_plain_loss_is_equation_6_and_the_spectrum_of_one_band() -> None:
    similarity, positive, known = batch(1)
    s, want = similarity.numpy(), []
    for i in range(B):
        if positive[i].any():
            top = sum(math.exp(s[i, m] / 0.1) for m in range(M) if positive[i, m])
            bottom = sum(math.exp(s[i, m] / 0.1) for m in range(M) if known[i, m])
            want.append(-math.log(top / bottom))
    found = losses.info_nce(similarity, positive, known, 0.1)
    assert float(found) == pytest.approx(sum(want) / len(want), rel=1e-12)
    # Section 3.4: equation 8 collapses to equation 6 with one band and no penalty.
    one = torch.zeros(M, dtype=torch.int64)
    tau = torch.full((M,), 0.1, dtype=torch.float64)
    spectrum = losses.cost_spectrum(similarity, positive, known, tau * 0, one, tau, 0.0)
    assert float(spectrum) == pytest.approx(float(found), rel=1e-12)
    assert torch.autograd.gradcheck(
        lambda x: losses.info_nce(x, positive, known, 0.1), similarity.requires_grad_()
    )


def test_the_gates_value_is_its_expected_label() -> None:
    similarity, _, known = batch(2)
    y = torch.rand(B, M, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    want = []
    for i in range(B):
        e = [math.exp(float(similarity[i, m]) / 0.3) if known[i, m] else 0.0 for m in range(M)]
        want.append(sum(a / sum(e) * float(y[i, m]) for m, a in enumerate(e)))
    assert float(gate_value(similarity, y, known, 0.3)) == pytest.approx(sum(want) / B, rel=1e-12)
    assert torch.autograd.gradcheck(
        lambda x: gate_value(x, y, known, 0.3), similarity.requires_grad_()
    )


def test_bands_hold_every_model_once_the_dearest_in_the_last() -> None:
    for n in (1, 2, 3, 5):
        band = losses.bands_of(COST, n)
        edges = [float(np.quantile(COST, k / n)) for k in range(n + 1)]
        for m, k in enumerate(band.tolist()):
            assert edges[k] - 1e-12 <= COST[m]
            assert COST[m] < edges[k + 1] - 1e-12 or k == n - 1
    assert losses.bands_of(COST, 5)[-1] == 4
    assert losses.bands_of(np.zeros(4), 5).tolist() == [4, 4, 4, 4]
    tau = losses.temperatures(COST, losses.bands_of(COST, 2), 0.05, 0.25)
    assert tau.tolist() == pytest.approx([0.05 + 0.25 * 0.2 / 3] * 3 + [0.05 + 0.25 * 0.7] * 3)


def test_the_cheapest_positive_of_a_band_stands_alone() -> None:
    _, positive, _ = batch(3)
    band = losses.bands_of(COST, 3)
    found = losses.cheapest_positive(positive, torch.from_numpy(band), torch.from_numpy(COST))
    for i in range(B):
        for k in set(band.tolist()):
            good = [m for m in range(M) if band[m] == k and positive[i, m]]
            want = {min(good, key=lambda m: (COST[m], m))} if good else set()
            assert {m for m in range(M) if band[m] == k and found[i, m]} == want


def test_the_index_finds_what_sorting_everything_finds() -> None:
    queries, bank = (RNG.normal(size=(n, 9)).astype(np.float32) for n in (40, 13))
    at, near = nearest_models(queries, bank, 4)
    products = queries @ bank.T
    assert np.array_equal(at, np.argsort(-products, axis=1, kind="stable")[:, :4])
    assert np.allclose(near, np.take_along_axis(products, at, 1), atol=1e-6)
    assert nearest_models(queries, bank, 99)[0].shape == (40, 13)


def test_descriptors_of_two_kinds_share_a_space_only_when_as_long() -> None:
    names = ("a", "b", "c")
    some = np.array([[3, 0], [np.nan, np.nan], [0, 2]], np.float32)
    other = np.array([[9, 9], [0, 5], [np.nan, np.nan]], np.float32)
    kinds = {"logit_footprint": some, "perplexity_fingerprint": other}
    assert bank_of(kinds, names).tolist() == [[1, 0], [0, 1], [0, 1]]
    with pytest.raises(BadInput, match=r"1 of 3 models have no descriptor, such as 'b'"):
        bank_of(kinds, names, "logit_footprint")
    with pytest.raises(BadInput, match="as long"):
        bank_of({**kinds, "logit_footprint": np.pad(some, ((0, 0), (0, 1)))}, names)
    with pytest.raises(BadInput, match="no descriptors of kind 'mine'"):
        bank_of(kinds, names, "mine")
    # A kind that all models have comes before a mixture.
    whole = np.ones((3, 7), np.float32)
    assert bank_of({**kinds, "text_footprint": whole}, names).shape == (3, 7)


#: Models sit on a half circle; one is right about a question that points its way.
ANGLES = np.linspace(0, np.pi, 7)
LATE = 3


def circle(n: int, seed: int, angles: np.ndarray = ANGLES) -> tuple[Examples, np.ndarray]:
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, np.pi, n)
    turned = np.linalg.qr(np.random.default_rng(7).normal(size=(12, 12)))[0][:2]
    vectors = np.stack([np.cos(angle), np.sin(angle)], 1) @ turned
    vectors += 0.05 * rng.normal(size=vectors.shape)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chance = np.where(np.abs(angle[:, None] - angles) < 0.3, 0.98, 0.02)
    labels = (rng.random(chance.shape) < chance).astype(float)
    descriptors = np.stack([np.cos(angles), np.sin(angles), 0 * angles], 1).astype(np.float32)
    queries = Queries(tuple(f"{seed}-{i}" for i in range(n)), np.full(n, "t"), vectors.astype("f4"))
    names = tuple(f"m{k}" for k in range(len(angles)))
    usd = np.tile(1.0 + 0.01 * np.arange(len(angles)), (n, 1))
    made = Examples(queries, names, labels, {"usd": usd}, None, {"logit_footprint": descriptors})
    return made, chance


def reached(router: object, test: Examples, chance: np.ndarray) -> float:
    scores = router.scores(test.queries)  # type: ignore[attr-defined]
    return float(chance[np.arange(len(chance)), scores.argmax(axis=1)].mean())


@pytest.fixture(scope="module")
def train() -> Examples:
    return dataclasses.replace(circle(600, 0)[0], validation=circle(150, 1)[0])


@pytest.mark.parametrize("name", ["cscr", "contrastive", "soft-moe"])
def test_planted_geometry_is_found_and_one_direction_for_all_is_not(
    name: str, train: Examples
) -> None:
    test, chance = circle(300, 2)
    router = ROUTERS.get(name)(seed=1, **({"gamma": 0.0} if name == "cscr" else {}))
    assert reached(router.fit(train), test, chance) > 0.75
    same = np.ones((len(ANGLES), 3), np.float32)
    blind = dataclasses.replace(train, descriptors={"logit_footprint": same})
    ablated = ROUTERS.get(name)(seed=1).fit(blind)
    assert reached(ablated, test, chance) < 0.5


def test_a_new_model_needs_its_descriptor_and_nothing_else(train: Examples) -> None:
    test, chance = circle(300, 2)
    labels, held = train.labels.copy(), train.validation
    assert held is not None
    labels[:, LATE] = np.nan
    hidden = held.labels.copy()
    hidden[:, LATE] = np.nan
    silent = dataclasses.replace(
        train, labels=labels, validation=dataclasses.replace(held, labels=hidden)
    )
    quiet = CSCR(seed=1, gamma=0.0).fit(silent)
    asked = quiet.scores(test.queries).argmax(axis=1) == LATE
    assert asked.any()
    assert chance[asked, LATE].mean() > 0.6  # of all questions: 0.3


def test_the_rule_is_the_nearest_few_then_similarity_less_cost(train: Examples) -> None:
    test = circle(40, 5)[0]
    router = CSCR(seed=1, k=3).fit(train)
    scores = router.scores(test.queries)
    cost = np.array([0.3, 0.9, 0.1, 0.5, 0.2, 0.8, 0.4])
    scaled = (cost - 0.1) / 0.8
    placed, bank = router.placed(test.queries), router._bank
    for weight in (0.0, 0.1, 0.5, 1.0):
        chosen = similarity_minus_cost(scores, cost, weight, np.arange(scores.shape[1]))
        for i in range(40):
            near = [float(placed[i] @ bank[m]) for m in range(7)]
            top = sorted(range(7), key=lambda m: -near[m])[:3]
            want = max(top, key=lambda m: near[m] - weight * scaled[m])
            assert chosen[i] == want
    assert (scores > OUTSIDE).sum(axis=1).tolist() == [3] * 40


def test_the_published_code_has_its_own_bands_and_averages(train: Examples) -> None:
    router = CSCR(seed=1, preset="code").fit(train)
    assert sorted(set(router.bands().tolist())) == [0, 1]  # int(√7) bands
    assert (router.settings["average"], router.settings["k"]) == ("band", 1)
    gate = ROUTERS.get("parametric")(seed=1, preset="code")
    found = gate.fit(train).scores(circle(9, 3)[0].queries)
    # W·d_m + b knows nothing of the question.
    assert np.allclose(found, found[:1])
