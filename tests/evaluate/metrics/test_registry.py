"""Every metric equals a plain loop on awkward matrices."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.metrics import METRICS
from routeyard.pipelines.evaluate.metrics.selection import penalties
from routeyard.pipelines.evaluate.metrics.single import arena_score
from routeyard.pipelines.evaluate.metrics.spec import MetricSpec
from routeyard.pipelines.evaluate.run import evaluate
from tests.evaluate.cores import core_of
from tests.evaluate.metrics.plain_loops import PLAIN, Case

README = (
    Path(importlib.import_module("routeyard.pipelines.evaluate").__file__ or "").parent
    / "README.md"
)

POINTS = 7


def test_every_metric_of_a_router_is_computed() -> None:
    # That each is listed, documented and tested: tests/test_registries.py.
    specs = [METRICS.get(name) for name in METRICS.builtin]
    assert [one.name for one in specs if one.compute is None and one.per != "family"] == []


def test_readme_has_no_row_of_a_metric_that_is_gone() -> None:
    rows = [line.split("`")[1] for line in README.read_text().splitlines() if line[:3] == "| `"]
    gone = sorted(set(rows) - METRICS.builtin.keys())
    assert not gone, f"take the rows of {', '.join(gone)} out of pipelines/evaluate/README.md"
    assert len(rows) == len(set(rows)), "a metric has two rows in pipelines/evaluate/README.md"


def test_a_metric_that_needs_what_no_evaluation_has_is_refused() -> None:
    with pytest.raises(BadInput, match="needs 'label', which no") as caught:
        MetricSpec("own", "lower", "share", "own", "says", needs=("costs", "label"))
    assert "costs" in (caught.value.next_step or "")


def awkward(seed: int, n: int, m: int) -> Core:
    """Ties in scores, costs and labels, graded labels with another threshold, holes."""
    rng = np.random.default_rng(seed)
    total = n + 6
    y = rng.choice([0.0, 0.0, 0.25, 0.7, 1.0, 1.0], (total, m))
    # A threshold of 0.8: what a 0.5 written into the code would call right is wrong here.
    right = (y >= 0.8).astype(float)
    holes = rng.random((total, m)) < 0.15
    holes[np.arange(total), rng.integers(0, m, total)] = False
    holes[:6] = False
    y[holes] = right[holes] = np.nan
    usd = rng.choice([1.0, 2.0, 4.0], (total, m)) * 1e-3 * (1 + np.arange(m) % 3)
    tokens = rng.integers(1, 50, (total, m)).astype(float)
    return core_of(
        y,
        [f"t{i % 3}" for i in range(total)],
        correct=right,
        costs={"usd": usd, "tokens": tokens},
        splits={"dense": np.array(["train"] * 6 + ["test"] * n)},
    )


class Fixed:
    """Scores with ties, as probabilities."""

    def __init__(self, salt: int):
        self.salt = salt

    def fit(self, train) -> None:
        self.m = len(train.model_ids)

    def scores(self, queries):
        return np.random.default_rng(self.salt).integers(0, 5, (len(queries), self.m)) / 4


SHAPES = [(0, 12, 4), (1, 12, 2), (2, 1, 3), (3, 8, 1), (4, 1, 1), (5, 20, 5), (6, 15, 2)]


@pytest.mark.parametrize(("seed", "n", "m"), SHAPES)
def test_every_metric_equals_its_plain_loop(seed: int, n: int, m: int) -> None:
    core = awkward(seed, n, m)
    # With one question the two may share none: then there is no pair.
    met = m > 1 and bool((~np.isnan(core.labels[6:, :2])).all(axis=1).any())
    pair = ("m0", "m1") if met else None
    picks = {f"q{i:03}": float(i % 2) for i in range(6, 6 + n, 3)}
    ticks = iter([0.0, 0.002] * 2)
    done = evaluate(
        core,
        {"a": lambda s: Fixed(seed), "b": lambda s: Fixed(seed + 100)},
        all=True,
        resamples=20,
        points=POINTS,
        pair=pair,
        clock=lambda: next(ticks),
        usd_per_hour=3.0,
        picks={"a": picks},
    )
    found = {
        row["metric"]: row["value"]
        for row in done.metrics.to_pylist()
        if row["router"] == "a" and row["split"] == "test"
    }
    train, test = slice(0, 6), slice(6, None)
    fixed = {salt: Fixed(salt) for salt in (seed, seed + 100)}
    for one in fixed.values():
        one.m = m
    case = Case(
        y=core.labels[test].tolist(),
        right=core.correct[test].tolist(),
        cost={x: c[test].tolist() for x, c in core.costs.items()},
        train_cost={x: c[train].tolist() for x, c in core.costs.items()},
        train_y=core.labels[train].tolist(),
        tasks=core.tasks[test].tolist(),
        scores=fixed[seed].scores(range(n)).tolist(),
        settings=penalties(POINTS).tolist(),
        pair=(0, 1) if met else None,
        others=[fixed[seed + 100].scores(range(n)).tolist()],
        picks=[picks.get(f"q{i:03}") for i in range(6, 6 + n)],
    )
    for name, plain in PLAIN.items():
        for row, value in plain(case).items():
            assert row in found, f"{row} has no row"
            if value is None:
                assert found[row] is None, (row, found[row])
            else:
                assert found[row] == pytest.approx(value, abs=1e-9, rel=1e-9), row
        assert {r for r in found if r.split("[")[0] == name} == set(plain(case))


def test_published_arena_scores_come_out() -> None:
    # The two evaluations that RouterArena's repository prints with all digits (pull request
    # 181 and metrics.json at 065cca5): accuracy, USD per 1,000 queries, score.
    assert float(arena_score(0.7518957671, 8.5434721952)) == pytest.approx(0.6586468316, abs=1e-10)
    assert float(arena_score(0.718453907843953, 0.13639649464285758)) == pytest.approx(
        0.7147593301906191, abs=1e-15
    )


@pytest.mark.parametrize(
    ("score", "accuracy", "usd", "points", "cents"),
    [
        # Leaderboard rows, in per cent and dollars, of pull requests 165, 139, 156, 107, 133.
        *((s, a, c, 5e-5, 5e-3) for s, a, c in (
            (0.7612, 0.7814, 0.30), (0.7530, 0.7718, 0.30), (0.7527, 0.7640, 0.18),
            (0.7517, 0.7534, 0.08), (0.7061, 0.7059, 0.10), (0.6709, 0.6880, 0.63),
            (0.7126, 0.7205, 0.20), (0.7371, 0.7513, 0.26), (0.7187, 0.7282, 0.22),
            (0.6666, 0.6809, 0.54), (0.7538, 0.7597, 0.11), (0.6723, 0.6653, 0.06),
        )),
        # With four digits of the cost: 119, 108, 157, 207.
        *((s, a, c, 5e-5, 5e-5) for s, a, c in (
            (0.7282, 0.7632, 0.9442), (0.7208, 0.7554, 0.9976), (0.6714, 0.6886, 0.6266),
            (0.7549, 0.7799, 0.4345),
        )),
    ],
)  # fmt: skip
def test_rounded_arena_rows_lie_where_their_inputs_allow(
    score: float, accuracy: float, usd: float, points: float, cents: float
) -> None:
    # Inputs printed to so many digits leave an interval, and the printed score lies in it.
    low = float(arena_score(accuracy - points, usd + cents))
    high = float(arena_score(accuracy + points, usd - cents))
    assert low - 5e-5 <= score <= high + 5e-5


def test_a_metric_of_another_package_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = MetricSpec(
        name="share_of_m0",
        direction="neither",
        unit="share",
        source="a test",
        says="share of questions sent to the first model",
        compute=lambda shown: shown.mean((shown.choice == 0).astype(float)),
    )
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "OTHER", spec, raising=False)
    monkeypatch.setitem(METRICS.targets, "share_of_m0", f"{__name__}:OTHER")
    done = evaluate(awkward(0, 12, 3), {"a": lambda s: Fixed(0)}, resamples=20, points=POINTS)
    rows = {r["metric"]: r for r in done.metrics.to_pylist() if r["router"] == "a"}
    chosen = [r["model_id"] for r in done.choices.to_pylist() if r["router"] == "a"]
    assert rows["share_of_m0"]["value"] == pytest.approx(chosen.count("m0") / 12)
    assert rows["share_of_m0"]["low"] is not None
