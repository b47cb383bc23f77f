"""Names and order of models and of questions decide nothing, here in a pool of 71 models."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import stats

from routeyard.pipelines.common.arrays import ranked
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import Examples, traits_of
from tests.routers.planted import everything, quick

MODELS, KINDS, WIDTH = 71, 5, 24


def pool(n: int, seed: int) -> tuple[Examples, np.ndarray]:
    """Questions of five kinds; 71 models from 0.12 to 0.77, each 0.25 better on one kind.

    A quarter of the questions have the vector of another one, and labels of their own.
    """
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, KINDS, n)
    centres = np.linalg.qr(np.random.default_rng(99).normal(size=(WIDTH, WIDTH)))[0]
    vectors = centres[kind] + 0.25 * rng.normal(size=(n, WIDTH))
    vectors[: n // 4] = vectors[n // 4 : 2 * (n // 4)]
    kind[: n // 4] = kind[n // 4 : 2 * (n // 4)]
    good_at = np.random.default_rng(7).integers(0, KINDS, MODELS)
    level = np.linspace(0.2, 0.85, MODELS)
    chance = np.clip(level + 0.25 * (kind[:, None] == good_at) - 0.08, 0.02, 0.98)
    labels = (rng.random((n, MODELS)) < chance).astype(float)
    ids = tuple(f"q{seed}-{i}" for i in range(n))
    usd = np.exp(np.linspace(0, 3, MODELS))
    made = everything(ids, kind, vectors, chance, labels, usd)
    footprints = np.random.default_rng(3).normal(size=(MODELS, 8)).astype(np.float32)
    return dataclasses.replace(made, descriptors={"logit_footprint": footprints}), chance


def moved(one: Examples, order: np.ndarray) -> Examples:
    """The same models in another order of columns, under the names of the places they get."""
    held = None if one.validation is None else moved(one.validation, order)
    return dataclasses.replace(one.with_models(order), model_ids=one.model_ids, validation=held)


def asked_otherwise(one: Examples, rows: np.ndarray) -> Examples:
    """The same questions in another order, each with the id of the place it gets."""
    taken = one.take(rows)
    queries = dataclasses.replace(taken.queries, query_ids=one.queries.query_ids)
    return dataclasses.replace(taken, queries=queries)


TRAIN = dataclasses.replace(pool(300, 0)[0], validation=pool(80, 10)[0])
TEST, CHANCE = pool(300, 20)
#: Best first, worst first, and in the order of their names (m0, m1, m10, …).
ORDERS = [
    np.arange(MODELS)[::-1],
    np.arange(MODELS),
    np.array(sorted(range(MODELS), key=lambda k: f"m{k}")),
]


def reached(
    name: str, order: np.ndarray, seed: int | None, **setting: object
) -> tuple[np.ndarray, float]:
    """(scores with columns as in `TEST`, mean chance of a right answer of the choices)."""
    router = ROUTERS.get(name)(**({} if seed is None else {"seed": seed}), **setting)
    router.fit(moved(TRAIN, order))
    scores = np.empty_like(CHANCE)
    scores[:, order] = router.scores(TEST.queries.with_models(order))
    first = ranked(TRAIN.labels)
    choice = first[scores[:, first].argmax(axis=1)]
    return scores, float(CHANCE[np.arange(len(choice)), choice].mean())


FIXED = [name for name in sorted(ROUTERS.builtin) if not traits_of(ROUTERS.get(name)).stochastic]
DRAWN = [name for name in sorted(ROUTERS.builtin) if name not in FIXED]


@pytest.mark.parametrize("name", FIXED)
def test_order_of_models_and_of_questions_changes_no_score(name: str) -> None:
    settings = quick(name)
    (plain, right), *others = (reached(name, order, None, **settings) for order in ORDERS)
    for scores, accuracy in others:
        np.testing.assert_allclose(scores, plain, rtol=1e-9, atol=1e-9)
        assert accuracy == right
    rng = np.random.default_rng(4)
    held = TRAIN.validation
    turned = asked_otherwise(TRAIN, rng.permutation(len(TRAIN.labels)))
    turned = dataclasses.replace(
        turned, validation=asked_otherwise(held, rng.permutation(len(held.labels)))
    )
    rows = rng.permutation(len(CHANCE))
    router = ROUTERS.get(name)(**settings)
    router.fit(turned)
    one, two = plain[rows], router.scores(asked_otherwise(TEST, rows).queries)
    np.testing.assert_allclose(two, one, rtol=1e-7, atol=1e-9)
    first = ranked(TRAIN.labels)
    assert np.array_equal(first, ranked(turned.labels))
    np.testing.assert_array_equal(two[:, first].argmax(axis=1), one[:, first].argmax(axis=1))


def ahead(name: str, seeds: range, level: float = 0.025, **setting: object) -> set[tuple[int, int]]:
    """(order, other): pairs with a mean lead over seeds, in a one-sided t-test at a level."""
    found = np.array([[reached(name, one, s, **setting)[1] for one in ORDERS] for s in seeds])
    leads = set()
    for a, b in itertools.permutations(range(len(ORDERS)), 2):
        gap = found[:, a] - found[:, b]
        error = stats.t.ppf(1 - level, len(gap) - 1) * gap.std(ddof=1) / np.sqrt(len(gap))
        if gap.mean() > error + 1e-12:
            leads.add((a, b))
    return leads


def test_taken_by_position_the_order_decides_whom_routerdc_trains() -> None:
    """What the averages below would find: the first of equals, as the published code has it."""
    for ties, decides in (("position", True), ("means", False)):
        reach = [
            [reached("routerdc", o, seed, ties=ties)[1] for o in ORDERS[:2]] for seed in (1, 2)
        ]
        lead = np.mean([best - worst for best, worst in reach])
        assert lead > 0.2 if decides else lead < 0.05


#: Level of the second look: (leads that can be found) x 0.025 x this level is 0.05, so that chance
#: alone fails the test for any router in one run of twenty at most.
AGAIN = 0.05 / (len(DRAWN) * 6 * 0.025)


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_order_of_models_changes_no_drawn_result_on_average(name: str) -> None:
    """The 95 % interval of the mean lead over 10 seeds holds 0, but for what chance explains.

    Each of 39 routers has three intervals; six of 117 leave 0 out where nothing is wrong. A lead
    is looked for again with 30 other seeds, which know nothing of the first, at a level that
    keeps the chance of any false alarm over all routers below 5 %. Of those that once failed at
    10 seeds (parametric, routellm-bert, mlp-as-printed), leads on a pool of 12 models were
    0.05 ± 0.08 and 0.06 ± 0.27 (200 seeds) and 0.11 ± 0.18 points (40 seeds) at most.
    """
    if found := ahead(name, range(10)):
        assert not found & ahead(name, range(10, 40), AGAIN)


@pytest.mark.slow
def test_a_lead_by_position_passes_neither_look() -> None:
    by_position = ahead("routerdc", range(10), ties="position")
    assert by_position & ahead("routerdc", range(10, 20), AGAIN, ties="position")


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_order_of_questions_changes_no_drawn_result_on_average(name: str) -> None:
    gaps, first = [], ranked(TRAIN.labels)
    for seed in range(10):
        rows = np.random.default_rng(seed).permutation(len(TRAIN.labels))
        reach = []
        for train in (TRAIN, asked_otherwise(TRAIN, rows)):
            router = ROUTERS.get(name)(seed=seed)
            router.fit(train)
            choice = first[router.scores(TEST.queries)[:, first].argmax(axis=1)]
            reach.append(CHANCE[np.arange(len(choice)), choice].mean())
        gaps.append(reach[0] - reach[1])
    assert abs(np.mean(gaps)) <= 2.262 * np.std(gaps, ddof=1) / np.sqrt(10) + 1e-12
