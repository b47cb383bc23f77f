"""Published settings are honoured or named, and published formulas equal ones from scratch."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.networks.trained import Trained

MODELS, WIDTH = 5, 12


def examples(n: int, seed: int) -> Examples:
    """Questions in five directions, labels with holes, costs that differ by model."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, MODELS, n)
    vectors = np.eye(WIDTH)[kind] + 0.4 * rng.normal(size=(n, WIDTH))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    labels = (rng.random((n, MODELS)) < 0.3 + 0.5 * (kind[:, None] == np.arange(MODELS))) * 1.0
    labels[rng.random((n, MODELS)) < 0.1] = np.nan
    ids = tuple(f"q{seed}-{i}" for i in range(n))
    queries = Queries(ids, np.array([f"t{k}" for k in kind]), vectors)
    usd = rng.uniform(0.5, 1.5, (n, MODELS)) * np.array([5.0, 1.0, 3.0, 2.0, 4.0])
    return Examples(queries, tuple("abcde"), labels, {"usd": usd})


TRAIN, TEST = examples(400, 0), examples(150, 1)
HELD = dataclasses.replace(TRAIN, validation=examples(80, 2))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("alpha", [1.0, 0.45])
def test_avengers_pro_chooses_as_its_paper_computes(alpha: float) -> None:
    router = ROUTERS.get("avengers-pro")(clusters=25, alpha=alpha, as_published=True)
    router.fit(TRAIN)
    centres, x = router._centres, TRAIN.queries.vectors().astype(np.float64)
    member = ((x[:, None, :] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    cost = np.nanmean(TRAIN.costs["usd"], axis=0)
    ranks = np.zeros((len(centres), MODELS))
    for k in range(len(centres)):
        accuracy = np.array(
            [
                np.nanmean(y) if not np.isnan(y).all() else np.nanmean(TRAIN.labels[:, m])
                for m, y in enumerate(TRAIN.labels[member == k].T)
            ]
        )
        spread = accuracy.max() - accuracy.min()
        worth = (accuracy - accuracy.min()) / spread if spread else np.ones(MODELS)
        worth = alpha * worth + (1 - alpha) * (1 - cost / cost.max())
        for place, m in enumerate(sorted(range(MODELS), key=lambda m, w=worth: (-w[m], m))):
            ranks[k, m] = 1 / (place + 1)
    wrong = 0
    found = router.scores(TEST.queries)
    for e, ours in zip(TEST.queries.vectors().astype(np.float64), found, strict=True):
        distance = np.array([1 - e @ centre for centre in centres])
        near = np.argsort(distance, kind="stable")[:3]
        total = softmax(-9 * distance[near]) @ ranks[near]
        wrong += int(total.argmax() != ours.argmax())
        assert ours == pytest.approx(total, abs=1e-9)
    assert wrong == 0


@pytest.mark.parametrize("published", [False, True])
def test_embedllm_scores_as_its_formula(published: bool) -> None:
    router = ROUTERS.get("embedllm")(seed=1, as_published=published, epochs=2)
    a = {k.removeprefix("network."): v for k, v in router.fit(TRAIN).arrays().items()}
    x = TEST.queries.vectors()
    product = a["models"][None] * (x @ a["project.weight"].T + a["project.bias"])[:, None, :]
    two = product @ a["classes.weight"].T + a["classes.bias"]
    logit = two[..., 1] - two[..., 0]
    assert ("level" in a) is not published
    wanted = sigmoid(logit if published else logit + a["level"])
    assert router.scores(TEST.queries) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("published", [False, True])
def test_nirt_scores_as_its_formula(published: bool) -> None:
    router = ROUTERS.get("nirt")(seed=1, as_published=published, epochs=2)
    a = {k.removeprefix("network."): v for k, v in router.fit(TRAIN).arrays().items()}
    x = TEST.queries.vectors()

    def linear(name: str, of: np.ndarray) -> np.ndarray:
        return of @ a[f"{name}.weight"].T + a[f"{name}.bias"]

    relevance = softmax(linear("relevance", x)) * (1 if published else 25)
    mastered = sigmoid(a["mastery"])[None] - sigmoid(linear("demand", x))[:, None, :]
    seen = 9 * sigmoid(linear("sharpness", x))[:, None, :] * mastered * relevance[:, None, :]
    hidden = np.tanh(seen @ np.abs(a["first.weight"]).T + a["first.bias"])
    logit = (hidden @ np.abs(a["second.weight"]).T)[..., 0] + a["second.bias"]
    assert router.scores(TEST.queries) == pytest.approx(sigmoid(logit), abs=1e-6)


TRAINED = sorted(
    name
    for name in ROUTERS.builtin
    if issubclass(ROUTERS.get(name), Trained)
    and "embeddings" in ROUTERS.get(name).traits.needs
    and not {"hidden", "descriptors"} & set(ROUTERS.get(name).traits.needs)
)


@pytest.mark.parametrize("name", ["mirt", "embedllm", "equirouter", "routerdc"])
def test_published_epochs_and_batches_are_run(name: str) -> None:
    sizes = []
    router = ROUTERS.get(name)(seed=0, as_published=True)
    router.settings["epochs"] = min(router.settings["epochs"], 9)
    plain = router.loss

    def counted(network: object, batch: object) -> object:
        sizes.append(len(batch.x))
        return plain(network, batch)

    router.loss = counted
    router.fit(HELD)
    size = router.settings["batch"]
    each = [min(size, 400 - first) for first in range(0, 400, size)]
    assert sizes == each * router.settings["epochs"]
    assert any("best on validation" in one for one in router.not_as_published)
    assert any(f"batch {size:,}" in one for one in router.not_as_published) == (size > 400)


@pytest.mark.parametrize("name", TRAINED)
def test_our_own_settings_deviate_from_nothing(name: str) -> None:
    few = dataclasses.replace(examples(60, 3), validation=examples(30, 4))
    assert ROUTERS.get(name)(seed=0, epochs=1).fit(few).not_as_published == ()
