"""Held-out rows and spread over seeds against plain loops, on random matrices with holes."""

from __future__ import annotations

import statistics
from dataclasses import replace

import numpy as np
import pytest

from routeyard.pipelines.common.arrays import ranked
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.held_out import held_out_groups
from routeyard.pipelines.evaluate.run import evaluate
from tests.evaluate.cores import core_of


def holed(seed: int) -> Core:
    """90 questions of four tasks in two domains, three models, graded labels, holes, no costs."""
    rng = np.random.default_rng(seed)
    n, m = 90, 3
    y = rng.choice([0.0, 0.25, 1.0], (n, m))  # sums without rounding
    holes = rng.random((n, m)) < 0.15
    holes[np.arange(n), rng.integers(0, m, n)] = False
    right = (y >= 0.8).astype(float)
    y[holes] = right[holes] = np.nan
    task = rng.integers(0, 4, n)
    return core_of(
        y,
        [f"t{t}" for t in task],
        correct=right,
        costs={},
        domains=np.array([f"d{t % 2}" for t in task]),
        splits={"dense": np.array(["train", "test"] * (n // 2))},
        metadata=tuple(f'{{"level": "{"hard" if i % 3 else "easy"}"}}' for i in range(n)),
    )


class ByTask:
    """Mean of the train labels on the task, or on everything where the task was never seen."""

    def fit(self, train) -> None:
        self.whole = np.nanmean(train.labels, axis=0)
        self.known = {}
        for task in set(train.queries.tasks):
            some = train.labels[train.queries.tasks == task]
            here = [
                np.nanmean(some[:, k]) if not np.isnan(some[:, k]).all() else self.whole[k]
                for k in range(some.shape[1])
            ]
            self.known[task] = np.array(here)

    def scores(self, queries):
        return np.array([self.known.get(task, self.whole) for task in queries.tasks])


def mean(values) -> float:
    values = [v for v in values if v == v]
    return sum(values) / len(values)


def choice(core: Core, train: list[int], q: int) -> int:
    """What `ByTask`, trained on these questions, asks: the best of the models with a label."""
    m = core.n_models
    whole = [mean(core.labels[i, k] for i in train) for k in range(m)]
    same = [i for i in train if core.tasks[i] == core.tasks[q]]
    scores = []
    for k in range(m):
        seen = [core.labels[i, k] for i in same if core.labels[i, k] == core.labels[i, k]]
        scores.append(sum(seen) / len(seen) if seen else whole[k])
    there = [k for k in range(m) if core.labels[q, k] == core.labels[q, k]]
    # The pool has no dollars: equal scores go to the better on train, then to the cheaper.
    order = ranked(core.labels[train]).tolist()
    return max(there, key=lambda k: (scores[k], -order.index(k)))


def expected(core: Core, inside: list[int]) -> dict[str, float]:
    """The four figures of one held-out group."""
    splits = core.splits["dense"]
    train = [i for i in range(core.n_queries) if splits[i] == "train"]
    outside = [i for i in train if i not in inside]
    test = [i for i in inside if splits[i] == "test"]
    known = [core.labels[q, choice(core, train, q)] for q in test]
    chosen = [choice(core, outside, q) for q in test]
    new = [core.labels[q, k] for q, k in zip(test, chosen, strict=True)]
    # On the same questions: a hole counts as the mean of its question.
    rows = [[v if v == v else mean(core.labels[i]) for v in core.labels[i]] for i in outside]
    means = [round(mean(row[k] for row in rows), 12) for k in range(core.n_models)]
    labelled = [sum(row == row for row in core.labels[outside, k]) for k in range(core.n_models)]
    order = ranked(core.labels[outside]).tolist()
    general = max(range(core.n_models), key=lambda k: (means[k], labelled[k], -order.index(k)))
    return {
        "id_accuracy": mean(known),
        "ood_accuracy": mean(new),
        "accuracy_change": mean(new) - mean(known),
        "agreement": mean([float(k == general) for k in chosen]),
    }


@pytest.mark.parametrize("seed", range(3))
def test_held_out_rows_equal_plain_loops(seed: int) -> None:
    core = holed(seed)
    groups = {"some": ["t0", "t3"], "easy": ["level=easy"]}
    done = evaluate(
        core, {"a": lambda s: ByTask()}, resamples=20, points=5, ood=True, ood_groups=groups
    )
    found = {
        (row["split"], row["metric"]): row["value"]
        for row in done.metrics.to_pylist()
        if row["router"] == "a"
    }
    every = range(core.n_queries)
    held = {
        "some": [i for i in every if core.tasks[i] in ("t0", "t3")],
        "easy": [i for i in every if "easy" in core.metadata[i]],
    }
    averaged = []
    for name, inside in held.items():
        for group, members in (
            (name, inside), (f"not {name}", [i for i in every if i not in inside]),
        ):  # fmt: skip
            if sum(core.splits["dense"][i] == "test" for i in members) < 20:
                assert (f"ood:{group}", "ood_accuracy") not in found
                continue
            want = expected(core, members)
            averaged += [want] if group == name else []
            for metric, value in want.items():
                assert found[f"ood:{group}", metric] == pytest.approx(value, abs=1e-12), group
    for metric in ("id_accuracy", "ood_accuracy", "accuracy_change", "agreement"):
        if averaged:
            value = mean(one[metric] for one in averaged)
            assert found["ood:average", metric] == pytest.approx(value, abs=1e-12)
    assert any(split.startswith("ood:") for split, _ in found)


class Drawn:
    """Scores that the seed draws."""

    def __init__(self, seed: int):
        self.seed = seed

    def fit(self, train) -> None:
        self.m = len(train.model_ids)

    def scores(self, queries):
        return np.random.default_rng(self.seed).integers(0, 5, (len(queries), self.m)) / 4


def test_mean_and_deviation_over_seeds_equal_plain_loops() -> None:
    core = holed(5)
    test = [i for i in range(core.n_queries) if core.splits["dense"][i] == "test"]
    train = [i for i in range(core.n_queries) if core.splits["dense"][i] == "train"]
    order = ranked(core.labels[train]).tolist()
    accuracy = []
    for seed in range(4):
        scores = Drawn(seed)
        scores.m = core.n_models
        drawn = scores.scores(test)
        right = []
        for row, q in enumerate(test):
            there = [k for k in range(core.n_models) if core.labels[q, k] == core.labels[q, k]]
            right.append(
                core.labels[q, max(there, key=lambda k, r=row: (drawn[r, k], -order.index(k)))]
            )
        accuracy.append(mean(right))
    done = evaluate(core, {"a": Drawn}, resamples=20, points=5, seeds=4)
    found = {r["metric"]: r["value"] for r in done.metrics.to_pylist() if r["router"] == "a"}
    assert found["accuracy_seed_mean"] == pytest.approx(statistics.mean(accuracy), abs=1e-12)
    assert found["accuracy_seed_sd"] == pytest.approx(statistics.stdev(accuracy), abs=1e-12)


def test_metadata_follows_the_questions_that_are_taken() -> None:
    core = holed(0)
    few = core.take(np.array([5, 3]))
    assert few.metadata == (core.metadata[5], core.metadata[3])
    without = replace(core, metadata=())
    assert held_out_groups(without, "dense", {}, groups={"x": ["t0"]}) == []
